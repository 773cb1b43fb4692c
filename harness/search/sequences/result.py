"""The result of a conversation, as a worker process sends it: without what is open or unused."""

import base64
import pickle
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from harness.scenario.player import StepFailure
from harness.search.fuzz.sessions.play import Played, Problem
from harness.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """The messages of a conversation, its problems, and the step that stopped it, if any.

    `kept_rules` counts the rows of each SHOULD rule that passed; `rules` are those that judged.
    """

    trace: Trace
    unmet: StepFailure | None
    problems: Sequence[Problem]
    kept_rules: Mapping[str, int]
    rules: Set[str]

    def encode(self) -> str:
        """Return it as ASCII text."""
        return base64.b64encode(pickle.dumps(self, protocol=5)).decode()


def result_of(played: Played) -> ConversationResult:
    """Return the result of a play."""
    rules = {row.rule for row in played.outcome.rows}
    return ConversationResult(
        played.run.trace, played.run.unmet, played.problems, played.kept_rules, rules
    )


def decode_result(text: str) -> ConversationResult:
    """Return the result that a worker process of this harness has encoded."""
    return pickle.loads(base64.b64decode(text))
