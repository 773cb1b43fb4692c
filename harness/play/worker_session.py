"""Session of one worker: plays, judges and repeats each scenario that it is given.

Its facts about the server are shared with other lanes (`knowledge`).
"""

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.client.target.profile import Profile
from harness.client.target.run_folders import keep_trace
from harness.judge.ledger.record import record_trace
from harness.judge.verdict import Level, Verdict
from harness.play.bench import Bench
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
from harness.play.play_limits import play_repeatedly, retry_failed, unplayed_race, unplayed_scenario
from harness.play.races import Race, RaceContext
from harness.play.repeats import Attempt, Repeats, failures
from harness.play.run import Run
from harness.play.session.answer_times import answer_seconds
from harness.play.session.first_turn import Hopeless, hopeless_finding, plain_turn, silence_of
from harness.play.session.repeated_timeouts import awaited_variants, fell_silent, traits_of
from harness.play.session.server_name import server_name
from harness.play.session.servers import SetupFailed
from harness.play.trouble import describe_trouble
from harness.play.unavailable_capabilities import explain_lack, unplaced_outcome, withheld_outcome
from harness.report.results.baseline import mark_known_finding
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome
from harness.report.results.server_starts import ServerStart
from harness.scenario.exec_expect import session_results
from harness.scenario.loader import Loaded
from harness.scenario.model import Action
from harness.scenario.race_id import RaceId
from harness.scenario.steps.context import FailureKind
from harness.trace.marks import SessionReport, Setup
from harness.trace.store import save
from harness.trace.surfaces import EXEC, SDK, SESSION, scenario_of
from harness.trace.time_limits import TimeLimit
from harness.trace.trace import Trace
from harness.trace.views import conversation_of


@dataclass
class WorkerSession:
    """A worker's session. `close` ends everything that it started.

    Without `probes` each scenario is played to find out whether it applies. A signal that arrives
    at `interruption` ends the current conversation, and no other begins. Sessions that play the
    same server at once share `knowledge`.
    """

    config: Config
    worker: str = "main"
    findings: list[Finding] = field(default_factory=list[Finding])
    starts: list[ServerStart] = field(default_factory=list[ServerStart])
    probes: bool = True
    interruption: Waiter | None = None
    knowledge: Knowledge | None = None

    start_seconds: float = field(default=0.0, init=False)
    """Seconds that the server took to start and to shake hands, 0 before its first start."""

    answer_seconds: float = field(default=0.0, init=False)
    """Median seconds of the server's answers in the first scenario that had any."""

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
        """Play and judge one scenario, as often as the options say.

        An exception in the harness gives the verdict ERROR. Without `confirms` a failure is not
        repeated: the caller plays the scenario again, and passes that failure as `earlier`.
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
                play_repeatedly(lambda: self._play_once(loaded), bounds, strict=strict, level=level)
            )
        first = self._play_once(loaded, confirms=confirms, earlier=earlier)
        if not bounds.retries or not confirms:
            return first
        self._retrying = True
        try:
            fresh = lambda: self._play_on_fresh(loaded)  # noqa: E731
            return self._apply_baseline(
                retry_failed(first, fresh, bounds, strict=strict, level=level)
            )
        finally:
            self._retrying = False

    def _play_on_fresh(self, loaded: Loaded) -> ScenarioOutcome:
        self._thread.retire()
        return self._play_once(loaded)

    def _apply_baseline(self, outcome: ScenarioOutcome) -> ScenarioOutcome:
        entries = self.config.entries
        outcome.findings = [
            finding if finding.known else mark_known_finding(finding, outcome.id, entries)
            for finding in outcome.findings
        ]
        return outcome

    def _play_once(
        self, loaded: Loaded, *, confirms: bool = True, earlier: ScenarioOutcome | None = None
    ) -> ScenarioOutcome:
        if earlier is not None:
            self._thread.retire()
        try:
            outcome = self._play_in_time(loaded, confirms=confirms, earlier=earlier)
        except Exception as error:
            outcome = ScenarioOutcome(
                id=loaded.id,
                path=str(loaded.path),
                title=loaded.scenario.title,
                verdict=Verdict.ERROR,
                reason=describe_trouble(error, self.config.base),
            )
        outcome.before, self._played_before = self._played_before, []
        return outcome

    def _play_in_time(
        self, loaded: Loaded, *, confirms: bool, earlier: ScenarioOutcome | None
    ) -> ScenarioOutcome:
        """Play a scenario, once more if it took longer than it may: only a time alone counts.

        So a time over its limit was measured twice, at last alone on a fresh process.
        """
        outcome = self._play(loaded, confirms=confirms, earlier=earlier)
        slow_before = earlier.slow_limits if earlier else frozenset[TimeLimit]()
        while confirms and outcome.slow_limits - slow_before:
            slow_before |= outcome.slow_limits
            self._thread.retire()
            outcome = self._play(loaded, confirms=confirms, earlier=outcome)
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
            # Another transport would play it, so baseline entries about it are not checked here.
            outcome.played = LINE_FRAMING not in missing
            return outcome
        unplaced = unplaced_outcome(loaded, self.config.profile)
        if unplaced is not None:
            return unplaced
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
        self.answer_seconds = self.answer_seconds or answer_seconds(run.trace)
        if {EXEC, SDK} & {*loaded.scenario.surfaces} & {*self.config.surfaces}:
            self._note_session_turns(run)
        outcome = self._judge(run, loaded)
        outcome.server = server_name(run.trace)
        if not loaded.scenario.faults:  # Messages changed by faults are not the server's choice.
            outcome.record = record_trace(self.config.book, run.trace)
        self._store_trace(run.trace, outcome)
        if not loaded.scenario.faults:
            silences = self._knowledge.silences
            silences.note(loaded, traits, run, outcome, alone=confirms)
        repeats = self._retrying or self.config.plays.repeat > 1 or not confirms
        if not run.overflow and not repeats:  # A flood is no chance result, and takes long.
            self._repeat(loaded, outcome, run.served_before, earlier)
        return outcome

    def _run(self, loaded: Loaded, traits: frozenset[str]) -> Run:
        """Play a scenario, with a short bound for a message that probably never arrives.

        If it times out for any other reason, it is played again with the full bound.
        """
        silences = self._knowledge.silences
        suspicion = None if self.config.keep_going else silences.suspicion(traits)
        if suspicion is None:
            return self._thread.run(loaded)
        run = self._thread.run(loaded, suspicion.short_bound)
        run.is_hurried = True
        is_silent = run.unmet is not None and run.unmet.kind is FailureKind.TIMEOUT
        if (is_silent and suspicion.awaited_words in awaited_variants(run)) or (
            not is_silent and run.is_complete
        ):
            return run
        self._thread.retire()
        return self._thread.run(loaded)

    def _confirm_silences(self) -> None:
        """Play the last hurried scenario of each suspicion with the full bound; add a finding."""
        for suspicion in self._knowledge.silences.take_unconfirmed():
            try:
                self._thread.retire()
                run = self._thread.run(suspicion.hurried_scenarios[-1])
                is_silent = run.unmet is not None and run.unmet.kind is FailureKind.TIMEOUT
                suspicion.is_confirmed = is_silent and suspicion.awaited_words in awaited_variants(
                    run
                )
            except (SetupFailed, Interrupted):
                suspicion.is_confirmed = None
            self.findings.append(suspicion.finding())

    def _play_program(self, loaded: Loaded) -> ScenarioOutcome:
        """Play and judge one scenario on a surface other than the session."""
        finding = self._thread.bench.blocker_for(loaded)
        if finding is not None:
            return blocked_outcome(loaded, finding)
        try:
            missing = self._thread.missing_commands(loaded.scenario.needs) if self.probes else []
            if missing:
                return inapplicable_outcome(loaded, missing)
            if loaded.surface == EXEC:
                self._thread.bench.exec.session_turns[loaded.id] = self._session_turns(loaded)
            if loaded.surface == SDK:
                self._thread.bench.sdk.session_turns[loaded.id] = self._session_turns(loaded)
            run = self._thread.run(loaded)
        except SetupFailed as failed:
            return setup_outcome(loaded, failed, self.config.book, self.config.rules)
        config = self.config
        outcome = outcome_of(run, loaded, config.book, config.profile, config.entries, config.rules)
        outcome.record = record_trace(config.book, run.trace)
        self._store_trace(run.trace, outcome)
        return outcome

    def _session_turns(self, loaded: Loaded) -> list[SessionReport]:
        """Return the turns that the session reports for the same scenario, if this run plays both.

        The scenario is played on the session if that has not happened yet.
        """
        if SESSION not in self.config.surfaces or SESSION not in loaded.scenario.surfaces:
            return []
        name, turns = scenario_of(loaded.id), self._knowledge.session_turns
        if name not in turns:
            with contextlib.suppress(SetupFailed):
                self._note_session_turns(
                    self._thread.run(replace(loaded, id=name, surface=SESSION))
                )
        return turns.get(name, [])

    def _note_session_turns(self, run: Run) -> None:
        name = run.trace.header.scenario
        turns = session_results(run.cast, conversation_of(run.trace))
        self._knowledge.session_turns[name] = turns

    def _is_hopeless(self, run: Run) -> bool:
        """Return whether a plain turn times out; it is played after the first run that timed out.

        If so, the finding blocks further scenarios. False if they are blocked already, or with
        `keep_going`. Raises `SetupFailed` if no server can be started.
        """
        bench = self._thread.bench
        if bench.blocker is not None or self.config.keep_going:
            return False
        with self._knowledge.lock:
            plain_run = self._knowledge.first_turn.play_if_needed(run, self._thread.first_turn)
        if plain_run is not None and bench.blocker is not None:
            # A model that is never called explains the timeouts.
            self.findings += plain_run.findings
            return True
        if plain_run is None or not silence_of(plain_run):
            return False
        bench.blocker = hopeless_finding(plain_run, bench.bounds.step)
        self._knowledge.blocker = bench.blocker
        self.findings.append(bench.blocker)
        outcome = self._judge(plain_run, plain_turn())
        self._store_trace(plain_run.trace, outcome)
        self._played_before.append(outcome)
        return True

    def _blocker_for(self, loaded: Loaded) -> Finding | None:
        """Return the finding that makes playing this scenario pointless, if any."""
        bench = self._thread.bench
        bench.blocker = bench.blocker or self._knowledge.blocker
        return bench.blocker_for(loaded)

    def _missing_needs(self, loaded: Loaded) -> list[str]:
        """Return the needs that the target does not offer; [] if every plain turn fails."""
        with contextlib.suppress(Hopeless), self._knowledge.lock:
            return self._knowledge.prober.missing_needs(loaded, self._probe)
        return []

    def _probe(self, probe: Loaded) -> Run:
        """Play a probe; store its trace and findings. Raises `Hopeless` if no turn works."""
        if self._blocker_for(probe) is not None:
            raise Hopeless
        run = self._thread.run(probe)
        save(run.trace, self.trace_path(probe.id))
        if self._is_hopeless(run):
            raise Hopeless
        self.findings += run.findings
        return run

    def race(
        self, loaded: Loaded, action: Action, only: str = "", *, confirms: bool = True
    ) -> RaceOutcome:
        """Place an action at every position of a scenario, or only at the position `only`.

        `confirms` is as in `play`.
        """
        if self.config.plays.is_over:
            name, path = str(RaceId(loaded.id, action, only)), str(loaded.path)
            nothing = RaceOutcome(
                name, loaded.id, path, loaded.scenario.title, action, Verdict.NOT_EXERCISED
            )
            return unplayed_race(nothing, self.config.plays)
        try:
            return Race(loaded, action, self._race_context(confirms=confirms)).outcome(only)
        except Exception as error:
            return RaceOutcome(
                id=str(RaceId(loaded.id, action)),
                scenario=loaded.id,
                path=str(loaded.path),
                title=loaded.scenario.title,
                action=action,
                verdict=Verdict.ERROR,
                reason=describe_trouble(error, self.config.base),
            )

    def _race_context(self, *, confirms: bool) -> RaceContext:
        bench = self._thread.bench
        # The plain play has shown the capabilities; a play that an action cut short shows less.
        capabilities = [capability.id for capability in self.config.book.capabilities]
        profile = self.config.profile.model_copy(update={"capabilities": capabilities})

        def plainly(loaded: Loaded) -> ScenarioOutcome:
            plain = self._knowledge.plain_outcomes
            if loaded.id not in plain:
                plain[loaded.id] = self.play(loaded)
            return plain[loaded.id]

        return RaceContext(
            profile=self.config.profile,
            hygiene=bench.hygiene,
            last_exit=lambda: bench.servers.last_exit,
            play_plain=plainly,
            run=self._run,
            judge=lambda run, loaded: self._judge(run, loaded, profile),
            keep=lambda run, outcome: self._store_trace(run.trace, outcome),
            note=lambda loaded, traits, run, outcome: self._knowledge.silences.note(
                loaded, traits, run, outcome, alone=confirms
            ),
        )

    def _judge(self, run: Run, loaded: Loaded, profile: Profile | None = None) -> ScenarioOutcome:
        """Judge a run; end the process if something failed that is not known to be steady.

        A rule that is broken on every process is no reason to end one.
        """
        config = self.config
        profile = profile or config.profile
        offered = self._knowledge.prober.offered
        outcome = outcome_of(
            run, loaded, config.book, profile, config.entries, config.rules, offered
        )
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
        """Repeat a scenario that failed, and add findings about differences to its outcome."""
        judged = (Verdict.PASS, Verdict.KNOWN, Verdict.FAIL)
        failed = failures(outcome)
        if not failed or outcome.verdict not in judged:
            return
        if earlier is not None and failures(earlier) == failed:
            self._repeats.confirm(failed)
            return
        try:
            findings = self._repeats.repeat(loaded, Attempt(failed, before, fell_silent(outcome)))
        except SetupFailed as gone:
            # The failed set-up belongs to no scenario, so none would report it.
            self.findings.append(gone.finding)
            return
        entries = self.config.entries
        outcome.findings += [
            mark_known_finding(finding, loaded.id, entries) for finding in findings
        ]

    def _attempt(self, loaded: Loaded) -> Attempt:
        """Play a scenario once more, without storing its trace."""
        run = self._run(loaded, traits_of(loaded))
        outcome = self._judge(run, loaded)
        return Attempt(failures(outcome), run.served_before, fell_silent(outcome))

    def play_again(self, loaded: Loaded, *, fresh: bool) -> Trace | None:
        """Play a scenario once more; return its trace, which is not stored, or None if it failed.

        With `fresh` use a process that no other scenario has used. Raises `SetupFailed`.
        """
        if fresh:
            self._thread.retire()
        run = self._thread.run(loaded)
        verdict = self._judge(run, loaded).verdict
        return run.trace if verdict in (Verdict.PASS, Verdict.KNOWN) else None

    def trace_of(self, scenario: str) -> Trace | None:
        """Return the trace of this scenario if it was the last one stored, else None."""
        return self._last[1] if self._last is not None and self._last[0] == scenario else None

    def _store_trace(self, trace: Trace, outcome: ScenarioOutcome) -> None:
        """Store a trace, and set its path in the outcome."""
        self._last = (outcome.id, trace)
        path = self.trace_path(outcome.id)
        save(trace, path)
        self.note_trace(path, outcome)

    def note_trace(self, path: Path, outcome: ScenarioOutcome) -> None:
        """Set the path of a stored trace in its outcome, and keep the trace with the run."""
        outcome.trace = outcome.kept = str(path)
        if self.config.run:
            outcome.kept = str(keep_trace(self.config.base, self.config.run, path, outcome.id))

    def trace_path(self, scenario: str) -> Path:
        """Return the path of the trace of a scenario's last run on this target."""
        base = self.config.base / "traces" / self.config.profile.name
        return base / f"{scenario}.jsonl"

    def close(self) -> list[Finding]:
        """End the server and the model; return the findings that belong to no scenario.

        Before that, timeouts with a short bound are confirmed with the full bound.
        """
        self._confirm_silences()
        self._take_from(self._thread.close())
        return self.findings

    def take_results(self) -> tuple[list[Finding], list[ServerStart]]:
        """Return the findings outside scenarios and the starts of servers since the last call."""
        self._take_from(self._thread.opened_bench)
        results = self.findings, self.starts
        self.findings, self.starts = [], []
        return results

    def _take_from(self, bench: Bench | None) -> None:
        if bench is None:
            return
        self.findings += bench.hygiene.findings
        self.starts += bench.servers.starts
        bench.hygiene.findings.clear()
        bench.servers.starts.clear()


def _start_seconds(trace: Trace) -> float:
    """Return the seconds of the set-up at the beginning, 0 if the server was already running."""
    times = [mark.at for mark in trace.marks_of(Setup)]
    return times[1] - times[0] if len(times) > 1 and not trace.header.faults else 0.0
