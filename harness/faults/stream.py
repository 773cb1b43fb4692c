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

    Frames must be numbered in the order in which they came (`Frame.seq`). A frame that was only
    held keeps its number when it is passed on; a moved or added one has that of the frame next to
    its place.

    `marks` are those of a stored trace; a live stream has none. A given `site` is shared by several
    streams: the caller feeds each frame to the site before feeding it to them. Raises `ValueError`
    for a fault that needs a whole stored trace.
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

        If nothing was changed, `missing` says at the end which frame the fault waited for.
        """
        return self._queue.has_changed

    @property
    def acts(self) -> list[Act]:
        """The changes so far, in order."""
        return self._queue.acts

    @property
    def is_finished(self) -> bool:
        """Return whether the fault is done, or cannot act; `feed` still passes frames on."""
        return self._steps is None

    @property
    def held_count(self) -> int:
        """The number of frames held while the fault waits."""
        return self._queue.held_count

    @property
    def held_bytes(self) -> int:
        """The number of bytes of the frames held while the fault waits."""
        return self._queue.held_bytes

    def feed(self, frame: Frame) -> list[Frame]:
        """Take a frame; return the frames to pass on now, in order."""
        self._take(frame)
        self._advance(frame)
        return self._queue.pop_ready()

    def end(self) -> list[Frame]:
        """Return the held frames. No frame may be fed afterwards."""
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
