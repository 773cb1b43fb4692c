"""Rules on the order of the events of a stream: thread, turn, items, one end ("Events")."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Violation, Witness, listen, on_mark, rule
from harness.judge.rules.shared.process_events import (
    StreamRule,
    item_subject,
    member,
    turn_request_of,
)
from harness.judge.rules.shared.violations import unexpected_member
from harness.judge.verdict import Level
from harness.trace.frame import Frame
from harness.trace.marks import ProgramEnded
from harness.trace.surface.agent_exec import FATAL, ITEM_EVENTS, TURN_ENDS
from harness.trace.trace import Mark

_ITEMS = tuple(("event", kind) for kind in ITEM_EVENTS)
_ENDS = tuple(("event", kind) for kind in TURN_ENDS)
_END = " or ".join(TURN_ENDS)


@rule(
    "exec.thread-first",
    title="A stream names its thread before its turn",
    level=Level.MUST,
    surface="exec",
)
class ThreadFirst(StreamRule):
    """Judges turn.started, and a thread.started that comes after one.

    A process that resumes a thread may omit thread.started: the specification leaves open whether
    it repeats.
    """

    @listen(("event", "turn.started"))
    def on_turn_started(self, frame: Frame) -> Outcomes:
        subject = self.stream.turns[-1].subject
        if self.stream.threads:
            yield Witness(subject, (self.stream.threads[0], frame))
            return
        request = turn_request_of(self.trace, frame.connection)
        if request is None or not request.thread:
            yield Violation(subject, (frame,), "thread.started before it", "none came before it")

    @listen(("event", "thread.started"))
    def on_thread_started(self, frame: Frame) -> Outcomes:
        if self.stream.turns and self.stream.threads[0] is not frame:
            turn = self.stream.turns[0]
            yield unexpected_member(
                turn.subject,
                (turn.start, frame),
                member(frame, "type"),
                "thread.started before turn.started, and none after it",
            )


@rule(
    "exec.turn-before-items",
    title="A turn starts before the events of its items",
    level=Level.MUST,
    surface="exec",
)
class TurnBeforeItems(StreamRule):
    """Judges that turn.started comes before each event of an item.

    The order of the specification is thread.started, turn.started, then the events of items.
    """

    @listen(*_ITEMS)
    def on_item(self, frame: Frame) -> Outcomes:
        if self.stream.turns:
            turn = self.stream.turns[-1]
            yield Witness(turn.subject, (turn.start, frame))
        else:
            yield unexpected_member(
                item_subject(self.stream, frame),
                (frame,),
                member(frame, "type"),
                "turn.started before the events of items",
            )


@rule(
    "exec.end-is-last",
    title="The end of a turn comes once, after the events of its items",
    level=Level.MUST,
    surface="exec",
)
class EndIsLast(StreamRule):
    """Judges each end of a turn, and each event of an item that comes after one.

    An `error` event may come anywhere: the specification calls it fatal and gives it no place.
    """

    @listen(*_ENDS)
    def on_end(self, frame: Frame) -> Outcomes:
        if not self.stream.turns:
            yield unexpected_member(
                f"process {frame.connection}", (frame,), member(frame, "type"), "a turn before it"
            )
            return
        turn = self.stream.turns[-1]
        if turn.ends == [frame]:
            yield Witness(turn.subject, (turn.start, frame))
        else:
            proof = (turn.ends[0], frame)
            yield unexpected_member(turn.subject, proof, member(frame, "type"), f"one end, {_END}")

    @listen(*_ITEMS)
    def on_item(self, frame: Frame) -> Outcomes:
        turn = self.stream.turns[-1] if self.stream.turns else None
        if turn is not None and turn.ends:
            proof = (turn.ends[0], frame)
            expected = "no event of an item after the end of the turn"
            yield unexpected_member(turn.subject, proof, member(frame, "type"), expected)


@rule("exec.turn-ends", title="A turn of a stream ends", level=Level.MUST, surface="exec")
class TurnEnds(StreamRule):
    """Judges that each turn of a process has ended when the process ends.

    A fatal `error` event may replace the end. A process that the harness ended is not judged.
    """

    def finish(self) -> Outcomes:
        owing = self.obligations.open_turns()
        for turn in self.stream.turns:
            if turn.start in [owing_turn.start for owing_turn in owing]:
                continue
            ends = [*turn.ends, *self.stream.fatal]
            yield Witness(turn.subject, (turn.start, ends[0]))
        for turn in owing:
            expected = f"{_END}, or an {FATAL} event"
            yield Violation(turn.subject, (turn.start,), expected, "none, and the process ended")


@rule(
    "exec.error-is-fatal",
    title="No turn is completed after an error event",
    level=Level.MUST,
    surface="exec",
)
class ErrorIsFatal(StreamRule):
    """Judges the end of a stream that has an `error` event within a turn.

    The specification calls this a fatal error, so no turn is completed after it: the turn fails, or
    nothing more comes.
    """

    @listen(*_ENDS)
    def on_end(self, frame: Frame) -> Outcomes:
        if not self.stream.fatal or not self.stream.turns:
            return
        turn, fatal = self.stream.turns[-1], self.stream.fatal[0]
        if self.trace.before(fatal, turn.start):
            return
        kind = member(frame, "type")
        if kind.value == "turn.completed":
            expected = "no turn.completed after an error event, which is fatal"
            yield unexpected_member(turn.subject, (fatal, frame), kind, expected)
        else:
            yield Witness(turn.subject, (fatal, frame))

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        turn = self.stream.turns[-1] if self.stream.turns else None
        if turn is None or turn.ends or mark.body.push != "none":
            return
        errors = [error for error in self.stream.fatal if self.trace.before(turn.start, error)]
        if errors:
            yield Witness(turn.subject, (errors[-1],))
