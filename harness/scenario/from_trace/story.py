"""The events of a trace, put in order for the one who writes a scenario of it.

What came after the last step of a run is left out: the harness brought the trace to its end there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import EndingBegins, MarkBody, ModelCall, Place
from harness.trace.trace import Mark, Trace

DELTAS: Final = {
    "item/agentMessage/delta": "text",
    "item/plan/delta": "text",
    "item/reasoning/summaryTextDelta": "summary",
    "item/reasoning/textDelta": "raw",
}
PLAN: Final = "turn/plan/updated"
_ASKS: Final = "item/commandExecution/requestApproval"
TOOLS: Final = ("commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "imageView")
# What the model did not make: the user's words, and what the server says of its own work.
NOT_THE_MODELS: Final = ("userMessage", "enteredReviewMode", "contextCompaction")


@dataclass(slots=True)
class Made:
    """A product of the model, as the server told it: an item, or a plan (`type` is `PLAN`).

    `value` is the last form seen. `begins` and `ends` are the numbers of its first and of its last
    frame, `ends` None where it was not completed; `deltas` are (number, kind, index, text).
    """

    type: str
    value: dict[str, Any]
    begins: int
    ends: int | None = None
    deltas: list[tuple[int, str, int, str]] = field(default_factory=list[tuple[int, str, int, str]])

    @property
    def is_tool(self) -> bool:
        """Return whether the model called a tool for it."""
        return self.type in TOOLS or self.type == PLAN


@dataclass(slots=True)
class Turn:
    """A turn: what was made in it in order, where it begins and ends, and how.

    `told_on` is the connection of the client that started it, else of who was told of its end.
    `inputs` are where the user's words were told, the first and what was added; `compacts`: it made
    the thread's history shorter.
    """

    id: str
    thread: str
    begins: int
    ends: int | None = None
    status: str = ""
    made: list[Made] = field(default_factory=list[Made])
    retries: list[int] = field(default_factory=list[int])
    error: str = ""
    told_on: str = ""
    inputs: list[int] = field(default_factory=list[int])
    compacts: bool = False

    def runs_at(self, seq: int) -> bool:
        """Return whether it was in progress when the frame of this number was sent."""
        return self.begins < seq and (self.ends is None or seq < self.ends)


class Story:
    """A trace as turns and requests. `frames` and `marks` are those of the session itself.

    `tells_files`: what patches wrote is told.
    """

    tells_files = True

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        over = next((mark.after for mark in trace.marks_of(EndingBegins)), None)
        self.frames = [one for one in trace.frames if over is None or one.seq <= over]
        self.marks: list[Mark[MarkBody]] = []
        for mark in trace.marks:
            if isinstance(mark.body, EndingBegins):
                break
            self.marks.append(mark)
        self.correlation = Correlation(self.frames)
        self.turns: dict[tuple[str, str], Turn] = {}
        self.usage: list[tuple[int, str, dict[str, Any]]] = []
        self._items: dict[tuple[str, str, str], Made] = {}
        for frame in self.frames:
            if frame.direction is Direction.FROM_TARGET:
                self._feed(frame)
        self.has_model = any(isinstance(mark.body, ModelCall) for mark in self.marks)
        self.cwds = [cwd for cwd in self._cwds() if cwd.strip("/")]
        self.home = next((mark.body.home for mark in trace.marks_of(Place)), "")

    def of_thread(self, thread: str) -> list[Turn]:
        """The turns of a thread, in order."""
        return [turn for turn in self.turns.values() if turn.thread == thread]

    def running(self, thread: str, seq: int) -> Turn | None:
        """The turn of a thread that was in progress at a frame."""
        return next((one for one in self.of_thread(thread) if one.runs_at(seq)), None)

    def answer(self, request: Frame) -> Frame | None:
        """Return the answer to a request."""
        return self.correlation.answer_of(request)

    def placed(self, value: Any) -> Any:
        """A value with `{cwd}` and `{home}` in the place of the recorded folders."""
        if isinstance(value, str):
            for cwd in self.cwds:
                value = value.replace(cwd, "{cwd}")
            return value.replace(self.home, "{home}") if self.home else value
        if isinstance(value, list):
            return [self.placed(one) for one in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, dict):
            return {key: self.placed(one) for key, one in obj(value).items()}  # pyright: ignore[reportUnknownArgumentType]
        return value

    def _cwds(self) -> Iterator[str]:
        """The working folders of the threads, the run's own first."""
        own = [mark.body.cwd for mark in self.trace.marks_of(Place) if mark.body.cwd]
        yield from own
        if own:
            return  # A thread elsewhere is where the scenario wants it.
        for frame in self.frames:
            asked = self.correlation.request_of(frame)
            if asked is not None and asked.method == "thread/start":
                yield text(dig(frame.result, "cwd")) or text(dig(frame.result, "thread", "cwd"))

    def _feed(self, frame: Frame) -> None:
        asked = self.correlation.request_of(frame)
        if asked is not None and asked.method in ("turn/start", "review/start"):
            turn = self._turn(_thread_of(frame, asked), dig(frame.result, "turn"), frame.seq)
            if turn is not None:
                turn.told_on = frame.connection
        if frame.kind is Kind.REQUEST and frame.method == _ASKS:
            self._asked_for(frame)
        if frame.kind is not Kind.NOTIFICATION:
            return
        params = frame.params
        thread = text(dig(params, "threadId"))
        match frame.method:
            case "turn/started":
                self._turn(thread, dig(params, "turn"), frame.seq)
            case "turn/completed":
                turn = self._turn(thread, dig(params, "turn"), frame.seq)
                if turn is not None and (turn.ends is None or frame.connection == turn.told_on):
                    turn.told_on = turn.told_on or frame.connection
                    turn.ends = frame.seq
                    turn.status = text(dig(params, "turn", "status"))
                    turn.error = text(dig(params, "turn", "error", "message"))
            case "item/started" | "item/completed":
                self._item(thread, frame)
            case "error":
                turn = self.turns.get((thread, text(dig(params, "turnId"))))
                if turn is not None and dig(params, "willRetry") is True:
                    turn.retries.append(frame.seq)
            case "thread/tokenUsage/updated":
                self.usage.append((frame.seq, thread, dict(obj(dig(params, "tokenUsage", "last")))))
            case method if method == PLAN:
                self._made(thread, text(dig(params, "turnId")), Made(PLAN, dict(params), frame.seq))
            case method if method in DELTAS:
                self._delta(thread, frame, DELTAS[method])
            case _:
                pass

    def _turn(self, thread: str, value: Any, seq: int) -> Turn | None:
        turn_id = text(obj(value).get("id"))
        if not turn_id or not thread:
            return None
        return self.turns.setdefault((thread, turn_id), Turn(turn_id, thread, seq))

    def _made(self, thread: str, turn_id: str, made: Made) -> None:
        turn = self._turn(thread, {"id": turn_id}, made.begins)
        if turn is not None:
            turn.made.append(made)

    def _item(self, thread: str, frame: Frame) -> None:
        item = dict(obj(dig(frame.params, "item")))
        kind, item_id = text(item.get("type")), text(item.get("id"))
        turn_id = text(dig(frame.params, "turnId"))
        if not kind or kind in NOT_THE_MODELS:
            turn = self._turn(thread, {"id": turn_id}, frame.seq)
            if turn is not None and frame.method == "item/started":
                turn.inputs += [frame.seq] if kind == "userMessage" else []
            if turn is not None and frame.method == "item/completed":
                turn.compacts |= kind == "contextCompaction"
            return
        made = self._items.get((thread, turn_id, item_id))
        if made is None or made.type != kind:
            made = Made(kind, item, frame.seq)
            self._items[thread, turn_id, item_id] = made
            self._made(thread, turn_id, made)
        made.value = item
        if frame.method == "item/completed" and made.ends is None:
            made.ends = frame.seq

    def _asked_for(self, frame: Frame) -> None:
        """A command that the client is asked about: some servers tell its item later, or never."""
        ids = (text(dig(frame.params, name)) for name in ("threadId", "turnId", "itemId"))
        key = (thread, turn, item) = (next(ids), next(ids), next(ids))
        command = dig(frame.params, "command")
        if key in self._items or not item or not isinstance(command, str | list):
            return
        value: dict[str, Any] = {"type": "commandExecution", "id": item, "command": command}
        made = self._items[key] = Made("commandExecution", value, frame.seq)
        self._made(thread, turn, made)

    def _delta(self, thread: str, frame: Frame, kind: str) -> None:
        of = (text(dig(frame.params, "turnId")), text(dig(frame.params, "itemId")))
        made = self._items.get((thread, *of))
        if made is None:
            return
        name = "contentIndex" if kind == "raw" else "summaryIndex"
        index = dig(frame.params, name)
        place = index if type(index) is int else 0
        made.deltas.append((frame.seq, kind, place, text(dig(frame.params, "delta"))))


def _thread_of(answer: Frame, asked: Frame) -> str:
    """The thread of a turn that was asked for; a review may run on one of its own."""
    own = text(dig(answer.result, "reviewThreadId"))
    return own or text(dig(asked.params, "threadId"))


def approved(story: Story, made: Made) -> Frame | None:
    """The request by which the client was asked whether a command or a patch may go on."""
    wanted = text(made.value.get("id"))
    for frame in story.frames:
        asks = frame.kind is Kind.REQUEST and frame.direction is Direction.FROM_TARGET
        if asks and wanted and text(dig(frame.params, "itemId")) == wanted:
            return frame
    return None


def texts_of(parts: Any) -> list[str]:
    """The texts of content parts, or of a list of texts."""
    return [one if isinstance(one, str) else text(obj(one).get("text")) for one in arr(parts)]
