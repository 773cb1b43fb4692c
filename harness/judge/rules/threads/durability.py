"""Rules on threads whose server was ended during a turn: their stored turns, and their next one.

The specification says that a thread persists as a rollout file on disk, not when that is written.
So nothing here is a MUST, and data lost by a killed server is INFO.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.cut_off_turns import CutOff
from harness.judge.rules.shared.view_queries import is_failure, item_in
from harness.judge.rules.shared.violations import (
    absent,
    member,
    refusal_member,
    unexpected_member,
    wrong,
)
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import by_arrival, came_before
from harness.trace.views import TurnView, items_of, turns_of

SAID = ("userMessage", "agentMessage")
IN_PROGRESS = "inProgress"


class _CutTurns(Monitor):
    """Base of rules on threads of an earlier process that an answer shows with their turns."""

    def begin(self) -> None:
        self.cut_off = CutOff(self.trace)

    def cut_turns(self, frame: Frame) -> list[TurnView]:
        """Return the turns of the thread in this answer that were cut off with their server."""
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE or request.deliberate:
            return []
        params = obj(request.params)
        if request.method == "thread/read" and params.get("includeTurns") is not True:
            return []
        thread_id = text(params.get("threadId"))
        if dig(frame.result, "thread", "id") != thread_id:
            return []
        return self.cut_off.turns(thread_id, request)

    def was_continued(self, turn: TurnView) -> bool:
        """Return whether this process announced the turn too, so it continues it."""
        here = self.conversation.turn_at(turn.thread_id, turn.id)
        return here is not None and bool(here.starts)


@rule(
    "durable.messages-kept",
    title="Messages survive the end of their server",
    level=Level.SHOULD,
    needs=("storage",),
)
class MessagesKept(_CutTurns):
    """Judges that the messages of a turn that was cut off are shown by the next process.

    Those are the completed userMessages and agentMessages, each type in its order, in any turn of
    the thread: the specification does not say that a turn keeps its id. SHOULD for a server that
    was asked to end; INFO for one that was killed, since it may write at the end of a turn. Left
    open: other types of items, whose stored forms may differ, and messages that only began.
    """

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        for turn in self.cut_turns(frame):
            completions = [
                completion
                for completion in _item_completions(turn)
                if item_in(completion).get("type") in SAID
            ]
            if completions:
                yield self._judge(turn, completions, frame)

    def _judge(self, turn: TurnView, completions: list[Frame], frame: Frame) -> Outcome:
        stored = [
            (text(item.get("type")), _message_text(item))
            for stored_turn in turns_of(dig(frame.result, "thread"))
            for item in items_of(stored_turn)
        ]
        for kind in SAID:
            rest = [message for type_, message in stored if type_ == kind]
            for end in completions:
                item = item_in(end)
                if item.get("type") != kind:
                    continue
                live_text = _message_text(item)
                if live_text not in rest:
                    field = member(frame, "thread", "turns")
                    return absent(
                        turn.subject,
                        (end, frame),
                        f"{field.name}: the {kind} {literal(live_text)} of {turn.subject}, which "
                        "was completed before the server was ended",
                        f"{field.name}: {len(rest)} other {kind}(s) from there on",
                        member(end, "item", "type"),
                        level=Level.INFO if self.cut_off.was_killed(turn) else None,
                    )
                rest = rest[rest.index(live_text) + 1 :]
        return Witness(turn.subject, (completions[-1], frame))


@rule(
    "durable.turn-over",
    title="A turn does not outlive its server",
    level=Level.SHOULD,
    needs=("storage",),
)
class TurnOver(_CutTurns):
    """Judges that a turn that was cut off is not shown in progress by the next process.

    Such a turn has no agent any more. Left open: its final status, whether it is shown at all, and
    a thread that is `active`, or a turn that is announced again: the process continues it.
    """

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        if dig(frame.result, "thread", "status", "type") == "active":
            return
        cut = {turn.id: turn for turn in self.cut_turns(frame) if not self.was_continued(turn)}
        for index, stored in enumerate(turns_of(dig(frame.result, "thread"))):
            turn = cut.get(text(stored.get("id")))
            if turn is None:
                continue
            frames, field = (
                (turn.starts[0], frame),
                member(frame, "thread", "turns", index, "status"),
            )
            if stored.get("status") == IN_PROGRESS:
                expected = "an end, since the server that ran the turn was ended"
                yield wrong(turn.subject, frames, field, expected)
            else:
                yield Witness(turn.subject, frames)


@rule(
    "durable.items-over",
    title="An item does not outlive its turn",
    level=Level.INFO,
    needs=("storage",),
)
class ItemsOver(_CutTurns):
    """Records whether a turn that was cut off, and is shown as ended, has items in progress.

    The specification does not show the status of such an item.
    """

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        cut = {turn.id: turn for turn in self.cut_turns(frame)}
        for index, stored in enumerate(turns_of(dig(frame.result, "thread"))):
            turn = cut.get(text(stored.get("id")))
            items = [item for item in items_of(stored) if "status" in item]
            if turn is None or not items or stored.get("status") == IN_PROGRESS:
                continue
            yield from self._judge(turn, frame, index)

    def _judge(self, turn: TurnView, frame: Frame, index: int) -> Iterator[Outcome]:
        items = member(frame, "thread", "turns", index, "items")
        frames = (turn.starts[0], frame)
        for number, item in enumerate(map(obj, arr(items.value))):
            if item.get("status") == IN_PROGRESS:
                field = items.part(number, "status")
                yield wrong(turn.subject, frames, field, "the status of an item that is over")
                return
        yield Witness(turn.subject, frames)


@rule(
    "durable.goes-on",
    title="A resumed thread accepts a turn after its server was ended",
    level=Level.SHOULD,
    needs=("storage", "history"),
)
class GoesOn(_CutTurns):
    """Judges that turn/start is not rejected on a thread that was resumed after its server's end.

    Left open: a thread that was shown as `active`, on which a turn began since, or that was
    archived or unsubscribed again.
    """

    def begin(self) -> None:
        super().begin()
        self._resumptions: dict[str, tuple[Frame, TurnView]] = {}

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        cut = self.cut_turns(frame)
        active = dig(frame.result, "thread", "status", "type") == "active"
        if cut and not active and not any(map(self.was_continued, cut)):
            self._resumptions[cut[-1].thread_id] = frame, cut[-1]
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return None
        thread_id = text(obj(request.params).get("threadId"))
        answer, turn = self._resumptions.pop(thread_id, (None, None))
        thread = self.conversation.threads.get(thread_id)
        if answer is None or turn is None or thread is None or not came_before(answer, request):
            return None
        if thread.leaving_frames or any(other.starts for other in thread.turns.values()):
            return None
        if any(message.method == "thread/archive" for message in self.trace.frames):
            return None
        frames = (turn.starts[0], answer, frame)
        if not is_failure(frame):
            return [Witness(thread.subject, frames)]
        expected = f"a turn on {thread.subject}, which was resumed after its server's end"
        return [unexpected_member(thread.subject, frames, refusal_member(frame), expected)]


def _item_completions(turn: TurnView) -> list[Frame]:
    """Return the last completion of each item of a turn, in order."""
    return by_arrival(item.completions[-1] for item in turn.items.values() if item.completions)


def _message_text(item: dict[str, Any]) -> Any:
    if item.get("type") == "agentMessage":
        return item.get("text")
    return [text(part.get("text")) for part in map(obj, arr(item.get("content"))) if "text" in part]
