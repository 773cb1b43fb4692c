"""The surface of an SDK: calls by a driver program, and the agent's process behind them.

The driver makes one thread and runs turns on it; the harness is the agent's binary. The
specification defines no protocol between the two, so the harness records its requests to the driver
and their results as messages of its own making; `id` is the number of the driver's run, `turn` that
of a turn in it, from 1:

    {"id": 1, "agent": {…}, "thread": {…}, "resume": null, "process": {"VAR": "…"}, "cwd": "…"}
    {"id": 1, "turn": 1, "call": "run", "input": "…", "options": {}, "abort": "", "writes": […]}
    {"id": 1, "turn": 1, "started": {"argv": […], "cwd": "…", "env": {}, "stdin": "…", "files": {}}}
    {"id": 1, "turn": 1, "wrote": {…}}
    {"id": 1, "turn": 1, "ended": 0}
    {"id": 1, "turn": 1, "event": {…}}
    {"id": 1, "turn": 1, "over": "result", "result": {…}, "threadId": "…"}

`agent`, `thread` and `options` are the options of the client, of the thread and of the turn, by
their names in the specification; `process` are variables of the driver's own environment, `cwd` is
its current directory; `abort` is when the signal is aborted: `before` the call, `during` the turn,
or "" for never. `writes` are the events that the scripted agent prints. If the agent is a real one,
a turn has none; driver and turn have a `name`, that of the thread and the turn in the scenario, and
messages give the output: `wrote` for each event of the agent, `ended` with its exit status.
`started` is the agent's start: of its environment only the variables of the play, and the JSON
of files that its words name. `over` is `result`, `error` (with `error.name` and `error.message`) or
`events`, the end of a stream.
"""

from dataclasses import dataclass, field
from typing import Any

from harness.protocol.spec.book import Book
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MarkBody
from harness.trace.surface.base import SeparateLedgers, Topics
from harness.trace.trace import Mark


@dataclass(slots=True, eq=False)
class Call:
    """One turn: `driver` is the message with the options of the client and the thread.

    `status` is the exit status of a real agent.
    """

    driver: Frame
    request: Frame
    starts: list[Frame] = field(default_factory=list[Frame])
    wrote: list[Frame] = field(default_factory=list[Frame])
    status: int = 0
    events: list[Frame] = field(default_factory=list[Frame])
    end: Frame | None = None

    @property
    def number(self) -> int:
        """The number of the turn in its thread."""
        value = obj(self.request.json).get("turn")
        return value if isinstance(value, int) else 0

    @property
    def subject(self) -> str:
        """The name of the turn in findings: `turn 1 of driver 2, run`."""
        message = obj(self.request.json)
        return f"turn {self.number} of driver {message.get('id')}, {text(message.get('call'))}"

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames of the call, of the agent's start, and of the end."""
        ends = () if self.end is None else (self.end,)
        return (self.request, *self.starts[:1], *ends)

    @property
    def writes(self) -> list[dict[str, Any]]:
        """The events that the agent wrote: as recorded, else as the request has them."""
        if self.wrote:
            return [obj(obj(frame.json).get("wrote")) for frame in self.wrote]
        return [obj(frame) for frame in arr(obj(self.request.json).get("writes"))]

    @property
    def name(self) -> str:
        """The name of the turn in the scenario, "" if the agent is a scripted one."""
        return text(obj(self.request.json).get("name"))


class Calls:
    """The turns of a play so far."""

    def __init__(self) -> None:
        self._drivers: dict[str, Frame] = {}
        self.calls: dict[tuple[str, str], Call] = {}

    def feed(self, frame: Frame) -> None:
        """Add one frame to its turn."""
        message = obj(frame.json)
        driver = str(message.get("id"))
        if "turn" not in message:
            if frame.kind is Kind.INPUT:
                self._drivers[driver] = frame
            return
        key = (driver, str(message.get("turn")))
        if "call" in message and driver in self._drivers:
            self.calls[key] = Call(self._drivers[driver], frame)
            return
        call = self.calls.get(key)
        if call is None:
            return
        if "started" in message:
            call.starts.append(frame)
        elif "wrote" in message:
            call.wrote.append(frame)
        elif "ended" in message:
            status = message["ended"]
            call.status = status if isinstance(status, int) else 0
        elif "event" in message:
            call.events.append(frame)
        elif "over" in message and call.end is None:
            call.end = frame

    def call_of(self, frame: Frame) -> Call | None:
        """Return the turn that a message is about, None if it was not requested."""
        message = obj(frame.json)
        return self.calls.get((str(message.get("id")), str(message.get("turn"))))

    def earlier_calls(self, call: Call) -> list[Call]:
        """Return the turns of the same thread before this one, oldest first."""
        return [
            other
            for other in self.calls.values()
            if other.driver is call.driver and other.number < call.number
        ]


class CallLedger:
    """Open obligations: an end for each turn."""

    def __init__(self) -> None:
        self._calls = Calls()

    def feed(self, frame: Frame) -> None:
        """Update the ledger with one frame."""
        self._calls.feed(frame)

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Do nothing: no mark meets an obligation."""

    def open_calls(self) -> list[Call]:
        """Return the turns without an end, oldest first."""
        return [call for call in self._calls.calls.values() if call.end is None]


class Sdk:
    """The surface `sdk`. Subjects are turns.

    Topics: ("over", call) for the end of a turn, ("kind", kind) for all.
    """

    name = "sdk"

    def classify(self, value: Any, direction: Direction) -> Kind:
        """Return INPUT for lines of the harness, EVENT for actions of the SDK, else MALFORMED."""
        if direction is Direction.TO_TARGET:
            return Kind.INPUT
        event_keys = {"started", "wrote", "ended", "event", "over"} & obj(value).keys()
        return Kind.EVENT if event_keys else Kind.MALFORMED

    def view(self) -> Calls:
        """Return an empty view of turns."""
        return Calls()

    def ledgers(self) -> SeparateLedgers[CallLedger]:
        """Return empty ledgers of the turns that must end, one per connection."""
        return SeparateLedgers(CallLedger)

    def topics_of(self, frame: Frame, view: Calls, book: Book) -> Topics:
        """Return the topics: the kind, and the call of an ended turn."""
        kind = ("kind", str(frame.kind))
        call = view.call_of(frame) if frame.kind is Kind.EVENT else None
        if call is None or call.end is not frame:
            return (kind,)
        return kind, ("over", text(obj(call.request.json).get("call")))
