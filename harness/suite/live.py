"""The pytest hooks of a run with a target.

Here: collection, attaching outcomes to reports, merging them on the controller. A worker judges its
own traces; only the controller merges, so that any number of workers gives the same verdicts. Not
here: how pytest and the user are told of a report (reporting).
"""

import gc
import shlex
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from harness.plugin import options_of
from harness.report.model import Report
from harness.rules.base import all_rules
from harness.scenario.bundled import bundled_folder, bundled_ids
from harness.scenario.loader import SUFFIX, Loaded, find, load
from harness.suite.globs import check_globs
from harness.suite.items import RaceItem, ScenarioFile, ScenarioItem
from harness.suite.merge import merge
from harness.suite.outcome import (
    Finding,
    RaceOutcome,
    ScenarioOutcome,
    finding_from_plain,
    finding_to_plain,
)
from harness.suite.reporting import emit, tell, write_json
from harness.suite.selection import selection
from harness.suite.session import Session, configure
from harness.suite.stopping import Stopping
from harness.suite.story import race_story, scenario_story
from harness.target.host import Lack
from harness.target.place import sweep
from harness.target.profile import ProfileError, split_command

ATTACHED, RACE, LACKS = "harness_outcome", "harness_race", "harness_lacks"


class Live:
    """The plugin object of one run with a target, on the controller and on each worker."""

    def __init__(self, config: pytest.Config) -> None:
        option = options_of(config)
        if option.server_cmd is not None:
            split_command(option.server_cmd)
        worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        # The controller has asked this machine what it lacks, once for all workers.
        lacks = None if worker is None else [Lack(**one) for one in worker[LACKS]]
        self.config = configure(
            target="spec" if option.target is None else option.target,
            server_cmd=option.server_cmd or "",
            baseline=option.baseline,
            rule=option.rule,
            require=option.require,
            scale=option.timeout_scale,
            strict=option.harness_strict,
            keep_going=option.keep_going,
            lacks=lacks,
        )
        if option.harness_json == "-":
            raise ProfileError("--harness-json -: pytest prints there; use harness run --json -")
        if option.harness_json and not Path(option.harness_json).absolute().parent.is_dir():
            raise ProfileError(f"--harness-json {option.harness_json}: its folder does not exist")
        self._pytest = config
        self._is_worker = worker is not None
        self._stopping = Stopping(config, self.config.base)
        config.pluginmanager.register(self._stopping, "harness-stopping")
        self._session = Session(
            self.config,
            worker=worker["workerid"] if worker else "main",
            interruption=self._stopping.interruption,
        )
        self._selection = selection(option.race, option.markexpr)
        self._outcomes: dict[str, ScenarioOutcome] = {}
        self._races: dict[str, RaceOutcome] = {}
        self._loose: list[Finding] = []
        self.report: Report | None = None
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args = [str(bundled_folder())]
        self._roots = [Path(arg.split("::", 1)[0]).resolve() for arg in config.args]
        check_globs(self.config.spoken, self._roots)
        self._known_rules = tuple(all_rules())
        self._covered = bool(option.rule) and self._is_covered(option.rule)

    # --- collection -----------------------------------------------------------------------------

    @pytest.hookimpl
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Scenario files below the paths that were given."""
        if not file_path.name.endswith(SUFFIX):
            return None
        file: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]
        file.config_of, file.root = self.config, self._root_of(file_path)
        file.play, file.tell = self._stopping.guarded(self._session.play), self._scenario_story
        file.race = self._stopping.guarded(self._session.race)
        file.tell_race = self._race_story
        file.selection = self._selection
        file.known_rules, file.covered = self._known_rules, self._covered
        return file

    def _scenario_story(self, outcome: ScenarioOutcome) -> str:
        target = self.config.option or self.config.profile.name
        return scenario_story(outcome, target, shlex.join(self.config.profile.command))

    def _race_story(self, outcome: RaceOutcome) -> str:
        target = self.config.option or self.config.profile.name
        return race_story(outcome, target, shlex.join(self.config.profile.command))

    def _root_of(self, path: Path) -> Path:
        bundled = bundled_folder().resolve()
        if path.resolve().is_relative_to(bundled):
            return bundled
        for root in self._roots:
            if root.is_dir() and path.resolve().is_relative_to(root):
                return root
        return path.parent

    def _is_covered(self, rule: str) -> bool:
        """Whether any scenario says it covers the rule; if none does, all are played."""
        return any(
            rule in load(file, root=root).scenario.covers
            for root, file in find(self._roots)
            if file.name.endswith(SUFFIX) and _loads(file)
        )

    # --- running --------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the outcome to the report; as builtins where it crosses to the controller."""
        report = yield
        if not isinstance(item, ScenarioItem | RaceItem) or report.when != "call":
            return report
        if item.outcome is not None:
            outcome = item.outcome.to_plain() if self._is_worker else item.outcome
            setattr(report, ATTACHED if isinstance(item, ScenarioItem) else RACE, outcome)
        return report

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather outcomes on the controller."""
        if self._is_worker:
            return
        found, race = getattr(report, ATTACHED, None), getattr(report, RACE, None)
        if found is not None:
            plain = not isinstance(found, ScenarioOutcome)
            outcome = ScenarioOutcome.from_plain(found) if plain else found
            self._outcomes[outcome.id] = outcome
        if race is not None:
            raced = race if isinstance(race, RaceOutcome) else RaceOutcome.from_plain(race)
            self._races[raced.id] = raced

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last scenario: end the server, merge, and report each rule."""
        # What is there now stays to the end; looking through it again and again costs time.
        gc.freeze()
        whole = False
        try:
            result = yield
            whole = True
            return result
        finally:
            with self._stopping.interruption.ours():
                self._close()
                # Any other exception is told by itself; what is left of a report would mislead.
                if whole or self._stopping.interruption.signal:
                    self._emit(session)

    def _close(self) -> None:
        """End the server; what no scenario owns goes to the controller, or into the report."""
        findings = self._session.close()
        if self._is_worker:
            output: dict[str, Any] = getattr(self._pytest, "workeroutput")  # noqa: B009
            output["harness_findings"] = [finding_to_plain(one) for one in findings]
        else:
            self._loose += findings

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what this machine lacks."""
        node.workerinput[LACKS] = [asdict(lack) for lack in self.config.lacks]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """A worker ended: take what no scenario owns. One that died took its verdicts along."""
        if error is not None and not self._stopping.interruption.signal:
            worker = node.gateway.id
            message = f"the worker {worker} died ({error}); what it had not reported is not judged"
            self._loose.append(Finding("harness.worker-died", message))
            sweep(self.config.base, dead=worker)
        plain = getattr(node, "workeroutput", {}).get("harness_findings", [])
        self._loose += [finding_from_plain(one) for one in plain]

    def _emit(self, session: pytest.Session) -> None:
        """Report what was judged, where anything was to be."""
        seen = self._outcomes or self._races or self._loose or self._stopping.interruption.signal
        if self._is_worker or session.config.option.collectonly or not seen:
            return
        self.report = self._merged()
        emit(self.report, session, self.config.book)

    def _merged(self) -> Report:
        config, interrupted = self.config, self._stopping.interruption.name
        outcomes, races = list(self._outcomes.values()), list(self._races.values())
        if interrupted:
            left, left_races = self._stopping.unplayed(self._outcomes, self._races)
            outcomes, races = outcomes + left, races + left_races
        return merge(
            outcomes,
            self._loose,
            races=races,
            profile=config.profile,
            entries=config.entries,
            rules=config.rules,
            book=config.book,
            strict=config.strict,
            option=config.option,
            bundled=bundled_ids(),
            shipped=config.shipped,
            lacks=config.lacks,
            interrupted=interrupted,
        )

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The verdict in a few lines."""
        if self.report is not None:
            tell(self.report, terminalreporter, self.config.book)

    @pytest.hookimpl
    def pytest_sessionfinish(self) -> None:
        """Write the JSON report, that of a run too which was interrupted before it began."""
        if self._stopping.interruption.signal and not self._is_worker and self.report is None:
            self.report = self._merged()
        path = self._pytest.option.harness_json
        if path and self.report is not None:
            write_json(self.report, Path(path))


def _loads(file: Path) -> bool:
    try:
        load(file)
    except Exception:
        return False
    return True


__all__ = ["ATTACHED", "Live", "Loaded"]
