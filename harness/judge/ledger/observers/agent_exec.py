"""Choices of `agent exec`: the events of a turn, their items, the end of a process.

A connection is one process; the turns of a thread are successive processes.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import presence, word
from harness.protocol.spec.exec_events import exec_events
from harness.protocol.values import MISSING, arr, dig, json_type, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import (
    ModelCall,
    ModelEnd,
    ProgramEnded,
    ProgramErrors,
    ProgramStarted,
    TurnRequested,
)
from harness.trace.surface.agent_exec import FATAL, ITEM_EVENTS, TURN_ENDS, event_type
from harness.trace.surfaces import EXEC
from harness.trace.trace import Mark

_ITEMS: Final = tuple(("event", name) for name in ITEM_EVENTS)


def _item(frame: Frame) -> dict[str, Any]:
    return obj(obj(frame.json).get("item"))


@dataclass(slots=True)
class _Process:
    """One process: its thread by the scenario's alias, its lines and input, its model calls.

    `resumes` is the id of the thread to resume, "" for a new one. `tokens` is the number of tokens
    that the model reported, None if another process ran at the same time.
    """

    thread: str
    resumes: str
    frames: list[Frame] = field(default_factory=list[Frame])
    calls: int = 0
    failed_calls: int = 0
    tokens: int | None = 0
    errors: str = ""

    def events(self, *types: str) -> list[Frame]:
        """Return the process's events of these types, in order."""
        return [frame for frame in self.frames if event_type(frame) in types]

    @property
    def end(self) -> str:
        """The type of the event that ended the turn, or a text if there is none."""
        ends = self.events(*TURN_ENDS)
        if ends:
            return event_type(ends[-1])
        if self.events(FATAL):
            return "an error event alone"
        return "no end of the turn" if self.events("turn.started") else "no turn"


class ProcessObserver(Observer):
    """An observer of the processes of a play. `on_exit` handles the end of each."""

    def begin(self) -> None:
        """Set up the state."""
        self.processes: dict[str, _Process] = {}
        self._running: set[str] = set()

    @listen(("mark", TurnRequested.kind))
    def on_turn_asked(self, mark: Mark[TurnRequested]) -> None:
        """Add the process that will run a requested turn."""
        body = mark.body
        self.processes[body.connection] = _Process(body.of, body.thread)

    @listen(("mark", ProgramStarted.kind))
    def on_program_started(self, mark: Mark[ProgramStarted]) -> None:
        """Note the running process; if several run, their tokens are unknown."""
        self._running.add(mark.body.connection)
        if len(self._running) > 1:
            for name in self._running & self.processes.keys():
                self.processes[name].tokens = None

    @listen(*(("kind", str(kind)) for kind in (Kind.EVENT, Kind.INPUT, Kind.MALFORMED)))
    def on_line(self, frame: Frame) -> None:
        """Add a line or the input to its process."""
        if frame.connection in self.processes:
            self.processes[frame.connection].frames.append(frame)

    @listen(("mark", ModelCall.kind))
    def on_model_call(self, mark: Mark[ModelCall]) -> None:
        """Count a model call for all running processes."""
        for name in self._running & self.processes.keys():
            self.processes[name].calls += 1

    @listen(("mark", ModelEnd.kind))
    def on_model_end(self, mark: Mark[ModelEnd]) -> None:
        """Add the tokens, and count a failed call, for all running processes."""
        for name in self._running & self.processes.keys():
            process = self.processes[name]
            process.failed_calls += not mark.body.is_complete
            if process.tokens is not None:
                process.tokens += mark.body.usage

    @listen(("mark", ProgramErrors.kind))
    def on_program_errors(self, mark: Mark[ProgramErrors]) -> None:
        """Note the standard error of the process."""
        if mark.body.connection in self.processes:
            self.processes[mark.body.connection].errors = mark.body.text

    @listen(("mark", ProgramEnded.kind))
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Iterator[Choice]:
        """Yield the choices of a process that has ended and has a line or an input."""
        self._running.discard(mark.body.connection)
        process = self.processes.get(mark.body.connection)
        if process is not None and process.frames:
            yield from self.on_exit(process, process.frames[-1], mark.body)

    def on_exit(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Yield the choices of a whole process; `last` is its last line, or its input."""
        raise NotImplementedError

    def earlier_processes(self, process: _Process) -> list[_Process]:
        """Return the processes of the same thread before this one, oldest first."""
        earlier: list[_Process] = []
        for other in self.processes.values():
            if other is process:
                break
            if other.thread == process.thread:
                earlier.append(other)
        return earlier


@observes("sdk-child.exit-status", surface=EXEC)
class Ends(ProcessObserver):
    """The exit status of a process, and whether it writes to its standard error."""

    def on_exit(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Yield exit status and use of standard error, unless the harness ended the process."""
        if end.push != "none" or end.status is None:
            return
        by = f"signal {-end.status}" if end.status < 0 else f"status {end.status}"
        yield Choice("sdk-child.exit-status", by, last, process.end)
        value = "text" if process.errors.strip() else "nothing"
        yield Choice("sdk-child.exit-status", value, last, f"standard error, {process.end}")


@observes("sdk-usage.meaning", surface=EXEC)
class Usage(ProcessObserver):
    """The usage of a later turn: its own, or that of the whole thread."""

    def on_exit(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Yield whether the usage is that of the turn, of the whole thread, or another number."""
        before = self.earlier_processes(process)
        completions = process.events("turn.completed")
        counts = [other.tokens for other in (*before, process)]
        failed = any(other.failed_calls for other in (*before, process))
        if not before or not completions or not process.resumes or failed or not all(counts):
            return
        usage = obj(obj(completions[-1].json).get("usage"))
        parts = [usage.get(name) for name in ("input_tokens", "output_tokens")]
        if not all(isinstance(part, int) for part in parts):
            return
        value = sum(part for part in parts if isinstance(part, int))
        of_thread = sum(count for count in counts if count is not None)
        meaning = {process.tokens: "of the turn", of_thread: "of the whole thread"}
        yield Choice("sdk-usage.meaning", meaning.get(value, "another number"), completions[-1])


@observes("sdk-item.ids", surface=EXEC)
class ItemIds(ProcessObserver):
    """Ids of items, and their reuse by later turns."""

    def on_exit(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Yield the type of each item id, and whether ids of earlier processes come again."""
        item_events = process.events(*ITEM_EVENTS)
        for frame in item_events:
            yield Choice("sdk-item.ids", json_type(_item(frame).get("id", MISSING)), frame)
        ids = {text(_item(frame).get("id")) for frame in item_events} - {""}
        earlier_events = [
            frame
            for other in self.earlier_processes(process)
            for frame in other.events(*ITEM_EVENTS)
        ]
        before = {text(_item(frame).get("id")) for frame in earlier_events} - {""}
        if ids and before:
            value = "some come again" if ids & before else "others than before"
            yield Choice("sdk-item.ids", value, item_events[-1], "in a later turn of the thread")


@observes("sdk-item.updated-which", "sdk-item.started-which", surface=EXEC)
class Lives(ProcessObserver):
    """Items that are started and updated before they are completed."""

    def on_exit(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Yield whether each completed item, by id or else by type, was started and updated."""
        seen: dict[str, set[str]] = defaultdict(set)
        for frame in process.events("item.started", "item.updated"):
            seen[event_type(frame)].add(self._item_key(frame))
        for frame in process.events("item.completed"):
            item_type = text(_item(frame).get("type"))
            started = self._item_key(frame) in seen["item.started"]
            updated = self._item_key(frame) in seen["item.updated"]
            value = "item.started first" if started else "item.completed alone"
            yield Choice("sdk-item.started-which", value, frame, word(item_type))
            value = "updated" if updated else "not updated"
            yield Choice("sdk-item.updated-which", value, frame, word(item_type))

    def _item_key(self, frame: Frame) -> str:
        item = _item(frame)
        return text(item.get("id")) or text(item.get("type"))


@observes("sdk-item.status-words", "sdk-item.absent", "sdk-item.kinds", surface=EXEC)
class ItemMembers(Observer):
    """Statuses, optional members and kinds of changes in items."""

    @listen(*_ITEMS)
    def on_item(self, frame: Frame) -> Iterator[Choice]:
        """Yield the presence of optional members, the status, and the kinds of changes."""
        item = _item(frame)
        name = text(item.get("type"))
        row = exec_events().items.get(name)
        if row is None:
            return
        begins = event_type(frame) == "item.started"
        for member in row.members:
            value = item.get(member.name, MISSING)
            if member.name == "status":
                yield Choice("sdk-item.status-words", word(value), frame, name)
            elif (member.late and begins) or member.optional:
                failed = item.get("status") in ("failed", "declined")
                when = "begins" if begins else "failed" if failed else "is completed"
                situation = f"{member.name} of {name}, when it {when}"
                yield Choice("sdk-item.absent", _value_form(value), frame, situation)
        for change in arr(item.get("changes")) if name == "file_change" else ():
            yield Choice("sdk-item.kinds", word(dig(change, "kind")), frame)


def _value_form(value: Any) -> str:
    """Return `presence(value)`, but "empty string" or "empty array" for such a value."""
    return f"empty {json_type(value)}" if value == "" or value == [] else presence(value)


@observes("sdk-event.started-again", surface=EXEC)
class StartedAgain(ProcessObserver):
    """Events `thread.started` in later turns of a thread."""

    def on_exit(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Yield whether the process of a resumed thread writes `thread.started`, and its id."""
        if not process.resumes or not process.events("turn.started"):
            return
        named = process.events("thread.started")
        ids = {text(obj(frame.json).get("thread_id")) for frame in named}
        value = "yes, with the same id" if ids == {process.resumes} else "yes, with another id"
        yield Choice("sdk-event.started-again", value if named else "no", (named or [last])[0])


@observes("sdk-event.retries", "sdk-event.failed-after-error", surface=EXEC)
class Failures(ProcessObserver):
    """Events about failed model calls: retried ones, and the last."""

    def on_exit(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Yield whether retries have error events, and the events after a failed turn's error."""
        errors = process.events(FATAL)
        if process.end == "turn.completed" and process.failed_calls and process.calls > 1:
            value = "an error event" if errors else "no error event"
            yield Choice("sdk-event.retries", value, (errors or [last])[0])
        if errors and process.end != "turn.completed":
            after = [frame for frame in process.frames if frame.seq > errors[-1].seq]
            value = ", ".join(event_type(frame) or "a line that is no event" for frame in after)
            yield Choice("sdk-event.failed-after-error", value or "nothing", errors[-1])
        elif process.end == "turn.failed":
            yield Choice("sdk-event.failed-after-error", "no error event before it", last)
