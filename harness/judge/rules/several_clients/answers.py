"""Rules on approvals on a thread with several clients: the answers, and the notifications.

The specification does not say whether one client is asked or each, and whose answer counts.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcome, Outcomes, Violation, Witness, on, rule
from harness.judge.rules.shared.approval_queries import APPROVING, DENYING, asks_for_network
from harness.judge.rules.shared.client_index import AllClients, ItemName, Question, item_name_of
from harness.judge.rules.shared.execution_evidence import had_output_before
from harness.judge.rules.shared.policies import PolicyMonitor
from harness.judge.rules.shared.view_queries import describe_silence, item_in, request_subject
from harness.judge.rules.shared.violations import absent, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.frame import Frame
from harness.trace.order import by_arrival, earliest
from harness.trace.views import ItemView

RESOLVED = "serverRequest/resolved"


@rule(
    "clients.answer-carried-out",
    title="Operations follow the clients' answers",
    level=Level.MUST,
    needs=("several-clients", "command-approval"),
)
class AnswerCarriedOut(PolicyMonitor):
    """Judges the end of an item with approval requests, if several clients are connected.

    If every answer approves, from whichever clients, it is not declined; if every answer denies, it
    is not completed. If they differ, either is right. SHOULD for a command that is completed after
    a denial, if it had output before the request, or the request may concern the network; SHOULD
    too for a decline if the policy is unknown, or may be reject. Left open: items without an answer
    in time, that is, before the request was resolved, and turns that may have been disturbed: by
    another request, an error, or a client that the harness disconnected. For a single client see
    approval.accepted-runs and approval.denied-not-run.
    """

    def begin(self) -> None:
        super().begin()
        self._all = AllClients(self.trace)
        # A turn that is about to fail may end an approved item as declined.
        self._held: dict[str, list[Violation]] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        if self.has_one_client():
            return None
        item, name = self.conversation.item_of(frame), item_name_of(frame)
        if item is None or name is None or len(item.completions) > 1:
            return None
        self._all.read_until(frame)
        questions = self._all.questions.get(name, [])
        answered = [question for question in questions if question.decision(self.book)]
        first = earliest(question.frame for question in questions)
        if first is None or not answered or self._all.may_be_disturbed(name, first):
            return None
        if not any(question.in_time for question in answered):
            return None
        return self._judge_end(item, name, answered, frame)

    def _judge_end(
        self, item: ItemView, name: ItemName, answered: list[Question], frame: Frame
    ) -> Outcomes:
        decisions = {question.decision(self.book) for question in answered}
        status = text(item_in(frame).get("status"))
        exchanged = {question.frame for question in answered} | {
            question.answer for question in answered if question.answer
        }
        frames = tuple(by_arrival({*exchanged, frame}))
        if decisions <= APPROVING and status == "declined":
            policies = self.policies(item.turn)
            is_certain = bool(policies) and "reject" not in policies
            violation = self._end_violation(
                item, answered, frame, frames, "completed or failed", is_certain=is_certain
            )
            self._held.setdefault(item.turn.key, []).append(violation)
            return None
        if decisions <= DENYING and status == "completed":
            questions = [question.frame for question in answered]
            ran_before = had_output_before(item, questions[0]) or any(
                map(asks_for_network, questions)
            )
            return [
                self._end_violation(
                    item, answered, frame, frames, "declined", is_certain=not ran_before
                )
            ]
        if decisions <= APPROVING | DENYING and status in ("completed", "failed", "declined"):
            return [Witness(item.subject, frames)]
        return None

    def _end_violation(
        self,
        item: ItemView,
        answered: list[Question],
        frame: Frame,
        frames: tuple[Frame, ...],
        expected: str,
        *,
        is_certain: bool,
    ) -> Violation:
        also = tuple(
            member(question.answer, "decision") for question in answered if question.answer
        )
        field, level = member(frame, "item", "status"), None if is_certain else Level.SHOULD
        return wrong(item.subject, frames, field, expected, level=level, also=also)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        violations = self._held.pop(turn.key, []) if turn is not None else []
        return violations if turn is not None and turn.status != "failed" else None

    def finish(self) -> Outcomes:
        for violations in self._held.values():
            yield from violations


@rule(
    "clients.resolved-told",
    title="Each client that was asked gets serverRequest/resolved",
    level=Level.SHOULD,
    needs=("several-clients", "command-approval"),
)
class ResolvedTold(PolicyMonitor):
    """Judges, at the end of a quiescent trace, that a serverRequest/resolved came to each client.

    Judged if several clients are connected: each gets one for each approval request that it got, if
    one of them answered and the item was completed. The specification says that it is emitted after
    the answer and not to whom; a client that was asked cannot learn otherwise that its answer is
    not needed any more. Left open: answers that may have come too late, and turns that may have
    been disturbed (as in clients.answer-carried-out). For a single client see approval.order.
    """

    def begin(self) -> None:
        super().begin()
        self._all = AllClients(self.trace)
        self._resolved_count = 0
        self._ends: list[Frame] = []

    @on(RESOLVED)
    def on_resolved(self, frame: Frame) -> Outcomes:
        self._resolved_count += 1
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        self._ends.append(frame)
        return None

    def finish(self) -> Outcomes:
        if self.has_one_client() or not self._ends:
            return
        self._all.read_until(None)
        settled, open_count = self._settled_questions(self._ends[0].connection)
        # A notification for a request that is left open here looks like the others.
        spare = self._resolved_count - (open_count if self._resolved_count > len(settled) else 0)
        for question, answer in settled:
            outcome = self._judge_question(question, answer, has_resolved=spare > 0)
            spare -= 1
            if outcome is not None:
                yield outcome

    def _settled_questions(self, connection: str) -> tuple[list[tuple[Question, Frame]], int]:
        """Return this client's settled requests with first answers, and the number of others."""
        settled: list[tuple[Question, Frame]] = []
        open_count = 0
        ended_items = {item_name_of(end) for end in self._ends}
        for name, questions in self._all.questions.items():
            in_time = (
                question
                for question in questions
                if question.in_time and question.decision(self.book)
            )
            first = earliest(question.answer for question in in_time if question.answer is not None)
            for question in (
                question for question in questions if question.frame.connection == connection
            ):
                if (
                    first is None
                    or name not in ended_items
                    or self._all.may_be_disturbed(name, question.frame)
                ):
                    open_count += 1
                else:
                    settled.append((question, first))
        return settled, open_count

    def _judge_question(
        self, question: Question, answer: Frame, *, has_resolved: bool
    ) -> Outcome | None:
        subject, frames = request_subject(question.frame), (question.frame, answer)
        connection = question.frame.connection
        if has_resolved:
            settled = question.resolution
            return Witness(subject, (*frames, settled)) if settled is not None else None
        expected = (
            f"{RESOLVED} on connection {connection}, since connection {answer.connection} answered"
        )
        item_id = member(question.frame, "itemId")
        return absent(subject, frames, expected, describe_silence(self.trace), item_id)
