"""Turns that ran when the harness ended the server, as the clients of that server saw them."""

from harness.judge.rules.shared.view_queries import DELTAS, began_here, is_ephemeral
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ServerEnded
from harness.trace.order import by_arrival, marked_before
from harness.trace.trace import Trace
from harness.trace.views import Conversation, TurnView


class CutOff:
    """Turns cut off by the end of a server; reads each frame once, and none before such an end."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._views: dict[str, Conversation] = {}
        self._first_frames: dict[str, Frame] = {}
        self._looked_at = 0

    def was_killed(self, turn: TurnView) -> bool:
        """Return whether the server was killed, rather than stopped, during the turn."""
        turn_start = turn.starts[0]
        ends = [
            mark
            for mark in self._trace.marks_of(ServerEnded)
            if not marked_before(mark, turn_start)
        ]
        return bool(ends) and ends[0].body.killed

    def turns(self, thread_id: str, message: Frame) -> list[TurnView]:
        """Return the turns of a thread that a client saw begin but not end, oldest first.

        `message` is from a connection that began after the server had ended. Returns [] for an
        ephemeral thread, or if a rollback may have dropped turns.
        """
        ends = [mark for mark in self._trace.marks_of(ServerEnded) if marked_before(mark, message)]
        if not ends or self._rolled_back(thread_id):
            return []
        self._read_frames()
        cut_turns: list[TurnView] = []
        for name, view in self._views.items():
            thread = view.threads.get(thread_id)
            if thread is None or name == message.connection or is_ephemeral(thread):
                continue
            began = self._first_frames[message.connection]
            ended = [mark for mark in ends if marked_before(mark, began)]
            for turn in thread.turns.values():
                if turn.starts and not turn.completions and began_here(view, turn):
                    turn_start = turn.starts[0]
                    if any(not marked_before(mark, turn_start) for mark in ended):
                        cut_turns.append(turn)
        first = {turn.starts[0]: turn for turn in cut_turns}
        return [first[frame] for frame in by_arrival(first)]

    def _read_frames(self) -> None:
        frames = self._trace.frames
        for index in range(self._looked_at, len(frames)):
            frame = frames[index]
            self._first_frames.setdefault(frame.connection, frame)
            if frame.method not in DELTAS:
                self._views.setdefault(frame.connection, Conversation()).feed(frame)
        self._looked_at = len(frames)

    def _rolled_back(self, thread_id: str) -> bool:
        """Return whether any client sent a thread/rollback that may be about this thread."""
        return any(
            frame.method == "thread/rollback"
            and text(obj(frame.params).get("threadId")) in ("", thread_id)
            for frame in self._trace.frames
        )
