"""Rules over the events of one program: small, and not of the product.

They prove that a surface beside the session's can be judged. The book's requirements of the second
document are about a command and SDKs that no run plays yet: a product rule would have them read as
judged. Ids and levels are given by hand, since a registered rule is one of the product.
"""

from typing import cast

from harness.judge.base import Monitor, Outcomes, Violation, Witness, listen, on_mark
from harness.judge.verdict import Level
from harness.surface.exec import TURN_ENDS, Stream, StreamLedger
from harness.trace.frame import Frame
from harness.trace.marks import ProgramEnded
from harness.trace.trace import Mark


class StreamRule(Monitor):
    """A rule over one process."""

    level, needs, surface = Level.MUST, ("core",), "exec"

    def begin(self) -> None:
        self.stream = cast("Stream", self.conversation)
        self.debts = cast("StreamLedger", self.owed)


class ThreadFirst(StreamRule):
    """`thread.started` comes before `turn.started` (sdk-order.thread-first)."""

    id, title = "stream.thread-first", "A stream names its thread before its turn"

    @listen(("event", "turn.started"))
    def started(self, frame: Frame) -> Outcomes:
        subject = self.stream.turns[-1].subject
        threads = [one for one in self.stream.threads if self.trace.before(one, frame)]
        if threads:
            yield Witness(subject, (threads[0], frame))
        else:
            yield Violation(subject, (frame,), "thread.started before it", "none came before it")


class OneEnd(StreamRule):
    """A turn has one of `turn.completed` and `turn.failed` (sdk-order.terminal-last)."""

    id, title = "stream.one-end", "A turn of a stream ends once"

    @listen(*(("event", kind) for kind in TURN_ENDS))
    def ended(self, frame: Frame) -> Outcomes:
        if not self.stream.turns:
            yield Violation("a turn", (frame,), "turn.started before it", "none came before it")
            return
        turn = self.stream.turns[-1]
        if turn.ends == [frame]:
            yield Witness(turn.subject, (turn.started, frame))
        else:
            proof = (turn.started, *turn.ends)
            yield Violation(turn.subject, proof, "one end", f"{len(turn.ends)} ends")

    def finish(self) -> Outcomes:
        for turn in self.debts.open():
            ends = " or ".join(TURN_ENDS)
            yield Violation(turn.subject, (turn.started,), ends, "neither, and the process ended")


class StatusTellsFailure(StreamRule):
    """The exit status is 0 unless a turn failed. Nobody states it: it is here to read marks."""

    id, title = "stream.status-tells-failure", "The exit status tells whether a turn failed"

    @on_mark(ProgramEnded)
    def ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        ends = [end for turn in self.stream.turns for end in turn.ends]
        failed = any(end.json["type"] == "turn.failed" for end in ends)
        status, connection = mark.body.status, mark.body.connection
        if failed is (status != 0):
            yield Witness(f"process {connection}", tuple(ends))
        else:
            wanted = "another than 0" if failed else "0"
            yield Violation(f"process {connection}", tuple(ends), wanted, str(status))


RULES: list[type[Monitor]] = [ThreadFirst, OneEnd, StatusTellsFailure]
