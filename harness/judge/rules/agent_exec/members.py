"""Rules on the members of events: the tables of "Events", "Results" and of items.

Members that the tables do not list are free everywhere, and so are the words of a status.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator, Sequence

from harness.judge.base import Outcomes, Violation, Witness, listen, rule
from harness.judge.rules.shared.process_events import (
    StreamRule,
    event,
    item_of,
    item_subject,
    member,
)
from harness.judge.rules.shared.violations import Member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.exec_events import MemberRow, exec_events
from harness.protocol.values import MISSING, arr, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_exec import ITEM_EVENTS

_ITEMS = tuple(("event", kind) for kind in ITEM_EVENTS)
_EVENT, _BROKEN = ("kind", "event"), ("kind", "malformed")
_TYPED = "sdk-item.typed"


@rule(
    "exec.events-typed",
    title="Each line of a stream is an event with its type",
    level=Level.MUST,
    surface="exec",
)
class EventsTyped(StreamRule):
    """Judges each line of standard output.

    A line that is not a JSON object is SHOULD: the specification speaks of events, not of the lines
    that carry them. A type that is not in the table is INFO: it may be an addition.
    """

    @listen(_EVENT)
    def on_event(self, frame: Frame) -> Outcomes:
        kind = text(event(frame).get("type"))
        subject = f"events {kind} of {frame.connection}"
        if kind in exec_events().events:
            yield Witness(subject, (frame,))
        else:
            type_names = ", ".join(exec_events().events)
            yield wrong(
                subject, (frame,), member(frame, "type"), f"one of {type_names}", level=Level.INFO
            )

    @listen(_BROKEN)
    def on_broken(self, frame: Frame) -> Outcomes:
        subject = f"a line of {frame.connection}"
        if isinstance(frame.json, dict):
            yield wrong(subject, (frame,), member(frame, "type"), "a string, the event's type")
        else:
            yield Violation(subject, (frame,), "a JSON object", f"{frame.text(80)!r}", Level.SHOULD)


@rule(
    "exec.event-members",
    title="An event holds what the table of events lists",
    level=Level.MUST,
    surface="exec",
)
class EventMembers(StreamRule):
    """Judges each event of the table, and the message of a failed turn's error.

    A missing member is MUST. A member of the wrong type is SHOULD if the specification does not
    state the type.
    """

    @listen(_EVENT)
    def on_event(self, frame: Frame) -> Outcomes:
        kind = text(event(frame).get("type"))
        row = exec_events().events.get(kind)
        if row is None:
            return
        subject = f"{kind} of {frame.connection}"
        clauses = {row.clause}
        if kind == "turn.failed":
            clauses.add("sdk-errors.turn-failed")
        elif kind == "error":
            clauses.add("sdk-errors.fatal")
        violations = [*_member_violations(subject, frame, (), row.members, tuple(sorted(clauses)))]
        if kind == "turn.failed" and not violations:
            message = MemberRow("message", "string", stated=False)
            violations = [
                *_member_violations(subject, frame, ("error",), (message,), tuple(sorted(clauses)))
            ]
        yield from violations or [Witness(subject, (frame,))]


@rule(
    "exec.usage",
    title="turn.completed has three numbers of tokens",
    level=Level.MUST,
    surface="exec",
)
class UsageNumbers(StreamRule):
    """Judges the usage of each turn.completed that has one; further numbers are free.

    The specification leaves open whether they count this turn or the whole thread.
    """

    @listen(("event", "turn.completed"))
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        if not isinstance(event(frame).get("usage"), dict):
            return  # exec.event-members reports it.
        rows = tuple(MemberRow(name, "number") for name in exec_events().usage)
        subject = f"usage of {frame.connection}"
        violations = [*_member_violations(subject, frame, ("usage",), rows, ("sdk-usage.fields",))]
        yield from violations or [Witness(subject, (frame,))]


@rule(
    "exec.item-members",
    title="An item holds what the table of items lists for its type",
    level=Level.MUST,
    surface="exec",
)
class ItemMembers(StreamRule):
    """Judges the item of each event.

    Before item.completed, members that a type has only at its end (its text, its output) may be
    missing or null. exit_code and result may have no value even then, so their absence is INFO. A
    type that is not in the table is INFO. A member of the wrong type is SHOULD if the specification
    does not state the type.
    """

    @listen(*_ITEMS)
    def on_item(self, frame: Frame) -> Outcomes:
        if not isinstance(event(frame).get("item"), dict):
            return  # exec.event-members reports it.
        subject, item = item_subject(self.stream, frame), item_of(frame)
        kind = item.get("type")
        if not isinstance(kind, str):
            place = member(frame, "item", "type")
            yield wrong(subject, (frame,), place, "a string, the item's type", clauses=(_TYPED,))
            return
        row = exec_events().items.get(kind)
        if row is None:
            expected = f"one of {', '.join(exec_events().items)}"
            place = member(frame, "item", "type")
            yield wrong(subject, (frame,), place, expected, level=Level.INFO, clauses=(_TYPED,))
            return
        clauses = (row.clause, *(("sdk-errors.item",) if kind == "error" else ()))
        is_completed = event(frame).get("type") == "item.completed"
        violations = [
            *_member_violations(
                subject, frame, ("item",), row.members, clauses, is_completed=is_completed
            ),
            *self._elements(subject, frame, kind, clauses),
        ]
        yield from violations or [Witness(subject, (frame,))]

    def _elements(
        self, subject: str, frame: Frame, kind: str, clauses: tuple[str, ...]
    ) -> Iterator[Violation]:
        for name, rows in exec_events().elements.items():
            holder, _, array = name.partition(".")
            elements = arr(item_of(frame).get(array)) if holder == kind else []
            for index, element in enumerate(elements):
                path = ("item", array, index)
                if isinstance(element, dict):
                    yield from _member_violations(subject, frame, path, rows, clauses)
                else:
                    place = member(frame, *path)
                    yield wrong(subject, (frame,), place, "an object", clauses=clauses)


def _member_violations(
    subject: str,
    frame: Frame,
    path: tuple[str | int, ...],
    rows: Sequence[MemberRow],
    clauses: tuple[str, ...],
    *,
    is_completed: bool = True,
) -> Iterator[Violation]:
    """Yield a violation for each member that is missing or wrong in an item or event."""
    for row in rows:
        place = member(frame, *path, row.name)
        level = _level_of_defect(place, row, is_completed=is_completed)
        if level is not None:
            expected = "there" if row.type == "any" else _with_article(row.type)
            yield wrong(subject, (frame,), place, expected, level=level, clauses=clauses)


def _level_of_defect(place: Member, row: MemberRow, *, is_completed: bool) -> Level | None:
    """Return the level of a defect of a member, None if there is no defect."""
    value = place.value
    empty = value is MISSING or value is None
    if empty and row.late and not is_completed:
        return None
    if empty and row.optional:
        return Level.INFO if value is MISSING else None
    if value is MISSING:
        return Level.MUST
    if row.holds(value):
        return None
    return Level.MUST if row.stated else Level.SHOULD


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'ao' else 'a'} {kind}"
