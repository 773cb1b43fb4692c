"""The order of a release's messages: rows that drop, add, hold back and exchange messages."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from harness.protocol.dialects.table import Dialect, DropRow, HoldRow, NotificationRow
from reference_server.dialect.mappers import tester
from reference_server.dialect.memory import Memory, Note
from reference_server.dialect.placeholders import Conditions, Fill, filler
from reference_server.dialect.progress import Change, Facts, Progress, change_of, early_change_of
from reference_server.dialect.steps import (
    ACTIVE,
    STATUS,
    Message,
    Written,
    begins,
    begins_with_one,
    item_id_of,
    notification_of,
    object_of,
    thread_id_of,
)
from reference_server.envelope import ASIDE


class _Addition(NamedTuple):
    row: NotificationRow
    fill: Fill
    each: Fill
    has_values: Callable[[Any], bool]
    conditions: Conditions


class _Drop(NamedTuple):
    row: DropRow
    has_values: Callable[[Any], bool]
    conditions: Conditions


class _Hold(NamedTuple):
    row: HoldRow
    has_values: Callable[[Any], bool]
    conditions: Conditions


class _Plan(NamedTuple):
    """Rows and notes about the messages of a step.

    `ended_holds` are the rows whose held messages it ends, and `later_steps` the steps that the
    release writes after it. Changes are those of the turn's progress. `early_notes` and
    `early_change` remember messages that may be dropped, too. `follows_turn` is whether anything of
    it concerns the progress; a message that `is_plain` is written as it is, after held ones.
    """

    early_notes: tuple[Note, ...]
    early_change: Change | None
    drops: list[_Drop]
    holds: list[_Hold]
    ended_holds: list[HoldRow]
    before: list[_Addition]
    notes: tuple[Note, ...]
    change: Change | None
    after: list[_Addition]
    later_steps: tuple[str, ...]
    follows_turn: bool
    is_plain: bool


class Sequencer:
    """Arranges the messages to one client; `complete` adds the members around a notification."""

    def __init__(
        self,
        dialect: Dialect,
        facts: dict[str, Any],
        memory: Memory,
        complete: Callable[[Message], None],
    ) -> None:
        self._facts = facts
        self._memory = memory
        self._progress = Progress()
        self._complete = complete
        self._conditions: dict[Any, Conditions] = {}
        self._drops = [
            _Drop(row, tester(row.where), self._conditions_of(row.needs, row.unless))
            for row in dialect.drops
            if row.method
        ]
        self._additions = [
            _Addition(
                row,
                filler(row.params, facts),
                filler(row.each, facts),
                tester(row.where),
                self._conditions_of(row.needs, row.unless),
            )
            for row in dialect.notifications
        ]
        self._holds = [
            _Hold(row, tester(row.where), self._conditions_of(row.needs, row.unless))
            for row in dialect.holds
        ]
        self._broadcasts = memory.broadcast_count
        """The broadcasts that this client has or need not have."""
        self._held: list[tuple[HoldRow, Written]] = []
        self._pending: list[tuple[NotificationRow, Message, Written]] = []
        """Additions that the next message decides on, with the body that they were made from."""
        self._orders = dialect.orders
        self._plans: dict[str, _Plan] = {}
        self._running: set[Any] = set()
        """Threads that were active in the last status that this client read."""
        self._answered: set[Any] = set()
        """Threads that this client has begun and of which it has not read `thread/started`."""
        self._started: dict[Any, float] = {}
        """Times at which running items started, by id."""

    def _conditions_of(self, needs: tuple[str, ...], unless: tuple[str, ...]) -> Conditions:
        """Return the conditions of a row; rows with the same ones share them."""
        key = (needs, unless)
        if key not in self._conditions:
            self._conditions[key] = Conditions.of_row(needs, unless, self._facts)
        return self._conditions[key]

    def arrange(self, messages: Sequence[Written]) -> list[Written]:
        """Return the messages in the release's order, with those that it adds."""
        arranged = list(self._broadcast()) if messages else []
        # A message can be put before its neighbour, of whose additions it is the first.
        neighbour = max(len(arranged) - 1, 0)
        for place, written in enumerate(messages):
            if written.is_aside:
                # Nothing is added to it or ordered by it, between messages that may be exchanged.
                if not self._is_aside_dropped(written):
                    arranged.append(written)
                continue
            if self._pending:
                self._add_pending(written, arranged)
            plan = self._plans.get(written.step) or self._make_plan(written.step)
            if plan.is_plain and not self._held:
                neighbour = len(arranged)
                arranged.append(written)
                continue
            body = written.body
            turn = self._progress.of(body) if plan.follows_turn else None
            for note in plan.early_notes:
                note(body)
            if plan.early_change is not None and turn is not None:
                plan.early_change(turn, body)
            if plan.drops or plan.holds:
                self._facts["progress"] = turn or {}
            if plan.drops:
                following = _next_step(messages, place)
                if self._is_dropped(written, plan, following):
                    self._lose_held(written)
                    continue
            if self._held:
                for one in self._release(written, plan):
                    one_plan = self._plans.get(one.step) or self._make_plan(one.step)
                    its_turn = self._progress.of(one.body) if one_plan.follows_turn else None
                    neighbour = self._place(one, one_plan, its_turn, arranged, neighbour)
            elif row := _hold_of(written, plan):
                self._held.append((row, written))
            else:
                neighbour = self._place(written, plan, turn, arranged, neighbour)
        return arranged

    def _place(
        self,
        written: Written,
        plan: _Plan,
        turn: Facts | None,
        arranged: list[Written],
        neighbour: int,
    ) -> int:
        """Append a message between those that the release adds, and note what it says.

        Or put all of them before the neighbour that begins at that index. Return where the
        neighbour of the next message begins.
        """
        end = len(arranged)
        body = written.body
        if plan.before or plan.after:
            self._facts["running"] = body.get("threadId") in self._running
            self._facts["answered"] = thread_id_of(body) in self._answered
            self._facts["progress"] = turn or {}
            self._add(plan.before, written, arranged)
        for note in plan.notes:
            note(body)
        if plan.change is not None and turn is not None:
            plan.change(turn, body)
        arranged.append(written)
        if plan.after:
            self._add(plan.after, written, arranged)
        if plan.later_steps and _move(arranged, neighbour, end, plan):
            return neighbour
        return end

    def _is_dropped(self, written: Written, plan: _Plan, following: str) -> bool:
        """Return whether a row leaves out a message, given the next step of the same batch."""
        for row, has_values, conditions in plan.drops:
            if row.before and not begins(following, row.before):
                continue
            if row.empty and written.body.get(row.empty) != "":
                continue
            if row.within_ms and not self._is_within(written.body.get("itemId"), row.within_ms):
                continue
            if has_values(written.body) and conditions.hold_for(written.body):
                if not row.stored:
                    self._memory.note_unstored(item_id_of(written.body))
                return True
        return False

    def _is_aside_dropped(self, written: Written) -> bool:
        """Return whether a row leaves out a notification that is not of a subscription."""
        step, thread = written.step.removeprefix(ASIDE), written.body.get("threadId")
        plan = self._plans.get(step) or self._make_plan(step)
        if step.startswith(STATUS):
            was_running = thread in self._running
            if begins(step, ACTIVE):
                self._running.add(thread)
            else:
                self._running.discard(thread)
            if not was_running:
                # The facts may be those of the turn before, until a subscriber reads of this one.
                return False
        self._facts["progress"] = {}
        return self._is_dropped(written, plan, "")

    def _lose_held(self, dropped: Written) -> None:
        """Forget the held messages that are lost with a dropped one."""
        self._held = [one for one in self._held if not begins_with_one(dropped.step, one[0].lost)]

    def _is_within(self, item_id: Any, bound_ms: int) -> bool:
        started = self._started.get(item_id)
        return started is not None and time.monotonic() - started < bound_ms / 1000

    def _release(self, written: Written, plan: _Plan) -> Iterator[Written]:
        """Yield the held messages that this one ends, and itself unless it is held."""
        row = _hold_of(written, plan)
        yield from self._with_held(written, plan, is_held=row is not None)
        if row is not None:
            self._held.append((row, written))

    def _with_held(
        self, written: Written, plan: _Plan, *, is_held: bool = False
    ) -> Iterator[Written]:
        """Yield a message, unless it is held, between those that it ends; they can end others."""
        later = list[Written]()
        thread = written.body.get("threadId")
        held, self._held = self._held, []
        for row, one in held:
            # A message that is held itself ends only its like: the others wait for its time.
            is_ended = row in plan.ended_holds and not (is_held and one.step != written.step)
            if not is_ended or one.body.get("threadId") != thread:
                self._held.append((row, one))
            elif begins_with_one(written.step, row.lost):
                continue
            elif row.after and not begins_with_one(written.step, row.before):
                later.append(one)
            else:
                yield one
        if not is_held:
            yield written
        for one in later:
            yield from self._with_held(one, self._plans.get(one.step) or self._make_plan(one.step))

    def _broadcast(self) -> Iterator[Written]:
        """Yield the notifications that other connections broadcast since the last call."""
        if self._broadcasts == self._memory.broadcast_count:
            return
        pending = self._memory.broadcasts_since(self._broadcasts, self)
        self._broadcasts = self._memory.broadcast_count
        for message in pending:
            yield notification_of(message, message["method"])

    def _add(
        self, additions: Sequence[_Addition], written: Written, arranged: list[Written]
    ) -> None:
        """Append the notifications that rows add beside a message."""
        for row, fill, each, has_values, conditions in additions:
            if row.request:
                asked = object_of(written.params)
                if all(asked.get(name) in (None, False) for name in row.request):
                    continue
            if not (has_values(written.body) and conditions.hold_for(written.body)):
                continue
            for element in (each(written.body) or ()) if row.each else (None,):
                self._facts["each"] = element
                message = {"method": row.method, "params": fill(written.body)}
                self._complete(message)
                if row.everyone:
                    self._memory.broadcast(self, message)
                addition = notification_of(message, row.method)
                if row.lost:
                    self._pending.append((row, written.body, addition))
                    continue
                # Only items are news: what else is added repeats a fact.
                note = self._memory.note_of(addition.step)
                if note is not None and row.method.startswith("item/"):
                    note(addition.body)
                arranged.append(addition)

    def _add_pending(self, following: Written, arranged: list[Written]) -> None:
        """Append the additions that waited for the next message, unless they are lost with it."""
        pending, self._pending = self._pending, []
        for row, body, addition in pending:
            is_own = following.body.get("threadId") == body.get("threadId")
            if not (is_own and begins_with_one(following.step, row.lost)):
                arranged.append(addition)
                turn = self._progress.of(body)
                if turn is not None:
                    turn["asked"] = False

    def _make_plan(self, step: str) -> _Plan:
        early_notes, notes = tuple(self._early_notes_of(step)), tuple(self._notes_of(step))
        early_change, change = early_change_of(step), change_of(step)
        drops = [one for one in self._drops if begins(step, one.row.method)]
        holds = [one for one in self._holds if begins(step, one.row.method)]
        before = [one for one in self._additions if begins(step, one.row.before)]
        after = [one for one in self._additions if begins(step, one.row.after)]
        later_steps = tuple(row.second for row in self._orders if begins(step, row.first))
        follows_turn = bool(early_change or change or drops or holds or before or after)
        plan = self._plans[step] = _Plan(
            early_notes=early_notes,
            early_change=early_change,
            drops=drops,
            holds=holds,
            ended_holds=[
                one.row
                for one in self._holds
                if begins_with_one(step, (*one.row.steps, *one.row.before))
            ],
            before=before,
            notes=notes,
            change=change,
            after=after,
            later_steps=later_steps,
            follows_turn=follows_turn,
            is_plain=not (follows_turn or early_notes or notes or later_steps),
        )
        return plan

    def _early_notes_of(self, step: str) -> Iterator[Note]:
        if step == "turn/interrupt result":
            yield self._memory.note_interrupt
        if step.startswith("item/started"):
            yield self._note_start

    def _notes_of(self, step: str) -> Iterator[Note]:
        note = self._memory.note_of(step)
        if note is not None:
            yield note
        if step.startswith(ACTIVE):
            yield lambda body: self._running.add(body.get("threadId"))
        elif step.startswith(STATUS):
            yield lambda body: self._running.discard(body.get("threadId"))
        elif step in ("thread/start result", "thread/fork result"):
            yield lambda body: self._answered.add(thread_id_of(body))
        elif step == "thread/started":
            yield lambda body: self._answered.discard(thread_id_of(body))
        elif step == "thread/resume result":
            yield self._note_resumed
        elif step.startswith("item/completed"):
            yield self._note_end

    def _note_start(self, body: Message) -> None:
        self._started[item_id_of(body)] = time.monotonic()

    def _note_end(self, body: Message) -> None:
        self._started.pop(item_id_of(body), None)

    def _note_resumed(self, body: Message) -> None:
        if _is_active(body):
            self._running.add(body["thread"]["id"])


def _move(arranged: list[Written], neighbour: int, end: int, plan: _Plan) -> bool:
    """Put the messages from `end` on before the first later step of the neighbours, if any is."""
    for place in range(neighbour, end):
        if begins_with_one(arranged[place].step, plan.later_steps):
            arranged[place:] = arranged[end:] + arranged[place:end]
            return True
    return False


def _hold_of(written: Written, plan: _Plan) -> HoldRow | None:
    """Return the row that holds a message back, None if none does."""
    for row, has_values, conditions in plan.holds:
        if has_values(written.body) and conditions.hold_for(written.body):
            return row
    return None


def _next_step(messages: Sequence[Written], place: int) -> str:
    """Return the step of the next message of a subscription or answer, "" if there is none."""
    return next((one.step for one in messages[place + 1 :] if not one.is_aside), "")


def _is_active(result: dict[str, Any]) -> bool:
    """Return whether the thread of an answer has a turn in progress."""
    status = object_of(object_of(result.get("thread")).get("status"))
    return status.get("type") == "active"
