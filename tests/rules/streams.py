"""Builder of traces of `agent exec`: the events of its processes."""

import json
from typing import Any, Self

from harness.trace.frame import Direction
from harness.trace.marks import (
    CallEnd,
    FileMatch,
    HomeSearched,
    MarkBody,
    ModelCall,
    ModelEnd,
    ModelMessage,
    Place,
    ProgramEnded,
    ProgramErrors,
    ProgramStarted,
    TurnRequested,
)
from harness.trace.recorder import Recorder
from harness.trace.surface.agent_exec import Exec
from harness.trace.trace import End, Header, Trace

HOME = "/home/user/home1"
THREAD = "thr_1"
USAGE = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 2}


def message(words: str, **more: Any) -> dict[str, Any]:
    """Return an agent_message; without an id, as in the specification."""
    return {"type": "agent_message", "text": words, **more}


def command(**more: Any) -> dict[str, Any]:
    """Return a command_execution at its start."""
    said = {"command": "ls", "aggregated_output": "", "exit_code": None, "status": "in_progress"}
    return {"id": "i-1", "type": "command_execution", **said, **more}


class StreamTalk:
    """Writer of the events of one process in order; time goes on by a millisecond a line."""

    def __init__(self, scenario: str = "by-hand@exec") -> None:
        self._now = 0.0
        self._calls = 0
        header = Header(target="by-hand", profile="spec", scenario=scenario, surface="exec")
        self._recorder = Recorder(header, classify=Exec().classify, clock=lambda: self._now)
        self._connection = ""
        self._count = 0
        self.mark(Place(home=HOME, cwd="/home/user/work1", server_cwd="/home/user/work1"))

    def trace(self, end: End = End.QUIESCENT) -> Trace:
        """Return the trace so far."""
        self._recorder.trace.end = end
        return self._recorder.trace

    def mark(self, body: MarkBody) -> Self:
        """Add a mark."""
        self._recorder.mark(body)
        return self

    def process(self, prompt: str = "hello", **asked: Any) -> Self:
        """Begin a process with its prompt: one line in the trace."""
        self._count += 1
        self._connection = f"p{self._count}"
        self.mark(
            TurnRequested(connection=self._connection, turn=f"u{self._count}", of="t", **asked)
        )
        self.mark(ProgramStarted(self._connection, ("agent", "exec"), "/home/user/work1"))
        return self._write(prompt.encode(), Direction.TO_TARGET)

    def exits(self, status: int = 0) -> Self:
        """End the process."""
        self.mark(ProgramErrors(self._connection, ""))
        return self.mark(ProgramEnded(self._connection, status, "none"))

    def says(self, kind: str, **members: Any) -> Self:
        """Add an event of the process."""
        return self.line({"type": kind, **members})

    def line(self, value: Any) -> Self:
        """Add a line of the process: bytes, or a value as JSON."""
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self._write(raw, Direction.FROM_TARGET)

    def _write(self, raw: bytes, direction: Direction) -> Self:
        self._now += 0.001
        self._recorder.record(raw, direction, connection=self._connection)
        return self

    def opens(self, thread: str = THREAD) -> Self:
        """Add thread.started and turn.started."""
        return self.says("thread.started", thread_id=thread).says("turn.started")

    def started(self, item: dict[str, Any]) -> Self:
        """Add item.started."""
        return self.says("item.started", item=item)

    def updated(self, item: dict[str, Any]) -> Self:
        """Add item.updated."""
        return self.says("item.updated", item=item)

    def completed(self, item: dict[str, Any]) -> Self:
        """Add item.completed."""
        return self.says("item.completed", item=item)

    def done(self, **usage: Any) -> Self:
        """Add turn.completed and end the process."""
        return self.says("turn.completed", usage={**USAGE, **usage}).exits()

    def fails(self, words: str = "refused") -> Self:
        """Add turn.failed and end the process."""
        return self.says("turn.failed", error={"message": words}).exits(1)

    def turn(self, words: str = "Hello.", **more: Any) -> Self:
        """Add a whole process with one message."""
        return self.process(**more).opens().completed(message(words)).done()

    def calls(self, *texts: str, **more: Any) -> Self:
        """Add a model call with these user texts."""
        self._calls += 1
        whole: dict[str, Any] = {"model": "mock-model", "step": 0, **more}
        return self.mark(ModelCall(call=self._calls, user_texts=texts, **whole))

    def answers(self, *words: str) -> Self:
        """Add the end of the model call, with these texts."""
        texts = tuple(ModelMessage(one) for one in words)
        return self.mark(ModelEnd(call=self._calls, outcome=CallEnd.COMPLETED, texts=texts))

    def refuses(self, status: int) -> Self:
        """Add the end of the model call by an HTTP status."""
        return self.mark(ModelEnd(call=self._calls, outcome=CallEnd.STATUS, status=status))

    def searched(self, *found: FileMatch, thread: str = THREAD) -> Self:
        """Add a search of the home for the thread and the folder's name, with its matches."""
        return self.mark(HomeSearched(texts=(thread, "sessions"), found=found, files=3))


def kept(path: str, *, named: tuple[str, ...] = (), held: tuple[str, ...] = ()) -> FileMatch:
    """Return a match of the search: a file of the home."""
    return FileMatch(f"{HOME}/{path}", named, held)
