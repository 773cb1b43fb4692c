"""Reactions of a server to generated documents; a search without new ones can end early."""

from collections.abc import Iterator

from harness.protocol.values import MISSING, obj
from harness.search.fuzz.case import Kind
from harness.search.fuzz.sessions.play import Played
from harness.trace.correlation import Correlation
from harness.trace.frame import Kind as FrameKind

# Documents in a row without a new reaction, after which other kinds get the time. Raw frames are
# quicker, and show less of a server.
MAX_DRY_DOCUMENTS: dict[Kind, int] = {"inputs": 10, "frames": 25, "sessions": 10**9}
# A reaction: how a method was answered, a notification, a verdict of a rule, or a problem.
Reaction = tuple[str, str]


class Reactions:
    """Reactions seen in a search of one kind."""

    def __init__(self, kind: Kind) -> None:
        self._max_dry = MAX_DRY_DOCUMENTS[kind]
        self._seen: set[Reaction] = set()
        self._dry_documents = 0

    @property
    def are_exhausted(self) -> bool:
        """Return whether too many documents in a row brought no new reaction."""
        return self._dry_documents >= self._max_dry

    def note(self, played: Played) -> None:
        """Add the reactions of a play."""
        before = len(self._seen)
        self._seen.update(reactions_of(played))
        self._dry_documents = 0 if len(self._seen) > before else self._dry_documents + 1


def reactions_of(played: Played) -> Iterator[Reaction]:
    """Yield the reactions of the server in a play, with repetitions."""
    exchanges = Correlation()
    for frame in played.run.trace.frames:
        request = exchanges.feed(frame)
        if frame.from_target:
            yield (
                (request or frame).method[:_MAX_METHOD_LENGTH],
                _answer_of(frame.kind, frame.error),
            )
    for row in played.outcome.rows:
        yield row.rule, row.verdict
    for problem in played.problems:
        yield problem.cause, problem.occasion


# A raw frame may name a method of any length.
_MAX_METHOD_LENGTH = 40


def _answer_of(kind: FrameKind, error: object) -> str:
    return kind if error is MISSING else f"{kind} {obj(error).get('code', '')}"
