"""Rules on the approval policy: whether the client is asked, and what is done before it answers.

Here: the policy of a turn against the questions in it ("Enumerations", approvalPolicy). Not here:
the questions themselves (approvals) and the answers' effect (decisions). Which operations are
untrusted, and what counts as a failure under on-failure, is not shown: no rule judges those.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.rules.asked import (
    APPROVALS,
    APPROVING,
    OPERATIONS,
    REMEMBERED,
    ApprovalMonitor,
    question_item,
)
from harness.rules.base import Outcomes, Witness, on, on_own, rule
from harness.rules.subjects import began_here, item_in, request_subject
from harness.rules.telling import Member, absent, instead, member, wrong
from harness.rules.verdict import Level
from harness.trace.frame import Frame, Kind
from harness.trace.values import obj, text
from harness.trace.views import Conversation, ThreadView, TurnView


def policies_of(conversation: Conversation, turn: TurnView) -> frozenset[str]:
    """The policies that may hold in a turn; empty where it cannot be known.

    One given with turn/start holds for that turn. Without one it is that of the thread, or, since
    the text does not say how long an override lasts, one that a turn/start of the thread gave.
    """
    thread = conversation.threads.get(turn.thread_id)
    if turn.request is None or thread is None:
        return frozenset()
    later = {name for other, name in _overrides(thread) if other.seq > turn.request.seq}
    own = obj(turn.request.params).get("approvalPolicy")
    if own is not None:
        return frozenset({own, *later}) if isinstance(own, str) else frozenset()
    if not thread.opened:
        return frozenset()
    told = obj(thread.opened[-1].result).get("approvalPolicy")
    if not isinstance(told, str):
        return frozenset()
    return frozenset({told} | {name for _, name in _overrides(thread)})


def _overrides(thread: ThreadView) -> list[tuple[Frame, str]]:
    found: list[tuple[Frame, str]] = []
    for turn in thread.turns.values():
        if turn.request is not None:
            policy = obj(turn.request.params).get("approvalPolicy", None)
            if policy is not None:
                found.append((turn.request, text(policy)))
    return found


def policy_of(turn: TurnView) -> tuple[Member, ...]:
    """Where the policy of a turn is said: its turn/start; empty where only its thread has one."""
    if turn.request is None or "approvalPolicy" not in obj(turn.request.params):
        return ()
    return (member(turn.request, "approvalPolicy"),)


class PolicyMonitor(ApprovalMonitor):
    """A monitor that knows which policy a turn of ours is under."""

    def under(self, turn: TurnView | None, policy: str) -> bool:
        """Whether this policy, and no other, holds in a turn that began here."""
        if turn is None or not began_here(self.conversation, turn) or not self.alone():
            return False
        return policies_of(self.conversation, turn) == frozenset({policy})

    def clauses(self, turn: TurnView, clause: str) -> tuple[str, ...]:
        """The clause of the policy, and that of the override where the turn has one."""
        overridden = turn.request is not None and "approvalPolicy" in obj(turn.request.params)
        return (clause, "turn-start.approval-policy") if overridden else (clause,)


@rule(
    "approval.never-asked",
    title="Under never the client is not asked",
    level=Level.MUST,
    needs=("command-execution",),
)
class NeverAsked(PolicyMonitor):
    """Judges that no approval is requested in a turn under the policy never.

    A witness is a turn with a command or a file change and without a question. Left open: turns
    whose policy is not certain.
    """

    def begin(self) -> None:
        super().begin()
        self._asked: set[str] = set()

    @on(*APPROVALS)
    def asked(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if frame.kind is not Kind.REQUEST or turn is None or not self.under(turn, "never"):
            return None
        self._asked.add(turn.key)
        return [
            absent(
                request_subject(frame),
                (frame,),
                f"no question in {turn.subject}, under the approval policy never",
                f"{frame.method} about {member(frame, 'itemId')}",
                *policy_of(turn),
                clauses=self.clauses(turn, "approval-policy.never"),
            )
        ]

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or turn.key in self._asked or not self.under(turn, "never"):
            return None
        items = [item for item in turn.items.values() if item.type in OPERATIONS]
        done = [item.completed[0] for item in items if item.completed]
        return [Witness(turn.subject, (done[0], frame))] if done else None


@rule(
    "approval.always-asked",
    title="Under on-request the client is always asked",
    level=Level.MUST,
    needs=("command-approval",),
)
class AlwaysAsked(PolicyMonitor):
    """Judges that each command and file change carried out under on-request was asked about.

    Carried out: completed, or with an exit code. Left open: turns whose policy is not certain, and
    threads in which something was approved for later too.
    """

    def begin(self) -> None:
        super().begin()
        self._relaxed: set[str] = set()

    @on_own
    def answered(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        if question is None:
            return None
        decision = self.decision(question)
        # An answer that the text does not show may mean anything.
        if decision in REMEMBERED or (frame.kind is Kind.RESPONSE and not decision):
            self._relaxed.add(text(obj(question.params).get("threadId")))
        return None

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type not in OPERATIONS or len(item.completed) > 1:
            return None
        shows = item_in(frame)
        ran = shows.get("status") == "completed" or isinstance(shows.get("exitCode"), int | float)
        if not ran or not self.under(item.turn, "on-request"):
            return None
        questions = self.questions(item)
        if questions:
            return [Witness(item.subject, (questions[0], frame))]
        if item.turn.thread_id in self._relaxed:
            return None
        return [
            absent(
                item.subject,
                (frame,),
                "a request for approval before it, under the approval policy on-request",
                f"carried out unasked: {member(frame, 'item', 'status')}",
                *policy_of(item.turn),
                clauses=(
                    *self.clauses(item.turn, "approval-policy.on-request"),
                    "approval.under-policy",
                ),
            )
        ]


@rule(
    "approval.asks-before-acting",
    title="Nothing is done before the client has answered",
    level=Level.MUST,
    needs=("command-approval",),
)
class AsksBeforeActing(PolicyMonitor):
    """Judges that an item has no output before the question about it is answered.

    Output that came before our answer was sent is of something that ran unapproved. Under
    on-failure a first try comes before the question, so turns that may be under it are not judged,
    nor those whose policy is not certain.
    """

    @on_own
    def answered(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        turn = self.conversation.turn_of(question) if question else None
        if question is None or turn is None or not began_here(self.conversation, turn):
            return None
        item = turn.items.get(question_item(question))
        policies = policies_of(self.conversation, turn)
        known = bool(policies) and "on-failure" not in policies and self.alone()
        if item is None or not item.started or not known:
            return None
        early = item.first_delta
        if early is None or early.seq < item.started[-1].seq:
            return [Witness(item.subject, (item.started[-1], question, frame))]
        if self.questions(item)[0] is not question:
            return None
        frames, expected = (question, early, frame), f"{request_subject(question)} answered first"
        return [instead(item.subject, frames, member(early, "delta"), expected)]


@rule(
    "approval.rejected",
    title="Under reject nothing is approved",
    level=Level.MUST,
    needs=("command-approval",),
)
class Rejected(PolicyMonitor):
    """Judges that under reject no item is carried out on the client's word.

    An item that was asked about, accepted and completed was not rejected. That it is asked at all
    is recorded only: how a rejection goes is not shown. A witness is an item that ends as declined.
    """

    @on(*APPROVALS)
    def asked(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if frame.kind is not Kind.REQUEST or not self.under(turn, "reject"):
            return None
        expected = "no question, under the approval policy reject"
        subject, actual = (
            request_subject(frame),
            f"{frame.method} about {member(frame, 'itemId')}",
        )
        about = policy_of(turn) if turn is not None else ()
        return [absent(subject, (frame,), expected, actual, *about, level=Level.INFO)]

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not self.under(item.turn, "reject"):
            return None
        status = item_in(frame).get("status")
        if status == "declined":
            return [Witness(item.subject, (frame,))]
        if status != "completed" or not self.decisions(item) & APPROVING:
            return None
        frames = (*self.last_exchange(item), frame)
        where, expected = member(frame, "item", "status"), '"declined", under the policy reject'
        return [wrong(item.subject, frames, where, expected, also=policy_of(item.turn))]
