"""One worker's session: what becomes of each scenario that it is given, from first to last.

What is learned of the server on the way is shared with other lanes (knowledge).
"""

import contextlib
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.client.target.place import keep_trace
from harness.client.target.profile import Profile
from harness.judge.ledger.record import recorded
from harness.judge.verdict import Level, Verdict
from harness.play.bench_thread import BenchThread
from harness.play.capability_evidence import LINE_FRAMING, undeclared_needs
from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption, Waiter
from harness.play.judging import (
    blocked_outcome,
    inapplicable_outcome,
    outcome_of,
    setup_outcome,
)
from harness.play.knowledge import Knowledge
from harness.play.plays import repeated, retried, unplayed_race, unplayed_scenario
from harness.play.races import RaceContext, Race
from harness.play.repeat import Attempt, Repeats, failures
from harness.play.run import Run
from harness.play.session.first_turn import Hopeless, hopeless, plain_turn, silence_of
from harness.play.session.server_name import server_name
from harness.play.session.servers import SetupFailed
from harness.play.session.silence import awaited_in, fell_silent, traits_of
from harness.play.withheld import explain_lack, withheld_outcome
from harness.report.results.baseline import known_finding
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome
from harness.report.results.starts import ServerStart
from harness.scenario.exec_expect import told_by_session
from harness.scenario.loader import Loaded
from harness.scenario.model import Action
from harness.scenario.race_id import RaceId
from harness.scenario.steps.context import UnmetKind
from harness.trace.marks import Setup, ToldBySession
from harness.trace.store import save
from harness.trace.surfaces import EXEC, SDK, SESSION, scenario_of
from harness.trace.trace import Trace
from harness.trace.views import conversation_of


@dataclass
class WorkerSession:
    """A worker's session. `close` ends everything that it started.

    Without `asks` every scenario is played to find out whether it applies. A signal that comes to
    `interruption` ends the conversation that is held, and none is begun after it. Sessions that
    play the same server at once share `knowledge`.
    """

    config: Config
    worker: str = "main"
    findings: list[Finding] = field(default_factory=list[Finding])
    starts: list[ServerStart] = field(default_factory=list[ServerStart])
    probes: bool = True
    interruption: Waiter | None = None
    knowledge: Knowledge | None = None

    start_seconds: float = field(default=0.0, init=False)
    """How long the server took to start and to shake hands, 0 before it did."""

    def __post_init__(self) -> None:
        interruption = self.interruption or Interruption(self.config.base)
        self._thread = BenchThread(self.config, self.worker, interruption)
        level = Level(self.config.profile.hygiene)
        self._knowledge = self.knowledge or Knowledge(self.config.profile)
        confirmed = self._knowledge.confirmed_failures
        self._repeats = Repeats(self._attempt, self._thread.retire, level, confirmed)
        self._played_before: list[ScenarioOutcome] = []
        self._last: tuple[str, Trace] | None = None
        self._retrying = False

    def play(
        self, loaded: Loaded, *, confirms: bool = True, earlier: ScenarioOutcome | None = None
    ) -> ScenarioOutcome:
        """Play and judge one scenario, as often as is wanted.

        Whatever breaks inside the harness is its ERROR. Without `confirms` a failure is not looked
        into: the caller plays the scenario again, and gives that failure as `earlier`.
        """
        bounds, strict = self.config.plays, self.config.strict
        level = Level(self.config.profile.hygiene)
        if bounds.is_over:
            nothing = ScenarioOutcome(
                loaded.id, str(loaded.path), loaded.scenario.title, Verdict.NOT_EXERCISED
            )
            return unplayed_scenario(nothing, bounds)
        if bounds.repeat > 1:
            return self._apply_baseline(
                repeated(lambda: self._play_once(loaded), bounds, strict=strict, level=level)
            )
        first = self._play_once(loaded, confirms=confirms, earlier=earlier)
        if not bounds.retries or not confirms:
            return first
        self._retrying = True
        try:
            fresh = lambda: self._play_on_fresh(loaded)  # noqa: E731
            return self._apply_baseline(retried(first, fresh, bounds, strict=strict, level=level))
        finally:
            self._retrying = False

    def _play_on_fresh(self, loaded: Loaded) -> ScenarioOutcome:
        self._thread.retire()
        return self._play_once(loaded)

    def _apply_baseline(self, outcome: ScenarioOutcome) -> ScenarioOutcome:
        entries = self.config.entries
        outcome.findings = [
            one if one.known else known_finding(one, outcome.id, entries)
            for one in outcome.findings
        ]
        return outcome

    def _play_once(
        self, loaded: Loaded, *, confirms: bool = True, earlier: ScenarioOutcome | None = None
    ) -> ScenarioOutcome:
        if earlier is not None:
            self._thread.retire()
        try:
            outcome = self._play(loaded, confirms=confirms, earlier=earlier)
        except Exception:
            outcome = ScenarioOutcome(
                id=loaded.id,
                path=str(loaded.path),
                title=loaded.scenario.title,
                verdict=Verdict.ERROR,
                reason=f"the harness broke: {traceback.format_exc(limit=-6)}",
            )
        outcome.before, self._played_before = self._played_before, []
        return outcome

    def _play(
        self, loaded: Loaded, *, confirms: bool, earlier: ScenarioOutcome | None
    ) -> ScenarioOutcome:
        withheld = withheld_outcome(loaded, self.config.profile, self.config.lacks)
        if withheld is not None:
            return withheld
        missing = undeclared_needs(loaded, self.config.profile)
        if missing:
            outcome = inapplicable_outcome(loaded, missing)
            # Reached in another way it would be played: an entry about it is not checked here.
            outcome.played = LINE_FRAMING not in missing
            return outcome
        if loaded.surface != SESSION:
            return self._play_program(loaded)
        try:
            finding = self._blocker_for(loaded)
            if finding is None and self.probes:
                missing = self._missing_needs(loaded)
                finding = self._blocker_for(loaded)
            if finding is not None:
                return blocked_outcome(loaded, finding)
            if missing:
                return inapplicable_outcome(loaded, missing)
            traits = traits_of(loaded)
            run = self._run(loaded, traits)
            finding = self._blocker_for(loaded) if self._is_hopeless(run) else None
            if finding is not None:
                return blocked_outcome(loaded, finding)
        except SetupFailed as failed:
            outcome = setup_outcome(loaded, failed, self.config.book, self.config.rules)
            self._store_trace(failed.trace, outcome)
            return outcome
        self.start_seconds = self.start_seconds or _start_seconds(run.trace)
        if {EXEC, SDK} & {*loaded.scenario.surfaces} & {*self.config.surfaces}:
            self._note_session_turns(run)
        outcome = self._judge(run, loaded)
        outcome.server = server_name(run.trace)
        if not loaded.scenario.faults:  # What they made of its messages no server has chosen.
            outcome.record = recorded(self.config.book, run.trace)
        self._store_trace(run.trace, outcome)
        if not loaded.scenario.faults:
            silences = self._knowledge.silences
            silences.note(loaded, traits, run, outcome, alone=confirms)
        repeats = self._retrying or self.config.plays.repeat > 1 or not confirms
        if not run.overflow and not repeats:  # A flood is no chance, and takes long.
            self._repeat(loaded, outcome, run.served_before, earlier)
        return outcome

    def _run(self, loaded: Loaded, traits: frozenset[str]) -> Run:
        """Play a scenario; it waits a short bound for what probably never comes.

        What else it waits for in vain is waited for again, with the full bound.
        """
        silences = self._knowledge.silences
        suspicion = None if self.config.keep_going else silences.suspicion(traits)
        if suspicion is None:
            return self._thread.run(loaded)
        run = self._thread.run(loaded, suspicion.short)
        run.is_hurried = True
        is_silent = run.unmet is not None and run.unmet.kind is UnmetKind.TIMEOUT
        if (is_silent and suspicion.awaited in awaited_in(run)) or (not is_silent and run.is_complete):
            return run
        self._thread.retire()
        return self._thread.run(loaded)

    def _confirm_silences(self) -> None:
        """Play one scenario of those that waited shortly, for each cause, with the full bound."""
        for suspicion in self._knowledge.silences.take_hurrying():
            try:
                self._thread.retire()
                run = self._thread.run(suspicion.hurried[-1])
                is_silent = run.unmet is not None and run.unmet.kind is UnmetKind.TIMEOUT
                suspicion.confirmed = is_silent and suspicion.awaited in awaited_in(run)
            except (SetupFailed, Interrupted):
                suspicion.confirmed = None
            self.findings.append(suspicion.finding())

    def _play_program(self, loaded: Loaded) -> ScenarioOutcome:
        """Play and judge one scenario on a surface beside the session's: no process outlives it."""
        finding = self._thread.bench.blocker_for(loaded)
        if finding is not None:
            return blocked_outcome(loaded, finding)
        try:
            missing = self._thread.missing_commands(loaded.scenario.needs) if self.probes else []
            if missing:
                return inapplicable_outcome(loaded, missing)
            if loaded.surface == EXEC:
                self._thread.bench.exec.told[loaded.id] = self._session_turns(loaded)
            if loaded.surface == SDK:
                self._thread.bench.sdk.told[loaded.id] = self._session_turns(loaded)
            run = self._thread.run(loaded)
        except SetupFailed as failed:
            return setup_outcome(loaded, failed, self.config.book, self.config.rules)
        config = self.config
        outcome = outcome_of(run, loaded, config.book, config.profile, config.entries, config.rules)
        outcome.record = recorded(config.book, run.trace)
        self._store_trace(run.trace, outcome)
        return outcome

    def _session_turns(self, loaded: Loaded) -> list[ToldBySession]:
        """Return what the session tells of the same scenario, if this run plays both.

        It may have to be played for that.
        """
        if SESSION not in self.config.surfaces or SESSION not in loaded.scenario.surfaces:
            return []
        name, told = scenario_of(loaded.id), self._knowledge.session_turns
        if name not in told:
            with contextlib.suppress(SetupFailed):
                self._note_session_turns(self._thread.run(replace(loaded, id=name, surface=SESSION)))
        return told.get(name, [])

    def _note_session_turns(self, run: Run) -> None:
        name = run.trace.header.scenario
        told = told_by_session(run.cast, conversation_of(run.trace))
        self._knowledge.session_turns[name] = told

    def _is_hopeless(self, run: Run) -> bool:
        """After a run: whether it turns out that no plain turn can be had. Raises `SetupFailed`."""
        bench = self._thread.bench
        if bench.blocker is not None or self.config.keep_going:
            return False
        with self._knowledge.lock:
            shown = self._knowledge.first_turn.after(run, self._thread.first_turn)
        if shown is not None and bench.blocker is not None:
            # That the model is never called says more than the silence it leads to.
            self.findings += shown.findings
            return True
        if shown is None or not silence_of(shown):
            return False
        bench.blocker = hopeless(shown, bench.bounds.step)
        self._knowledge.blocker = bench.blocker
        self.findings.append(bench.blocker)
        outcome = self._judge(shown, plain_turn())
        self._store_trace(shown.trace, outcome)
        self._played_before.append(outcome)
        return True

    def _blocker_for(self, loaded: Loaded) -> Finding | None:
        """The finding because of which this scenario need not be tried, if any."""
        bench = self._thread.bench
        bench.blocker = bench.blocker or self._knowledge.blocker
        return bench.blocker_for(loaded)

    def _missing_needs(self, loaded: Loaded) -> list[str]:
        """The needs that the target does not offer; none where it answers nothing at all."""
        with contextlib.suppress(Hopeless), self._knowledge.lock:
            return self._knowledge.prober.lacking(loaded, self._probe)
        return []

    def _probe(self, probe: Loaded) -> Run:
        """Play a probe; its trace is kept, and what keeps the server from being used is told."""
        run = self._thread.run(probe)
        save(run.trace, self.trace_path(probe.id))
        if self._is_hopeless(run):
            raise Hopeless
        self.findings += run.findings
        return run

    def race(
        self, loaded: Loaded, action: Action, only: str = "", *, confirms: bool = True
    ) -> RaceOutcome:
        """Place an action at every position of a scenario, or at the one of the name `only`.

        `confirms` as of `play`.
        """
        if self.config.plays.is_over:
            name, path = str(RaceId(loaded.id, action, only)), str(loaded.path)
            nothing = RaceOutcome(
                name, loaded.id, path, loaded.scenario.title, action, Verdict.NOT_EXERCISED
            )
            return unplayed_race(nothing, self.config.plays)
        try:
            return Race(loaded, action, self._race_context(confirms=confirms)).outcome(only)
        except Exception:
            return RaceOutcome(
                id=str(RaceId(loaded.id, action)),
                scenario=loaded.id,
                path=str(loaded.path),
                title=loaded.scenario.title,
                action=action,
                verdict=Verdict.ERROR,
                reason=f"the harness broke: {traceback.format_exc(limit=-6)}",
            )

    def _race_context(self, *, confirms: bool) -> RaceContext:
        bench = self._thread.bench
        # What was probed is known from the plain play; one that an action cut short shows less.
        known = [one.id for one in self.config.book.capabilities]
        judging = self.config.profile.model_copy(update={"capabilities": known})

        def plainly(loaded: Loaded) -> ScenarioOutcome:
            plain = self._knowledge.plain_outcomes
            if loaded.id not in plain:
                plain[loaded.id] = self.play(loaded)
            return plain[loaded.id]

        return RaceContext(
            profile=self.config.profile,
            hygiene=bench.hygiene,
            last_exit=lambda: bench.servers.last_ending,
            play_plain=plainly,
            run=self._run,
            judge=lambda run, loaded: self._judge(run, loaded, judging),
            keep=lambda run, outcome: self._store_trace(run.trace, outcome),
            note=lambda loaded, traits, run, outcome: self._knowledge.silences.note(
                loaded, traits, run, outcome, alone=confirms
            ),
        )

    def _judge(self, run: Run, loaded: Loaded, profile: Profile | None = None) -> ScenarioOutcome:
        """Judge a run; a process on which something new failed is not used for the next one.

        Of a rule that is broken on every process none is to blame.
        """
        config = self.config
        profile = profile or config.profile
        outcome = outcome_of(run, loaded, config.book, profile, config.entries, config.rules)
        explain_lack(outcome, run, loaded, config.lacks)
        if outcome.verdict is Verdict.ERROR or not self._repeats.is_steady(outcome):
            self._thread.retire()
        return outcome

    def _repeat(
        self,
        loaded: Loaded,
        outcome: ScenarioOutcome,
        before: tuple[Loaded, ...],
        earlier: ScenarioOutcome | None,
    ) -> None:
        """Look again at a scenario that failed, and say in its outcome what that showed."""
        judged = (Verdict.PASS, Verdict.KNOWN, Verdict.FAIL)
        failed = failures(outcome)
        if not failed or outcome.verdict not in judged:
            return
        if earlier is not None and failures(earlier) == failed:
            self._repeats.confirm(failed)
            return
        try:
            found = self._repeats.repeat(loaded, Attempt(failed, before, fell_silent(outcome)))
        except SetupFailed as gone:
            # No scenario begins with it, so that none would report it.
            self.findings.append(gone.finding)
            return
        entries = self.config.entries
        outcome.findings += [known_finding(finding, loaded.id, entries) for finding in found]

    def _attempt(self, loaded: Loaded) -> Attempt:
        """Play a scenario once more; its trace is not kept."""
        run = self._run(loaded, traits_of(loaded))
        outcome = self._judge(run, loaded)
        return Attempt(failures(outcome), run.served_before, fell_silent(outcome))

    def play_again(self, loaded: Loaded, *, fresh: bool) -> Trace | None:
        """Play a scenario once more; its trace, which is not kept, or None if it failed.

        With `fresh` on a process that no other scenario has used. Raises `SetupFailed`.
        """
        if fresh:
            self._thread.retire()
        run = self._thread.run(loaded)
        verdict = self._judge(run, loaded).verdict
        return run.trace if verdict in (Verdict.PASS, Verdict.KNOWN) else None

    def trace_of(self, scenario: str) -> Trace | None:
        """The trace of the scenario that was played last, None where it was another one."""
        return self._last[1] if self._last is not None and self._last[0] == scenario else None

    def _store_trace(self, trace: Trace, outcome: ScenarioOutcome) -> None:
        """Store a trace, and note in the outcome where."""
        self._last = (outcome.id, trace)
        path = self.trace_path(outcome.id)
        save(trace, path)
        outcome.trace = outcome.kept = str(path)
        if self.config.run:
            outcome.kept = str(keep_trace(self.config.base, self.config.run, path, outcome.id))

    def trace_path(self, scenario: str) -> Path:
        """Return the path of the trace of a scenario's last run on this target."""
        base = self.config.base / "traces" / self.config.profile.name
        return base / f"{scenario}.jsonl"

    def close(self) -> list[Finding]:
        """End the server and the model; gives the findings that no scenario owns.

        Before that, what was waited for shortly is waited for once more with the full bound.
        """
        self._confirm_silences()
        bench = self._thread.close()
        if bench is not None:
            self.findings += bench.hygiene.findings
            self.starts += bench.servers.starts
        return self.findings


def _start_seconds(trace: Trace) -> float:
    """Return how long the set-up at the beginning took, 0 where the server was there before."""
    times = [mark.at for mark in trace.marks_of(Setup)]
    return times[1] - times[0] if len(times) > 1 and not trace.header.faults else 0.0
