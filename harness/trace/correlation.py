"""Correlation of answers with their requests.

The specification says that a response carries the `id` of the request it answers ("Message forms",
rule 1) and that the id of a request is a number. JSON-RPC 2.0 also has strings, and null where the
id of a request could not be read. From these:

- An id keeps its type: "1" is not 1.
- 1 and 1.0 are the same id, since JSON has one type of numbers and both texts mean one value.
- true is not a number, although it equals 1 in Python.
- Null belongs to no request. Neither does an array, an object, or NaN and a number too large for
  a float, which Python's parser accepts: two of those cannot be told apart.
- Each connection and each direction has ids of its own: a server may ask with an id that a
  request of the client also has.
- If a client reuses an id, an answer belongs to the oldest request with it that has no answer yet,
  else to the latest; if a server does, to the latest. While two requests of one id wait, that is a
  guess: the ids are ambiguous (`AmbiguousIds`).
"""

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

from harness.trace.frame import Direction, Frame, Kind, opposite

# An id by which a request can be found. Two ids are the same if and only if they are equal.
Id: TypeAlias = str | int | float
# Connection, direction of the request, and id.
RequestKey: TypeAlias = tuple[str, Direction, Id]


def as_id(value: Any) -> Id | None:
    """Return the id if a request can be found by it, else None."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def same_id(identifier: Any, other: Any) -> bool:
    """Return whether two ids are of the same request; False if either is not an id."""
    first = as_id(identifier)
    return first is not None and first == as_id(other)


def request_key(connection: str, direction: Direction, identifier: Any) -> RequestKey | None:
    """Return the key of a request that travels in this direction; None without an id."""
    request_id = as_id(identifier)
    return None if request_id is None else (connection, direction, request_id)


def key_of(frame: Frame) -> RequestKey | None:
    """Return the key of a request, or of the request of an answer; None without a usable id."""
    is_request = frame.kind is Kind.REQUEST
    direction = frame.direction if is_request else opposite(frame.direction)
    return request_key(frame.connection, direction, frame.id)


class Correlation:
    """The requests of a trace and their answers. Feed each frame once, in order."""

    def __init__(self, frames: Iterable[Frame] = ()) -> None:
        self._last: dict[RequestKey, Frame] = {}
        self._unanswered: dict[RequestKey, list[Frame]] = {}
        self._request_by_answer: dict[int, Frame] = {}
        self._first_answers: dict[int, Frame] = {}
        for frame in frames:
            self.feed(frame)

    def feed(self, frame: Frame) -> Frame | None:
        """Add a frame; return the request that it answers, None if it answers none."""
        if frame.kind is Kind.REQUEST:
            key = key_of(frame)
            if key is not None:
                self._last[key] = frame
                if frame.direction is Direction.TO_TARGET:
                    self._unanswered.setdefault(key, []).append(frame)
        elif frame.kind in (Kind.RESPONSE, Kind.ERROR):
            key = key_of(frame)
            if key is None:
                return None
            unanswered = self._unanswered.get(key)
            request = unanswered.pop(0) if unanswered else self._last.get(key)
            if request is not None:
                self._request_by_answer[frame.seq] = request
                self._first_answers.setdefault(request.seq, frame)
            return request
        return None

    @property
    def requests(self) -> Iterable[Frame]:
        """The latest request of each connection, direction and id, answered or not."""
        return self._last.values()

    def request_of(self, answer: Frame) -> Frame | None:
        """Return the request that an answer belongs to, None for an answer to nothing."""
        return self._request_by_answer.get(answer.seq)

    def answer_of(self, request: Frame) -> Frame | None:
        """Return the first answer to a request, None while there is none."""
        return self._first_answers.get(request.seq)


class AmbiguousIds:
    """Requests of one sender that had the same id while unanswered, and their answers.

    An answer cannot be assigned to one of them, and their sender is to blame. Feed each frame once,
    in order.
    """

    def __init__(self) -> None:
        self._pairs = Correlation()
        self._unanswered: dict[RequestKey, list[Frame]] = {}
        self._frames: dict[Direction, set[int]] = {direction: set() for direction in Direction}

    def feed(self, frame: Frame) -> None:
        """Note the id of one frame."""
        request, key = self._pairs.feed(frame), key_of(frame)
        if key is None:
            return
        if frame.kind is Kind.REQUEST:
            waiting = self._unanswered.setdefault(key, [])
            waiting.append(frame)
            if len(waiting) > 1:
                self._frames[frame.direction].update(other.seq for other in waiting)
        elif request is not None:
            ambiguous = self._frames[request.direction]
            if request.seq in ambiguous:
                ambiguous.add(frame.seq)
            waiting = self._unanswered.get(key, [])
            if request in waiting:
                waiting.remove(request)

    def has_any(self, frames: Iterable[Frame], sender: Direction) -> bool:
        """Return whether `sender` reused the id of one of these messages in an open request."""
        ambiguous = self._frames[sender]
        return bool(ambiguous) and any(frame.seq in ambiguous for frame in frames)
