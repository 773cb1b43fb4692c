"""A trace as text for snapshots, with placeholders for values that differ from run to run.

Ids become ordinals in the order in which they appear (`<thread 1>`, `<turn 2>`, `<item 3>`), as do
the cursors of lists (`<cursor 1>`); paths below the run's folders become `<cwd>` and `<home>`,
times `<time>`, a terminal's process `<process>`. A request, its answer and its
`serverRequest/resolved` share `<request 1>`; it stands just before its answer. Successive output
deltas of a command are joined, since the scheduler decides where they are cut. The messages of each
client stand together, since there is no order between two connections. Everything else stays as it
was on the wire, so that a snapshot shows every change of a server.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import Correlation, Id, as_id
from harness.trace.frame import Direction, Frame, Kind, opposite
from harness.trace.marks import Place
from harness.trace.trace import Trace

ADDRESS = re.compile(r"\b(127\.0\.0\.1|localhost|\[::1\]):\d{2,5}\b")
"""An address on this machine, whose port differs from run to run."""
_OUTPUT_DELTA = "item/commandExecution/outputDelta"
_CURSORS = ("cursor", "nextCursor")
_TIMES = ("createdAt", "updatedAt", "durationMs", "emittedAtMs", "startedAt", "completedAt")


class Normaliser:
    """Placeholders for one trace; its `place` marks name the run's own paths."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._connections = list(dict.fromkeys(frame.connection for frame in trace.frames))
        self._frames = sorted(
            trace.frames, key=lambda frame: self._connections.index(frame.connection)
        )
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._cursors: dict[str, str] = {}
        places = {
            path: f"<{name}>"
            for mark in trace.marks_of(Place)
            for name, path in mark.body.folders_by_name().items()
            if path
        }
        self._paths = sorted(places.items(), key=lambda item: -len(item[0]))
        self._correlation = Correlation(trace.frames)
        self._requests: dict[tuple[str, Direction, Id | str], str] = {}
        self._server_request_ids = {
            as_id(frame.id)
            for frame in trace.frames
            if frame.kind is Kind.REQUEST and frame.direction is Direction.FROM_TARGET
        }
        for frame in self._frames:
            self._collect_names(frame)
        names = sorted(self._names, key=len, reverse=True)
        # Whole words only: `item_1` is not the beginning of `item_12`.
        alternatives = "|".join(map(re.escape, names))
        self._pattern = re.compile(rf"(?<!\w)({alternatives})(?!\w)") if names else None

    def lines(self) -> Iterator[str]:
        """Yield a line per message, a heading per client if there are several, then the end."""
        connection = ""
        for frames in _group_output_deltas(self._ordered_frames()):
            frame = frames[0]
            if len(self._connections) > 1 and frame.connection != connection:
                connection = frame.connection
                yield f"client {self._connections.index(connection) + 1}:"
            arrow = "->" if frame.direction is Direction.TO_TARGET else "<-"
            if frame.kind is Kind.MALFORMED:
                yield f"{arrow} (no message) {self._normalise_text(frame.text(200))}"
            else:
                message = self._normalise(frame.json)
                if "id" in message:
                    message["id"] = self._request_name(frame)
                if len(frames) > 1:
                    delta = "".join(text(dig(piece.params, "delta")) for piece in frames)
                    message["params"]["delta"] = self._normalise_text(delta)
                yield f"{arrow} {json.dumps(message, ensure_ascii=False)}"
        yield f"end: {self._trace.end}"

    def _ordered_frames(self) -> Iterator[Frame]:
        """Yield the frames, each request just before its answer.

        Between the two directions there is no order on the wire: a request that is sent while
        notifications stream would stand at another place in each run.
        """
        waiting: dict[int, Frame] = {}
        for frame in self._frames:
            last = next(iter(waiting.values()), frame)
            if last.connection != frame.connection:
                yield from waiting.values()
                waiting.clear()
            if frame.kind is Kind.REQUEST:
                waiting[frame.seq] = frame
                continue
            request = self._correlation.request_of(frame)
            if request is not None and waiting.pop(request.seq, None) is not None:
                yield request
            yield frame
        yield from waiting.values()

    def _request_name(self, frame: Frame) -> str:
        """Return the placeholder of a request, the same for its answer."""
        is_request = frame.kind is Kind.REQUEST
        side = frame.direction if is_request else opposite(frame.direction)
        return self._request_ordinal(frame.connection, side, frame.id)

    def _request_ordinal(self, connection: str, side: Direction, identifier: Any) -> str:
        """Return the placeholder of a request; all clients of a server request share it."""
        from_server = side is Direction.FROM_TARGET
        key = ("" if from_server else connection, side, as_id(identifier) or repr(identifier))
        return self._requests.setdefault(key, f"<request {len(self._requests) + 1}>")

    def _collect_names(self, frame: Frame) -> None:
        """Collect ids by their places in messages, never by their form."""
        for place in (frame.params, frame.result):
            self._name("thread", dig(place, "threadId"))
            self._name("thread", dig(place, "thread", "id"))
            self._name("turn", dig(place, "turnId"))
            self._name_turn(dig(place, "turn"))
            self._name_item(dig(place, "item"))
            self._name("item", dig(place, "itemId"))
            for turn in arr(dig(place, "thread", "turns")):
                self._name_turn(turn)
            cursor = text(dig(place, "nextCursor"))
            if cursor:
                self._cursors.setdefault(cursor, f"<cursor {len(self._cursors) + 1}>")

    def _name_turn(self, turn: Any) -> None:
        self._name("turn", dig(turn, "id"))
        for item in arr(dig(turn, "items")):
            self._name_item(item)

    def _name_item(self, item: Any) -> None:
        self._name("item", dig(item, "id"))

    def _name(self, kind: str, identifier: Any) -> None:
        value = text(identifier)
        if value and value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"<{kind} {self._counts[kind]}>"

    def _normalise(self, value: Any, key: str = "") -> Any:
        if key == "requestId" and as_id(value) in self._server_request_ids:
            return self._request_ordinal("", Direction.FROM_TARGET, value)
        if key in _CURSORS and isinstance(value, str):
            return self._cursors.get(value, value)
        if isinstance(value, str):
            return "<process>" if key == "processId" else self._normalise_text(value)
        if key in _TIMES and isinstance(value, int | float):
            return "<time>"
        if isinstance(value, list):
            return [self._normalise(item) for item in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, dict):
            return {name: self._normalise(item, name) for name, item in obj(value).items()}  # pyright: ignore[reportUnknownArgumentType]
        return value

    def _normalise_text(self, value: str) -> str:
        for prefix, name in self._paths:
            value = value.replace(prefix, name)
        value = re.sub(r"\d{4}/\d\d/\d\d/rollout-[0-9T:.Z-]+", "<date>/rollout-", value)
        value = ADDRESS.sub(r"\1:<port>", value)
        if self._pattern is None:
            return value
        return self._pattern.sub(lambda match: self._names[match[0]], value)


def _group_output_deltas(frames: Iterator[Frame]) -> Iterator[list[Frame]]:
    """Yield lists of one frame each, but successive output deltas of a command in one list."""
    deltas: list[Frame] = []
    for frame in frames:
        is_output = frame.kind is Kind.NOTIFICATION and frame.method == _OUTPUT_DELTA
        if deltas and not (
            is_output and dig(frame.params, "itemId") == dig(deltas[0].params, "itemId")
        ):
            yield deltas
            deltas = []
        if is_output:
            deltas.append(frame)
        else:
            yield [frame]
    if deltas:
        yield deltas


def transcript(trace: Trace) -> str:
    """Return the whole trace as normalised text."""
    return "\n".join(Normaliser(trace).lines()) + "\n"
