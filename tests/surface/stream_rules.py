"""A test rule over the events of one program, to prove that rules can read marks.

The specification does not define the exit status, so the product has no such rule. Its id and level
are set directly, since a registered rule would be part of the product.
"""

from typing import cast

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on_mark
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level
from harness.trace.marks import ProgramEnded
from harness.trace.surface.agent_exec import Stream, StreamLedger
from harness.trace.trace import Mark


class StreamRule(Monitor):
    """Base class of rules over one process."""

    level, needs, surface = Level.MUST, ("core",), "exec"

    def begin(self) -> None:
        self.stream = cast("Stream", self.conversation)
        self.debts = cast("StreamLedger", self.owed)


OF_PRODUCT = ("exec.end-is-last", "exec.thread-first", "exec.turn-ends")


class StatusTellsFailure(StreamRule):
    """Judges that the exit status is 0 exactly if no turn failed."""

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
