"""Live notifications about the turns of a thread, on any connection of the trace."""

from collections.abc import Iterator

from harness.judge.rules.shared.view_queries import DELTAS, began_here, is_ephemeral
from harness.trace.frame import Frame
from harness.trace.order import by_arrival, came_before, received_before_sent
from harness.trace.trace import Trace
from harness.trace.views import Conversation, ThreadView, TurnView


class LiveTurns:
    """Turns as the clients of a trace saw them; reads each frame once.

    `own_view` is the view of the rule's own connection, which is fed elsewhere. The views of the
    other connections do not have deltas.
    """

    def __init__(self, trace: Trace, own_view: Conversation) -> None:
        self._trace = trace
        self._own_view = own_view
        self._other_views: dict[str, Conversation] = {}
        self._looked_at = 0

    def views(self, frame: Frame) -> list[Conversation]:
        """Return the views of all connections up to `frame`, a frame of the own connection.

        Call it in the order of the frames: a view never goes back.
        """
        self._read_frames(frame, until=frame)
        return [self._own_view, *self._other_views.values()]

    def other_views_at_end(self, frame: Frame) -> list[Conversation]:
        """Return the other views at the end of the trace; call nothing else afterwards."""
        self._read_frames(frame, until=None)
        return list(self._other_views.values())

    def _read_frames(self, own_frame: Frame, until: Frame | None) -> None:
        frames = self._trace.frames
        while self._looked_at < len(frames):
            frame = frames[self._looked_at]
            if until is not None and not came_before(frame, until):
                return
            if frame.connection != own_frame.connection and frame.method not in DELTAS:
                self._other_views.setdefault(frame.connection, Conversation()).feed(frame)
            self._looked_at += 1

    def thread_views(
        self, thread_id: str, frame: Frame
    ) -> Iterator[tuple[Conversation, ThreadView]]:
        """Yield each connection's view of a thread; `frame` is a frame of the own connection."""
        for view in self.views(frame):
            thread = view.threads.get(thread_id)
            if thread is not None:
                yield view, thread

    def turns_ended_before(self, thread_id: str, request: Frame) -> list[TurnView]:
        """Return the turns that had ended when a request was sent, in the order they began.

        Only turns that some client saw from their beginning on.
        """
        turns: dict[str, TurnView] = {}
        for view, thread in self.thread_views(thread_id, request):
            for turn in thread.turns.values():
                has_ended = turn.completions and received_before_sent(turn.completions[0], request)
                if has_ended and turn.starts and began_here(view, turn):
                    turns.setdefault(turn.id, turn)
        first = {turn.starts[0]: turn for turn in turns.values()}
        return [first[frame] for frame in by_arrival(first)]

    def is_ephemeral(self, thread_id: str, frame: Frame) -> bool:
        """Return whether any message showed the thread as ephemeral."""
        return any(is_ephemeral(thread) for _, thread in self.thread_views(thread_id, frame))
