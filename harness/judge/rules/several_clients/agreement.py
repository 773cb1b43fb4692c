"""Rules on what several clients are told of one thing: it is the same for all of them."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, rule
from harness.judge.rules.shared.all_clients import AllClients, item_named
from harness.judge.rules.shared.violations import differs, member
from harness.judge.verdict import Level
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame

# What an item says of its outcome: its status, the text of a message, a plan or a review.
_OUTCOME: Final = ("type", "status", "text", "review", "exitCode", "success")


class _Agreement(Monitor):
    """A monitor that compares a message with those that other clients got of the same thing."""

    def begin(self) -> None:
        self.all = AllClients(self.trace)

    def others(self, told: list[Frame], frame: Frame) -> list[Frame]:
        """The same message as other clients got it before, if it is the first one here.

        Clients that were told more than once are left out: which of those counts is open.
        """
        if sum(one.connection == frame.connection for one in told) > 1:
            return []
        elsewhere = [one for one in told if one.connection != frame.connection]
        names = [one.connection for one in elsewhere]
        return [one for one in elsewhere if names.count(one.connection) == 1]


@rule(
    "clients.same-end",
    title="All clients are told the same end of a turn",
    level=Level.MUST,
    needs=("several-clients",),
)
class SameEnd(_Agreement):
    """Judges that the turn/completed of one turn has one status, on whichever connection.

    A turn ends once, as one of completed, interrupted and failed. A witness needs two clients that
    were told. Left open: turns that a client was told the end of twice, what else turn/completed
    carries, and who is told.
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        self.all.until(frame)
        turn_id = text(dig(frame.params, "turn", "id"))
        told = self.all.ends.get((text(obj(frame.params).get("threadId")), turn_id), [])
        status = dig(frame.params, "turn", "status")
        for other in self.others(told, frame):
            frames, subject = (other, frame), f"turn {turn_id}"
            said = dig(other.params, "turn", "status")
            if said == status:
                yield Witness(subject, frames)
                return
            where, also = member(frame, "turn", "status"), (member(other, "turn", "status"),)
            why = f"what connection {other.connection} was told"
            yield differs(subject, frames, where, said, why=why, also=also)
            return


@rule(
    "clients.same-item",
    title="All clients are told the same outcome of an item",
    level=Level.MUST,
    needs=("several-clients",),
)
class SameItem(_Agreement):
    """Judges that the item/completed of one item tells all clients the same outcome.

    What it carries is the final item, and there is one. Compared are its type, its status, its exit
    code, the success of a tool call, the text of a message or a plan and that of a review, each
    where both have it. A witness needs two clients that were told. Left open: items that a client
    was told the end of twice, all other members, and who is told.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        self.all.until(frame)
        name = item_named(frame)
        told = self.all.finals.get(name, []) if name is not None else []
        for other in self.others(told, frame)[:1]:
            mine, theirs = (obj(obj(one.params).get("item")) for one in (frame, other))
            subject = f"item {mine.get('id')} of turn {text(obj(frame.params).get('turnId'))}"
            frames, why = (other, frame), f"what connection {other.connection} was told"
            unlike = [
                key
                for key in _OUTCOME
                if key in mine and key in theirs and mine[key] != theirs[key]
            ]
            for key in unlike[:1]:
                where, also = member(frame, "item", key), (member(other, "item", key),)
                yield differs(subject, frames, where, theirs[key], why=why, also=also)
            if not unlike:
                yield Witness(subject, frames)
