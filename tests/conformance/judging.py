"""Judging a server as the suite does, in this process or by a pytest process as users run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from harness.client.target.host import Lack, lacks_of
from harness.client.target.profile import load_profile
from harness.play.config import Config, configure
from harness.play.worker_session import WorkerSession
from harness.report.results.merge import merge
from harness.report.results.outcome import ScenarioOutcome
from harness.report.results.report import Report, RuleResult, ScenarioResult
from harness.report.scenario_story import scenario_story
from harness.report.story import rule_story
from harness.scenario.bundled import bundled_files, bundled_scenario
from harness.scenario.loader import Loaded
from harness.trace.surfaces import SESSION
from tests.conformance.peak import VARIABLE
from tests.processes import COMMANDS, MARK, Fork, run_warm, start_fork

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ROOT / "fixtures" / "servers"
NOT_NEEDED = ("cacheprovider", "hypothesispytest", "faker", "syrupy", "respx")


def command(script: str | Path) -> str:
    """Return the command line of a fixture server, given by file or name (`broken/floods`)."""
    path = script if isinstance(script, Path) else SERVERS / f"{script}.py"
    return f"'{sys.executable}' '{path}'"


@dataclass
class Judged:
    """A run in this process: its report and outcomes, with the stories of both."""

    report: Report
    config: Config
    outcomes: dict[str, ScenarioOutcome] = field(default_factory=dict[str, ScenarioOutcome])

    def rule(self, rule_id: str) -> RuleResult:
        return next(rule for rule in self.report.rules if rule.id == rule_id)

    def scenario(self, scenario_id: str) -> ScenarioResult:
        return next(one for one in self.report.scenarios if one.id == scenario_id)

    def verdicts(self) -> dict[str, str]:
        return {one.id: one.verdict.value for one in self.report.scenarios}

    def failed_rules(self) -> list[str]:
        return sorted(rule.id for rule in self.report.red_rules())

    def issues(self) -> dict[str, str]:
        return {issue.id: issue.message for issue in self.report.issues}

    def starts(self) -> list[tuple[str, str]]:
        """Return the reason of each start of a process, with its scenario."""
        return [(one.reason.value, one.scenario) for one in self.report.starts]

    def story(self, name: str) -> str:
        """Return the story of a scenario or of a rule."""
        if name in self.outcomes:
            return scenario_story(self.outcomes[name], self.report.programs)
        return rule_story(self.rule(name), self.config.book, self.report)


def bundled(*names: str) -> list[Loaded]:
    """Return bundled scenarios by id, in order; without names all of the session protocol."""
    found = [bundled_scenario(name) for name in bundled_files() if not names or name in names]
    return [one for one in found if names or SESSION in one.scenario.surfaces]


def alone(loaded: Loaded) -> Loaded:
    """Return a copy of a scenario that asks for a server process of its own."""
    fresh = loaded.scenario.model_copy(update={"server": "fresh"})
    return Loaded(loaded.id, loaded.path, fresh, loaded.document)


@cache
def lacks_here(target: str) -> tuple[Lack, ...]:
    """Return what this machine cannot do of a profile's capabilities; it stays the same."""
    return lacks_of(load_profile(target))


def judged(
    server_cmd: str,
    scenarios: Iterable[Loaded],
    *,
    target: str = "spec",
    scale: float = 0.2,
    baseline: str = "",
    keep_going: bool = False,
) -> Judged:
    """Play scenarios on a server, judge them in this process, and return the merged run."""
    config = configure(
        target=target,
        server_cmd=server_cmd,
        scale=scale,
        lacks=lacks_here(target),
        baseline=baseline,
        keep_going=keep_going,
    )
    session = WorkerSession(config)
    outcomes: list[ScenarioOutcome] = []
    try:
        outcomes += [session.play(loaded) for loaded in scenarios]
    finally:
        loose = session.close()
    report = merge(
        outcomes,
        loose,
        profile=config.profile,
        entries=config.entries,
        rules=config.rules,
        book=config.book,
        lacks=config.lacks,
    )
    report.starts = session.starts
    return Judged(report, config, {outcome.id: outcome for outcome in outcomes})


def leftovers(mark: str) -> list[str]:
    """Return a description of each process with the mark, except this one."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(f"{process.pid} {process.status()} {' '.join(process.cmdline())}")
        except psutil.Error:
            continue
    return found


@dataclass
class Ran:
    """A finished pytest process; `memory` is its peak in MiB, 0 if not measured."""

    status: int
    text: str
    report: dict[str, Any]
    memory: float = 0.0

    @property
    def verdicts(self) -> dict[str, str]:
        """Return the verdicts of all rules, scenarios and requirements of the report, by id."""
        found = {rule["id"]: rule["verdict"] for rule in self.report["rules"]}
        found |= {one["id"]: one["verdict"] for one in self.report["scenarios"]}
        return found | self.report["requirements"]


class Running:
    """A running pytest process, killed after `bound` seconds."""

    def __init__(self, process: subprocess.Popen[bytes] | Fork, folder: Path, bound: float) -> None:
        self.pid = process.pid
        self._process = process
        self._folder = folder
        self._killer = threading.Timer(bound, process.kill)
        self._killer.start()

    def end(self) -> Ran:
        """Wait for the process to end and return the run."""
        try:
            status = self._process.wait()
        finally:
            self._killer.cancel()
        text = (self._folder / "out.txt").read_text("utf-8", "replace")
        peak = self._folder / "peak.txt"
        memory = float(peak.read_text("ascii")) if peak.exists() else 0.0
        return Ran(status, text, _report(self._folder), memory)


def start_pytest(*args: str, folder: Path, mark: str, bound: float = 150.0) -> Running:
    """Start pytest in a folder with an empty configuration, measuring its memory."""
    line = [sys.executable, "-m", "pytest", "-p", "tests.conformance.peak", *_words(args, folder)]
    env = {**_env(folder, mark), "PYTHONPATH": str(ROOT), VARIABLE: str(folder / "peak.txt")}
    with (folder / "out.txt").open("wb") as sink:
        process = subprocess.Popen(
            line, cwd=folder, env=env, stdout=sink, stderr=sink, preexec_fn=_interruptible
        )
    return Running(process, folder, bound)


def _interruptible() -> None:
    """Restore the default of SIGINT, which a shell ignores in background jobs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def fork_pytest(*args: str, folder: Path, mark: str, bound: float = 150.0) -> Running:
    """Start pytest as `start_pytest` does, but in a fork; its workers are not its children."""
    words = [str(COMMANDS / "pytest"), *_words(args, folder)]
    with open(os.devnull, "rb") as source, (folder / "out.txt").open("wb") as sink:
        streams = (source.fileno(), sink.fileno(), sink.fileno())
        process = start_fork(words, cwd=folder, env=_env(folder, mark), streams=streams)
    return Running(process, folder, bound)


def run_pytest(*args: str, folder: Path, mark: str) -> Ran:
    """Run pytest to its end as `start_pytest` does, but in a fork, without measuring memory."""
    words = _words(args, folder)
    said = run_warm("pytest", *words, cwd=folder, env=_env(folder, mark), together=True)
    return Ran(said.status, said.out, _report(folder))


def _words(args: Sequence[str], folder: Path) -> list[str]:
    """Return pytest's arguments, without slow plugins and assertion rewriting; reset the report."""
    ini, report = folder / "pytest.ini", folder / "report.json"
    ini.write_text("[pytest]\n", encoding="utf-8")
    report.unlink(missing_ok=True)
    few = [word for plugin in NOT_NEEDED for word in ("-p", f"no:{plugin}")]
    told = [] if "--harness-json" in args else ["--harness-json", str(report)]
    return ["--assert=plain", "-c", str(ini), "-q", *few, *args, *told]


def _env(folder: Path, mark: str) -> dict[str, str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**kept, MARK: mark, "HOME": str(home)}


def _report(folder: Path) -> dict[str, Any]:
    report = folder / "report.json"
    return json.loads(report.read_text("utf-8")) if report.exists() else {}
