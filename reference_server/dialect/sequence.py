"""The order of a release's messages: rows that drop, add, hold back and exchange messages.

A step is the name of a message: its method, `METHOD result` for an answer, with the type of the
item or the status after it (`item/started plan`, `thread/status/changed idle`, `turn/completed
failed`). A row names steps by their first words.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from harness.protocol.dialects.table import Dialect, DropRow, HoldRow, NotificationRow
from reference_server.dialect.mappers import tester
from reference_server.dialect.memory import Memory, Note
from reference_server.dialect.placeholders import Conditions, Fill, filler
from reference_server.dialect.progress import Progress

Message = dict[str, Any]
_STATUS = "thread/status/changed"
_NAMED_BY_PARAMS = ("item/", _STATUS, "turn/completed")


class Written:
    """A message of the server with its step, and the params of the request that it answers.

    `body` is the params of a notification or request; of an answer the result, with the ids asked.
    """

    __slots__ = ("body", "message", "params", "step")

    def __init__(
        self, message: Message, step: str, body: dict[str, Any], params: Any = None
    ) -> None:
        self.message = message
        self.step = step
        self.body = body
        self.params = params


def notification_of(message: Message, method: str) -> Written:
    """Return a notification as a message of its step."""
    params = _object(message.get("params"))
    return Written(message, _step_of(method, params), params)


def request_of(message: Message, method: str) -> Written:
    """Return a request of the server as a message of its step."""
    return Written(message, f"{method} request", _object(message.get("params")))


def answer_of(message: Message, method: str, params: Any) -> Written:
    """Return the answer to a request as a message of its step."""
    asked = _object(params)
    ids = {name: asked[name] for name in ("threadId", "turnId") if isinstance(asked.get(name), str)}
    step = f"{method} {'error' if 'error' in message else 'result'}"
    return Written(message, step, {**ids, **_object(message.get("result"))}, params)


def _step_of(method: str, params: Message) -> str:
    if not method.startswith(_NAMED_BY_PARAMS):
        return method
    if method == _STATUS:
        status = _object(params.get("status"))
        return " ".join([method, str(status.get("type")), *status.get("activeFlags", ())])
    if method == "turn/completed":
        return f"{method} {_object(params.get('turn')).get('status')}"
    item = params.get("item")
    if not isinstance(item, dict):
        return method
    members = cast("Message", item)
    status = members.get("status") if method == "item/completed" else None
    return " ".join([str(word) for word in (method, members.get("type"), status) if word])


class _Addition(NamedTuple):
    row: NotificationRow
    fill: Fill
    each: Fill
    has_values: Callable[[Any], bool]
    conditions: Conditions


class _Hold(NamedTuple):
    row: HoldRow
    has_values: Callable[[Any], bool]
    conditions: Conditions


class _Plan(NamedTuple):
    """Rows and notes about the messages of a step.

    `ended_holds` are the rows whose held messages it ends, and `later_steps` the steps that the
    release writes after it. `early_notes` remember messages that may be dropped, too.
    """

    early_notes: tuple[Note, ...]
    drops: list[tuple[DropRow, Conditions]]
    holds: list[_Hold]
    ended_holds: list[HoldRow]
    before: list[_Addition]
    notes: tuple[Note, ...]
    after: list[_Addition]
    later_steps: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Return whether a message of the step is written as it is; held ones may come before."""
        others = self[:3] + self[4:]
        return not any(others)


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
        self._drops = [
            (row, Conditions.of_row(row.needs, row.unless, facts))
            for row in dialect.drops
            if row.method
        ]
        self._additions = [
            _Addition(
                row,
                filler(row.params, facts),
                filler(row.each, facts),
                tester(row.where),
                Conditions.of_row(row.needs, row.unless, facts),
            )
            for row in dialect.notifications
        ]
        self._holds = [
            _Hold(row, tester(row.where), Conditions.of_row(row.needs, row.unless, facts))
            for row in dialect.holds
        ]
        self._broadcasts = memory.broadcast_count
        """The broadcasts that this client has or need not have."""
        self._held: list[tuple[HoldRow, Written]] = []
        self._pending: list[tuple[NotificationRow, Message, Written]] = []
        """Additions that the next message decides on, with the body that they were made from."""
        self._orders = dialect.orders
        self._plans: dict[str, _Plan] = {}
        self._plain_steps: set[str] = set()
        """Steps without rows or notes, such as most deltas."""
        self._running: set[Any] = set()
        """Threads that were active in the last status that this client read."""
        self._started: dict[Any, float] = {}
        """Times at which running items started, by id."""

    def arrange(self, messages: Sequence[Written]) -> list[Written]:
        """Return the messages in the release's order, with those that it adds."""
        arranged = list(self._broadcast()) if messages else []
        # A message can be put before its neighbour, of whose additions it is the first.
        neighbour = max(len(arranged) - 1, 0)
        for place, written in enumerate(messages):
            if self._pending:
                self._add_pending(written, arranged)
            if written.step in self._plain_steps and not self._held:
                neighbour = len(arranged)
                arranged.append(written)
                continue
            plan = self._plan_of(written.step)
            for note in plan.early_notes:
                note(written.body)
            if plan.drops or plan.holds:
                self._facts["progress"] = self._progress.of(written.body)
            if plan.drops and self._is_dropped(written, plan, messages[place + 1 : place + 2]):
                self._lose_held(written)
                continue
            ready = self._release(written, plan) if self._held or plan.holds else (written,)
            for one in ready:
                end = len(arranged)
                one_plan = plan if one is written else self._plan_of(one.step)
                self._append(one, one_plan, arranged)
                if not (one_plan.later_steps and _move(arranged, neighbour, end, one_plan)):
                    neighbour = end
        return arranged

    def _is_dropped(self, written: Written, plan: _Plan, following: Sequence[Written]) -> bool:
        """Return whether a row leaves out a message, given the next one of the same batch."""
        for row, conditions in plan.drops:
            if row.before and not (following and _begins(following[0].step, row.before)):
                continue
            if row.empty and written.body.get(row.empty) != "":
                continue
            if row.within_ms and not self._is_within(written.body.get("itemId"), row.within_ms):
                continue
            if conditions.hold_for(written.body):
                if not row.stored:
                    self._memory.note_unstored(_item_id(written.body))
                return True
        return False

    def _lose_held(self, dropped: Written) -> None:
        """Forget the held messages that are lost with a dropped one."""
        self._held = [one for one in self._held if not _begins_with_one(dropped.step, one[0].lost)]

    def _is_within(self, item_id: Any, bound_ms: int) -> bool:
        started = self._started.get(item_id)
        return started is not None and time.monotonic() - started < bound_ms / 1000

    def _release(self, written: Written, plan: _Plan) -> Iterator[Written]:
        """Yield the held messages that this one ends, and itself unless it is held."""
        for row, has_values, conditions in plan.holds:
            if has_values(written.body) and conditions.hold_for(written.body):
                yield from self._with_held(written, plan, is_held=True)
                self._held.append((row, written))
                return
        yield from self._with_held(written, plan)

    def _with_held(
        self, written: Written, plan: _Plan, *, is_held: bool = False
    ) -> Iterator[Written]:
        """Yield a message, unless it is held, between those that it ends; they can end others."""
        later = list[Written]()
        thread = written.body.get("threadId")
        held, self._held = self._held, []
        for row, one in held:
            if row not in plan.ended_holds or one.body.get("threadId") != thread:
                self._held.append((row, one))
            elif _begins_with_one(written.step, row.lost):
                continue
            elif row.after and not _begins_with_one(written.step, row.before):
                later.append(one)
            else:
                yield one
        if not is_held:
            yield written
        for one in later:
            yield from self._with_held(one, self._plan_of(one.step))

    def _broadcast(self) -> Iterator[Written]:
        """Yield the notifications that other connections broadcast since the last call."""
        if self._broadcasts == self._memory.broadcast_count:
            return
        pending = self._memory.broadcasts_since(self._broadcasts, self)
        self._broadcasts = self._memory.broadcast_count
        for message in pending:
            yield notification_of(message, message["method"])

    def _append(self, written: Written, plan: _Plan, arranged: list[Written]) -> None:
        """Append a message between those that the release adds, and note what it says."""
        if plan.before or plan.after:
            self._facts["running"] = written.body.get("threadId") in self._running
            self._facts["progress"] = self._progress.of(written.body)
            self._add(plan.before, written, arranged)
        for note in plan.notes:
            note(written.body)
        arranged.append(written)
        if plan.after:
            self._add(plan.after, written, arranged)

    def _add(
        self, additions: Sequence[_Addition], written: Written, arranged: list[Written]
    ) -> None:
        """Append the notifications that rows add beside a message."""
        for row, fill, each, has_values, conditions in additions:
            if row.request:
                asked = _object(written.params)
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
                note = self._memory.note_of(addition.step)
                if note is not None:
                    note(addition.body)
                arranged.append(addition)

    def _add_pending(self, following: Written, arranged: list[Written]) -> None:
        """Append the additions that waited for the next message, unless they are lost with it."""
        pending, self._pending = self._pending, []
        for row, body, addition in pending:
            is_own = following.body.get("threadId") == body.get("threadId")
            if not (is_own and _begins_with_one(following.step, row.lost)):
                arranged.append(addition)
                self._progress.of(body)["asked"] = False

    def _plan_of(self, step: str) -> _Plan:
        plan = self._plans.get(step)
        if plan is None:
            plan = self._plans[step] = self._make_plan(step)
            if plan.is_empty:
                self._plain_steps.add(step)
        return plan

    def _make_plan(self, step: str) -> _Plan:
        return _Plan(
            tuple(self._early_notes_of(step)),
            [one for one in self._drops if _begins(step, one[0].method)],
            [one for one in self._holds if _begins(step, one.row.method)],
            [
                one.row
                for one in self._holds
                if _begins_with_one(step, (*one.row.steps, *one.row.before))
            ],
            [one for one in self._additions if _begins(step, one.row.before)],
            tuple(self._notes_of(step)),
            [one for one in self._additions if _begins(step, one.row.after)],
            tuple(row.second for row in self._orders if _begins(step, row.first)),
        )

    def _early_notes_of(self, step: str) -> Iterator[Note]:
        if step == "turn/interrupt result":
            yield self._memory.note_interrupt
        if step.startswith("item/started"):
            yield self._note_start
        progress = self._progress.early_note_of(step)
        if progress is not None:
            yield progress

    def _notes_of(self, step: str) -> Iterator[Note]:
        for note in (self._memory.note_of(step), self._progress.note_of(step)):
            if note is not None:
                yield note
        if step.startswith(f"{_STATUS} active"):
            yield lambda body: self._running.add(body.get("threadId"))
        elif step.startswith(_STATUS):
            yield lambda body: self._running.discard(body.get("threadId"))
        elif step == "thread/resume result":
            yield self._note_resumed
        elif step.startswith("item/completed"):
            yield self._note_end

    def _note_start(self, body: Message) -> None:
        self._started[_item_id(body)] = time.monotonic()

    def _note_end(self, body: Message) -> None:
        self._started.pop(_item_id(body), None)

    def _note_resumed(self, body: Message) -> None:
        if _is_active(body):
            self._running.add(body["thread"]["id"])


def _move(arranged: list[Written], neighbour: int, end: int, plan: _Plan) -> bool:
    """Put the messages from `end` on before the first later step of the neighbours, if any is."""
    for place in range(neighbour, end):
        if _begins_with_one(arranged[place].step, plan.later_steps):
            arranged[place:] = arranged[end:] + arranged[place:end]
            return True
    return False


def _item_id(body: Message) -> Any:
    return _object(body.get("item")).get("id")


def _is_active(result: dict[str, Any]) -> bool:
    """Return whether the thread of an answer has a turn in progress."""
    status = _object(_object(result.get("thread")).get("status"))
    return status.get("type") == "active"


def _begins(step: str, name: str) -> bool:
    return bool(name) and (step == name or step.startswith(f"{name} "))


def _begins_with_one(step: str, names: Sequence[str]) -> bool:
    return any(_begins(step, name) for name in names)


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
