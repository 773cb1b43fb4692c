"""Faults that a scenario lists, as live faults."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, cast

from harness.client.transport.base import Transport
from harness.errors import UsageError
from harness.faults.base import Fault, all_faults
from harness.faults.changes import Delay, DelayBy, First
from harness.faults.live.chain import FaultChain
from harness.faults.live.fault import LiveFault, Report, reason_not_live
from harness.faults.live.transport import FaultyTransport
from harness.faults.operators import Operator, cut, drop, duplicate
from harness.faults.queue import Change, FrameQueue
from harness.faults.selectors import Selector
from harness.faults.site import FaultSite
from harness.judge.rules.discovery import all_rules
from harness.protocol.values import MISSING, dig, obj, text
from harness.scenario.faults import FaultEntry, Pick, as_pick
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.nearest import unknown_name
from harness.trace.surfaces import SESSION

_OPERATORS: dict[str, Operator] = {"drop": drop, "duplicate": duplicate, "cut": cut}
# Marks a value taken from the message before an injected one: "$.params.threadId".
_REFERENCE_PREFIX = "$."


@cache
def live_names() -> Collection[str]:
    """Return the ids of the session's faults that can act during a conversation."""
    rules = all_rules()
    return frozenset(
        fault.id
        for fault in all_faults().values()
        if not reason_not_live(fault) and rules[fault.rule].surface == SESSION
    )


class ActiveFaults:
    """Faults of one conversation: each of its connections has all of them, counted separately.

    They do not act on the first connection before `begin`: the handshake belongs to the set-up.
    """

    def __init__(self, entries: Sequence[FaultEntry], *, quiet: float) -> None:
        self._entries = entries
        self._quiet = quiet
        self._connections: list[list[LiveFault]] = []
        self._waiting: list[FaultyTransport] = []
        self._began = False

    def wrap(self, transport: Transport) -> Transport:
        """Return a transport that applies the faults, from `begin` on."""
        if self._began:
            return FaultyTransport(transport, self._chain(), quiet_seconds=self._quiet)
        self._waiting.append(FaultyTransport(transport, quiet_seconds=self._quiet))
        return self._waiting[-1]

    async def begin(self) -> None:
        """Activate the faults on open connections, and on those that open later."""
        self._began = True
        for transport in self._waiting:
            await transport.exchange(self._chain())

    def _chain(self) -> FaultChain:
        live = live_faults(self._entries)
        self._connections.append(live)
        return FaultChain(live)

    def idle_faults(self) -> dict[int, str]:
        """Return index -> what it waited for, of the faults that never acted. Ends all faults."""
        for connection_faults in self._connections:
            for fault in connection_faults:
                fault.end()
        return {
            index: next(
                (
                    connection[index].missing
                    for connection in self._connections
                    if connection[index].missing
                ),
                "",
            )
            for index in range(len(self._entries))
            if not any(connection[index].places_acted for connection in self._connections)
        }


def live_faults(entries: Sequence[FaultEntry], tell: Report | None = None) -> list[LiveFault]:
    """Return a scenario's faults for one connection. Raises `UsageError` for an unknown name."""
    return [
        LiveFault(
            _fault(entry),
            after=entry.after,
            once=entry.once or _nth(entry),
            report=tell,
        )
        for entry in entries
    ]


def _nth(entry: FaultEntry) -> bool:
    return entry.target is not None and entry.target.nth is not None


def _fault(entry: FaultEntry) -> Fault:
    if entry.fault is not None:
        if entry.fault not in live_names():
            raise UsageError(unknown_name("fault", entry.fault, live_names()))
        return all_faults()[entry.fault]
    picked = selector_of(entry.target or Pick())
    name = f"{entry.operation} {picked.description}"
    return Fault(
        name, rule="", on="", reason="written in a scenario", change=_change(entry, picked)
    )


def _change(entry: FaultEntry, picked: Selector) -> Change:
    match entry.operation:
        case "delay" if entry.until is not None:
            awaited = selector_of(as_pick(entry.until))
            return Delay(
                picked, awaited.description, lambda site, _, now: bool(awaited.fits(site, now))
            )
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
    """Return a copy with references (`$.params.id`) into a message filled in, null if missing."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _fill_from(item, frame) for key, item in members.items()}
    if isinstance(value, list):
        return [_fill_from(item, frame) for item in cast("list[Any]", value)]
    if isinstance(value, str) and value.startswith(_REFERENCE_PREFIX):
        member = dig(frame.json, *value[len(_REFERENCE_PREFIX) :].split("."))
        return None if member is MISSING else member
    return value


def selector_of(pick: Pick) -> Selector:
    """Return a selector for a pick. It counts for `nth`, so use one for each connection."""
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
        request = site.conversation.request_of(frame) if answers else None
        if request is None or request.method != pick.answer_to:
            return False
    return pick.item is None or _item_type(site, frame) == pick.item


def _item_type(site: FaultSite, frame: Frame) -> str:
    """Return the type of the item that a message contains or names; "" if there is none."""
    item_type = text(dig(frame.params, "item", "type"))
    if item_type:
        return item_type
    turn = site.turn_of(frame)
    item = turn.items.get(text(obj(frame.params).get("itemId"))) if turn is not None else None
    return item.type if item is not None else ""


def _describe(pick: Pick) -> str:
    """Describe a pick in words."""
    base = f"answer to {pick.answer_to}" if pick.answer_to else pick.method or "message"
    parts = [
        base,
        f"of {pick.item}" if pick.item else "",
        "of the client" * (pick.side == "client"),
    ]
    nth = f"number {pick.nth}" if pick.nth else ""
    return " ".join(part for part in (*parts, nth) if part)
