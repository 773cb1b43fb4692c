"""Feeding a trace to a fault frame by frame, as a proxy between client and server does."""

from dataclasses import dataclass, field

from harness.faults.base import Condition, Fault, StoredOnly
from harness.faults.queue import Change
from harness.faults.stream import FaultStream
from harness.trace.frame import Frame
from harness.trace.trace import Trace


def fault_of(change: Change | StoredOnly, given: Condition | None = None) -> Fault:
    return Fault("a-fault", "turn.completes", "plain-turn", "why", change, given)


@dataclass
class Fed:
    """Result of feeding a trace: frames passed on after each frame (`steps`) and at the end
    (`rest`), and the number of frames held back after each frame."""

    steps: list[list[Frame]] = field(default_factory=list[list[Frame]])
    rest: list[Frame] = field(default_factory=list[Frame])
    held: list[int] = field(default_factory=list[int])
    applied: bool = False
    missing: str = ""

    @property
    def passed(self) -> list[Frame]:
        """Return all frames that were passed on, in order."""
        return [frame for step in (*self.steps, self.rest) for frame in step]

    @property
    def story(self) -> str:
        """Return the methods passed on after each frame, then those at the end, as `a|b|`."""
        return "|".join("".join(f.method for f in step) for step in (*self.steps, self.rest))


def feed(fault: Fault | Change, trace: Trace) -> Fed:
    """Feed the frames of a trace to a fault and return the result."""
    stream = FaultStream(fault if isinstance(fault, Fault) else fault_of(fault))
    fed = Fed()
    for frame in trace.frames:
        fed.steps.append(stream.feed(frame))
        fed.held.append(stream.held_count)
    fed.rest = stream.end()
    fed.applied, fed.missing = stream.has_applied, stream.missing
    return fed
