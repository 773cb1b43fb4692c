"""A filter of a trace's messages: by thread, turn, item, method, direction and time.

A request and its answer are chosen together, unless the direction or the time excludes one of them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from harness.errors import UsageError
from harness.protocol.values import MISSING, arr, obj
from harness.trace.correlation import Correlation
from harness.trace.frame import Direction, Frame
from harness.trace.nearest import unknown_name
from harness.trace.trace import Trace

KINDS: Final = ("thread", "turn", "item")
MAX_IDS_NAMED: Final = 12
_ID_MEMBER: Final = re.compile(r"(thread|turn|item)_?ids?$", re.IGNORECASE)
_OBJECT_MEMBER: Final = re.compile(r"(thread|turn|item)s?$")
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)?")
_SECONDS: Final = {"": 0.001, "ms": 0.001, "s": 1.0, "m": 60.0}


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """The messages to choose; an empty member chooses all.

    `methods` are names or patterns such as `turn/*`; `since` and `until` are times such as `8300`
    (milliseconds, as shown), `8.3s` or `2m`.
    """

    thread: str = ""
    turn: str = ""
    item: str = ""
    methods: Sequence[str] = ()
    direction: str = ""
    since: str = ""
    until: str = ""

    @property
    def chooses_by_content(self) -> bool:
        """Return whether messages are chosen by more than time; then no marks are shown."""
        return bool(self.thread or self.turn or self.item or self.methods or self.direction)

    @property
    def chooses_all(self) -> bool:
        """Return whether no message is left out."""
        return not (self.chooses_by_content or self.since or self.until)

    def has_time(self, at: float) -> bool:
        """Return whether a time, in seconds, is within `since` and `until`."""
        first = _seconds("--since", self.since) if self.since else 0.0
        last = _seconds("--until", self.until) if self.until else float("inf")
        # Times are shown with a tenth of a millisecond.
        return first <= round(at, 4) <= last

    def choose(self, trace: Trace, pairs: Correlation) -> list[Frame]:
        """Return the chosen messages.

        Raises `UsageError` for an id or method that no message has, or a wrong direction or time.
        """
        direction = self._parse_direction()
        self._check_methods(trace.frames)
        ids = {
            frame.seq: list(ids_of(frame, pairs.request_of(frame)))
            for frame in trace.frames
            if self.thread or self.turn or self.item
        }
        wanted_ids = [
            (kind, _known_id(kind, prefix, [pair for row in ids.values() for pair in row]))
            for kind in KINDS
            if (prefix := getattr(self, kind))
        ]

        def is_chosen(frame: Frame) -> bool:
            pair = pairs.request_of(frame) or pairs.answer_of(frame)
            group = [frame] if pair is None else [frame, pair]
            if self.methods and not any(
                fnmatchcase(member.method, pattern) for member in group for pattern in self.methods
            ):
                return False
            return all(any(wanted in ids[member.seq] for member in group) for wanted in wanted_ids)

        return [
            frame
            for frame in trace.frames
            if direction in (None, frame.direction) and self.has_time(frame.at) and is_chosen(frame)
        ]

    def _parse_direction(self) -> Direction | None:
        if not self.direction:
            return None
        try:
            return Direction(self.direction)
        except ValueError:
            raise UsageError(
                f"--direction {self.direction!r}: expected {' or '.join(Direction)}"
            ) from None

    def _check_methods(self, frames: Sequence[Frame]) -> None:
        sent = sorted({frame.method for frame in frames if frame.method})
        for pattern in self.methods:
            if not any(fnmatchcase(method, pattern) for method in sent):
                raise UsageError("--method: " + unknown_name("method", pattern, sent, listed=""))


def ids_of(frame: Frame, request: Frame | None = None) -> Iterator[tuple[str, str]]:
    """Yield the ids in a message: `("turn", "t1")`. `request` is the one that it answers."""
    message = obj(frame.json)
    for part in ("params", "result", "error"):
        yield from _member_ids(message.get(part, MISSING))
    if not {"params", "result", "error"} & message.keys():
        yield from _member_ids(message)  # An event of a program.
    if request is not None and request.method.endswith("/list"):
        yield from _object_ids(_listed_kind(request.method), obj(frame.result).get("data"))


def _listed_kind(method: str) -> str:
    return next((kind for kind in ("turn", "item") if f"/{kind}s/" in method), "thread")


def _member_ids(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the ids in members such as `threadId` and `turn`, at any depth."""
    open_values = [value]
    while open_values:
        current = open_values.pop()
        open_values += arr(current)
        for name, member in obj(current).items():
            open_values.append(member)
            if found := _ID_MEMBER.search(name):
                yield from _object_ids(found[1].lower(), member)
            elif found := _OBJECT_MEMBER.fullmatch(name):
                yield from _object_ids(found[1], member, bare=False)


def _object_ids(kind: str, value: Any, *, bare: bool = True) -> Iterator[tuple[str, str]]:
    for element in arr(value) or [value]:
        identifier = obj(element).get("id", element if bare else None)
        if isinstance(identifier, str):
            yield kind, identifier


def _known_id(kind: str, prefix: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return the id `prefix`, or the only id that begins or ends with it, else `UsageError`."""
    known = list(dict.fromkeys(identifier for named, identifier in pairs if named == kind))
    if prefix in known:
        return prefix
    similar = [name for name in known if name.startswith(prefix) or name.endswith(prefix)]
    if len(similar) == 1:
        return similar[0]
    reason = f"{len(similar)} ids begin or end so" if similar else f"no message names this {kind}"
    listed = ", ".join((similar or known)[:MAX_IDS_NAMED])
    more = len(similar or known) - MAX_IDS_NAMED
    found = f"; there are {listed}{f' and {more} more' if more > 0 else ''}" if listed else ""
    raise UsageError(f"--{kind} {prefix!r}: {reason}{found}")


def _seconds(option: str, words: str) -> float:
    found = _TIME.fullmatch(words.strip())
    if found is None:
        raise UsageError(f"{option} {words!r}: expected a time such as 8300, 8.3s or 2m")
    return float(found[1]) * _SECONDS[found[2] or ""]
