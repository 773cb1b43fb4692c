"""The end of a trace: when nothing more is to be expected, and who is to blame if it does not come.

The only module that may wait by the clock.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio

from harness.client.peer import Peer
from harness.client.target.profile import Bounds
from harness.errors import TargetGone
from harness.model.model import ScriptedModel
from harness.scenario.patience import MAX_BOUNDS, tells_of_a_turn
from harness.trace.frame import Frame
from harness.trace.marks import EndingBegins, Settled
from harness.trace.owed import Obligation
from harness.trace.owed_on_connections import OwedOnConnections
from harness.trace.trace import End

# Silence after which a trace with nothing owed is quiescent, in seconds.
QUIET = 0.05
# How long one listens once more before silence is believed: while this process was held up there
# may have come messages that it has not read yet, and the clock counts that as silence.
SECOND_LOOK = 0.002
# How often a condition without an event of its own is looked at, in seconds.
TICK = 0.02

REFUSAL = "the scenario is over; nothing is approved any more"


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a trace; `liveness` says what kept the server busy beyond its bound."""

    end: End
    outstanding: tuple[str, ...] = ()
    liveness: str = ""


class TraceFinisher:
    """Brings one trace to its end, on all of its connections.

    `peers` are the connections that the scenario has not ended, the first client's before others;
    the barrier is sent on the first of them. With `main_is_open` that is the first client's, and
    the server is taken for ended once it is gone. `children` gives the ids of the server's living
    descendants; those in `before` were there at the scenario's first step and do not count.
    """

    def __init__(
        self,
        peers: Sequence[Peer],
        model: ScriptedModel,
        owed: OwedOnConnections,
        *,
        bounds: Bounds,
        barrier: tuple[str, dict[str, object]],
        children: Callable[[], set[int]],
        before: set[int],
        main_is_open: bool = True,
    ) -> None:
        self._peers = list(peers)
        self._recorder = peers[0].recorder
        self._model = model
        self._owed = owed
        self._bounds = bounds
        self._barrier = barrier
        self._children = children
        self._before = before
        self._main_is_open = main_is_open
        # Of a line that is coming on each connection: how many bytes, and when more of one came.
        self._sizes = [0 for _ in self._peers]
        self._grew = 0.0
        # When a turn was last told of, and up to which message that was looked for.
        self._told, self._looked_at = 0.0, 0

    async def run(self) -> Ended:
        """Wait for quiescence; bounded by so long a silence about turns as the scenario's bound."""
        self._recorder.mark(EndingBegins())
        self._model.gates.open_all()
        for peer in self._peers:
            peer.set_reading(active=True)
        await self._answer_questions()
        with anyio.move_on_after(self._bounds.step), suppress(TargetGone):
            await self._peers[0].request(*self._barrier)
        return await self._settle()

    async def _settle(self) -> Ended:
        begun, believed = self._recorder.now(), -1.0
        last_deadline = begun + MAX_BOUNDS * self._bounds.scenario
        while True:
            gone = self._gone()
            if gone is not None:
                return gone
            await self._answer_questions()
            owed = bool(self._owed.open())
            outstanding = self._outstanding() if owed else ()
            silence = self._bounds.settle if owed else QUIET
            now = self._recorder.now()
            last = self._last_activity()
            missing = silence - (now - last)
            if missing <= 0 and not outstanding and believed < last:
                believed = last
                await anyio.sleep(SECOND_LOOK)
                continue
            if missing <= 0 and not outstanding:
                if owed:
                    self._mark_settled(silence)
                return Ended(End.QUIESCENT, ())
            told = max(begun, self._told_of_a_turn())
            if now >= min(told + self._bounds.scenario, last_deadline):
                return self._bound_hit(outstanding)
            # While something is owed it may come at any moment, and then the short silence counts.
            await anyio.sleep(TICK if owed or outstanding else max(missing, TICK / 4))

    def _mark_settled(self, silence: float) -> None:
        """Leave in the trace what was owed in the end, and that nothing was outstanding."""
        settled = Settled(
            silence=silence,
            owed=tuple(self._named(one) for one in self._owed.open()),
            model_streams=self._model.open_streams,
            server_requests=len(self._questions()),
            child_processes=len(self._children() - self._before),
            retries=int(self._owed.retrying),
        )
        self._recorder.mark(settled)

    def _named(self, one: Obligation) -> str:
        return f"{one} on {one.frame.connection}" if self._owed.several else str(one)

    def _last_activity(self) -> float:
        """Return the time of the last message or mark, or of more of a message still coming."""
        marks = self._recorder.trace.marks
        sizes = [peer.transport.partial_size for peer in self._peers]
        if sizes != self._sizes:
            self._sizes, self._grew = sizes, self._recorder.now()
        return max(self._recorder.last_frame_at, self._grew, marks[-1].at if marks else 0.0)

    def _told_of_a_turn(self) -> float:
        """Return when the server last told of a turn; 0 for never."""
        frames = self._recorder.trace.frames
        for frame in reversed(frames[self._looked_at :]):
            if tells_of_a_turn(frame):
                self._told = frame.at
                break
        self._looked_at = len(frames)
        return self._told

    def _questions(self) -> list[Frame]:
        """The server requests of all connections that are not answered."""
        return [question for peer in self._peers for question in peer.questions.values()]

    async def _answer_questions(self) -> None:
        for peer in self._peers:
            for question in list(peer.questions.values()):
                with anyio.move_on_after(self._bounds.step), suppress(TargetGone):
                    await peer.refuse(question, REFUSAL)

    def _ours(self) -> tuple[str, ...]:
        """Return what the harness itself still owes to the server."""
        reasons: list[str] = []
        if self._model.open_streams:
            reasons.append(f"{self._model.open_streams} open model stream(s)")
        reasons += [f"server request {q.method} id {q.id}" for q in self._questions()]
        return tuple(reasons)

    def _outstanding(self) -> tuple[str, ...]:
        reasons = list(self._ours())
        new = self._children() - self._before
        if new:
            reasons.append(f"child processes {', '.join(map(str, sorted(new)))}")
        if self._owed.retrying:
            reasons.append("a retry that was announced")
        return tuple(reasons)

    def _bound_hit(self, outstanding: tuple[str, ...]) -> Ended:
        if self._ours():
            return Ended(End.TIMED_OUT, outstanding)
        busy = ", ".join(outstanding) or "it keeps sending messages"
        return Ended(End.TIMED_OUT, outstanding, liveness=busy)

    def _gone(self) -> Ended | None:
        """Return the end of the trace, if no connection is left on which more could come.

        Without the first client's connection, which the scenario ended, nobody can say that the
        server ended unasked. A further connection that the server ended goes on to be owed what it
        was owed.
        """
        if any(peer.overflow for peer in self._peers):
            return Ended(End.CLOSED)
        if self._main_is_open:
            return Ended(End.EXITED) if self._peers[0].inbox.closed else None
        return Ended(End.CLOSED) if all(peer.inbox.closed for peer in self._peers) else None
