"""The order of a release's messages: rows that add, hold back and exchange messages.

A step is the name of a message: its method, `METHOD result` for an answer, with the type of the
item or the status after it (`item/started plan`, `thread/status/changed idle`, `turn/completed
failed`). A row names steps by their first words.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from harness.protocol.dialects.table import Dialect, HoldRow, NotificationRow
from reference_server.dialect.memory import Memory
from reference_server.dialect.placeholders import Fill, filler

Message = dict[str, Any]


class Written(NamedTuple):
    """A message of the server with the method that it has or answers, and the request's params."""

    message: Message
    step: str
    params: Any = None

    @property
    def body(self) -> dict[str, Any]:
        """The params of a notification or request, or the result of an answer."""
        value = self.message.get("params", self.message.get("result"))
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def step_of(message: Message, method: str) -> str:
    """Return the step of a message whose own or whose request's method is given."""
    if "method" not in message:
        return f"{method} {'error' if 'error' in message else 'result'}"
    params = message.get("params")
    if isinstance(params, dict):
        members = cast("dict[str, Any]", params)
        for name in ("item", "status", "turn"):
            inner = members.get(name)
            if isinstance(inner, dict):
                word = cast("dict[str, Any]", inner).get("status" if name == "turn" else "type")
                return f"{method} {word}"
    return method


class _Addition(NamedTuple):
    row: NotificationRow
    fill: Fill
    needs: tuple[Fill, ...]
    unless: tuple[Fill, ...]


class Sequencer:
    """Arranges the messages to one client; `complete` adds the members of a notification."""

    def __init__(
        self,
        dialect: Dialect,
        facts: Mapping[str, Any],
        memory: Memory,
        complete: Callable[[Message], None],
    ) -> None:
        self._memory = memory
        self._complete = complete
        self._additions = [
            _Addition(
                row,
                filler(row.params, facts),
                tuple(filler(text, facts) for text in row.needs),
                tuple(filler(text, facts) for text in row.unless),
            )
            for row in dialect.notifications
        ]
        self._holds = dialect.holds
        self._held: list[tuple[HoldRow, Written]] = []
        self._orders = dialect.orders
        self._by_step: dict[str, tuple[list[_Addition], list[_Addition]]] = {}

    def arrange(self, messages: list[Written]) -> list[Written]:
        """Return the messages in the release's order, with those that it adds."""
        exchanged = self._exchange(messages) if self._orders else messages
        if not self._holds and not self._additions:
            return exchanged
        arranged: list[Written] = []
        for written in exchanged:
            for ready in self._release(written):
                arranged += self._with_additions(ready)
        return arranged

    def _exchange(self, messages: list[Written]) -> list[Written]:
        """Exchange neighbours that the release writes in the other order."""
        result = list(messages)
        for index in range(len(result) - 1):
            left, right = result[index].step, result[index + 1].step
            if any(
                left.startswith(row.second) and right.startswith(row.first) for row in self._orders
            ):
                result[index], result[index + 1] = result[index + 1], result[index]
        return result

    def _release(self, written: Written) -> Iterator[Written]:
        """Yield the held messages that this one ends, and itself unless it is held."""
        thread = _thread_of(written)
        kept: list[tuple[HoldRow, Written]] = []
        for row, held in self._held:
            ends = written.step.startswith(row.steps) and _thread_of(held) == thread
            if ends:
                yield held
            else:
                kept.append((row, held))
        self._held = kept
        for row in self._holds:
            if written.step.startswith(row.method):
                self._held.append((row, written))
                return
        yield written

    def _with_additions(self, written: Written) -> list[Written]:
        before, after = self._additions_at(written.step)
        added_before = [one for row in before if (one := self._added(row, written)) is not None]
        self._memory.note(written.step, written.body)
        added_after = [one for row in after if (one := self._added(row, written)) is not None]
        return [*added_before, written, *added_after]

    def _additions_at(self, step: str) -> tuple[list[_Addition], list[_Addition]]:
        rows = self._by_step.get(step)
        if rows is None:
            rows = self._by_step[step] = (
                [one for one in self._additions if _begins(step, one.row.before)],
                [one for one in self._additions if _begins(step, one.row.after)],
            )
        return rows

    def _added(self, addition: _Addition, written: Written) -> Written | None:
        row, body = addition.row, written.body
        if row.request and not _has_any(written.params, row.request):
            return None
        if not all(fill(body) for fill in addition.needs):
            return None
        if any(fill(body) for fill in addition.unless):
            return None
        message = {"method": row.method, "params": addition.fill(body)}
        self._complete(message)
        return Written(message, step_of(message, row.method))


def _begins(step: str, name: str) -> bool:
    return bool(name) and (step == name or step.startswith(f"{name} "))


def _has_any(params: Any, names: tuple[str, ...]) -> bool:
    """Return whether the params have one of the members with a value other than null or false."""
    members = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
    return any(members.get(name) not in (None, False) for name in names)


def _thread_of(written: Written) -> Any:
    return written.body.get("threadId")
