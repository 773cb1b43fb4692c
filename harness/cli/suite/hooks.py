"""The pytest hooks of a run with a target.

A worker judges its own traces; only the controller merges, so that any number of workers gives the
same verdicts.
"""

import argparse
import contextlib
import gc
import os
import shlex
import time
from collections.abc import Generator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from harness.cli.suite.baseline_update import BaselineUpdate
from harness.cli.suite.collection import Collecting, Playable, read_arguments
from harness.cli.suite.failures import Failing
from harness.cli.suite.fuzz_items import Fuzzing
from harness.cli.suite.github import GithubStep, in_actions
from harness.cli.suite.interruption import Stopping
from harness.cli.suite.items import ScenarioFile, ScenarioItem
from harness.cli.suite.junit import describe_run, name_rule, name_scenario
from harness.cli.suite.lane_jobs import Laning, lanes_of
from harness.cli.suite.on_cluster import open_run_cluster
from harness.cli.suite.own_trouble import check_worker_texts
from harness.cli.suite.report_files import (
    STATUS_NOT_WRITTEN,
    ReportFiles,
    check_report_files,
)
from harness.cli.suite.reporting import Synthetic, emit, print_summary
from harness.cli.suite.resuming import Resuming
from harness.cli.suite.rule_lines import RuleLines
from harness.cli.suite.run_history import RunHistory
from harness.cli.suite.sharding import Sharding
from harness.cli.suite.snapshots import Snapshots
from harness.client.target.confine.entering import enter_confined_run
from harness.client.target.host import Lack
from harness.client.target.run_folders import remove_dead_runs
from harness.client.target.shell_syntax import split_command
from harness.errors import UsageError
from harness.play.config import configure
from harness.play.play_limits import read_play_limits
from harness.play.worker_session import WorkerSession
from harness.report.json_form import DISTRIBUTION
from harness.report.markdown import markdown
from harness.report.progress.log import run_name
from harness.report.results import expiry
from harness.report.results.baseline import mark_known_finding
from harness.report.results.baseline_globs import check_globs
from harness.report.results.merge import merge
from harness.report.results.outcome import (
    Finding,
    RaceOutcome,
    ScenarioOutcome,
    finding_from_plain,
    finding_to_plain,
    seconds_of,
)
from harness.report.results.rejudge import apply_entries, apply_entries_to_race
from harness.report.results.report import Report
from harness.report.results.rerun_command import Programs
from harness.report.results.server_starts import ServerStart, StartReason
from harness.report.results.users_scenarios import user_scenarios_of
from harness.report.scenario_story import Stories
from harness.report.shards.values import Shard
from harness.scenario.bundled import bundled_ids_on
from harness.scenario.loader import Loaded
from harness.trace.surfaces import SESSION, surface_of

ATTACHED, RACE, LACKS = "harness_outcome", "harness_race", "harness_lacks"
STARTS, RELEASE = "harness_starts", "harness_release"
RUN, DEADLINE, FUZZED = "harness_run_name", "harness_deadline", "harness_fuzz"
CONFINED, SHARD = "harness_confined", "harness_shard"
STATUS_INCOMPLETE = 6
"""The exit status of a run that ran out of time, with nothing wrong in what was played."""


class PytestPlugin:
    """Pytest plugin of one run with a target, on the controller and on each worker.

    `option` holds the options of the run, those of the harness by their short names.
    """

    def __init__(self, config: pytest.Config, option: argparse.Namespace) -> None:
        for command in (option.server_cmd, option.agent_cmd, option.sdk_cmd):
            if command is not None:
                split_command(command)
        worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        # The controller has checked once for all workers what this machine lacks.
        lacks = None if worker is None else [Lack(**lack) for lack in worker[LACKS]]
        arguments = read_arguments(config)
        self._sharding = Sharding(option) if option.shard else None
        if self._sharding is not None:
            config.pluginmanager.register(self._sharding, "harness-sharding")
        self._update = BaselineUpdate(option) if option.update_baseline else None
        # Workers are started from the network of the controller.
        confined, self._confinement_note = False if worker is None else worker[CONFINED], ""
        if worker is None and (option.confine or option.confine_auto):
            confined, self._confinement_note = enter_confined_run(is_required=option.confine)
        self.config = configure(
            target="spec" if option.target is None else option.target,
            server_cmd=option.server_cmd or "",
            agent_cmd=option.agent_cmd or "",
            sdk_cmd=option.sdk_cmd or "",
            # A file that is to be written may not exist yet.
            baseline="" if self._update is not None and self._update.begins else option.baseline,
            rule=",".join([*([option.rule] if option.rule else []), *arguments.rules]),
            suite=option.suite,
            require=option.require,
            scale=option.timeout_scale,
            strict=option.harness_strict,
            keep_going=option.keep_going,
            lacks=lacks,
            release=None if worker is None else worker[RELEASE],
            run=run_name() if worker is None else worker[RUN],
            plays=read_play_limits(
                option.repeat,
                option.retries,
                option.max_time,
                None if worker is None else worker[DEADLINE],
            ),
            confined=confined,
        )
        self._history = RunHistory(config, self.config, is_worker=worker is not None)
        self.config = self._history.config
        self._named_paths = arguments.named_paths()
        check_globs(self.config.entry_scenarios, self._named_paths)
        if worker is None:
            check_worker_texts(config)
            check_report_files(config)
        self._pytest = config
        self._is_worker = worker is not None
        stop = self._stopping = Stopping(config, self.config.base)
        config.pluginmanager.register(stop, "harness-stopping")
        self._resuming = Resuming(option, self.config)
        stop.cluster = open_run_cluster(config, option, self.config)
        self._laning = Laning(
            config,
            self.config,
            self._stopping.interruption,
            worker=worker["workerid"] if worker else "main",
            lanes=lanes_of(option, self.config.profile.lanes, is_worker=worker is not None),
            play=self._play,
            resuming=self._resuming,
            cluster=stop.cluster,
        )
        target = self.config.option or self.config.profile.name
        profile = self.config.profile
        commands = (profile.command, profile.exec.command, profile.sdk.command)
        programs = Programs(
            target,
            *map(shlex.join, commands),
            confined=profile.is_confined,
            required=option.require,
        )
        self._option, self._required = option, str(option.require)
        self._stories = Stories(programs)
        self._outcomes: dict[str, ScenarioOutcome] = {}
        self._races: dict[str, RaceOutcome] = {}
        self._loose: list[Finding] = []
        self._starts: list[ServerStart] = []
        self._failing = Failing(config, strict=self.config.strict)
        self._files = ReportFiles()
        self._lines = RuleLines(config)
        config.pluginmanager.register(self._lines, "harness-rule-lines")
        self.report: Report | None = None
        self._started, self._begun = datetime.now(UTC), time.monotonic()
        self._snapshots = (
            Snapshots(
                option, self.config, everything=arguments.plays_everything and not arguments.rules
            )
            if option.snapshots
            else None
        )
        if self._snapshots is not None:
            config.pluginmanager.register(self._snapshots, "harness-snapshots")
        self._fuzzing = Fuzzing(config, option, self.config, stop.interruption, stop.guard)
        config.pluginmanager.register(self._fuzzing, "harness-fuzzing")
        self.collecting = Collecting(
            config,
            option,
            self.config,
            arguments,
            self._failing,
            self._furnish,
            lambda: bool(self._stopping.cause),
            self._sharding,
        )
        github = GithubStep(config, lambda: self.report, self._page)
        if worker is None and option.harness_run and in_actions(os.environ):
            config.pluginmanager.register(github, "harness-github")

    def _page(self, report: Report) -> str:
        return markdown(report, self.config.book, version(DISTRIBUTION))

    def _play(
        self,
        session: WorkerSession,
        loaded: Loaded,
        confirms: bool,
        earlier: ScenarioOutcome | None,
    ) -> ScenarioOutcome:
        play = session.play if self._snapshots is None else partial(self._snapshots.play, session)
        return play(loaded, confirms=confirms, earlier=earlier)

    def _furnish(self, file: ScenarioFile) -> None:
        file.play = self._stopping.guard(self._laning.play_scenario)
        file.tell = self._stories.tell_scenario
        file.accepts = self._update is not None
        file.race = self._stopping.guard(self._laning.play_race)
        file.tell_race = self._stories.tell_race

    @pytest.hookimpl
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, so that it can be stopped."""
        self._failing.session = session

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the outcome to the report; as builtins if it is sent to the controller."""
        report = yield
        if not isinstance(item, Playable) or report.when != "call":
            return report
        if item.outcome is not None:
            report.duration = max(report.duration, seconds_of(item.outcome))
            if self._is_worker:
                self._failing.note_outcome(report, item.outcome)
            outcome = item.outcome.to_plain() if self._is_worker else item.outcome
            setattr(report, ATTACHED if isinstance(item, ScenarioItem) else RACE, outcome)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        """Gather outcomes on the controller."""
        if not self._is_worker:
            self._gather(report)
        yield
        if not self._is_worker and isinstance(report, Synthetic):
            name_rule(self._pytest, report)

    def _gather(self, report: pytest.TestReport) -> None:
        self._failing.watch(report)
        self._failing.count(len(self.config.rules) if self._lines.every else 0)
        scenario_data, race = getattr(report, ATTACHED, None), getattr(report, RACE, None)
        if scenario_data is not None:
            plain = not isinstance(scenario_data, ScenarioOutcome)
            outcome = ScenarioOutcome.from_plain(scenario_data) if plain else scenario_data
            self._outcomes[outcome.id] = outcome
            self._failing.note_outcome(report, outcome)
            self._resuming.keep(report.nodeid, outcome, self._laning.findings)
        if race is not None:
            raced = race if isinstance(race, RaceOutcome) else RaceOutcome.from_plain(race)
            self._races[report.nodeid] = raced
            self._failing.note_outcome(report, raced)
            self._resuming.keep(report.nodeid, raced, self._laning.findings)
        if scenario_data is not None or race is not None:
            name_scenario(self._pytest, report)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last scenario end the server, merge, and report each rule.

        Also if `-x`, a similar option or a signal stops the run: what was played is judged.
        """
        self._laning.plan(session.items)
        self._resuming.begin(session.items)
        # Everything loaded so far stays until the end; exempt it from garbage collection.
        gc.freeze()
        if self._pytest.option.harness_run:
            gc.enable()
        is_complete = False
        try:
            result = yield
            is_complete = True
            return result
        except (pytest.Session.Failed, KeyboardInterrupt) as stop:
            # pytest's own Ctrl-C, which xdist uses for -x too, is a subclass of the built-in one.
            is_complete = type(stop) is not KeyboardInterrupt
            raise
        finally:
            with self._stopping.interruption.defer_signals():
                self._close()
                # Other exceptions are shown as they are; a partial report would mislead.
                if is_complete or self._stopping.cause:
                    self._emit(session)

    def _close(self) -> None:
        """End the server; pass findings outside any scenario to the controller or the report."""
        findings = self._laning.close()
        self._starts += self._laning.starts
        if self._is_worker:
            output: dict[str, Any] = getattr(self._pytest, "workeroutput")  # noqa: B009
            output["harness_findings"] = [finding_to_plain(finding) for finding in findings]
            output[FUZZED] = self._fuzzing.results
            output[SHARD] = self._sharding.to_plain() if self._sharding is not None else {}
            output[STARTS] = [[start.reason.value, start.scenario] for start in self._starts]
        else:
            self._loose += [*self._resuming.findings, *findings]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the machine's limits, the name of the run and its deadline."""
        node.workerinput[LACKS] = [asdict(lack) for lack in self.config.lacks]
        node.workerinput[RELEASE] = self.config.release
        node.workerinput[RUN] = self.config.run
        node.workerinput[CONFINED] = self.config.profile.is_confined
        node.workerinput[DEADLINE] = self.config.plays.deadline

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """Take the findings outside scenarios of a worker that ended; add one if it died."""
        if error is not None and not self._stopping.interruption.signal:
            worker = node.gateway.id
            message = f"the worker {worker} died ({error}); what it had not reported is not judged"
            self._loose.append(Finding("harness.worker-died", message))
            remove_dead_runs(self.config.base, dead=worker)
        plain = getattr(node, "workeroutput", {}).get("harness_findings", [])
        self._loose += [finding_from_plain(finding) for finding in plain]
        self._fuzzing.results += getattr(node, "workeroutput", {}).get(FUZZED, [])
        if self._sharding is not None:
            self._sharding.take(getattr(node, "workeroutput", {}).get(SHARD, {}))
        for reason, scenario in getattr(node, "workeroutput", {}).get(STARTS, []):
            self._starts.append(ServerStart(StartReason(reason), scenario))

    def _emit(self, session: pytest.Session) -> None:
        """Report the rules, if anything was judged."""
        has_results = (self._outcomes or self._races or self._loose or self._stopping.cause) or (
            self._sharding is not None and not self.collecting.unplayed
        )
        if self._is_worker or session.config.option.collectonly or not has_results:
            return
        if self._snapshots is not None:
            self._loose += self._snapshots.findings(
                self._outcomes, is_complete=self._is_whole(session)
            )
        self.report = self._build_report()
        if self._update is not None and not self.report.interrupted:
            self._accept(self._update, self.report)
        describe_run(self._pytest, self.report, version(DISTRIBUTION))
        self._failing.count(len(self.report.rules) if self._lines.every else 0, again=True)
        emit(self.report, session, self.config.book, self._lines)

    def _is_of_all(self) -> bool:
        """Return whether all bundled scenarios of some surface were played."""
        surfaces = {surface_of(scenario) for scenario in self._outcomes}
        return any(bundled_ids_on(surface) <= self._outcomes.keys() for surface in surfaces)

    def _is_whole(self, session: pytest.Session) -> bool:
        """Return whether nothing stopped the run: no signal, no `-x`, no dead worker."""
        stopped = self._stopping.cause or session.shouldfail or session.shouldstop
        return not stopped and all(finding.id != "harness.worker-died" for finding in self._loose)

    def _accept(self, update: BaselineUpdate, report: Report) -> None:
        """Write the findings into the baseline, and judge the run by the new baseline."""
        outcomes, races = list(self._outcomes.values()), list(self._races.values())
        try:
            added = update.write(report, outcomes, races, self._loose, only=self.config.only_rules)
        except UsageError as error:
            update.told = f"baseline: {error}"
            return
        gone = {issue.where for issue in report.issues if issue.id == "baseline.stale"}
        kept_entries = [
            entry for entry in self.config.entries if self.config.places.get(entry) not in gone
        ]
        issues = tuple(issue for issue in self.config.expiry_issues if issue.id != expiry.EXPIRED)
        entries = (*kept_entries, *added)
        self.config = replace(self.config, entries=entries, expiry_issues=issues)
        for outcome in outcomes:
            apply_entries(outcome, added)
        for race in races:
            apply_entries_to_race(race, added)
        self._loose = [mark_known_finding(finding, "", added) for finding in self._loose]
        self.report = self._build_report()

    def _build_report(self) -> Report:
        config, interrupted = self.config, self._stopping.cause
        outcomes, races = list(self._outcomes.values()), list(self._races.values())
        if interrupted:
            unplayed, left_races = self._stopping.unplayed_outcomes(self._outcomes, self._races)
            outcomes, races = outcomes + unplayed, races + left_races
        files = [*self._named_paths, *(Path(outcome.path) for outcome in outcomes)]
        files += map(Path, self._sharding.paths if self._sharding is not None else ())
        report = merge(
            outcomes,
            self._loose,
            races=races,
            profile=config.profile,
            entries=config.entries,
            rules=config.rules,
            book=config.book,
            strict=config.strict,
            required=self._required,
            option=config.option,
            bundled=bundled_ids_on(SESSION),
            bundled_entries=config.bundled_entries,
            lacks=config.lacks,
            interrupted=interrupted,
            user_scenarios=user_scenarios_of(files).ids_in,
            places=config.places,
            expiry_issues=config.expiry_issues,
            shard=self._shard(),
        )
        report.started = self._started.isoformat(timespec="seconds").replace("+00:00", "Z")
        report.took = round(time.monotonic() - self._begun, 3)
        report.fuzz = self._fuzzing.results
        report.starts, report.suite = self._starts, config.suite_note
        return report

    def _shard(self) -> Shard | None:
        """Return the shard that this run is, None for a whole run."""
        if self._sharding is None:
            return None
        snapshots = self._snapshots.settings() if self._snapshots is not None else None
        begun = {*self._outcomes, *self._races}
        return self._sharding.shard(self._option, self.config, snapshots, begun)

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the verdict in a few lines."""
        if self.collecting.unplayed:
            terminalreporter.write_line(f"ERROR: {self.collecting.unplayed}", red=True)
        if self.report is not None:
            updated = self._update.told if self._update else ""
            notes = (self.collecting.note, updated, self._laning.note, self._confinement_note)
            note = "\n".join(filter(None, notes))
            print_summary(
                self.report,
                terminalreporter,
                self.config.book,
                note,
                names=self._lines.every,
                is_whole=self._is_of_all(),
            )
        elif self.collecting.note:
            terminalreporter.write_line(self.collecting.note)
        for line in self._fuzzing.coverage_lines():
            terminalreporter.write_line(line)
        for problem in self._files.problems:
            terminalreporter.write_line(f"ERROR: {problem}", red=True)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Write the reports and set the exit status; the terminal's summary comes after this."""
        path = getattr(self._pytest.option, "xmlpath", None)
        # Without a JUnit file, only pytest's cache for `--lf` can fail: on a name not in UTF-8.
        missing = contextlib.suppress(UnicodeEncodeError)
        with self._files.note_problems("--junit", path) if path else missing:
            yield
        self._finish(session)
        return None

    def _finish(self, session: pytest.Session) -> None:
        interrupted = bool(self._stopping.cause)
        if interrupted and not self._is_worker and self.report is None:
            self.report = self._build_report()
        if self._is_worker:
            return
        status = self._failing.status(red=self.report is not None and self.report.red)
        if self._sharding is not None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            status = status or pytest.ExitCode.OK  # No scenario fell to this shard.
        if self.collecting.unplayed:
            status = self.collecting.status
        if self._update is not None and self.report is not None and self.report.red:
            # Findings outside the baseline, whose scenario was shown as accepted.
            status = status or pytest.ExitCode.TESTS_FAILED
        is_whole = self._is_whole(session) and not (self.report and self.report.unplayed)
        self._resuming.end(self._laning.findings, is_whole=is_whole)
        if self.report is not None and self.report.unplayed and not self.report.red:
            status = status or (STATUS_INCOMPLETE if session.exitstatus == 0 else None)
        if status is not None and not interrupted:
            session.exitstatus = status
        if self.report is None and self._fuzzing.results:
            # Only generated cases were played: report their results without rules.
            self.report = self._build_report()
        if self.report is not None:
            self._files.write_report(
                self.report, self._pytest.option, self._page, int(session.exitstatus)
            )
        if self._files.problems:
            session.exitstatus = session.exitstatus or STATUS_NOT_WRITTEN
        self._history.end(self.report, int(session.exitstatus))
        if self.report is not None:
            self._failing.remember()


__all__ = ["ATTACHED", "PytestPlugin"]
