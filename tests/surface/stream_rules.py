"""A rule over the events of one program that is not of the product.

Nobody states what an exit status says, so the product has no rule on it; this one proves that rules
can read marks. Its id and level are given by hand, since a registered rule is one of the product.
"""

from typing import cast

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on_mark
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level
from harness.trace.marks import ProgramEnded
from harness.trace.surface.agent_exec import Stream, StreamLedger
from harness.trace.trace import Mark


class StreamRule(Monitor):
    """A rule over one process."""

    level, needs, surface = Level.MUST, ("core",), "exec"

    def begin(self) -> None:
        self.stream = cast("Stream", self.conversation)
        self.debts = cast("StreamLedger", self.owed)


OF_PRODUCT = ("exec.end-is-last", "exec.thread-first", "exec.turn-ends")


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


RULES: list[type[Monitor]] = [
    *(rule for rule in all_rules().values() if rule.id in OF_PRODUCT),
    StatusTellsFailure,
]
