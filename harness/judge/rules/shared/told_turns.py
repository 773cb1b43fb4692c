"""Live news of the turns of a thread, on any connection of the trace."""

from collections.abc import Iterator

from harness.judge.rules.shared.view_queries import DELTAS, began_here, ephemeral
from harness.trace.frame import Frame
from harness.trace.order import by_arrival, came_before, received_before_sent
from harness.trace.trace import Trace
from harness.trace.views import Conversation, ThreadView, TurnView


class Told:
    """The turns that the clients of a trace were told of; looks at each frame once.

    `mine` is the view of the connection of the rule that asks, which others feed. Deltas are left
    out of the views of the other connections.
    """

    def __init__(self, trace: Trace, mine: Conversation) -> None:
        self._trace = trace
        self._mine = mine
        self._others: dict[str, Conversation] = {}
        self._looked_at = 0

    def views(self, at: Frame) -> list[Conversation]:
        """The views of all connections up to `at`, a frame of the connection that asks.

        Ask with one frame after the other: what was looked at stays in the views.
        """
        self._look(at, until=at)
        return [self._mine, *self._others.values()]

    def others_to_the_end(self, at: Frame) -> list[Conversation]:
        """The views of the other connections at the end of the trace; ask nothing else after it."""
        self._look(at, until=None)
        return list(self._others.values())

    def _look(self, at: Frame, until: Frame | None) -> None:
        frames = self._trace.frames
        while self._looked_at < len(frames):
            frame = frames[self._looked_at]
            if until is not None and not came_before(frame, until):
                return
            if frame.connection != at.connection and frame.method not in DELTAS:
                self._others.setdefault(frame.connection, Conversation()).feed(frame)
            self._looked_at += 1

    def threads(self, thread_id: str, at: Frame) -> Iterator[tuple[Conversation, ThreadView]]:
        """Give each connection's view of a thread; `at` is a frame of the connection that asks."""
        for view in self.views(at):
            thread = view.threads.get(thread_id)
            if thread is not None:
                yield view, thread

    def ended_before(self, thread_id: str, request: Frame) -> list[TurnView]:
        """The turns that had ended when a request was sent, in the order in which they began.

        Each as a client knows it that was told all of it, from its beginning on.
        """
        found: dict[str, TurnView] = {}
        for view, thread in self.threads(thread_id, request):
            for turn in thread.turns.values():
                over = turn.completed and received_before_sent(turn.completed[0], request)
                if over and turn.started and began_here(view, turn):
                    found.setdefault(turn.id, turn)
        first = {turn.started[0]: turn for turn in found.values()}
        return [first[frame] for frame in by_arrival(first)]

    def ephemeral(self, thread_id: str, at: Frame) -> bool:
        """Return whether any message showed the thread as ephemeral."""
        return any(ephemeral(thread) for _, thread in self.threads(thread_id, at))
