"""Builder of plays of SDKs: calls, the inputs of the agent, and results."""

import json
from collections.abc import Sequence
from typing import Any, Self

from harness.trace.frame import Direction
from harness.trace.marks import CallEnd, MarkBody, ModelCall, ModelEnd, ModelMessage
from harness.trace.recorder import Recorder
from harness.trace.surface.registry import classify_of
from harness.trace.trace import End, Header, Trace

PATH = "/scratch/agent"
CWD = "/work"
USAGE = {"input_tokens": 5, "cached_input_tokens": 2, "output_tokens": 3}
STARTED = {"type": "thread.started", "thread_id": "thr-1"}
SAID = {"type": "agent_message", "text": "Yes."}
RAN = {"type": "command_execution", "command": "ls", "aggregated_output": "", "exit_code": 0}
FAILED = {"type": "turn.failed", "error": {"message": "too fast"}}


def completed(item: dict[str, Any]) -> dict[str, Any]:
    """Return the event of a completed item."""
    return {"type": "item.completed", "item": item}


def whole_turn(*items: dict[str, Any], end: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the events of a turn with these items, by default with one message."""
    ends = end or {"type": "turn.completed", "usage": USAGE}
    return [STARTED, {"type": "turn.started"}, *map(completed, items or (SAID,)), ends]


class SdkTalk:
    """Writer of one play; every method but `trace` returns the talk itself."""

    def __init__(self, scenario: str = "") -> None:
        self._now = 0.0
        header = Header(target="by-hand", profile="spec", scenario=scenario, surface="sdk")
        self._recorder = Recorder(header, clock=lambda: self._now, classify=classify_of("sdk"))
        self._id = self._turn = 0
        self._words: list[str] = []

    def trace(self, end: End = End.QUIESCENT) -> Trace:
        """Return the trace so far."""
        self._recorder.trace.end = end
        return self._recorder.trace

    def _write(self, direction: Direction, **message: Any) -> Self:
        self._now += 0.001
        raw = json.dumps({"id": self._id, **message}).encode()
        self._recorder.record(raw, direction, connection="calls")
        return self

    def driver(
        self,
        agent: dict[str, Any] | None = None,
        thread: dict[str, Any] | None = None,
        *,
        resume: str | None = None,
        process: dict[str, str] | None = None,
        **more: str,
    ) -> Self:
        """Begin a driver with these options of its client and thread; None removes the path."""
        self._id += 1
        self._turn = 0
        client = {"agentPathOverride": PATH, **(agent or {})}
        if client["agentPathOverride"] is None:
            del client["agentPathOverride"]
        said = {"agent": client, "thread": thread or {}, "resume": resume}
        return self._write(Direction.TO_TARGET, **said, process=process or {}, cwd=CWD, **more)

    def asks(
        self,
        call: str = "run",
        input: Any = "hello",
        *,
        writes: Sequence[dict[str, Any]] | None = None,
        abort: str = "",
        **options: Any,
    ) -> Self:
        """Add a request for a turn, in which the agent writes these events."""
        self._turn += 1
        events = whole_turn() if writes is None else list(writes)
        said = {"call": call, "input": input, "options": options, "abort": abort}
        return self._write(Direction.TO_TARGET, turn=self._turn, **said, writes=events)

    def starts(self, *words: str, stdin: str = "hello", **more: Any) -> Self:
        """Add a start of the agent with these arguments."""
        started = {"argv": list(words), "cwd": CWD, "env": {}, "stdin": stdin, "files": {}}
        started = {"started": {**started, **more}}
        return self._write(Direction.FROM_TARGET, turn=self._turn, **started)

    def yields(self, *events: dict[str, Any]) -> Self:
        """Add events that the stream yields."""
        for event in events:
            self._write(Direction.FROM_TARGET, turn=self._turn, event=event)
        return self

    def gives(self, final: Any = "Yes.", thread: str | None = "thr-1", **other: Any) -> Self:
        """Add the result of `run`."""
        result = {"finalResponse": final, "items": [SAID], "usage": USAGE, **other}
        said: dict[str, Any] = {"over": "result", "result": result, "threadId": thread}
        return self._write(Direction.FROM_TARGET, turn=self._turn, **said)

    def throws(self, message: str, name: str = "Error", thread: str | None = "thr-1") -> Self:
        """Add an error as the end of the call."""
        error = {"name": name, "message": message}
        said: dict[str, Any] = {"over": "error", "error": error, "threadId": thread}
        return self._write(Direction.FROM_TARGET, turn=self._turn, **said)

    def ends(self, thread: str | None = "thr-1") -> Self:
        """Add the end of the stream."""
        return self._write(Direction.FROM_TARGET, turn=self._turn, over="events", threadId=thread)

    def runs(self, *words: str, **more: Any) -> Self:
        """Add a turn of `run` that completes."""
        return self.asks().starts("exec", *words, **more).gives()

    def mark(self, body: MarkBody) -> Self:
        """Add a mark."""
        self._recorder.mark(body)
        return self

    def plays(self, name: str, thread: str = "t") -> Self:
        """Begin a driver with a real agent, and add a request for a turn of this name."""
        self.driver(name=thread)
        self._turn += 1
        said: dict[str, Any] = {"call": "run", "input": "hello", "options": {}, "abort": ""}
        return self._write(Direction.TO_TARGET, turn=self._turn, name=name, **said)

    def works(
        self,
        *wrote: dict[str, Any],
        call: int = 1,
        thread: str = "",
        answer: ModelEnd | None = None,
        status: int = 0,
    ) -> Self:
        """Add a model call of the real agent with this answer, and the events that it writes."""
        texts: tuple[str, ...] = ("hello",)
        self.mark(ModelCall(call=call, thread=thread, model="m", user_texts=texts, step=0))
        self.mark(
            answer or ModelEnd(call=call, outcome=CallEnd.COMPLETED, texts=(ModelMessage("Yes."),))
        )
        self.starts("exec")
        for event in wrote:
            self._write(Direction.FROM_TARGET, turn=self._turn, wrote=event)
        return self._write(Direction.FROM_TARGET, turn=self._turn, ended=status)
