"""One fault at work on a conversation that goes on: lines in, lines out, without any I/O.

A line that the fault does not touch comes out as the bytes that came in, whether it is JSON or not.
"""

from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import UsageError
from harness.faults.base import Fault, StoredOnly
from harness.faults.live.words import told
from harness.faults.queue import Act
from harness.faults.site import FaultSite
from harness.faults.stream import FaultStream
from harness.protocol.values import MISSING
from harness.trace.frame import Classify, Damage, Direction, Frame, Origin, classify, parse

# Held beyond this, lines are let go: what a fault waits for may never come.
MAX_HELD_FRAMES = 1000
MAX_HELD_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Acted:
    """A fault that acted: what it did, in words too, and at how many places it had acted before."""

    fault: Fault
    acts: tuple[Act, ...]
    words: tuple[str, ...]
    before: int


@dataclass(frozen=True, slots=True)
class LetGo:
    """A fault that gave up: the lines that were held for it go on as they came.

    `missing` says what it waited for, `why` what ended the wait.
    """

    fault: Fault
    frames: tuple[Frame, ...]
    missing: str
    why: str


Told = Callable[[Acted | LetGo], None]


def why_not_live(fault: Fault) -> str:
    """Return why a fault can only be made in a stored trace; "" for one that can be live."""
    return fault.change.why if isinstance(fault.change, StoredOnly) else ""


class LiveFault:
    """A fault between one client and a server.

        live = LiveFault(all_faults()["turn-ends-twice"], after=1, once=True)
        for frame in live.feed(line, Direction.FROM_TARGET):
            write(frame.direction, frame.raw)

    A fault that has done what it does is armed again, and acts at its next place; with `once` it is
    not. One that never ends by its nature, such as a thing that is never told, goes on in any case.
    The first `after` places are spared. `tell` is called when it acted, and when it gave up.

    A fault may hold lines back until it knows whether they are its place, or until those have
    passed that shall come before. What it waits for may never come. So the caller calls `quiet`
    when `held` is not 0 and nothing has come for a while; more than `MAX_HELD_FRAMES` lines are
    never held. `classify` is that of the lines' surface. Raises `UsageError` for a fault that needs
    a stored trace.
    """

    def __init__(
        self,
        fault: Fault,
        *,
        after: int = 0,
        once: bool = False,
        classify: Classify = classify,
        connection: str = "c1",
        tell: Told | None = None,
    ) -> None:
        if why := why_not_live(fault):
            raise UsageError(f"the fault {fault.id} cannot be live: {why}")
        self.fault = fault
        self.acted = 0
        """At how many places it has acted."""
        self.missing = ""
        """What it waited for when it was last given up, "" where it was not."""
        self._once = once
        self._spare = self._after = after
        self._classify = classify
        self._connection = connection
        self._tell = tell
        self._seq = 0
        self._site = FaultSite()
        self._told = 0
        self._stream: FaultStream | None = self._armed()

    @property
    def held(self) -> int:
        """Return the number of lines kept back now."""
        return self._stream.held if self._stream is not None and not self._spare else 0

    def feed(
        self, raw: bytes, direction: Direction, *, damage: Damage | None = None
    ) -> list[Frame]:
        """Take a line of either direction, without its line end; give what is to be passed on now.

        Each frame that is passed on says its direction, which may be the other one.
        """
        frame = self._frame(raw, direction, damage)
        stream = self._stream
        if stream is None:
            return [frame]
        self._site.feed(frame)
        out = stream.feed(frame)
        if self._spare:
            self._rehearse(stream)
            return [frame]
        self._tell_acts(stream)
        if stream.finished:
            out += stream.end()
            self._arm_again(stream)
        if self.held > MAX_HELD_FRAMES or (self.held and self._held_bytes > MAX_HELD_BYTES):
            out += self._give_up("too much is held")
        return out

    def quiet(self) -> list[Frame]:
        """Nothing has come for a while: give what is held, and arm the fault anew."""
        return self._give_up("nothing else came") if self.held else []

    def end(self) -> list[Frame]:
        """The conversation is over: give what is held. What is fed after it is another one."""
        return self._give_up("the conversation ended") if self._stream is not None else []

    @property
    def _held_bytes(self) -> int:
        return self._stream.held_bytes if self._stream is not None else 0

    def _armed(self) -> FaultStream:
        self._told = 0
        return FaultStream(self.fault, site=self._site)

    def _arm_again(self, stream: FaultStream) -> None:
        if self._once and stream.applied:
            # Nothing more will be done: what was said so far need not be kept.
            self._stream, self._site = None, FaultSite()
        else:
            self._stream = self._armed()

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
        """While places are spared, the fault acts on copies that nobody gets to see."""
        if stream.applied:
            self._spare -= 1
        if stream.applied or stream.finished:
            self._stream = self._armed()

    def _give_up(self, why: str) -> list[Frame]:
        """Let go of what is held, and arm the fault anew."""
        stream = self._stream
        if stream is None:
            return []
        if self._spare:
            self.missing = f"it found no place after the {self._after} that it spares"
            return []
        held = stream.end()
        self._tell_acts(stream)
        self.missing = stream.missing
        self._arm_again(stream)
        if held and self._tell is not None:
            self._tell(LetGo(self.fault, tuple(held), stream.missing, why))
        return held

    def _tell_acts(self, stream: FaultStream) -> None:
        """Tell what the stream has done since this was last asked: one place each time."""
        new = tuple(stream.acts[self._told :])
        if not new:
            return
        self._told = len(stream.acts)
        self.acted += 1
        if self._tell is not None:
            words = tuple(told(act, self._site) for act in new)
            self._tell(Acted(self.fault, new, words, self.acted - 1))
