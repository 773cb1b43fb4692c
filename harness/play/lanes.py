"""Lanes: several sessions on one server at once, so that one works while another waits.

Runs mostly wait: for a process to start, for a silence to end. So items are played ahead on lanes,
each with a session, a server process, a home and a model of its own. A trace has one scenario. The
caller asks for the outcomes one by one, in its own order.

A verdict does not depend on lanes. A scenario that failed on a lane is played again alone on the
first lane, with every other lane idle, and only that play counts. Two kinds of failure count
immediately: a rule that was broken in two plays alone, and a timeout for a notification that no
scenario ever got, including one that waited for it alone. The same holds for a capability that two
plays alone did not show, and that no scenario passed with.
A time over its limit never counts on a lane.

The first lane plays alone until a scenario has passed, so that an unusable server is found once. A
lane whose server cannot be started is given up: some servers have a fixed port, so that only one
can run.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from harness.judge.verdict import Level, Verdict
from harness.play.interruption import Interrupted, Interruption
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome

T = TypeVar("T")
Outcome = ScenarioOutcome | RaceOutcome

USUAL_START_SECONDS: Final = 0.5
"""A server that takes longer to start gets more lanes: its starts overlap with other plays."""
MAX_LANES_PER_CORE: Final = 4
TIMEOUT_FINDING: Final = "scenario.timeout"
MAX_HELD_SECONDS: Final = 10.0
"""Maximum time that lanes continue after the caller has asked for a failed item.

More items may fail until then, and one pause serves to replay them all.
"""
PLAYS_TO_CONFIRM: Final = 2
"""Plays alone that must break a rule, or lack a capability, before plays on lanes count."""


@dataclass(frozen=True, slots=True)
class Job:
    """One item to play: its name, which is unique in a run, and how a session plays it.

    `play` takes the session, whether to confirm failures, and the failed outcome of an earlier play
    on a lane, if any. Jobs with the same `settings` need the same server settings, "" for the usual
    ones: they stay on one lane. `needs` are the capabilities that a pass shows to be offered.
    """

    name: str
    play: Callable[[WorkerSession, bool, Outcome | None], Outcome]
    settings: str = ""
    needs: tuple[str, ...] = ()


@dataclass(slots=True)
class _Play:
    """A job that was begun; if it `is_wrong`, it has to be played again alone."""

    job: Job
    outcome: Outcome | None = None
    error: BaseException | None = None
    is_wrong: bool = False
    is_done: bool = False


class LaneWaits:
    """Waits of a session: on a lane's thread until `cancel`, on the run's thread until a signal."""

    def __init__(self, interruption: Interruption) -> None:
        self._interruption = interruption
        self._run_thread = threading.get_ident()
        self._lock = threading.Lock()
        self._future: Future[Any] | None = None
        self._cancelled = False

    def wait(self, future: Future[T]) -> T:
        """Return the result. Raises `Interrupted` when the lane, or the run, is stopped."""
        if threading.get_ident() == self._run_thread:
            return self._interruption.wait(future)
        with self._lock:
            self._future = future
            if self._cancelled:
                future.cancel()
        try:
            return future.result()
        except CancelledError as error:
            raise Interrupted("the lane is stopped") from error
        finally:
            self._future = None

    def cancel(self) -> None:
        """Cancel the current wait, and every later wait of the lane."""
        with self._lock:
            self._cancelled = True
            if self._future is not None:
                self._future.cancel()


class _Lane:
    def __init__(self, session: WorkerSession, waits: LaneWaits) -> None:
        self.session = session
        self.waits = waits
        self.settings = ""
        self.thread: threading.Thread | None = None


class Lanes:
    """Lanes that play jobs ahead; `number` 0 means as many as keep the processors busy.

    `open_session` makes the session of a lane, by its number from 1; `upcoming` returns the jobs
    that the caller will ask for, in order. `never_came` returns whether a scenario that was played
    alone timed out waiting for a notification that no scenario got. Without `confirms_ahead` only
    the jobs that the caller asks for are replayed alone. Call all methods on the thread of the run.
    """

    def __init__(
        self,
        number: int,
        open_session: Callable[[int, LaneWaits], WorkerSession],
        upcoming: Callable[[], Iterator[Job]],
        interruption: Interruption,
        *,
        never_came: Callable[[str], bool] = lambda _notification: False,
        confirms_ahead: bool = True,
    ) -> None:
        self._number = number
        self._open_session = open_session
        self._upcoming = upcoming
        self._interruption = interruption
        self._changed = threading.Condition()
        self._plays: dict[str, _Play] = {}
        self._begun: set[str] = set()
        self._requested: list[Job] = []
        self._busy = 0
        self._paused = self._stopped = self._is_proven = False
        self._news: Future[None] = Future()
        self._never_came = never_came
        self._confirms_ahead = confirms_ahead
        self._broken_alone: Counter[str] = Counter()
        self._absent_alone: Counter[str] = Counter()
        self._shown_needs: set[str] = set()
        self.replayed = 0
        """Number of jobs that failed on a lane and were played again alone."""
        waits = LaneWaits(interruption)
        self._lanes = [_Lane(open_session(1, waits), waits)]

    @property
    def first(self) -> WorkerSession:
        """Return the session that plays jobs alone."""
        return self._lanes[0].session

    @property
    def sessions(self) -> list[WorkerSession]:
        """Return the sessions of all lanes opened so far."""
        return [lane.session for lane in self._lanes]

    def outcome(self, job: Job) -> Outcome:
        """Play a job, or wait for the play ahead; return its outcome. Raises `Interrupted`."""
        if not self._is_proven or self._number == 1:
            self._begun.add(job.name)
            outcome = self._play_alone(job)
            self._is_proven = self._is_proven or outcome.verdict is Verdict.PASS
            return outcome
        self._open()
        held_until = 0.0
        while True:
            with self._changed:
                play = self._plays.get(job.name)
                if play is not None and play.is_done and self._is_right(play):
                    del self._plays[job.name]
                    return _outcome_of(play)
                unplanned = play is None and job.name in self._begun
                is_wrong = play is not None and play.is_wrong
                if is_wrong and not held_until and self._confirms_ahead:
                    held_until = time.monotonic() + MAX_HELD_SECONDS
                is_held = is_wrong and self._busy > 0 and time.monotonic() < held_until
                self._requested = [] if play is not None or unplanned else [job]
                self._changed.notify_all()
                news = self._news = Future()
            if unplanned or (is_wrong and not is_held):
                self._pause()
                try:
                    if play is None:
                        return self._play_alone(job)
                    self._confirm(play)
                    for other_play in list(self._plays.values()) if self._confirms_ahead else ():
                        self._confirm(other_play)
                finally:
                    self._resume()
            else:
                self._interruption.wait(news)

    @property
    def number(self) -> int:
        """Return the number of lanes; the default depends on how long the server took to start."""
        return self._number or lanes_by_default(self.first.start_seconds)

    def stop(self) -> None:
        """Begin nothing more, cancel all plays, and wait until the lanes have ended."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for lane in self._lanes:
            lane.waits.cancel()
        for lane in self._lanes:
            if lane.thread is not None:
                lane.thread.join()

    # --- on the thread of the run -----------------------------------------------------------------

    def _open(self) -> None:
        """Open the lanes, which then play ahead."""
        if self._lanes[0].thread is not None:
            return
        self._number = self.number
        for number in range(2, self._number + 1):
            waits = LaneWaits(self._interruption)
            self._lanes.append(_Lane(self._open_session(number, waits), waits))
        for lane in self._lanes:
            lane.thread = threading.Thread(target=self._work, args=(lane,), daemon=True)
            lane.thread.start()

    def _pause(self) -> None:
        """Let the lanes finish their plays without beginning others, and wait for that."""
        with self._changed:
            self._paused = True
        while True:
            with self._changed:
                news = self._news = Future()
                if not self._busy:
                    return
            self._interruption.wait(news)

    def _resume(self) -> None:
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    def _is_right(self, play: _Play) -> bool:
        # Its failures may have been confirmed in the meantime.
        play.is_wrong = play.is_wrong and not self._is_settled(play.outcome)
        return not play.is_wrong

    def _confirm(self, play: _Play) -> None:
        if not self._is_right(play):
            self.replayed += 1
            play.error = None
            play.outcome = self._play_alone(play.job, play.outcome)
            play.is_wrong = False

    def _play_alone(self, job: Job, earlier: Outcome | None = None) -> Outcome:
        outcome = job.play(self.first, True, earlier)
        self._broken_alone.update(broken_rules(outcome))
        if _is_inferred_absence(outcome):
            self._absent_alone.update(outcome.missing)
        self._note_shown(job, outcome)
        return outcome

    def _note_shown(self, job: Job, outcome: Outcome) -> None:
        if outcome.verdict is Verdict.PASS:
            self._shown_needs.update(job.needs)

    def _is_settled(self, outcome: Outcome | None) -> bool:
        if outcome is None:
            return False
        is_vain = isinstance(outcome, ScenarioOutcome) and self._never_came(outcome.awaited)
        plays = 1 if is_vain else PLAYS_TO_CONFIRM
        confirmed = {rule for rule, n in self._broken_alone.items() if n >= plays}
        absent = {need for need, n in self._absent_alone.items() if n >= PLAYS_TO_CONFIRM}
        absent -= self._shown_needs
        return is_settled(outcome, confirmed, absent, never_comes=is_vain)

    # --- on the threads of lanes ------------------------------------------------------------------

    def _work(self, lane: _Lane) -> None:
        while True:
            with self._changed:
                play = self._next(lane)
                while play is None and not self._stopped:
                    self._changed.wait()
                    play = self._next(lane)
                if play is None:
                    return
                self._busy += 1
            try:
                play.outcome = play.job.play(lane.session, False, None)
            except Interrupted:
                self._finish_play()
                return
            except BaseException as error:
                play.error = error
            with self._changed:
                if play.outcome is not None:
                    self._note_shown(play.job, play.outcome)
                play.is_wrong = not self._is_settled(play.outcome)
                play.is_done = True
            self._finish_play()
            if lane is not self._lanes[0] and _could_not_start(play.outcome):
                return

    def _next(self, lane: _Lane) -> _Play | None:
        """Begin the lane's next job: one with its settings, else with settings of no other lane."""
        if self._paused or self._stopped:
            return None
        taken_settings = {
            other.settings for other in self._lanes if other is not lane and other.settings
        }
        coming = (*self._requested, *self._upcoming())
        waiting = [job for job in coming if job.name not in self._begun]
        matching = (
            snapshot for snapshot in waiting if lane.settings and snapshot.settings == lane.settings
        )
        free = (snapshot for snapshot in waiting if snapshot.settings not in taken_settings)
        job = next(matching, None) or next(free, None) or next(iter(waiting), None)
        if job is None:
            return None
        lane.settings = job.settings
        self._begun.add(job.name)
        play = self._plays[job.name] = _Play(job)
        return play

    def _finish_play(self) -> None:
        with self._changed:
            self._busy -= 1
            if not self._news.done():
                self._news.set_result(None)


def lanes_by_default(start_seconds: float, cores: int | None = None) -> int:
    """Return how many lanes keep the processors busy, given the server's start time in seconds."""
    cores = cores or os.cpu_count() or 1
    lanes = round((2 * cores + 1) * max(1.0, start_seconds / USUAL_START_SECONDS))
    return min(lanes, MAX_LANES_PER_CORE * cores)


def is_settled(
    outcome: Outcome,
    confirmed: Collection[str] = (),
    absent: Collection[str] = (),
    *,
    never_comes: bool = False,
) -> bool:
    """Return whether nothing failed that other lanes could have caused.

    The rules in `confirmed` are known to be broken, the capabilities in `absent` not to be offered;
    with `never_comes` the awaited message is known never to arrive.
    """
    if isinstance(outcome, RaceOutcome):
        return not outcome.findings and all(
            is_settled(placement, confirmed, absent) for placement in outcome.placements
        )
    if outcome.slow_limits:
        return False
    is_known_absence = bool(outcome.missing) and set(outcome.missing) <= set(absent)
    if _is_inferred_absence(outcome) and not is_known_absence:
        return never_comes  # The awaited message may only have been late.
    wrong = {
        finding.id
        for finding in outcome.findings
        if finding.counts or finding.id.startswith("setup.")
    }
    if wrong - ({TIMEOUT_FINDING} if never_comes else set[str]()):
        return False
    if outcome.verdict is Verdict.FAIL and not wrong:
        return False
    if any(row.verdict is Verdict.ERROR for row in outcome.rows):
        return False
    return broken_rules(outcome) <= set(confirmed)


def _is_inferred_absence(outcome: Outcome) -> bool:
    """Return whether a play that broke off made a scenario NOT_APPLICABLE."""
    return (
        isinstance(outcome, ScenarioOutcome)
        and outcome.verdict is Verdict.NOT_APPLICABLE
        and bool(outcome.trace)
        and not outcome.played
    )


def broken_rules(outcome: Outcome) -> set[str]:
    """Return the ids of the rules that an outcome shows to be broken."""
    if isinstance(outcome, RaceOutcome):
        return {rule for placement in outcome.placements for rule in broken_rules(placement)}
    return {
        row.rule
        for row in outcome.rows
        if row.verdict is Verdict.FAIL and row.level is not Level.INFO
    }


def _could_not_start(outcome: Outcome | None) -> bool:
    return outcome is not None and any(
        finding.id in ("setup.not-started", "setup.no-handshake") for finding in outcome.findings
    )


def _outcome_of(play: _Play) -> Outcome:
    if play.error is not None:
        raise play.error
    if play.outcome is None:
        raise RuntimeError(f"{play.job.name}: a lane gave no outcome")
    return play.outcome
