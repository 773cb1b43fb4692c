"""Rules on questions where a thread has several clients: whose answer counts, and who is told.

Who is asked, one client or each, and whose answer counts, the text does not say.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcome, Outcomes, Violation, Witness, on, rule
from harness.judge.rules.shared.all_clients import AllClients, ItemName, Question, item_named
from harness.judge.rules.shared.approval_queries import APPROVING, DENYING, asks_for_network
from harness.judge.rules.shared.carried_out import printed_before
from harness.judge.rules.shared.settings_in_force import PolicyMonitor
from harness.judge.rules.shared.view_queries import item_in, never_came, request_subject
from harness.judge.rules.shared.violations import absent, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.frame import Frame
from harness.trace.order import by_arrival, earliest
from harness.trace.views import ItemView

RESOLVED = "serverRequest/resolved"


@rule(
    "clients.answer-carried-out",
    title="What is done is what the clients answered",
    level=Level.MUST,
    needs=("several-clients", "command-approval"),
)
class AnswerCarriedOut(PolicyMonitor):
    """Judges the end of an item that was asked about, where several clients are connected.

    If every answer approves, from whichever clients, it is not declined; if every one of them
    denies, it is not completed. Where they differ, either is right. That a command
    which had output before it was asked about, or which may be asked about for the network, is
    completed after a denial is SHOULD; so is that it is declined where the policy is not known, or
    may be reject. Left open: items that nobody has answered about in time, that is, before the
    question was resolved, and turns that may have been disturbed: by another request, an error,
    or a client that we disconnected. A client that is alone is for approval.accepted-runs and
    approval.denied-not-run.
    """

    def begin(self) -> None:
        super().begin()
        self._all = AllClients(self.trace)
        # A turn that is about to fail may end what was approved as declined.
        self._held: dict[str, list[Violation]] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        if self.alone():
            return None
        item, name = self.conversation.item_of(frame), item_named(frame)
        if item is None or name is None or len(item.completed) > 1:
            return None
        self._all.until(frame)
        asked = self._all.questions.get(name, [])
        answered = [one for one in asked if one.decision(self.book)]
        first = earliest(one.frame for one in asked)
        if first is None or not answered or self._all.disturbed(name, first):
            return None
        if not any(one.in_time for one in answered):
            return None
        return self._judged(item, name, answered, frame)

    def _judged(
        self, item: ItemView, name: ItemName, answered: list[Question], frame: Frame
    ) -> Outcomes:
        decisions = {one.decision(self.book) for one in answered}
        status = text(item_in(frame).get("status"))
        exchanged = {one.frame for one in answered} | {one.answer for one in answered if one.answer}
        frames = tuple(by_arrival({*exchanged, frame}))
        if decisions <= APPROVING and status == "declined":
            policies = self.policies(item.turn)
            sure = bool(policies) and "reject" not in policies
            found = self._wrong(item, answered, frame, frames, "completed or failed", sure=sure)
            self._held.setdefault(item.turn.key, []).append(found)
            return None
        if decisions <= DENYING and status == "completed":
            questions = [one.frame for one in answered]
            before = printed_before(item, questions[0]) or any(map(asks_for_network, questions))
            return [self._wrong(item, answered, frame, frames, "declined", sure=not before)]
        if decisions <= APPROVING | DENYING and status in ("completed", "failed", "declined"):
            return [Witness(item.subject, frames)]
        return None

    def _wrong(
        self,
        item: ItemView,
        answered: list[Question],
        frame: Frame,
        frames: tuple[Frame, ...],
        expected: str,
        *,
        sure: bool,
    ) -> Violation:
        also = tuple(member(one.answer, "decision") for one in answered if one.answer)
        where, level = member(frame, "item", "status"), None if sure else Level.SHOULD
        return wrong(item.subject, frames, where, expected, level=level, also=also)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        held = self._held.pop(turn.key, []) if turn is not None else []
        return held if turn is not None and turn.status != "failed" else None

    def finish(self) -> Outcomes:
        for held in self._held.values():
            yield from held


@rule(
    "clients.resolved-told",
    title="Each client that was asked is told that the question is resolved",
    level=Level.SHOULD,
    needs=("several-clients", "command-approval"),
)
class ResolvedTold(PolicyMonitor):
    """Judges, at the end of a quiescent trace, that a serverRequest/resolved came to each client.

    Where several clients are connected: to each that was asked about an item, which one of them
    answered and which was completed; one for each question. The text says that it is emitted after
    the answer and not to whom; a client that was asked has no other way to know that it need not
    answer any more. Left open: answers that may have come too late, and turns that may have been
    disturbed (as in clients.answer-carried-out). A client that is alone is for approval.order.
    """

    def begin(self) -> None:
        super().begin()
        self._all = AllClients(self.trace)
        self._came = 0
        self._ends: list[Frame] = []

    @on(RESOLVED)
    def on_resolved(self, frame: Frame) -> Outcomes:
        self._came += 1
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        self._ends.append(frame)
        return None

    def finish(self) -> Outcomes:
        if self.alone() or not self._ends:
            return
        self._all.until(None)
        due, others = self._settled(self._ends[0].connection)
        # What is told of a question that is left open here cannot be told from the rest.
        spare = self._came - (others if self._came > len(due) else 0)
        for question, answer in due:
            outcome = self._outcome(question, answer, told=spare > 0)
            spare -= 1
            if outcome is not None:
                yield outcome

    def _settled(self, here: str) -> tuple[list[tuple[Question, Frame]], int]:
        """The questions of this client that were settled, each with the first answer to it.

        And the number of those that this leaves open.
        """
        due: list[tuple[Question, Frame]] = []
        others = 0
        ended = {item_named(end) for end in self._ends}
        for name, asked in self._all.questions.items():
            given = (one for one in asked if one.in_time and one.decision(self.book))
            first = earliest(one.answer for one in given if one.answer is not None)
            for question in (one for one in asked if one.frame.connection == here):
                if first is None or name not in ended or self._all.disturbed(name, question.frame):
                    others += 1
                else:
                    due.append((question, first))
        return due, others

    def _outcome(self, question: Question, answer: Frame, *, told: bool) -> Outcome | None:
        subject, frames = request_subject(question.frame), (question.frame, answer)
        here = question.frame.connection
        if told:
            settled = question.settled
            return Witness(subject, (*frames, settled)) if settled is not None else None
        expected = f"{RESOLVED} on connection {here}, since connection {answer.connection} answered"
        about = member(question.frame, "itemId")
        return absent(subject, frames, expected, never_came(self.trace), about)
