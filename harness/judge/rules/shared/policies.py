"""The approval policy and the sandbox policy that apply to a turn.

The specification does not say how long an override lasts. So a turn without an override may be
under the policy that its thread was opened with, or under any override of an earlier turn/start.
"""

import json
from typing import Any, Final

from harness.judge.base import Outcomes, on_answer, on_sent
from harness.judge.rules.shared.approval_queries import ApprovalMonitor
from harness.judge.rules.shared.view_queries import began_here, is_failure
from harness.judge.rules.shared.violations import Member, member
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.views import TurnView

POLICY: Final = "approvalPolicy"
SANDBOX: Final = "sandboxPolicy"
# Their names in the answers that open a thread.
_ANSWER_NAMES: Final = {POLICY: "approvalPolicy", SANDBOX: "sandbox"}


class PolicyMonitor(ApprovalMonitor):
    """Base of rules on the policies that may apply to a turn of this client."""

    def begin(self) -> None:
        """Set up the shared state; a rule with state of its own must call this too."""
        super().begin()
        self._overrides: dict[str, list[Frame]] = {}

    @on_sent("turn/start")
    def _on_overrides_sent(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        if any(params.get(name) is not None for name in _ANSWER_NAMES):
            self._overrides.setdefault(text(params.get("threadId")), []).append(frame)
        return None

    @on_answer("turn/start")
    def _on_overrides_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None and is_failure(frame):
            thread_id = text(obj(request.params).get("threadId"))
            overrides = self._overrides.get(thread_id, [])
            self._overrides[thread_id] = [
                override for override in overrides if override is not request
            ]
        return None

    def policies(self, turn: TurnView) -> frozenset[str]:
        """Return the approval policies that may apply to a turn, empty if unknown."""
        policies = self._in_force(turn, POLICY)
        words = [policy for policy in policies if isinstance(policy, str)]
        return frozenset(words) if len(words) == len(policies) else frozenset()

    def sandboxes(self, turn: TurnView) -> frozenset[str]:
        """Return the sandbox policies that may apply to a turn, as JSON; empty if unknown."""
        policies = self._in_force(turn, SANDBOX)
        return frozenset(json.dumps(policy, sort_keys=True) for policy in policies)

    def sandbox_types(self, turn: TurnView) -> frozenset[str]:
        """Return the types of the sandbox policies that may apply to a turn, empty if unknown."""
        return frozenset(text(obj(policy).get("type")) for policy in self._in_force(turn, SANDBOX))

    def is_under(self, turn: TurnView | None, policy: str) -> bool:
        """Return whether this approval policy is the only one that can apply to a turn.

        False if the client may have missed the beginning of the turn, or the trace has other
        clients.
        """
        if turn is None or not began_here(self.conversation, turn) or not self.has_one_client():
            return False
        return self.policies(turn) == frozenset({policy})

    def clauses(self, turn: TurnView, clause: str) -> tuple[str, ...]:
        """Return `clause`, and the requirement on overrides if the turn/start has a policy."""
        overridden = turn.request is not None and POLICY in obj(turn.request.params)
        return (clause, "turn-start.approval-policy") if overridden else (clause,)

    def _in_force(self, turn: TurnView, name: str) -> list[Any]:
        thread = self.conversation.threads.get(turn.thread_id)
        if turn.request is None or thread is None:
            return []
        overrides = [
            (frame, value)
            for frame in self._overrides.get(turn.thread_id, ())
            if (value := obj(frame.params).get(name)) is not None
        ]
        own = obj(turn.request.params).get(name)
        if own is not None:
            later = (value for frame, value in overrides if came_before(turn.request, frame))
            return [own, *later]
        # The answer to a resume within the turn may show the settings of later turns.
        answers = thread.opening_answers
        before = [answer for answer in answers if came_before(answer, turn.request)]
        applying = [*before[-1:], *answers[len(before) :]]
        answered = [obj(answer.result).get(_ANSWER_NAMES[name]) for answer in applying]
        if not before or None in answered:
            return []
        return [*answered, *(value for _, value in overrides)]


def policy_of(turn: TurnView) -> tuple[Member, ...]:
    """Return the policy member of the turn's turn/start; empty if the turn has no override."""
    if turn.request is None or POLICY not in obj(turn.request.params):
        return ()
    return (member(turn.request, POLICY),)
