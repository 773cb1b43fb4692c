"""The values of a judgement.

Verdicts are not booleans: "not failed" is not "passed", so a verdict in a condition raises.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from harness.protocol.escapes import visible, visible_lines

# Characters kept of each text of a row: a server may send a name of megabytes.
MAX_TEXT_CHARACTERS = 2000


class Level(StrEnum):
    """The weight of a violation; it follows from the basis of the requirement."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    INFO = "INFO"


class Verdict(StrEnum):
    """The six verdicts. KNOWN is a failure that a profile or a baseline predicts."""

    PASS = "PASS"
    FAIL = "FAIL"
    KNOWN = "KNOWN"
    NOT_EXERCISED = "NOT_EXERCISED"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    ERROR = "ERROR"

    def __bool__(self) -> NoReturn:
        raise TypeError(f"a verdict has no truth value; compare {self.value} with a Verdict")


# The verdict of a rule is the one of its rows with the highest number.
GRAVITY: dict[Verdict, int] = {
    Verdict.ERROR: 5,
    Verdict.FAIL: 4,
    Verdict.KNOWN: 3,
    Verdict.PASS: 2,
    Verdict.NOT_EXERCISED: 1,
    Verdict.NOT_APPLICABLE: 0,
}


@dataclass(frozen=True, slots=True)
class Place:
    """A member of a message that a violation is about: the frame's seq, and the JSON path in it.

    `offset` is the index of the first wrong character if the member is a string.
    """

    frame: int
    path: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One verdict about one subject. `frames` are the seqs of the frames that prove it.

    `places` are the members in these frames that it is about; empty if it is about whole messages,
    such as one that is missing. `clauses` are the requirements that a violation breaks; empty for
    all of its rule.

    The texts, which quote messages, are shortened and escaped for terminals.
    """

    rule: str
    subject: str
    verdict: Verdict
    level: Level
    frames: tuple[int, ...] = ()
    expected: str = ""
    actual: str = ""
    clauses: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        """Shorten and escape the texts."""
        # The text of an ERROR can be a traceback of several lines.
        escape = visible_lines if self.verdict is Verdict.ERROR else visible
        for name in ("subject", "expected", "actual"):
            text: str = getattr(self, name)
            if len(text) > MAX_TEXT_CHARACTERS or not text.isprintable():
                short = text if len(text) <= MAX_TEXT_CHARACTERS else _shorten(text)
                object.__setattr__(self, name, escape(short))


def _shorten(text: str) -> str:
    return f"{text[: MAX_TEXT_CHARACTERS - 1]}…"
