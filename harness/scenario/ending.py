"""The end of a trace: when nothing more is to be expected, and who is to blame if it does not come.

The only module that may wait by the clock. Here: opening all gates, answering what is still asked,
the barrier, the silence, the bounds (design: "End of a trace; owed events"). Not here: any rule;
what is owed is counted by `harness.trace.owed`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import anyio

from harness.backend.model import ScriptedModel
from harness.client.peer import Peer
from harness.errors import TargetGone
from harness.target.profile import Bounds
from harness.trace.marks import EndingBegins, Settled
from harness.trace.owed import Owed
from harness.trace.trace import End

# Silence after which a trace with nothing owed is quiescent, in seconds.
QUIET = 0.05
# How often a condition without an event of its own is looked at, in seconds.
TICK = 0.02

REFUSAL = "the scenario is over; nothing is approved any more"


@dataclass(frozen=True, slots=True)
class Ended:
    """How the trace ended; `liveness` says what kept the server busy beyond its bound."""

    end: End
    outstanding: tuple[str, ...] = ()
    liveness: str = ""


class TraceFinisher:
    """Brings one trace to its end.

    `children` gives the ids of the server's living descendants; those in `before` were there at
    the scenario's first step and do not count.
    """

    def __init__(
        self,
        peer: Peer,
        model: ScriptedModel,
        owed: Owed,
        *,
        bounds: Bounds,
        barrier: tuple[str, dict[str, object]],
        children: Callable[[], set[int]],
        before: set[int],
    ) -> None:
        self._peer = peer
        self._model = model
        self._owed = owed
        self._bounds = bounds
        self._barrier = barrier
        self._children = children
        self._before = before

    async def run(self) -> Ended:
        """Wait for quiescence; bounded by the scenario's bound."""
        recorder = self._peer.recorder
        recorder.mark(EndingBegins())
        self._model.gates.open_all()
        try:
            await self._answer_questions()
            with anyio.move_on_after(self._bounds.step):
                await self._peer.request(*self._barrier)
            return await self._settle(recorder.now() + self._bounds.scenario)
        except TargetGone:
            return self._gone()

    async def _settle(self, deadline: float) -> Ended:
        recorder = self._peer.recorder
        while True:
            if self._peer.inbox.closed:
                return self._gone()
            await self._answer_questions()
            owed = bool(self._owed.open())
            outstanding = self._outstanding() if owed else ()
            silence = self._bounds.settle if owed else QUIET
            now = recorder.now()
            missing = silence - (now - self._last_activity())
            if missing <= 0 and not outstanding:
                if owed:
                    self._mark_settled(silence)
                return Ended(End.QUIESCENT, ())
            if now >= deadline:
                return self._bound_hit(outstanding)
            # While something is owed it may come at any moment, and then the short silence counts.
            await anyio.sleep(TICK if owed or outstanding else max(missing, TICK / 4))

    def _mark_settled(self, silence: float) -> None:
        """Leave in the trace what was owed in the end, and that nothing was outstanding."""
        settled = Settled(
            silence=silence,
            owed=tuple(str(one) for one in self._owed.open()),
            model_streams=self._model.open_streams,
            server_requests=len(self._peer.questions),
            child_processes=len(self._children() - self._before),
            retries=int(self._owed.retrying),
        )
        self._peer.recorder.mark(settled)

    def _last_activity(self) -> float:
        marks = self._peer.recorder.trace.marks
        return max(self._peer.recorder.last_frame_at, marks[-1].at if marks else 0.0)

    async def _answer_questions(self) -> None:
        for question in list(self._peer.questions.values()):
            with anyio.move_on_after(self._bounds.step):
                await self._peer.refuse(question, REFUSAL)

    def _ours(self) -> tuple[str, ...]:
        """What the harness itself still owes to the server."""
        reasons: list[str] = []
        if self._model.open_streams:
            reasons.append(f"{self._model.open_streams} open model stream(s)")
        reasons += [f"server request {q.method} id {q.id}" for q in self._peer.questions.values()]
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

    def _gone(self) -> Ended:
        return Ended(End.CLOSED if self._peer.overflow else End.EXITED)
