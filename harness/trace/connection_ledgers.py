"""Messages that the server still owes on each connection of a trace: one ledger per connection.

The judge and the end of a live conversation share it, so that both find the same messages owed.
"""

from collections.abc import Iterable

from harness.protocol.values import dig, obj, text
from harness.trace.correlation import AmbiguousIds
from harness.trace.frame import Direction, Frame
from harness.trace.marks import Closed, Leaving, MarkBody, ServerEnded
from harness.trace.obligations import Obligation, ObligationKind, ObligationLedger
from harness.trace.trace import Mark


class ConnectionLedgers:
    """The ledgers of all connections of a trace. Feed frames and marks once, in recorded order.

    A connection that the harness ended (mark `closed`) owes nothing from there on. One that the
    server ended keeps its obligations.
    """

    def __init__(self) -> None:
        self._ledgers: dict[str, ObligationLedger] = {}
        self._ambiguous_ids = AmbiguousIds()

    def ledger_of(self, connection: str) -> ObligationLedger:
        """Return the ledger of a connection, created on first use."""
        ledger = self._ledgers.get(connection)
        if ledger is None:
            ledger = self._ledgers[connection] = ObligationLedger(self._ledgers)
        return ledger

    def feed(self, frame: Frame) -> None:
        """Update the ledgers with one frame."""
        self._ambiguous_ids.feed(frame)
        own = self.ledger_of(frame.connection)
        own.feed(frame)
        if frame.method == "turn/completed" and frame.direction is Direction.FROM_TARGET:
            thread_id = text(obj(frame.params).get("threadId"))
            turn_id = text(dig(frame.params, "turn", "id"))
            for ledger in self._ledgers.values():
                if ledger is not own:
                    ledger.note_turn_end(thread_id, turn_id)

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Update the ledgers with one mark."""
        if isinstance(mark.body, Leaving):
            ledger = self.ledger_of(mark.body.connection)
            ledger.client_left = True
            if isinstance(mark.body, Closed):
                ledger.close()
        for ledger in self._ledgers.values():
            ledger.is_of_ended_process |= isinstance(mark.body, ServerEnded)
            ledger.feed_mark(mark)

    def open_obligations(self, *kinds: ObligationKind) -> list[Obligation]:
        """Return the open obligations of all connections, of these kinds or all, oldest first."""
        obligations = [
            item for ledger in self._ledgers.values() for item in ledger.open_obligations(*kinds)
        ]
        return sorted(obligations, key=lambda item: item.frame.seq)

    def has_ambiguous_id(self, frames: Iterable[Frame], sender: Direction) -> bool:
        """Return whether `sender` reused the id of one of these messages in an open request."""
        return self._ambiguous_ids.has_any(frames, sender)

    @property
    def unanswered_questions(self) -> list[Frame]:
        """Server requests of all connections that are not answered, nor ended by the server."""
        ledgers = self._ledgers.values()
        return [question for ledger in ledgers for question in ledger.unanswered_questions]

    @property
    def is_retrying(self) -> bool:
        """Return whether an announced retry is pending on any connection."""
        return any(ledger.is_retrying for ledger in self._ledgers.values())

    @property
    def has_several(self) -> bool:
        """Return whether the trace has more than one connection."""
        return len(self._ledgers) > 1
