"""The end of a trace: waiting until the server is quiet, and naming the cause if it is not.

The only module whose waits depend on time.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import anyio
import anyio.lowlevel

from harness.client.peer import Peer
from harness.client.target.profile import Bounds
from harness.errors import TargetGone
from harness.model.model import ScriptedModel
from harness.scenario.patience import MAX_BOUNDS_PER_WAIT, is_about_a_turn
from harness.trace.connection_ledgers import ConnectionLedgers
from harness.trace.frame import Frame
from harness.trace.marks import EndingBegins, Settled
from harness.trace.obligations import Obligation
from harness.trace.trace import End, Trace

# Silence after which a trace without obligations is quiescent.
QUIET_SECONDS = 0.05
# A second wait before silence counts: this process may have been suspended, with messages that
# arrived meanwhile still unread.
RECHECK_SECONDS = 0.002
# A suspension can also outlast that wait: then so many rounds of the loop read what has arrived.
RECHECK_ROUNDS = 5
# The interval of checks for conditions without an event.
POLL_SECONDS = 0.02

REFUSAL_MESSAGE = "the scenario is over; nothing is approved any more"


@dataclass(frozen=True, slots=True)
class TraceEnding:
    """The end of a trace; `liveness` names the work of a server that was busy beyond its bound."""

    end: End
    outstanding_work: tuple[str, ...] = ()
    liveness: str = ""


class ExpectedMessages(Protocol):
    """Rules that a trace breaks only because a message is still missing."""

    def missed_by(self, trace: Trace) -> list[str]:
        """Return the ids of the rules that a later message could still satisfy."""
        ...

    def add_wait_in_vain(self, rules: Sequence[str]) -> None:
        """Count a long silence that did not satisfy these rules."""
        ...


class TraceFinisher:
    """Brings one trace to its end, on all of its connections.

    `peers` are the connections that the scenario has not ended, the first client's before others;
    the barrier is sent on the first of them. With `main_is_open` that is the first client's, and
    the server counts as ended once it closes. `children` returns the ids of the server's living
    descendants; `initial_children` existed at the scenario's first step and do not count.
    `expected` names rules that wait for further messages; None for none.
    """

    def __init__(
        self,
        peers: Sequence[Peer],
        model: ScriptedModel,
        owed: ConnectionLedgers,
        *,
        bounds: Bounds,
        barrier: tuple[str, dict[str, object]],
        children: Callable[[], set[int]],
        initial_children: set[int],
        main_is_open: bool = True,
        expected: ExpectedMessages | None = None,
    ) -> None:
        self._peers = list(peers)
        self._recorder = peers[0].recorder
        self._model = model
        self._owed = owed
        self._bounds = bounds
        self._barrier = barrier
        self._children = children
        self._initial_children = initial_children
        self._main_is_open = main_is_open
        # The size of each connection's unfinished line, and when one last grew.
        self._sizes = [0 for _ in self._peers]
        self._last_growth_at = 0.0
        # The time of the last message about a turn, and how many frames were searched for it.
        self._last_turn_message_at, self._frames_searched = 0.0, 0
        self._expected = expected
        # Rules that the first `_frames_checked` frames break, and when the wait for them ends.
        self._missed, self._frames_checked, self._missed_until = list[str](), 0, 0.0

    async def run(self) -> TraceEnding:
        """Open all gates, send the barrier request, wait for silence; return how the trace ends."""
        self._recorder.mark(EndingBegins())
        self._model.gates.open_all()
        for peer in self._peers:
            peer.set_reading(active=True)
        await self._answer_questions()
        with anyio.move_on_after(self._bounds.step), suppress(TargetGone):
            await self._peers[0].request(*self._barrier)
        return await self._settle()

    async def _settle(self) -> TraceEnding:
        started, checked_activity = self._recorder.elapsed_seconds(), -1.0
        last_deadline = started + MAX_BOUNDS_PER_WAIT * self._bounds.scenario
        while True:
            ending = self._end_of_connections()
            if ending is not None:
                return ending
            await self._answer_questions()
            has_obligations = bool(self._owed.open_obligations())
            outstanding_work = self._outstanding_work() if has_obligations else ()
            silence = self._bounds.settle if has_obligations else QUIET_SECONDS
            now = self._recorder.elapsed_seconds()
            last_activity = self._last_activity()
            seconds_left = silence - (now - last_activity)
            if seconds_left <= 0 and not outstanding_work and checked_activity < last_activity:
                checked_activity = last_activity
                await anyio.sleep(RECHECK_SECONDS)
                for _ in range(RECHECK_ROUNDS):
                    await anyio.lowlevel.checkpoint()
                continue
            if seconds_left <= 0 and not outstanding_work:
                if not has_obligations and self._may_still_get(now):
                    await anyio.sleep(POLL_SECONDS)
                    continue
                if has_obligations or now - last_activity >= self._bounds.settle:
                    self._mark_settled(self._bounds.settle)
                if self._missed and self._expected is not None:
                    self._expected.add_wait_in_vain(self._missed)
                return TraceEnding(End.QUIESCENT, ())
            last_turn_message = max(started, self._time_of_last_turn_message())
            if now >= min(last_turn_message + self._bounds.scenario, last_deadline):
                return self._time_out(outstanding_work)
            # An owed message may come at any moment, after which the short silence counts.
            await anyio.sleep(
                POLL_SECONDS
                if has_obligations or outstanding_work
                else max(seconds_left, POLL_SECONDS / 4)
            )

    def _may_still_get(self, now: float) -> bool:
        """Return whether to wait for messages that rules expect, though none is owed.

        The wait begins anew when one of them came, but not at other messages: a server may send
        some for ever.
        """
        trace = self._recorder.trace
        if self._expected is not None and len(trace.frames) > self._frames_checked:
            self._frames_checked = len(trace.frames)
            missed = self._expected.missed_by(trace)
            if missed != self._missed:
                self._missed, self._missed_until = missed, now + self._bounds.settle
        return bool(self._missed) and now < self._missed_until

    def _mark_settled(self, silence: float) -> None:
        """Record a `Settled` mark: the open obligations, and the outstanding work by its kind."""
        settled = Settled(
            silence=silence,
            owed=tuple(
                self._describe_obligation(obligation)
                for obligation in self._owed.open_obligations()
            ),
            model_streams=self._model.open_streams,
            server_requests=len(self._questions()),
            child_processes=len(self._children() - self._initial_children),
            retries=int(self._owed.is_retrying),
        )
        self._recorder.mark(settled)

    def _describe_obligation(self, obligation: Obligation) -> str:
        return (
            f"{obligation} on {obligation.frame.connection}"
            if self._owed.has_several
            else str(obligation)
        )

    def _last_activity(self) -> float:
        """Return the time of the last message, mark or growth of an unfinished line."""
        marks = self._recorder.trace.marks
        sizes = [peer.transport.partial_size for peer in self._peers]
        if sizes != self._sizes:
            self._sizes, self._last_growth_at = sizes, self._recorder.elapsed_seconds()
        return max(
            self._recorder.last_frame_at, self._last_growth_at, marks[-1].at if marks else 0.0
        )

    def _time_of_last_turn_message(self) -> float:
        """Return the time of the server's last message about a turn; 0 for none."""
        frames = self._recorder.trace.frames
        for frame in reversed(frames[self._frames_searched :]):
            if is_about_a_turn(frame):
                self._last_turn_message_at = frame.at
                break
        self._frames_searched = len(frames)
        return self._last_turn_message_at

    def _questions(self) -> list[Frame]:
        """Return the server requests of all connections that are not answered."""
        return [question for peer in self._peers for question in peer.questions.values()]

    async def _answer_questions(self) -> None:
        for peer in self._peers:
            for question in list(peer.questions.values()):
                with anyio.move_on_after(self._bounds.step), suppress(TargetGone):
                    await peer.refuse(question, REFUSAL_MESSAGE)

    def _own_work(self) -> tuple[str, ...]:
        """Return the work that the harness still has to do for the server."""
        reasons: list[str] = []
        if self._model.open_streams:
            reasons.append(f"{self._model.open_streams} open model stream(s)")
        reasons += [f"server request {q.method} id {q.id}" for q in self._questions()]
        return tuple(reasons)

    def _outstanding_work(self) -> tuple[str, ...]:
        reasons = list(self._own_work())
        new = self._children() - self._initial_children
        if new:
            reasons.append(f"child processes {', '.join(map(str, sorted(new)))}")
        if self._owed.is_retrying:
            reasons.append("a retry that was announced")
        return tuple(reasons)

    def _time_out(self, outstanding_work: tuple[str, ...]) -> TraceEnding:
        if self._own_work():
            return TraceEnding(End.TIMED_OUT, outstanding_work)
        busy = ", ".join(outstanding_work) or "it keeps sending messages"
        return TraceEnding(End.TIMED_OUT, outstanding_work, liveness=busy)

    def _end_of_connections(self) -> TraceEnding | None:
        """Return the end of the trace if no open connection is left, else None.

        If the scenario ended the first client's connection, an exit of the server cannot be
        noticed. The obligations of a further connection remain if the server closes it.
        """
        if any(peer.overflow for peer in self._peers):
            return TraceEnding(End.CLOSED)
        if self._main_is_open:
            return TraceEnding(End.EXITED) if self._peers[0].inbox.closed else None
        return TraceEnding(End.CLOSED) if all(peer.inbox.closed for peer in self._peers) else None
