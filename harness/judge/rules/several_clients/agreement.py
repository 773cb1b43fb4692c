"""Rules on messages to several clients about one event: all get the same."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, rule
from harness.judge.rules.shared.client_index import AllClients, item_name_of
from harness.judge.rules.shared.violations import different, member
from harness.judge.verdict import Level
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame

# The members that show an item's outcome: its status, the text of a message, plan or review.
_OUTCOME: Final = ("type", "status", "text", "review", "exitCode", "success")


class _AgreementRule(Monitor):
    """Base of rules that compare a message with those that other clients got of the same event."""

    def begin(self) -> None:
        self.all = AllClients(self.trace)

    def same_elsewhere(self, frames: list[Frame], frame: Frame) -> list[Frame]:
        """Return the same message as other clients got it before, if it is the first one here.

        Clients that got it more than once are skipped: which of those counts is open.
        """
        if sum(message.connection == frame.connection for message in frames) > 1:
            return []
        elsewhere = [message for message in frames if message.connection != frame.connection]
        names = [message.connection for message in elsewhere]
        return [message for message in elsewhere if names.count(message.connection) == 1]


@rule(
    "clients.same-end",
    title="All clients get the same end of a turn",
    level=Level.MUST,
    needs=("several-clients",),
)
class SameEnd(_AgreementRule):
    """Judges that the turn/completed of one turn has one status, on whichever connection.

    A turn ends once, as one of completed, interrupted and failed. A witness needs two clients that
    got it. Left open: turns whose end a client got twice, other members of turn/completed, and
    which clients get it.
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        self.all.read_until(frame)
        turn_id = text(dig(frame.params, "turn", "id"))
        ends = self.all.ends.get((text(obj(frame.params).get("threadId")), turn_id), [])
        status = dig(frame.params, "turn", "status")
        for other in self.same_elsewhere(ends, frame):
            frames, subject = (other, frame), f"turn {turn_id}"
            other_status = dig(other.params, "turn", "status")
            if other_status == status:
                yield Witness(subject, frames)
                return
            field, also = member(frame, "turn", "status"), (member(other, "turn", "status"),)
            reason = f"as connection {other.connection} got it"
            yield different(subject, frames, field, other_status, reason=reason, also=also)
            return


@rule(
    "clients.same-item",
    title="All clients get the same outcome of an item",
    level=Level.MUST,
    needs=("several-clients",),
)
class SameItem(_AgreementRule):
    """Judges that the item/completed of one item has the same outcome for all clients.

    It carries the final item, and there is one. Compared are its type, its status, its exit code,
    the success of a tool call, the text of a message or a plan and that of a review, each if both
    have it. A witness needs two clients that got it. Left open: items whose end a client got twice,
    all other members, and which clients get it.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        self.all.read_until(frame)
        name = item_name_of(frame)
        finals = self.all.finals.get(name, []) if name is not None else []
        for other in self.same_elsewhere(finals, frame)[:1]:
            item, other_item = (obj(obj(message.params).get("item")) for message in (frame, other))
            subject = f"item {item.get('id')} of turn {text(obj(frame.params).get('turnId'))}"
            frames, reason = (other, frame), f"as connection {other.connection} got it"
            different_keys = [
                key
                for key in _OUTCOME
                if key in item and key in other_item and item[key] != other_item[key]
            ]
            for key in different_keys[:1]:
                field, also = member(frame, "item", key), (member(other, "item", key),)
                yield different(subject, frames, field, other_item[key], reason=reason, also=also)
            if not different_keys:
                yield Witness(subject, frames)
