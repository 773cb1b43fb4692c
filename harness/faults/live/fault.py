"""One fault on a live conversation: lines in, lines out, without any I/O.

A line that the fault does not change keeps its bytes, whether it is JSON or not. The description of
a change has only the method, ids and names of members, since the rest may be secret.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError
from harness.faults.base import Fault, StoredOnly
from harness.faults.queue import Act
from harness.faults.site import FaultSite
from harness.faults.stream import FaultStream
from harness.protocol.escapes import visible
from harness.protocol.values import MISSING, dig, obj, show_path, text
from harness.trace.difference import difference
from harness.trace.frame import Classify, Damage, Direction, Frame, Kind, Origin, classify, parse

# Longer ids are cut in descriptions.
_MAX_ID_CHARACTERS = 60


def describe_act(act: Act, site: FaultSite) -> str:
    """Return an act in words: "changed turn/started (turn_1): params.turn.id"."""
    name = describe_frame(act.frame, site)
    match act.action:
        case "changed" if act.became is not None:
            return f"changed {name}: {_place(act.frame.json, act.became.json)}"
        case "inserted" if act.anchor is not None:
            return f"inserted {name} behind {describe_frame(act.anchor, site)}"
        case _ if act.anchor is not None:
            verb, _, preposition = act.action.partition(" ")
            return f"{verb} {name} {preposition or 'with'} {describe_frame(act.anchor, site)}"
        case _:
            return f"{act.action} {name}"


def describe_frame(frame: Frame, site: FaultSite) -> str:
    """Return a message in words: "the answer to turn/start (id 3)", "item/started (msg_1)"."""
    side = "" if frame.from_target else " of the client"
    if frame.method:
        return f"{_short(frame.method)}{side}{_ids(frame)}"
    if frame.kind is Kind.EVENT:
        return f"the event {_short(text(obj(frame.json).get('type')))}"
    if frame.kind in (Kind.RESPONSE, Kind.ERROR):
        request = site.conversation.request_of(frame)
        target = f" to {_short(request.method)}" if request is not None else ""
        noun = "answer" if frame.kind is Kind.RESPONSE else "refusal"
        return f"the {noun}{side}{target}{_ids(frame)}"
    return f"a line{side} that is no message"


def _ids(frame: Frame) -> str:
    params = obj(frame.params)
    ids = [
        text(params.get("itemId")) or text(dig(params, "item", "id")),
        text(params.get("turnId")) or text(dig(params, "turn", "id")),
        text(params.get("threadId")) or text(dig(params, "thread", "id")),
    ]
    if isinstance(frame.id, (int, str)):
        ids = [f"id {frame.id}"]
    first = next((identifier for identifier in ids if identifier), "")
    return f" ({_short(first)})" if first else ""


def _place(before: Any, after: Any) -> str:
    """Return the path of the first difference between two messages, "all of it" for the root."""
    path = difference(before, after).path
    return _short(show_path(path)) if path else "all of it"


def _short(name: str) -> str:
    return visible(name if len(name) <= _MAX_ID_CHARACTERS else name[:_MAX_ID_CHARACTERS] + "…")


# Beyond these limits held lines are released: the awaited frame may never come.
MAX_HELD_FRAMES = 1000
MAX_HELD_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FaultActed:
    """A report that a fault acted; `before` is the number of places at which it acted earlier."""

    fault: Fault
    acts: tuple[Act, ...]
    words: tuple[str, ...]
    before: int


@dataclass(frozen=True, slots=True)
class FaultGaveUp:
    """A report that a fault gave up, so that its held lines are passed on.

    `missing` says which frame it waited for, `reason` why the wait ended.
    """

    fault: Fault
    frames: tuple[Frame, ...]
    missing: str
    reason: str


Report = Callable[[FaultActed | FaultGaveUp], None]


def reason_not_live(fault: Fault) -> str:
    """Return why a fault needs a stored trace, "" if it can be applied live."""
    return fault.change.reason if isinstance(fault.change, StoredOnly) else ""


class LiveFault:
    """A fault between one client and a server.

        live = LiveFault(all_faults()["turn-ends-twice"], after=1, once=True)
        for frame in live.feed(line, Direction.FROM_TARGET):
            write(frame.direction, frame.raw)

    A fault that has acted is armed again, and acts at its next place, unless `once` is set. A fault
    without an end, such as one that drops every message, goes on in any case. The first `after`
    places are spared. `report` is called when the fault acted, and when it gave up.

    A fault may hold lines back until later lines decide whether they fit, or have passed. Since
    these may never come, the caller must call `release_on_silence` when `held_count` is not 0 and
    nothing has come for a while; at most `MAX_HELD_FRAMES` lines are held. `classify` is that of
    the lines' surface. Raises `UsageError` for a fault that needs a stored trace.
    """

    def __init__(
        self,
        fault: Fault,
        *,
        after: int = 0,
        once: bool = False,
        classify: Classify = classify,
        connection: str = "c1",
        report: Report | None = None,
    ) -> None:
        if reason := reason_not_live(fault):
            raise UsageError(f"the fault {fault.id} cannot be live: {reason}")
        self.fault = fault
        self.places_acted = 0
        """The number of places at which it has acted."""
        self.missing = ""
        """A description of the frame that the last attempt did not find, "" for none."""
        self._once = once
        self._to_spare = self._spared = after
        self._classify = classify
        self._connection = connection
        self._report = report
        self._seq = 0
        self._site = FaultSite()
        self._reported = 0
        self._stream: FaultStream | None = self._new_stream()

    @property
    def held_count(self) -> int:
        """The number of held lines."""
        return self._stream.held_count if self._stream is not None and not self._to_spare else 0

    def feed(
        self, raw: bytes, direction: Direction, *, damage: Damage | None = None
    ) -> list[Frame]:
        """Take a line of either direction, without its line end; return the lines to pass on.

        A returned frame may have the other direction.
        """
        frame = self._frame(raw, direction, damage)
        stream = self._stream
        if stream is None:
            return [frame]
        self._site.feed(frame)
        out = stream.feed(frame)
        if self._to_spare:
            self._rehearse(stream)
            return [frame]
        self._report_acts(stream)
        if stream.is_finished:
            out += stream.end()
            self._arm_again(stream)
        if self.held_count > MAX_HELD_FRAMES or (
            self.held_count and self._held_bytes > MAX_HELD_BYTES
        ):
            out += self._give_up("too much is held")
        return out

    def release_on_silence(self) -> list[Frame]:
        """Return the held lines after a silence, and arm the fault anew."""
        return self._give_up("nothing else came") if self.held_count else []

    def note_client_left(self) -> None:
        """Do nothing: a fault does not depend on who leaves first."""

    def end(self) -> list[Frame]:
        """Return the held lines at the end of the conversation, and arm the fault anew."""
        return self._give_up("the conversation ended") if self._stream is not None else []

    @property
    def _held_bytes(self) -> int:
        return self._stream.held_bytes if self._stream is not None else 0

    def _new_stream(self) -> FaultStream:
        self._reported = 0
        return FaultStream(self.fault, site=self._site)

    def _arm_again(self, stream: FaultStream) -> None:
        if self._once and stream.has_applied:
            # The fault is done: the site is no longer needed.
            self._stream, self._site = None, FaultSite()
        else:
            self._stream = self._new_stream()

    def _frame(self, raw: bytes, direction: Direction, damage: Damage | None) -> Frame:
        value = parse(raw) if damage is None else MISSING
        from_target = direction is Direction.FROM_TARGET
        self._seq += 1
        return Frame(
            seq=self._seq,
            at=0.0,
            connection=self._connection,
            direction=direction,
            origin=Origin.TARGET if from_target else Origin.HARNESS,
            raw=raw,
            json=value,
            kind=self._classify(value, direction),
            damage=damage,
        )

    def _rehearse(self, stream: FaultStream) -> None:
        """Count a place as spared if the fault acted at it; its changes are not passed on."""
        if stream.has_applied:
            self._to_spare -= 1
        if stream.has_applied or stream.is_finished:
            self._stream = self._new_stream()

    def _give_up(self, reason: str) -> list[Frame]:
        """Return the held lines, arm the fault anew, and report that it gave up if any was held."""
        stream = self._stream
        if stream is None:
            return []
        if self._to_spare:
            self.missing = f"it found no place after the {self._spared} that it spares"
            return []
        held = stream.end()
        self._report_acts(stream)
        self.missing = stream.missing
        self._arm_again(stream)
        if held and self._report is not None:
            self._report(FaultGaveUp(self.fault, tuple(held), stream.missing, reason))
        return held

    def _report_acts(self, stream: FaultStream) -> None:
        """Count and report the new acts of the stream as one place, if there are any."""
        new = tuple(stream.acts[self._reported :])
        if not new:
            return
        self._reported = len(stream.acts)
        self.places_acted += 1
        if self._report is not None:
            words = tuple(describe_act(act, self._site) for act in new)
            self._report(FaultActed(self.fault, new, words, self.places_acted - 1))
