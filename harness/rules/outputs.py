"""Rules on what a command prints, where the command itself leaves no doubt what that is.

Here: commands of nothing but `echo` with plain words (and `sleep`), whose output is known from the
item alone, against aggregatedOutput ("ThreadItem") and the output deltas ("Events"). Not here:
whether the two agree for any command (deltas).
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import re
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.rules.base import Monitor, Outcomes, Witness, on, rule
from harness.rules.deltas import OUTPUT_DELTA
from harness.rules.subjects import item_in
from harness.rules.telling import absent, member, wrong
from harness.rules.verdict import Level
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.values import text
from harness.trace.views import ItemView

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_ECHO = re.compile(r"echo +(?P<words>[A-Za-z0-9]+(?: +[A-Za-z0-9]+)*)(?P<error> *1?>&2)?")
_SLEEP = re.compile(r"sleep +[0-9.]+")


@dataclass(frozen=True, slots=True)
class Printed:
    """The lines that a command writes to its two streams."""

    out: Counter[str]
    error: Counter[str]

    @property
    def lines(self) -> Counter[str]:
        """All of them."""
        return self.out + self.error


def printed_by(command: str) -> Printed | None:
    """What a command prints, None where that is not certain from its words.

    A shell that is given the script with `-c` may stand around it, as servers show it.
    """
    out, error = Counter[str](), Counter[str]()
    for statement in re.split(r";|&&|\n", _script(command)):
        if _SLEEP.fullmatch(statement.strip()):
            continue
        echo = _ECHO.fullmatch(statement.strip())
        if echo is None:
            return None
        (error if echo["error"] else out)[" ".join(echo["words"].split())] += 1
    return Printed(out, error)


def _script(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    around = len(words) == 3 and PurePosixPath(words[0]).name in _SHELLS
    return words[2] if around and re.fullmatch(r"-[a-z]*c", words[1]) else command


def _lines(output: str) -> Counter[str]:
    return Counter(line.strip() for line in output.splitlines())


class _Output(Monitor):
    """Knows the commands that ended well, and what they certainly printed."""

    def known(self, frame: Frame) -> tuple[ItemView, Printed] | None:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completed) > 1:
            return None
        shows = item_in(frame)
        if shows.get("status") != "completed" or shows.get("exitCode") != 0:
            return None
        printed = printed_by(text(shows.get("command")))
        return None if printed is None else (item, printed)


@rule(
    "item.command-output",
    title="The output of a command is in its item",
    level=Level.MUST,
    needs=("command-execution",),
)
class CommandOutput(_Output):
    """Judges that aggregatedOutput has each line that the command certainly printed.

    Left open: commands other than `echo` of plain words, those that did not end with exit code 0,
    items without aggregatedOutput, which is optional, and in which order the streams are combined.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        known, whole = self.known(frame), item_in(frame).get("aggregatedOutput")
        if known is None or not isinstance(whole, str):
            return None
        item, printed = known
        missing = printed.lines - _lines(whole)
        if not missing:
            return [Witness(item.subject, (frame,))]
        where, command = (member(frame, "item", key) for key in ("aggregatedOutput", "command"))
        expected = f"has the line(s) {', '.join(map(literal, missing))}"
        return [wrong(item.subject, (frame,), where, expected, also=(command,))]


@rule(
    "delta.both-streams",
    title="Both streams of a command are streamed",
    level=Level.SHOULD,
    needs=("command-execution",),
)
class BothStreams(_Output):
    """Judges that the deltas of a command that wrote to both of its streams have lines of both.

    SHOULD: both are streamed, but that the deltas leave nothing out is not said. Left open:
    commands without deltas, which are legal, those other than `echo` of plain words, and whether
    the deltas are all of the output (delta.command-output).
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        known = self.known(frame)
        if known is None:
            return None
        item, printed = known
        joined = item.joined(OUTPUT_DELTA)
        if not item.started or joined is None or not printed.out or not printed.error:
            return None
        frames = tuple(x for x in (item.first_delta, item.last_delta, frame) if x is not None)
        streamed = _lines(joined)
        if streamed & printed.out and streamed & printed.error:
            return [Witness(item.subject, frames)]
        what = "standard error" if streamed & printed.out else "standard output"
        expected = f"deltas with lines of {what}"
        actual, command = f"the deltas join to {literal(joined)}", member(frame, "item", "command")
        return [absent(item.subject, frames, expected, actual, command)]
