"""Rules on approval requests: the ids in them, their item, and how that item ends."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath

from harness.judge.base import Outcomes, Violation, Witness, on, rule
from harness.judge.rules.shared.approval_queries import (
    APPROVALS,
    ITEM_TYPES,
    ApprovalMonitor,
    asks_for_network,
    item_of_another_turn,
)
from harness.judge.rules.shared.view_queries import (
    began_here,
    item_in,
    may_be_same_folder,
    request_subject,
    was_away,
)
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before
from harness.trace.views import ItemView


@rule(
    "approval.names-item",
    title="An approval request names thread, turn and item",
    level=Level.MUST,
    needs=("command-approval",),
)
class NamesItem(ApprovalMonitor):
    """Judges that the three ids of an approval request belong together.

    The turn must be one of that thread, and the item not one of another turn. approval.order judges
    whether it has been started. The request's folder should be the item's, since the client
    approves the one and sees the other: SHOULD if their last names differ. Left open: the command,
    which is an array in one and a text in the other; requests for something else, such as the
    network; turns whose beginning this client did not see, and ids that are missing or not strings
    (shapes).
    """

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        ids = [text(obj(frame.params).get(key)) for key in ("threadId", "turnId", "itemId")]
        thread = self.conversation.threads.get(ids[0])
        turn = self.conversation.turn_of(frame)
        if frame.kind is not Kind.REQUEST or not all(ids):
            return None
        if turn is None:
            # A thread that was started here, and never left, has reported each of its turns.
            if thread is None or thread.reply is None or was_away(thread, frame):
                return None
            return self._id_violation(
                frame, "turnId", f"the id of a turn of {thread.subject}", "threadId"
            )
        if not began_here(self.conversation, turn):
            return None
        if turn.thread_id != ids[0]:
            expected = f"{literal(turn.thread_id)}, the thread of {turn.subject}"
            return self._id_violation(frame, "threadId", expected, "turnId")
        if ids[2] in turn.items:
            other = self._folder_violation(frame, turn.items[ids[2]])
            return [Witness(request_subject(frame), (frame,))] if other is None else [other]
        other = item_of_another_turn(self.conversation, ids[2], turn)
        if other is None:
            return None
        expected = f"the id of an item of {turn.subject}, and this is {other.subject}"
        return self._id_violation(frame, "itemId", expected, "turnId")

    def _folder_violation(self, frame: Frame, item: ItemView) -> Violation | None:
        """Return the violation if a request has another folder than its item, else None."""
        if item.type != "commandExecution" or not item.starts or asks_for_network(frame):
            return None
        folders = [text(obj(frame.params).get("cwd")), text(item_in(item.starts[-1]).get("cwd"))]
        if not all(map(posixpath.isabs, folders)) or may_be_same_folder(*folders):
            return None
        frames, field = (item.starts[-1], frame), member(frame, "cwd")
        expected, also = f"the cwd of {item.subject}", (member(item.starts[-1], "item", "cwd"),)
        subject = request_subject(frame)
        return wrong(subject, frames, field, expected, also=also, level=Level.SHOULD)

    def _id_violation(self, frame: Frame, key: str, expected: str, beside: str) -> list[Violation]:
        also = (member(frame, beside),)
        return [wrong(request_subject(frame), (frame,), member(frame, key), expected, also=also)]


@rule(
    "approval.request-of-type",
    title="The request for approval belongs to the type of its item",
    level=Level.MUST,
    needs=("command-approval",),
)
class RequestOfType(ApprovalMonitor):
    """Judges, when an item is completed, that approval was requested by the method for its type.

    Commands have one server request and file changes another. Left open: items that never end.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not item.type or len(item.completions) > 1:
            return
        for question in self.questions(item):
            subject, frames = request_subject(question), (question, frame)
            if ITEM_TYPES[question.method] == item.type:
                yield Witness(subject, frames)
            else:
                expected = f"an item of type {ITEM_TYPES[question.method]}"
                message = f"{expected}, which {question.method} asks about"
                yield wrong(subject, frames, member(frame, "item", "type"), message)


@rule(
    "approval.final-item",
    title="An item that was asked about ends as completed, failed or declined",
    level=Level.MUST,
    needs=("command-approval",),
)
class FinalItem(ApprovalMonitor):
    """Judges the status in the item/completed of an item for which approval was requested.

    The specification lists the three words for file changes. For commands it says "the final item";
    that an item in progress is not final follows: SHOULD. It has no word for an item that an
    interrupt of the turn cut off: INFO, unless it is a file change whose approval was answered
    before. Left open: unknown words (shapes).
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not self.questions(item):
            return None
        status = text(item_in(frame).get("status"))
        if status in ("completed", "failed", "declined"):
            return [Witness(item.subject, (frame,))]
        is_file = item.type == "fileChange"
        expected = "one of completed, failed, declined, since it was asked about"
        clause = "approval.file-final-status" if is_file else "approval.completed"
        level = None if is_file else Level.SHOULD
        if not (is_file and self._was_answered(item)) and self.may_be_interrupted(item.turn):
            level = Level.INFO
        field = member(frame, "item", "status")
        return [wrong(item.subject, (frame,), field, expected, level=level, clauses=(clause,))]

    def _was_answered(self, item: ItemView) -> bool:
        """Return whether each approval request of an item was answered before the interruption."""
        interruption = self.first_interruption(item.turn)
        answers = [self.conversation.answer_of(question) for question in self.questions(item)]
        in_time = (
            client_answer is not None
            and (interruption is None or came_before(client_answer, interruption))
            for client_answer in answers
        )
        return (self.has_one_client() or not answers) and all(in_time)
