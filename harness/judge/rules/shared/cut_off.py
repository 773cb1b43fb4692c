"""The turns that ran when the harness ended the server, as the clients of that server knew them."""

from harness.judge.rules.shared.view_queries import DELTAS, began_here, ephemeral
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ServerEnded
from harness.trace.order import by_arrival, marked_before
from harness.trace.trace import Trace
from harness.trace.views import Conversation, TurnView


class CutOff:
    """Looks at each frame once, and at none while the harness has ended no server."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._views: dict[str, Conversation] = {}
        self._first: dict[str, Frame] = {}
        self._looked_at = 0

    def by_a_kill(self, turn: TurnView) -> bool:
        """Return whether the first end of a server after the turn began came without notice."""
        begun = turn.started[0]
        ends = [
            mark for mark in self._trace.marks_of(ServerEnded) if not marked_before(mark, begun)
        ]
        return bool(ends) and ends[0].body.killed

    def turns(self, thread_id: str, at: Frame) -> list[TurnView]:
        """The turns of a thread whose beginning a client was told and whose end it was not.

        `at` is a message of a connection that began after their server's end. None of a thread that
        was shown as ephemeral, or of which a rollback may have dropped turns.
        """
        ends = [mark for mark in self._trace.marks_of(ServerEnded) if marked_before(mark, at)]
        if not ends or self._rolled_back(thread_id):
            return []
        self._look()
        found: list[TurnView] = []
        for name, view in self._views.items():
            thread = view.threads.get(thread_id)
            if thread is None or name == at.connection or ephemeral(thread):
                continue
            began = self._first[at.connection]
            ended = [mark for mark in ends if marked_before(mark, began)]
            for turn in thread.turns.values():
                if turn.started and not turn.completed and began_here(view, turn):
                    begun = turn.started[0]
                    if any(not marked_before(mark, begun) for mark in ended):
                        found.append(turn)
        first = {turn.started[0]: turn for turn in found}
        return [first[frame] for frame in by_arrival(first)]

    def _look(self) -> None:
        frames = self._trace.frames
        for index in range(self._looked_at, len(frames)):
            frame = frames[index]
            self._first.setdefault(frame.connection, frame)
            if frame.method not in DELTAS:
                self._views.setdefault(frame.connection, Conversation()).feed(frame)
        self._looked_at = len(frames)

    def _rolled_back(self, thread_id: str) -> bool:
        """Return whether anybody asked for a rollback that may be of this thread."""
        return any(
            frame.method == "thread/rollback"
            and text(obj(frame.params).get("threadId")) in ("", thread_id)
            for frame in self._trace.frames
        )
