"""Rules on the life of an item: started, deltas, completed ("Item lifecycle")."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on, rule
from harness.judge.rules.shared.state_tracking import item_state, state_after
from harness.judge.rules.shared.view_queries import (
    DELTAS,
    began_here,
    connection_suffix,
    describe_silence,
    is_own_turn,
    item_in,
    resumed_between,
    thread_of,
)
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.item_types import types_with
from harness.protocol.spec.machines import ITEM
from harness.protocol.values import dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.obligations import Obligation, ObligationKind
from harness.trace.order import came_before
from harness.trace.views import ItemView


@rule("item.started-before-delta", title="Deltas follow their item's start", level=Level.MUST)
class StartedBeforeDelta(Monitor):
    """Judges that no delta names an item that has not been started. One violation per item.

    Left open: turns whose beginning this client did not see, and deltas of methods that the
    specification does not name.
    """

    def begin(self) -> None:
        self._judged: set[tuple[str, str, str]] = set()

    @on(*DELTAS)
    def on_delta(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        ids = [text(params.get(name)) for name in ("threadId", "turnId", "itemId")]
        key = (ids[0], ids[1], ids[2])
        if key in self._judged:
            return None
        item = self.conversation.item_of(frame)
        if item is None:
            item = self._unseen_item(frame, key[2])
            if item is None:
                return None
        if not began_here(self.conversation, item.turn):
            return None
        self._judged.add(key)
        if _allows_event(item, "delta"):
            return [Witness(item.subject, (item.starts[0], frame))]
        expected = f"item/started of {item.subject} before its first delta"
        places = (member(frame, "itemId").place,)
        actual = f"{frame.method} first"
        clauses = ("item.started-first",)
        return [Violation(item.subject, (frame,), expected, actual, clauses=clauses, places=places)]

    def _unseen_item(self, frame: Frame, item_id: str) -> ItemView | None:
        """Return a new view for an item that only a section boundary has named, which views skip.

        None if the turn is unknown or there is no item id.
        """
        turn = self.conversation.turn_of(frame)
        return ItemView(item_id, turn) if turn is not None and item_id else None


@rule("item.completed-after-started", title="A completed item was started", level=Level.MUST)
class CompletedAfterStarted(Monitor):
    """Judges that each item/completed follows an item/started of the same turn and id.

    An item without duration (a viewed image, the markers of a review) may be reported once: SHOULD.
    Left open: turns whose beginning this client did not see.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not began_here(self.conversation, item.turn):
            return None
        if _allows_event(item, frame.method):
            return [Witness(item.subject, (item.starts[0], frame))]
        if len(item.completions) > 1:
            return None
        expected = f"item/started of {item.subject} before its item/completed"
        places = (member(frame, "item", "id").place,)
        level = Level.SHOULD if item.type in INSTANT else None
        actual = "none came before"
        return [Violation(item.subject, (frame,), expected, actual, level, places=places)]


@rule("item.completed-once", title="An item is completed once", level=Level.MUST)
class ItemCompletedOnce(Monitor):
    """Judges that an item is not completed again without having been started again.

    Left open: an id that is started again (item.ids-not-reused).
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not is_own_turn(self.conversation, item.turn):
            return None
        if ITEM.next_states(item_state(item, before=frame)):
            return [Witness(item.subject, (frame,))]
        starts = item.starts[-1:]
        first = next(
            completion
            for completion in item.completions
            if not starts or came_before(starts[0], completion)
        )
        frames = (first, frame)
        places = tuple(member(shown_frame, "item", "id").place for shown_frame in frames)
        expected, actual = f"one item/completed for {item.subject}", "a second one"
        return [Violation(item.subject, frames, expected, actual, places=places)]


@rule("item.completed-last", title="No delta follows an item's completion", level=Level.MUST)
class ItemCompletedLast(Monitor):
    """Judges that no delta names an item that is completed. One violation per item.

    Left open: an id that is started again (item.ids-not-reused), an item/completed without a start
    (item.completed-after-started), deltas of methods that the specification does not name.
    """

    def begin(self) -> None:
        self._late: set[str] = set()

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not item.starts or item.last_delta is None:
            return None
        if not is_own_turn(self.conversation, item.turn):
            return None
        return [Witness(item.subject, (item.last_delta, frame))]

    @on(*DELTAS)
    def on_delta(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not item.completions or not item.starts:
            return None
        if ITEM.next_state(item_state(item, before=frame), "delta") is not None:
            return None
        if item.subject in self._late or not is_own_turn(self.conversation, item.turn):
            return None
        self._late.add(item.subject)
        frames, actual = (item.completions[-1], frame), f"{frame.method} after it"
        expected = f"item/completed as the last of {item.subject}"
        places = (member(item.completions[-1], "item", "id").place, member(frame, "itemId").place)
        return [Violation(item.subject, frames, expected, actual, places=places)]


def _allows_event(item: ItemView, event: str) -> bool:
    """Return whether the lifecycle allows this event after the item's item/started."""
    started = [frame.method for frame in item.starts[:1]]
    return ITEM.next_state(state_after(ITEM, started), event) is not None


# Item types without duration.
INSTANT = frozenset(types_with("at-once"))
# Item types with the model's own words, which a retry of its call can cut off.
STREAMED = frozenset(types_with("models-words"))
# The clauses that a missing completion breaks if the turn was not cut off.
COMPLETION_CLAUSES = ("item.completed-final", "event.item-completed-when")


@rule("item.completes", title="Every started item is completed", level=Level.MUST)
class ItemCompletes(Monitor):
    """Judges, at the end of a quiescent trace, that each started item has its item/completed.

    INFO for an item that was cut off because its turn was interrupted or failed: the lifecycle does
    not say that it continues then. turn.completes judges the items of a turn that never ended: one
    cause, one violation. SHOULD if the specification is unclear: for an item of the model's own
    words that began before an announced retry (the client waits for it forever, yet its fate is not
    specified), and for an item without duration (a viewed image, the markers of a review) that was
    reported once.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not item.starts or not is_own_turn(self.conversation, item.turn):
            return None
        return [Witness(item.subject, (item.starts[-1], frame))]

    def finish(self) -> Outcomes:
        for owed in self.owed.open_obligations(ObligationKind.ITEM_COMPLETED):
            turn = self.conversation.turn_of(owed.frame)
            if turn is not None and turn.completions:
                level = Level.SHOULD if self._is_doubtful(owed.frame) else None
                yield self._missing_violation(
                    owed, describe_silence(self.trace), level, *COMPLETION_CLAUSES
                )
        for owed in self.owed.waived:
            turn = self.conversation.turn_of(owed.frame)
            status = turn.status if turn is not None else ""
            actual = f"none came; its turn ended {status}"
            yield self._missing_violation(owed, actual, Level.INFO, "item.completed-when-cut")

    def _is_doubtful(self, started: Frame) -> bool:
        """Return whether the specification leaves open if the item must be completed."""
        item = self.conversation.item_of(started)
        if item is None:
            return False
        retried = any(
            came_before(started, error) and obj(error.params).get("willRetry") is True
            for error in item.turn.errors
        )
        return item.type in INSTANT or (retried and item.type in STREAMED)

    def _missing_violation(
        self, owed: Obligation, actual: str, level: Level | None, *clauses: str
    ) -> Violation:
        suffix = connection_suffix(self.trace, owed.frame)
        frames, expected = (owed.frame,), f"item/completed for {owed.subject}{suffix}"
        places = (member(owed.frame, "item", "id").place,)
        return Violation(
            owed.subject, frames, expected, actual, level, clauses=clauses, places=places
        )


@rule("item.same-type", title="An item keeps its type", level=Level.MUST)
class SameType(Monitor):
    """Judges that item/started and item/completed of one item name the same type.

    Left open: a type that is missing or not a string (shapes).
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not item.starts or not is_own_turn(self.conversation, item.turn):
            return None
        first = text(dig(item.starts[-1].params, "item", "type"))
        last = text(item_in(frame).get("type"))
        if not first or not last:
            return None
        frames = (item.starts[-1], frame)
        if first == last:
            return [Witness(item.subject, frames)]
        start_type, end_type = (member(shown_frame, "item", "type") for shown_frame in frames)
        return [wrong(item.subject, frames, end_type, literal(first), also=(start_type,))]


@rule("item.ids-not-reused", title="One id names one item of a turn", level=Level.SHOULD)
class IdsNotReused(Monitor):
    """Judges that no item/started comes for an id of the same turn that was started before.

    The specification calls item ids neither unique nor reusable; that one id is one item follows
    from two clauses (the lifecycle, and deltas that are joined by itemId): SHOULD. INFO if the turn
    announced a retry (`error` with willRetry) since the first start, and the item had not been
    completed: the server opens the same item again, and the effect of a retry on the item that it
    cut off is not specified. Left open: the same id in two turns, since messages name the turn too,
    and an item that starts again for a client that opened its thread again.
    """

    @on("item/started")
    def on_item_started(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not is_own_turn(self.conversation, item.turn):
            return None
        if len(item.starts) == 1:
            if len(item.turn.items) < 2:
                return None
            return [Witness(item.subject, (frame,))]
        start_before = item.starts[-2]
        if resumed_between(thread_of(self.conversation, item.turn), start_before, frame):
            return None
        retry = any(
            came_before(start_before, error) and obj(error.params).get("willRetry") is True
            for error in item.turn.errors
        )
        cut_off = not any(came_before(start_before, completion) for completion in item.completions)
        level = Level.INFO if retry and cut_off else None
        expected = "a new id for a new item" + (" after a retry" if retry else "")
        also = (member(start_before, "item", "id"),)
        field = member(frame, "item", "id")
        return [wrong(item.subject, (start_before, frame), field, expected, level=level, also=also)]
