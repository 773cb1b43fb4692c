"""Choices of `agent exec`: the events of a turn, their items, how a process ends.

A connection is one process; the turns of a thread are processes one after the other.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import kind, presence, word
from harness.protocol.spec.exec_events import exec_events
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import (
    ModelCall,
    ModelEnd,
    ProgramEnded,
    ProgramErrors,
    ProgramStarted,
    TurnAsked,
)
from harness.trace.surface.agent_exec import FATAL, OF_ITEMS, TURN_ENDS, event_type
from harness.trace.surfaces import EXEC
from harness.trace.trace import Mark

_ITEMS: Final = tuple(("event", name) for name in OF_ITEMS)


def _item(frame: Frame) -> dict[str, Any]:
    return obj(obj(frame.json).get("item"))


@dataclass(slots=True)
class _Process:
    """One process: its thread by the scenario's alias, and what it wrote and asked its model.

    `resumes` is the id of the thread that it was told to go on with, "" for a new one. `tokens` are
    those that the model reported, None where a second process ran beside it.
    """

    thread: str
    resumes: str
    frames: list[Frame] = field(default_factory=list[Frame])
    calls: int = 0
    failed_calls: int = 0
    tokens: int | None = 0
    errors: str = ""

    def events(self, *types: str) -> list[Frame]:
        """Its events of these types, in order."""
        return [frame for frame in self.frames if event_type(frame) in types]

    @property
    def end(self) -> str:
        """The event that ended its turn, in words."""
        ends = self.events(*TURN_ENDS)
        if ends:
            return event_type(ends[-1])
        if self.events(FATAL):
            return "an error event alone"
        return "no end of the turn" if self.events("turn.started") else "no turn"


class ProcessObserver(Observer):
    """Follows the processes of a play. `ended` is asked of each when it is over."""

    def begin(self) -> None:
        """No process yet."""
        self.processes: dict[str, _Process] = {}
        self._running: set[str] = set()

    @listen(("mark", TurnAsked.kind))
    def on_turn_asked(self, mark: Mark[TurnAsked]) -> None:
        """A process is about to be started."""
        body = mark.body
        self.processes[body.connection] = _Process(body.of, body.thread)

    @listen(("mark", ProgramStarted.kind))
    def on_program_started(self, mark: Mark[ProgramStarted]) -> None:
        """It runs."""
        self._running.add(mark.body.connection)
        if len(self._running) > 1:
            for name in self._running & self.processes.keys():
                self.processes[name].tokens = None

    @listen(*(("kind", str(one)) for one in (Kind.EVENT, Kind.INPUT, Kind.MALFORMED)))
    def wrote(self, frame: Frame) -> None:
        """A line of it, or its input."""
        if frame.connection in self.processes:
            self.processes[frame.connection].frames.append(frame)

    @listen(("mark", ModelCall.kind))
    def on_model_call(self, mark: Mark[ModelCall]) -> None:
        """The model is called by whichever runs."""
        for name in self._running & self.processes.keys():
            self.processes[name].calls += 1

    @listen(("mark", ModelEnd.kind))
    def on_model_end(self, mark: Mark[ModelEnd]) -> None:
        """And has answered, or failed."""
        for name in self._running & self.processes.keys():
            process = self.processes[name]
            process.failed_calls += not mark.body.completed
            if process.tokens is not None:
                process.tokens += mark.body.usage

    @listen(("mark", ProgramErrors.kind))
    def on_program_errors(self, mark: Mark[ProgramErrors]) -> None:
        """Note the standard error of the process."""
        if mark.body.connection in self.processes:
            self.processes[mark.body.connection].errors = mark.body.text

    @listen(("mark", ProgramEnded.kind))
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Iterator[Choice]:
        """It has ended."""
        self._running.discard(mark.body.connection)
        process = self.processes.get(mark.body.connection)
        if process is not None and process.frames:
            yield from self.ended(process, process.frames[-1], mark.body)

    def ended(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Give the choices of the whole process; `last` is its last line, or its input."""
        raise NotImplementedError

    def earlier(self, process: _Process) -> list[_Process]:
        """The processes of the same thread before this one, oldest first."""
        found: list[_Process] = []
        for one in self.processes.values():
            if one is process:
                break
            if one.thread == process.thread:
                found.append(one)
        return found


@observes("sdk-child.exit-status", surface=EXEC)
class Ends(ProcessObserver):
    """With which status a process ends, and whether it writes to its standard error."""

    def ended(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """By the end of its turn; a process that we ended has no status of its own."""
        if end.push != "none" or end.status is None:
            return
        by = f"signal {-end.status}" if end.status < 0 else f"status {end.status}"
        yield Choice("sdk-child.exit-status", by, last, process.end)
        said = "text" if process.errors.strip() else "nothing"
        yield Choice("sdk-child.exit-status", said, last, f"standard error, {process.end}")


@observes("sdk-usage.meaning", surface=EXEC)
class Usage(ProcessObserver):
    """The usage of a later turn: its own, or that of the whole thread."""

    def ended(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Beside what the model reported in this process and in those before."""
        before = self.earlier(process)
        told = process.events("turn.completed")
        counts = [one.tokens for one in (*before, process)]
        failed = any(one.failed_calls for one in (*before, process))
        if not before or not told or not process.resumes or failed or not all(counts):
            return
        usage = obj(obj(told[-1].json).get("usage"))
        parts = [usage.get(name) for name in ("input_tokens", "output_tokens")]
        if not all(isinstance(one, int) for one in parts):
            return
        said = sum(one for one in parts if isinstance(one, int))
        of_thread = sum(one for one in counts if one is not None)
        meaning = {process.tokens: "of the turn", of_thread: "of the whole thread"}
        yield Choice("sdk-usage.meaning", meaning.get(said, "another number"), told[-1])


@observes("sdk-item.ids", surface=EXEC)
class ItemIds(ProcessObserver):
    """Ids of items, and those of another turn that come again."""

    def ended(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """All items of a process, and of those before it."""
        shown = process.events(*OF_ITEMS)
        for frame in shown:
            yield Choice("sdk-item.ids", kind(_item(frame).get("id", MISSING)), frame)
        ids = {text(_item(frame).get("id")) for frame in shown} - {""}
        others = [frame for one in self.earlier(process) for frame in one.events(*OF_ITEMS)]
        before = {text(_item(frame).get("id")) for frame in others} - {""}
        if ids and before:
            said = "some come again" if ids & before else "others than before"
            yield Choice("sdk-item.ids", said, shown[-1], "in a later turn of the thread")


@observes("sdk-item.updated-which", "sdk-item.started-which", surface=EXEC)
class Lives(ProcessObserver):
    """Items that are started and updated before they are completed."""

    def ended(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """Items that have ids can be followed; of others the types are counted."""
        seen: dict[str, set[str]] = defaultdict(set)
        for frame in process.events("item.started", "item.updated"):
            seen[event_type(frame)].add(self._named(frame))
        for frame in process.events("item.completed"):
            about = text(_item(frame).get("type"))
            started = self._named(frame) in seen["item.started"]
            updated = self._named(frame) in seen["item.updated"]
            said = "item.started first" if started else "item.completed alone"
            yield Choice("sdk-item.started-which", said, frame, word(about))
            said = "updated" if updated else "not updated"
            yield Choice("sdk-item.updated-which", said, frame, word(about))

    def _named(self, frame: Frame) -> str:
        item = _item(frame)
        return text(item.get("id")) or text(item.get("type"))


@observes("sdk-item.status-words", "sdk-item.absent", "sdk-item.kinds", surface=EXEC)
class ItemMembers(Observer):
    """Values of the members of items."""

    @listen(*_ITEMS)
    def on_item(self, frame: Frame) -> Iterator[Choice]:
        """An item, at any moment of its life."""
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
                about = f"{member.name} of {name}, when it {when}"
                yield Choice("sdk-item.absent", _held(value), frame, about)
        for change in arr(item.get("changes")) if name == "file_change" else ():
            yield Choice("sdk-item.kinds", word(dig(change, "kind")), frame)


def _held(value: Any) -> str:
    """Return whether a member has a value; an empty text or list is none yet."""
    return f"empty {kind(value)}" if value == "" or value == [] else presence(value)


@observes("sdk-event.started-again", surface=EXEC)
class StartedAgain(ProcessObserver):
    """A thread named again by its later turns."""

    def ended(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """A process that goes on with a thread."""
        if not process.resumes or not process.events("turn.started"):
            return
        named = process.events("thread.started")
        ids = {text(obj(frame.json).get("thread_id")) for frame in named}
        said = "yes, with the same id" if ids == {process.resumes} else "yes, with another id"
        yield Choice("sdk-event.started-again", said if named else "no", (named or [last])[0])


@observes("sdk-event.retries", "sdk-event.failed-after-error", surface=EXEC)
class Failures(ProcessObserver):
    """News of a model call that fails: of one that is tried again, and of the last."""

    def ended(self, process: _Process, last: Frame, end: ProgramEnded) -> Iterator[Choice]:
        """By the end of the turn."""
        errors = process.events(FATAL)
        if process.end == "turn.completed" and process.failed_calls and process.calls > 1:
            said = "an error event" if errors else "no error event"
            yield Choice("sdk-event.retries", said, (errors or [last])[0])
        if errors and process.end != "turn.completed":
            after = [one for one in process.frames if one.seq > errors[-1].seq]
            said = ", ".join(event_type(one) or "a line that is no event" for one in after)
            yield Choice("sdk-event.failed-after-error", said or "nothing", errors[-1])
        elif process.end == "turn.failed":
            yield Choice("sdk-event.failed-after-error", "no error event before it", last)
