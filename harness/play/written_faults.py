"""The faults that a scenario writes down, as live faults."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, cast

from harness.client.transport.base import Transport
from harness.errors import UsageError
from harness.faults.base import Fault, all_faults
from harness.faults.changes import Delay, DelayBy, First
from harness.faults.live.chain import FaultChain
from harness.faults.live.fault import LiveFault, Told, why_not_live
from harness.faults.live.transport import FaultyTransport
from harness.faults.operators import Operator, cut, drop, duplicate
from harness.faults.queue import Change, FrameQueue
from harness.faults.selectors import Selector
from harness.faults.site import FaultSite
from harness.judge.rules.discovery import all_rules
from harness.protocol.values import MISSING, dig, obj, text
from harness.scenario.faults import FaultEntry, Pick, pick_of
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.nearest import unknown
from harness.trace.surfaces import SESSION

_OPERATORS: dict[str, Operator] = {"drop": drop, "duplicate": duplicate, "cut": cut}
# What an injected message takes from the one that it comes behind: "$.params.threadId".
_REFERENCE_PREFIX = "$."


@cache
def live_names() -> Collection[str]:
    """The ids of the faults of the session that can be live."""
    rules = all_rules()
    return frozenset(
        one.id
        for one in all_faults().values()
        if not why_not_live(one) and rules[one.rule].surface == SESSION
    )


class ActiveFaults:
    """The faults of one conversation: each of its connections has all of them, with its own count.

    Nothing is wrong on the first connection before `begin`: the handshake is the set-up's.
    """

    def __init__(self, entries: Sequence[FaultEntry], *, quiet: float) -> None:
        self._entries = entries
        self._quiet = quiet
        self._connections: list[list[LiveFault]] = []
        self._waiting: list[FaultyTransport] = []
        self._began = False

    def wrap(self, transport: Transport) -> Transport:
        """A connection with the faults in it."""
        if self._began:
            return FaultyTransport(transport, self._chain(), quiet=self._quiet)
        self._waiting.append(FaultyTransport(transport, quiet=self._quiet))
        return self._waiting[-1]

    async def begin(self) -> None:
        """From here on the faults are at work, also on each connection that is still to come."""
        self._began = True
        for made in self._waiting:
            await made.exchange(self._chain())

    def _chain(self) -> FaultChain:
        live = live_faults(self._entries)
        self._connections.append(live)
        return FaultChain(live)

    def idle_faults(self) -> dict[int, str]:
        """After the end: the faults that acted on no connection, by their places.

        Each with what it waited for.
        """
        for one in self._connections:
            for live in one:
                live.end()
        return {
            index: next((one[index].missing for one in self._connections if one[index].missing), "")
            for index in range(len(self._entries))
            if not any(one[index].acted for one in self._connections)
        }


def live_faults(entries: Sequence[FaultEntry], tell: Told | None = None) -> list[LiveFault]:
    """The faults of a scenario at work on one connection. Raises `UsageError` for a name."""
    return [
        LiveFault(
            _fault(entry),
            after=entry.after,
            once=entry.once or _nth(entry),
            tell=tell,
        )
        for entry in entries
    ]


def _nth(entry: FaultEntry) -> bool:
    return entry.picked is not None and entry.picked.nth is not None


def _fault(entry: FaultEntry) -> Fault:
    if entry.fault is not None:
        if entry.fault not in live_names():
            raise UsageError(unknown("fault", entry.fault, live_names()))
        return all_faults()[entry.fault]
    picked = selector_of(entry.picked or Pick())
    name = f"{entry.operation} {picked.what}"
    return Fault(
        name, rule="", on="", reason="written in a scenario", change=_change(entry, picked)
    )


def _change(entry: FaultEntry, picked: Selector) -> Change:
    match entry.operation:
        case "delay" if entry.until is not None:
            awaited = selector_of(pick_of(entry.until))
            return Delay(picked, awaited.what, lambda site, _, now: bool(awaited.fits(site, now)))
        case "delay":
            return DelayBy(picked, entry.messages or 1)
        case "reorder":
            return DelayBy(picked, 1)
        case "inject":
            return First(picked, (_injector(entry),))
        case operation:
            return First(picked, (_OPERATORS[operation],))


def _injector(entry: FaultEntry) -> Operator:
    origin = Origin.TARGET if entry.to == "client" else Origin.HARNESS
    written = entry.inject

    def inject(queue: FrameQueue, frame: Frame) -> None:
        message = written.encode() if isinstance(written, str) else _fill_from(written, frame)
        queue.insert(message, after=frame, origin=origin)

    return inject


def _fill_from(value: Any, frame: Frame) -> Any:
    """A value with what it takes from a message; a member that is not there becomes null."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _fill_from(item, frame) for key, item in members.items()}
    if isinstance(value, list):
        return [_fill_from(item, frame) for item in cast("list[Any]", value)]
    if isinstance(value, str) and value.startswith(_REFERENCE_PREFIX):
        found = dig(frame.json, *value[len(_REFERENCE_PREFIX) :].split("."))
        return None if found is MISSING else found
    return value


def selector_of(pick: Pick) -> Selector:
    """The question whether a message is meant. It counts for `nth`: one for each conversation."""
    origin = Origin.TARGET if pick.side == "server" else Origin.HARNESS
    counted: dict[int, int] = {}

    def fits(site: FaultSite, frame: Frame) -> bool:
        if frame.origin is not origin or not _matches(site, frame, pick):
            return False
        return pick.nth is None or counted.setdefault(frame.seq, len(counted) + 1) == pick.nth

    return Selector(_describe(pick), fits)


def _matches(site: FaultSite, frame: Frame, pick: Pick) -> bool:
    if pick.method is not None and frame.method != pick.method:
        return False
    if pick.answer_to is not None:
        answers = frame.kind in (Kind.RESPONSE, Kind.ERROR)
        asked = site.conversation.request_of(frame) if answers else None
        if asked is None or asked.method != pick.answer_to:
            return False
    return pick.item is None or _item_type(site, frame) == pick.item


def _item_type(site: FaultSite, frame: Frame) -> str:
    """The type of the item that a message holds or is about; "" for no item."""
    told = text(dig(frame.params, "item", "type"))
    if told:
        return told
    turn = site.turn_of(frame)
    item = turn.items.get(text(obj(frame.params).get("itemId"))) if turn is not None else None
    return item.type if item is not None else ""


def _describe(pick: Pick) -> str:
    """A pick in words."""
    base = f"answer to {pick.answer_to}" if pick.answer_to else pick.method or "message"
    parts = [
        base,
        f"of {pick.item}" if pick.item else "",
        "of the client" * (pick.side == "client"),
    ]
    nth = f"number {pick.nth}" if pick.nth else ""
    return " ".join(part for part in (*parts, nth) if part)
