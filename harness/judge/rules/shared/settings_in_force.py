"""The approval policy and the sandbox policy that apply to a turn.

The text does not say how long an override lasts. So a turn without an override may be under the
policy that its thread was opened with, or under any override of an earlier turn/start.
"""

import json
from typing import Any, Final

from harness.judge.base import Outcomes, on_answer, on_sent
from harness.judge.rules.shared.approval_queries import ApprovalMonitor
from harness.judge.rules.shared.view_queries import began_here, failed
from harness.judge.rules.shared.violations import Member, member
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.views import TurnView

POLICY: Final = "approvalPolicy"
SANDBOX: Final = "sandboxPolicy"
# Their names in the answers that open a thread.
_TOLD: Final = {POLICY: "approvalPolicy", SANDBOX: "sandbox"}


class PolicyMonitor(ApprovalMonitor):
    """A monitor that knows which policies may apply to a turn of this client."""

    def begin(self) -> None:
        """Set up the shared state; a rule with state of its own must call this too."""
        super().begin()
        self._overrides: dict[str, list[Frame]] = {}

    @on_sent("turn/start")
    def _on_overrides_sent(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        if any(params.get(name) is not None for name in _TOLD):
            self._overrides.setdefault(text(params.get("threadId")), []).append(frame)
        return None

    @on_answer("turn/start")
    def _on_overrides_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None and failed(frame):
            thread_id = text(obj(request.params).get("threadId"))
            given = self._overrides.get(thread_id, [])
            self._overrides[thread_id] = [one for one in given if one is not request]
        return None

    def policies(self, turn: TurnView) -> frozenset[str]:
        """The approval policies that may apply to a turn; empty where they cannot be known."""
        found = self._in_force(turn, POLICY)
        known = [policy for policy in found if isinstance(policy, str)]
        return frozenset(known) if len(known) == len(found) else frozenset()

    def sandboxes(self, turn: TurnView) -> frozenset[str]:
        """The sandbox policies that may apply to a turn, as JSON; empty where not known."""
        found = self._in_force(turn, SANDBOX)
        return frozenset(json.dumps(policy, sort_keys=True) for policy in found)

    def sandbox_types(self, turn: TurnView) -> frozenset[str]:
        """The types of the sandbox policies that may apply to a turn; empty where not known."""
        return frozenset(text(obj(policy).get("type")) for policy in self._in_force(turn, SANDBOX))

    def under(self, turn: TurnView | None, policy: str) -> bool:
        """Return whether this approval policy alone can apply to a turn whose beginning was
        seen.
        """
        if turn is None or not began_here(self.conversation, turn) or not self.alone():
            return False
        return self.policies(turn) == frozenset({policy})

    def clauses(self, turn: TurnView, clause: str) -> tuple[str, ...]:
        """The requirement of the policy, and that of the override where the turn has one."""
        overridden = turn.request is not None and POLICY in obj(turn.request.params)
        return (clause, "turn-start.approval-policy") if overridden else (clause,)

    def _in_force(self, turn: TurnView, name: str) -> list[Any]:
        thread = self.conversation.threads.get(turn.thread_id)
        if turn.request is None or thread is None:
            return []
        given = [
            (frame, value)
            for frame in self._overrides.get(turn.thread_id, ())
            if (value := obj(frame.params).get(name)) is not None
        ]
        own = obj(turn.request.params).get(name)
        if own is not None:
            later = (value for frame, value in given if came_before(turn.request, frame))
            return [own, *later]
        if not thread.opened:
            return []
        told = obj(thread.opened[-1].result).get(_TOLD[name])
        return [] if told is None else [told, *(value for _, value in given)]


def policy_of(turn: TurnView) -> tuple[Member, ...]:
    """The policy member of the turn's turn/start; empty where the turn has no override."""
    if turn.request is None or POLICY not in obj(turn.request.params):
        return ()
    return (member(turn.request, POLICY),)
