"""The order of a release's messages: rows that drop, add, hold back and exchange messages.

A step is the name of a message: its method, `METHOD result` for an answer, with the type of the
item or the status after it (`item/started plan`, `thread/status/changed idle`, `turn/completed
failed`). A row names steps by their first words.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from harness.protocol.dialects.table import Dialect, DropRow, HoldRow, NotificationRow
from reference_server.dialect.memory import Memory
from reference_server.dialect.placeholders import Fill, filler, has_value

Message = dict[str, Any]
_STATUS = "thread/status/changed"


@dataclass(slots=True)
class Written:
    """A message of the server with its step, and the params of the request that it answers.

    `body` is the params of a notification or request; of an answer the result, with the ids asked.
    """

    message: Message
    step: str
    params: Any = None
    body: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Find the body once, since each row about the step asks for it."""
        if "method" in self.message:
            self.body = _object(self.message.get("params"))
            return
        asked = _object(self.params)
        ids = {
            name: asked[name] for name in ("threadId", "turnId") if isinstance(asked.get(name), str)
        }
        self.body = {**ids, **_object(self.message.get("result"))}


def step_of(message: Message, method: str) -> str:
    """Return the step of a message whose own or whose request's method is given."""
    if "method" not in message:
        return f"{method} {'error' if 'error' in message else 'result'}"
    params = _object(message.get("params"))
    if method.startswith("item/") and isinstance(params.get("item"), dict):
        item = params["item"]
        status = item.get("status") if method == "item/completed" else None
        return " ".join(str(word) for word in (method, item.get("type"), status) if word)
    if method == _STATUS:
        status = _object(params.get("status"))
        return " ".join([method, str(status.get("type")), *status.get("activeFlags", ())])
    if method == "turn/completed":
        return f"{method} {_object(params.get('turn')).get('status')}"
    return method


class _Conditions(NamedTuple):
    """Values that a row needs, and values that it must not meet."""

    needs: tuple[Fill, ...]
    unless: tuple[Fill, ...]
    request: tuple[str, ...] = ()

    def hold_for(self, written: Written) -> bool:
        """Return whether the row applies beside a message."""
        body, asked = written.body, _object(written.params)
        return (
            (not self.request or any(asked.get(name) not in (None, False) for name in self.request))
            and all(has_value(fill(body)) for fill in self.needs)
            and not any(has_value(fill(body)) for fill in self.unless)
        )


class _Drop(NamedTuple):
    row: DropRow
    conditions: _Conditions


class _Addition(NamedTuple):
    row: NotificationRow
    fill: Fill
    conditions: _Conditions


class _Rows(NamedTuple):
    """The rows about one step; `later_steps` are those that the release writes after it."""

    drops: list[_Drop]
    before: list[_Addition]
    after: list[_Addition]
    holds: list[tuple[HoldRow, _Conditions]]
    later_steps: list[str]


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
        self._complete = complete
        self._drops = [
            _Drop(row, self._conditions(row.needs, row.unless))
            for row in dialect.drops
            if row.method
        ]
        self._additions = [
            _Addition(
                row, filler(row.params, facts), self._conditions(row.needs, row.unless, row.request)
            )
            for row in dialect.notifications
        ]
        self._holds = [(row, self._conditions(row.needs, ())) for row in dialect.holds]
        self._broadcasts = memory.broadcast_count
        """The broadcasts that this client has or need not have."""
        self._held: list[tuple[HoldRow, Written]] = []
        self._orders = dialect.orders
        self._rows: dict[str, _Rows] = {}
        self._running: set[Any] = set()
        """Threads that were active in the last status that this client read."""
        self._started: dict[Any, float] = {}
        """Times at which running items started, by id."""

    def arrange(self, messages: Sequence[Written]) -> list[Written]:
        """Return the messages in the release's order, with those that it adds."""
        groups: list[list[Written]] = [[one] for one in self._broadcast()] if messages else []
        for place, written in enumerate(messages):
            if self._is_dropped(written, messages[place + 1 : place + 2]):
                continue
            for ready in self._release(written):
                self._exchange(groups, ready, self._with_additions(ready))
        return [written for group in groups for written in group]

    def _conditions(
        self, needs: Sequence[str], unless: Sequence[str], request: tuple[str, ...] = ()
    ) -> _Conditions:
        return _Conditions(
            tuple(filler(text, self._facts) for text in needs),
            tuple(filler(text, self._facts) for text in unless),
            request,
        )

    def _is_dropped(self, written: Written, following: Sequence[Written]) -> bool:
        """Return whether a row leaves out a message, given the next one of the same batch."""
        if written.step == "turn/interrupt result":
            self._memory.note_interrupt(written.body)
        if written.step.startswith("item/started"):
            self._started[_object(written.body.get("item")).get("id")] = time.monotonic()
        for row, conditions in self._rows_of(written.step).drops:
            if row.before and not (following and _begins(following[0].step, row.before)):
                continue
            if row.empty and written.body.get(row.empty) != "":
                continue
            if row.within_ms and not self._is_within(written.body.get("itemId"), row.within_ms):
                continue
            if conditions.hold_for(written):
                if not row.stored:
                    self._memory.note_unstored(_object(written.body.get("item")).get("id"))
                return True
        return False

    def _is_within(self, item_id: Any, bound_ms: int) -> bool:
        started = self._started.get(item_id)
        return started is not None and time.monotonic() - started < bound_ms / 1000

    def _release(self, written: Written) -> Iterator[Written]:
        """Yield the held messages that this one ends, and itself unless it is held."""
        thread = written.body.get("threadId")
        kept: list[tuple[HoldRow, Written]] = []
        later: list[Written] = []
        for row, held in self._held:
            is_last = any(_begins(written.step, step) for step in row.steps)
            if not is_last or held.body.get("threadId") != thread:
                kept.append((row, held))
            elif any(_begins(written.step, step) for step in row.lost):
                continue
            elif row.after:
                later.append(held)
            else:
                yield held
        self._held = kept
        for row, conditions in self._rows_of(written.step).holds:
            if conditions.hold_for(written):
                self._held.append((row, written))
                return
        yield written
        yield from later

    def _broadcast(self) -> Iterator[Written]:
        """Yield the notifications that other connections broadcast since the last call."""
        if self._broadcasts == self._memory.broadcast_count:
            return
        pending = self._memory.broadcasts_since(self._broadcasts, self)
        self._broadcasts = self._memory.broadcast_count
        for message in pending:
            yield Written(message, message["method"])

    def _exchange(
        self, groups: list[list[Written]], written: Written, group: list[Written]
    ) -> None:
        """Append a message with what is added to it, or put it right before the one before."""
        later_steps = self._rows_of(written.step).later_steps
        if groups and later_steps:
            last = groups[-1]
            for place, earlier in enumerate(last):
                if any(_begins(earlier.step, step) for step in later_steps):
                    last[place:place] = group
                    return
        groups.append(group)

    def _with_additions(self, written: Written) -> list[Written]:
        rows = self._rows_of(written.step)
        thread = written.body.get("threadId")
        self._facts["running"] = thread in self._running
        added_before = [
            one for row in rows.before if (one := self._addition_to(row, written)) is not None
        ]
        self._memory.note(written.step, written.body)
        added_after = [
            one for row in rows.after if (one := self._addition_to(row, written)) is not None
        ]
        if written.step.startswith(_STATUS):
            is_active = written.step.startswith(f"{_STATUS} active")
            (self._running.add if is_active else self._running.discard)(thread)
        elif written.step == "thread/resume result" and _is_active(written.body):
            self._running.add(written.body["thread"]["id"])
        if written.step.startswith("item/completed"):
            self._started.pop(_object(written.body.get("item")).get("id"), None)
        return [*added_before, written, *added_after]

    def _rows_of(self, step: str) -> _Rows:
        rows = self._rows.get(step)
        if rows is None:
            rows = self._rows[step] = _Rows(
                [one for one in self._drops if _begins(step, one.row.method)],
                [one for one in self._additions if _begins(step, one.row.before)],
                [one for one in self._additions if _begins(step, one.row.after)],
                [one for one in self._holds if _begins(step, one[0].method)],
                [row.second for row in self._orders if _begins(step, row.first)],
            )
        return rows

    def _addition_to(self, addition: _Addition, written: Written) -> Written | None:
        if not addition.conditions.hold_for(written):
            return None
        message = {"method": addition.row.method, "params": addition.fill(written.body)}
        self._complete(message)
        if addition.row.everyone:
            self._memory.broadcast(self, message)
        return Written(message, step_of(message, addition.row.method))


def _is_active(result: dict[str, Any]) -> bool:
    """Return whether the thread of an answer has a turn in progress."""
    status = _object(_object(result.get("thread")).get("status"))
    return status.get("type") == "active"


def _begins(step: str, name: str) -> bool:
    return bool(name) and (step == name or step.startswith(f"{name} "))


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
