"""Turns, items and requests of a trace, from which a scenario is written.

Frames after the last step of a run are left out: they belong to the end of the trace.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import EndingBegins, MarkBody, ModelCall, Place
from harness.trace.trace import Mark, Trace

DELTA_KINDS: Final = {
    "item/agentMessage/delta": "text",
    "item/plan/delta": "text",
    "item/reasoning/summaryTextDelta": "summary",
    "item/reasoning/textDelta": "raw",
}
PLAN: Final = "turn/plan/updated"
_COMMAND_APPROVAL: Final = "item/commandExecution/requestApproval"
TOOL_TYPES: Final = (
    "commandExecution",
    "fileChange",
    "mcpToolCall",
    "dynamicToolCall",
    "imageView",
)
# Items not made by the model: the user's messages, and reports of the server's own work.
TYPES_NOT_FROM_MODEL: Final = ("userMessage", "enteredReviewMode", "contextCompaction")


@dataclass(slots=True)
class Product:
    """An item or a plan that a turn produced; for a plan `type` is `PLAN`.

    `value` is the last form seen. `begins` and `ends` are the seq of its first and last frame,
    `ends` None if it was not completed; `deltas` are (seq, kind, index, text).
    """

    type: str
    value: dict[str, Any]
    begins: int
    ends: int | None = None
    deltas: list[tuple[int, str, int, str]] = field(default_factory=list[tuple[int, str, int, str]])

    @property
    def is_tool(self) -> bool:
        """Return whether the model made it by calling a tool."""
        return self.type in TOOL_TYPES or self.type == PLAN


@dataclass(slots=True)
class Turn:
    """A turn: its products in order, the seq of its first and last frame, and its end.

    `connection` is that of the client that started it, else of the first that received its end.
    `inputs` and `retries` are the seq of user messages and of announced retries; `has_compacted` is
    whether it compacted the thread's history.
    """

    id: str
    thread: str
    begins: int
    ends: int | None = None
    status: str = ""
    products: list[Product] = field(default_factory=list[Product])
    retries: list[int] = field(default_factory=list[int])
    error: str = ""
    connection: str = ""
    inputs: list[int] = field(default_factory=list[int])
    has_compacted: bool = False

    def runs_at(self, seq: int) -> bool:
        """Return whether the turn was in progress at the frame number `seq`."""
        return self.begins < seq and (self.ends is None or seq < self.ends)


class Story:
    """Turns and requests of a trace. `frames` and `marks` stop where its ending begins.

    `has_file_contents` is whether patches are reported with the contents of files.
    """

    has_file_contents = True

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        last_seq = next((mark.after for mark in trace.marks_of(EndingBegins)), None)
        self.frames = [
            frame_of_trace
            for frame_of_trace in trace.frames
            if last_seq is None or frame_of_trace.seq <= last_seq
        ]
        self.marks: list[Mark[MarkBody]] = []
        for mark in trace.marks:
            if isinstance(mark.body, EndingBegins):
                break
            self.marks.append(mark)
        self.correlation = Correlation(self.frames)
        self.turns: dict[tuple[str, str], Turn] = {}
        self.usage: list[tuple[int, str, dict[str, Any]]] = []
        self._items: dict[tuple[str, str, str], Product] = {}
        for frame in self.frames:
            if frame.direction is Direction.FROM_TARGET:
                self._on_server_frame(frame)
        self.has_model = any(isinstance(mark.body, ModelCall) for mark in self.marks)
        self.cwds = [cwd for cwd in self._cwds() if cwd.strip("/")]
        self.home = next((mark.body.home for mark in trace.marks_of(Place)), "")

    def turns_of_thread(self, thread: str) -> list[Turn]:
        """Return the turns of a thread, in order."""
        return [turn for turn in self.turns.values() if turn.thread == thread]

    def turn_at(self, thread: str, seq: int) -> Turn | None:
        """Return the turn of a thread that was in progress at a frame, None if there was none."""
        return next((turn for turn in self.turns_of_thread(thread) if turn.runs_at(seq)), None)

    def answer_to(self, request: Frame) -> Frame | None:
        """Return the answer to a request, None if there is none."""
        return self.correlation.answer_of(request)

    def with_placeholders(self, value: Any) -> Any:
        """Return a copy with `{cwd}` and `{home}` in place of the recorded folders."""
        if isinstance(value, str):
            for cwd in self.cwds:
                value = value.replace(cwd, "{cwd}")
            return value.replace(self.home, "{home}") if self.home else value
        if isinstance(value, list):
            return [self.with_placeholders(inner) for inner in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, dict):
            return {key: self.with_placeholders(inner) for key, inner in obj(value).items()}  # pyright: ignore[reportUnknownArgumentType]
        return value

    def _cwds(self) -> Iterator[str]:
        """Yield the run's working folders; without any, the threads' reported ones."""
        run_folders = [mark.body.cwd for mark in self.trace.marks_of(Place) if mark.body.cwd]
        yield from run_folders
        if run_folders:
            return  # The scenario itself placed threads in other folders.
        for frame in self.frames:
            request = self.correlation.request_of(frame)
            if request is not None and request.method == "thread/start":
                yield text(dig(frame.result, "cwd")) or text(dig(frame.result, "thread", "cwd"))

    def _on_server_frame(self, frame: Frame) -> None:
        request = self.correlation.request_of(frame)
        if request is not None and request.method in ("turn/start", "review/start"):
            turn = self._turn_of_id(
                _thread_of(frame, request), dig(frame.result, "turn"), frame.seq
            )
            if turn is not None:
                turn.connection = frame.connection
        if frame.kind is Kind.REQUEST and frame.method == _COMMAND_APPROVAL:
            self._on_approval_request(frame)
        if frame.kind is not Kind.NOTIFICATION:
            return
        params = frame.params
        thread = text(dig(params, "threadId"))
        match frame.method:
            case "turn/started":
                self._turn_of_id(thread, dig(params, "turn"), frame.seq)
            case "turn/completed":
                turn = self._turn_of_id(thread, dig(params, "turn"), frame.seq)
                if turn is not None and (turn.ends is None or frame.connection == turn.connection):
                    turn.connection = turn.connection or frame.connection
                    turn.ends = frame.seq
                    turn.status = text(dig(params, "turn", "status"))
                    turn.error = text(dig(params, "turn", "error", "message"))
            case "item/started" | "item/completed":
                self._on_item(thread, frame)
            case "error":
                turn = self.turns.get((thread, text(dig(params, "turnId"))))
                if turn is not None and dig(params, "willRetry") is True:
                    turn.retries.append(frame.seq)
            case "thread/tokenUsage/updated":
                self.usage.append((frame.seq, thread, dict(obj(dig(params, "tokenUsage", "last")))))
            case method if method == PLAN:
                self._add_product(
                    thread, text(dig(params, "turnId")), Product(PLAN, dict(params), frame.seq)
                )
            case method if method in DELTA_KINDS:
                self._on_delta(thread, frame, DELTA_KINDS[method])
            case _:
                pass

    def _turn_of_id(self, thread: str, value: Any, seq: int) -> Turn | None:
        turn_id = text(obj(value).get("id"))
        if not turn_id or not thread:
            return None
        return self.turns.setdefault((thread, turn_id), Turn(turn_id, thread, seq))

    def _add_product(self, thread: str, turn_id: str, product: Product) -> None:
        turn = self._turn_of_id(thread, {"id": turn_id}, product.begins)
        if turn is not None:
            turn.products.append(product)

    def _on_item(self, thread: str, frame: Frame) -> None:
        item = dict(obj(dig(frame.params, "item")))
        kind, item_id = text(item.get("type")), text(item.get("id"))
        turn_id = text(dig(frame.params, "turnId"))
        if not kind or kind in TYPES_NOT_FROM_MODEL:
            turn = self._turn_of_id(thread, {"id": turn_id}, frame.seq)
            if turn is not None and frame.method == "item/started":
                turn.inputs += [frame.seq] if kind == "userMessage" else []
            if turn is not None and frame.method == "item/completed":
                turn.has_compacted |= kind == "contextCompaction"
            return
        product = self._items.get((thread, turn_id, item_id))
        if product is None or product.type != kind:
            product = Product(kind, item, frame.seq)
            self._items[thread, turn_id, item_id] = product
            self._add_product(thread, turn_id, product)
        product.value = item
        if frame.method == "item/completed" and product.ends is None:
            product.ends = frame.seq

    def _on_approval_request(self, frame: Frame) -> None:
        """Add the command of an approval request, since its item may come later or never."""
        ids = (text(dig(frame.params, name)) for name in ("threadId", "turnId", "itemId"))
        key = (thread, turn, item) = (next(ids), next(ids), next(ids))
        command = dig(frame.params, "command")
        if key in self._items or not item or not isinstance(command, str | list):
            return
        value: dict[str, Any] = {"type": "commandExecution", "id": item, "command": command}
        product = self._items[key] = Product("commandExecution", value, frame.seq)
        self._add_product(thread, turn, product)

    def _on_delta(self, thread: str, frame: Frame, kind: str) -> None:
        owner = (text(dig(frame.params, "turnId")), text(dig(frame.params, "itemId")))
        product = self._items.get((thread, *owner))
        if product is None:
            return
        name = "contentIndex" if kind == "raw" else "summaryIndex"
        index = dig(frame.params, name)
        position = index if type(index) is int else 0
        product.deltas.append((frame.seq, kind, position, text(dig(frame.params, "delta"))))


def _thread_of(answer: Frame, request: Frame) -> str:
    """Return the thread of a requested turn; a review's result may name another one."""
    review_thread = text(dig(answer.result, "reviewThreadId"))
    return review_thread or text(dig(request.params, "threadId"))


def approval_request_of(story: Story, product: Product) -> Frame | None:
    """Return the server request about a command or patch item, None if there is none."""
    item_id = text(product.value.get("id"))
    for frame in story.frames:
        is_question = frame.kind is Kind.REQUEST and frame.direction is Direction.FROM_TARGET
        if is_question and item_id and text(dig(frame.params, "itemId")) == item_id:
            return frame
    return None


def texts_of(parts: Any) -> list[str]:
    """Return the texts of content parts, or the strings of a list, in order."""
    return [part if isinstance(part, str) else text(obj(part).get("text")) for part in arr(parts)]
