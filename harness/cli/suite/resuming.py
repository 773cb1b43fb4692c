"""A run that goes on (`--resume`): its outcomes are stored as they come.

A file `.harness/unfinished/KEY.jsonl` has a line for each outcome, and lines with the findings
outside scenarios, the last of which counts. The key stands for the scenarios, the options and the
programs of the run. The file is removed when the run was whole.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from harness.cli.suite.items import RaceItem, ScenarioItem
from harness.cli.suite.sharding import conditions_of, suite_digest
from harness.errors import UsageError
from harness.judge.verdict import Verdict
from harness.play.config import Config
from harness.report.results.outcome import (
    Finding,
    RaceOutcome,
    ScenarioOutcome,
    finding_from_plain,
    finding_to_plain,
)
from harness.report.shards.values import digest
from harness.search.cluster.facts import versions_of
from harness.search.cluster.units import Outcome, plays_of

FOLDER: Final = "unfinished"
MAX_RUNS_KEPT: Final = 6
# Any other outcome may be another one when the run goes on.
_FINAL = (Verdict.PASS, Verdict.KNOWN, Verdict.FAIL, Verdict.NOT_APPLICABLE)


class Resuming:
    """The stored part of a run. Raises `UsageError` for options that do not go together.

    `outcomes` are those of an earlier part by the name of the item, `findings` those that belong to
    no scenario. Nothing is stored without `--on` or `--resume`.
    """

    def __init__(self, option: argparse.Namespace, config: Config) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.findings: list[Finding] = []
        self.note = ""
        self._option, self._config = option, config
        self._path: Path | None = None
        self._findings_stored = 0
        for name, reason in (
            ("numprocesses", "its workers judge by themselves"),
            ("maxfail", "it would stop at the same failure"),
            ("snapshots", "transcripts are kept by a run of all scenarios"),
        ):
            if option.resume and getattr(option, name, None):
                words = {"numprocesses": "-n", "maxfail": "-x"}.get(name, f"--{name}")
                raise UsageError(f"--resume and {words}: {reason}; leave one out")

    def begin(self, items: Sequence[pytest.Item]) -> None:
        """Read what is stored of a run with these items, or begin to store it."""
        if not (self._option.on or self._option.resume) or self._option.collectonly:
            return
        playable = [item for item in items if isinstance(item, ScenarioItem | RaceItem)]
        ids = [item.nodeid for item in playable]
        suite = suite_digest(ids, [item.loaded for item in playable])
        conditions = conditions_of(self._option, self._config, ids, suite, None)
        facts = {**conditions, **versions_of(self._config)}
        folder = self._config.base / FOLDER
        folder.mkdir(exist_ok=True)
        self._path = folder / f"{digest([json.dumps(facts)])}.jsonl"
        if self._option.resume:
            self._read(self._path)
            words = f"{len(self.outcomes)} of {len(ids)} were played by an earlier part of this run"
            nothing = "nothing is stored of a run with these options, scenarios and programs"
            self.note = f"--resume: {words if self.outcomes else nothing}"
        else:
            self._path.unlink(missing_ok=True)
        for old in sorted(folder.iterdir(), key=_change_time)[:-MAX_RUNS_KEPT]:
            old.unlink(missing_ok=True)

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text("utf-8").split("\n")
        except OSError:
            return
        for line in filter(None, lines):
            try:
                stored = json.loads(line)
            except ValueError:  # A run was killed while it wrote it.
                continue
            if "findings" in stored:
                self.findings = [finding_from_plain(plain) for plain in stored["findings"]]
                continue
            kind = RaceOutcome if stored["race"] else ScenarioOutcome
            outcome = kind.from_plain(stored["outcome"])
            plays = [play for play in plays_of(outcome) if play.trace]
            for play in plays:
                play.trace = play.kept
            if all(Path(play.trace).exists() for play in plays):
                self.outcomes[stored["name"]] = outcome

    def keep(self, name: str, outcome: Outcome, findings: Sequence[Finding]) -> None:
        """Store the outcome of an item, and the findings so far that belong to no scenario."""
        if self._path is None or name in self.outcomes or outcome.verdict not in _FINAL:
            return
        race = isinstance(outcome, RaceOutcome)
        self._write({"name": name, "race": race, "outcome": outcome.to_plain()})
        if len(findings) != self._findings_stored:
            self._keep_findings(findings)

    def end(self, findings: Sequence[Finding], *, is_whole: bool) -> None:
        """Remove what is stored of a whole run; else store its findings, and say how it goes on."""
        if self._path is None:
            return
        if is_whole:
            self._path.unlink(missing_ok=True)
            return
        self._keep_findings(findings)
        self.note = "the run is not whole: the same command with --resume goes on"

    def _keep_findings(self, findings: Sequence[Finding]) -> None:
        self._findings_stored = len(findings)
        every = [*self.findings, *findings]
        self._write({"findings": [finding_to_plain(finding) for finding in every]})

    def _write(self, value: Any) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"\n{json.dumps(value)}")


def _change_time(path: Path) -> float:
    return path.stat().st_mtime
