"""Rules on threads whose server was ended while a turn ran: what is kept of it, and what follows.

The text says that a thread persists as a rollout file on disk, not when what is written there. So
nothing here is a MUST, and what a server loses that is killed without notice is INFO.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.cut_off import CutOff
from harness.judge.rules.shared.view_queries import failed, item_in
from harness.judge.rules.shared.violations import absent, instead, member, refusal, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import by_arrival, came_before
from harness.trace.views import TurnView, items_of, turns_of

SAID = ("userMessage", "agentMessage")
IN_PROGRESS = "inProgress"


class _Shown(Monitor):
    """A thread of an earlier process that an answer shows with its turns."""

    def begin(self) -> None:
        self.cut_off = CutOff(self.trace)

    def cut_turns(self, frame: Frame) -> list[TurnView]:
        """The turns that were cut off, of the thread that this answer shows with its turns."""
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE or request.deliberate:
            return []
        asked = obj(request.params)
        if request.method == "thread/read" and asked.get("includeTurns") is not True:
            return []
        thread_id = text(asked.get("threadId"))
        if dig(frame.result, "thread", "id") != thread_id:
            return []
        return self.cut_off.turns(thread_id, request)

    def begun_again(self, turn: TurnView) -> bool:
        """Return whether this process told of the turn too, so that it goes on with it."""
        here = self.conversation.turn_at(turn.thread_id, turn.id)
        return here is not None and bool(here.started)


@rule(
    "durable.messages-kept",
    title="What was said before the server was ended is kept",
    level=Level.SHOULD,
    needs=("storage",),
)
class MessagesKept(_Shown):
    """Judges that the messages of a turn that was cut off are shown by the next process.

    Those are the userMessages and agentMessages that were told as completed, each type in its
    order, wherever in the thread they stand now: nothing says that a turn keeps its id. SHOULD for
    a server that was asked to end; INFO for one that was killed, since it may write when a turn is
    over. Left open: other types of items, whose stored forms may differ, and messages that were
    begun only.
    """

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        for turn in self.cut_turns(frame):
            told = [one for one in _completed(turn) if item_in(one).get("type") in SAID]
            if told:
                yield self._judge(turn, told, frame)

    def _judge(self, turn: TurnView, told: list[Frame], frame: Frame) -> Outcome:
        shown = [
            (text(item.get("type")), _said(item))
            for one in turns_of(dig(frame.result, "thread"))
            for item in items_of(one)
        ]
        for kind in SAID:
            rest = [said for type_, said in shown if type_ == kind]
            for end in told:
                item = item_in(end)
                if item.get("type") != kind:
                    continue
                said = _said(item)
                if said not in rest:
                    where = member(frame, "thread", "turns")
                    return absent(
                        turn.subject,
                        (end, frame),
                        f"{where.name}: the {kind} {literal(said)} of {turn.subject}, which was "
                        "completed before the server was ended",
                        f"{where.name}: {len(rest)} other {kind}(s) from there on",
                        member(end, "item", "type"),
                        level=Level.INFO if self.cut_off.by_a_kill(turn) else None,
                    )
                rest = rest[rest.index(said) + 1 :]
        return Witness(turn.subject, (told[-1], frame))


@rule(
    "durable.turn-over",
    title="A turn does not outlive its server",
    level=Level.SHOULD,
    needs=("storage",),
)
class TurnOver(_Shown):
    """Judges that a turn that was cut off is not shown in progress by the next process.

    It has no agent any more. Left open: with which status it ended, whether it is shown at all, and
    a thread that is `active`, or a turn that is told as started again: the process goes on with it.
    """

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        if dig(frame.result, "thread", "status", "type") == "active":
            return
        cut = {turn.id: turn for turn in self.cut_turns(frame) if not self.begun_again(turn)}
        for at, shown in enumerate(turns_of(dig(frame.result, "thread"))):
            turn = cut.get(text(shown.get("id")))
            if turn is None:
                continue
            frames, where = (turn.started[0], frame), member(frame, "thread", "turns", at, "status")
            if shown.get("status") == IN_PROGRESS:
                expected = "an end, since the server that ran the turn was ended"
                yield wrong(turn.subject, frames, where, expected)
            else:
                yield Witness(turn.subject, frames)


@rule(
    "durable.items-over",
    title="An item does not outlive its turn",
    level=Level.INFO,
    needs=("storage",),
)
class ItemsOver(_Shown):
    """Records whether a turn that was cut off, and is shown as ended, has items in progress.

    Which status such an item has then is not shown.
    """

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        cut = {turn.id: turn for turn in self.cut_turns(frame)}
        for at, shown in enumerate(turns_of(dig(frame.result, "thread"))):
            turn = cut.get(text(shown.get("id")))
            items = [item for item in items_of(shown) if "status" in item]
            if turn is None or not items or shown.get("status") == IN_PROGRESS:
                continue
            yield from self._judge(turn, frame, at)

    def _judge(self, turn: TurnView, frame: Frame, at: int) -> Iterator[Outcome]:
        items = member(frame, "thread", "turns", at, "items")
        frames = (turn.started[0], frame)
        for index, item in enumerate(map(obj, arr(items.value))):
            if item.get("status") == IN_PROGRESS:
                where = items.part(index, "status")
                yield wrong(turn.subject, frames, where, "the status of an item that is over")
                return
        yield Witness(turn.subject, frames)


@rule(
    "durable.goes-on",
    title="A thread that was cut off takes a turn once it is resumed",
    level=Level.SHOULD,
    needs=("storage", "history"),
)
class GoesOn(_Shown):
    """Judges that turn/start is not refused on a thread that was resumed after its server's end.

    Left open: a thread that was shown as `active`, or on which a turn began since, and one that was
    archived or left again.
    """

    def begin(self) -> None:
        super().begin()
        self._resumed: dict[str, tuple[Frame, TurnView]] = {}

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        cut = self.cut_turns(frame)
        active = dig(frame.result, "thread", "status", "type") == "active"
        if cut and not active and not any(map(self.begun_again, cut)):
            self._resumed[cut[-1].thread_id] = frame, cut[-1]
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return None
        thread_id = text(obj(request.params).get("threadId"))
        answer, turn = self._resumed.pop(thread_id, (None, None))
        thread = self.conversation.threads.get(thread_id)
        if answer is None or turn is None or thread is None or not came_before(answer, request):
            return None
        if thread.left or any(one.started for one in thread.turns.values()):
            return None
        if any(one.method == "thread/archive" for one in self.trace.frames):
            return None
        frames = (turn.started[0], answer, frame)
        if not failed(frame):
            return [Witness(thread.subject, frames)]
        expected = f"a turn on {thread.subject}, which was resumed after its server's end"
        return [instead(thread.subject, frames, refusal(frame), expected)]


def _completed(turn: TurnView) -> list[Frame]:
    """The completions of a turn's items in their order; of an id that came twice the last one."""
    return by_arrival(item.completed[-1] for item in turn.items.values() if item.completed)


def _said(item: dict[str, Any]) -> Any:
    if item.get("type") == "agentMessage":
        return item.get("text")
    return [text(part.get("text")) for part in map(obj, arr(item.get("content"))) if "text" in part]
