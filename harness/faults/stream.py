"""One fault on the frames between a client and a server, without any I/O."""

from collections.abc import Sequence

from harness.faults.base import Fault, StoredOnly
from harness.faults.queue import Act, FrameQueue, Steps
from harness.faults.site import FaultSite, NotApplied
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody
from harness.trace.trace import Mark


class FaultStream:
    """One fault on one connection, fed with each frame of both directions as it comes.

        stream = FaultStream(all_faults()["turn-ends-twice"])
        for frame in frames:
            for passed in stream.feed(frame):
                write(passed.direction, passed.raw)
        for passed in stream.end():
            write(passed.direction, passed.raw)

    Frames must be numbered in the order in which they came (`Frame.seq`). The `seq` of a frame that
    is passed on is that of the frame whose place it has: a frame that was only held keeps its own,
    a moved or added one has that of the frame next to it.

    `marks` are those of a stored trace; a live stream has none. A given `site` belongs to several
    streams: the caller feeds it each frame before feeding them. A fault that needs a whole stored
    trace raises `ValueError`.
    """

    def __init__(
        self,
        fault: Fault,
        marks: Sequence[Mark[MarkBody]] | None = None,
        *,
        site: FaultSite | None = None,
    ) -> None:
        if isinstance(fault.change, StoredOnly):
            raise ValueError(f"{fault.id} is for stored traces only: {fault.change.reason}")
        self.missing = ""
        self._queue = FrameQueue(site or FaultSite(marks))
        self._take = self._queue.add if site is None else self._queue.take
        self._steps: Steps | None = fault.change(self._queue)
        self._advance(None)

    @property
    def has_applied(self) -> bool:
        """Return whether anything was changed so far; holding frames back is not a change.

        If not, `missing` says at the end what the fault waited for.
        """
        return self._queue.has_changed

    @property
    def acts(self) -> list[Act]:
        """Return the changes so far, in order."""
        return self._queue.acts

    @property
    def is_finished(self) -> bool:
        """Return whether the fault has acted, or found that it cannot.

        `feed` still passes.
        """
        return self._steps is None

    @property
    def held_count(self) -> int:
        """Return the number of frames held while the fault waits."""
        return self._queue.held_count

    @property
    def held_bytes(self) -> int:
        """Return the number of bytes of these frames."""
        return self._queue.held_bytes

    def feed(self, frame: Frame) -> list[Frame]:
        """Take a frame; return the frames to pass on now."""
        self._take(frame)
        self._advance(frame)
        return self._queue.pop_ready()

    def end(self) -> list[Frame]:
        """Return the held frames. Nothing may be fed after it."""
        self._advance(None)
        return self._queue.pop_all()

    def _advance(self, frame: Frame | None) -> None:
        if self._steps is None:
            return
        try:
            self._steps.send(frame)
        except StopIteration:
            self._steps = None
        except NotApplied as reason:
            self._steps, self.missing = None, str(reason)
        if self._steps is None:
            self._queue.release_all()
