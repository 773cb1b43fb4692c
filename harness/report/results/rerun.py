"""The command that reproduces a finding of a run."""

from collections.abc import Iterable
from dataclasses import replace

from harness.client.target.profile import Deviation
from harness.judge.rules.discovery import all_rules
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.report.results.report import Report
from harness.report.results.rerun_command import examine_again, named, play_again
from harness.scenario.race_id import RaceId
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION, surface_of


class Again:
    """Makes the commands of one run: for its target, with the files of its scenarios."""

    def __init__(self, report: Report, outcomes: Iterable[ScenarioOutcome]) -> None:
        self._programs = report.programs
        self._played: dict[str, ScenarioOutcome] = {}
        for outcome in outcomes:
            self._played.setdefault(outcome.id, outcome)
            self._played.setdefault(RaceId.parse(outcome.id).scenario, outcome)

    def of(self, finding: Finding) -> str:
        """The command that reproduces a finding, "" where there is none."""
        if finding.id.startswith("setup."):
            other = finding.kind in (EXEC, COMMAND, SDK)
            return examine_again(self._programs, finding.kind if other else SESSION)
        played = [self._played[name] for name in finding.about if name in self._played]
        if not played or len(played) < len(finding.about):
            return ""
        race = played[0].race if played[0].id == finding.about[0] and len(played) == 1 else ""
        paths = [named(one.path, one.id) for one in played]
        surfaces = [surface_of(one.id) for one in played]
        return play_again(self._programs, surfaces, paths, race=race)

    def of_entry(self, entry: Deviation) -> str:
        """The command that plays the scenarios of a stale entry."""
        if entry.rule not in all_rules():
            return ""
        surface = all_rules()[entry.rule].surface
        return play_again(self._programs, [surface], (), rule=entry.rule)


def owned(outcome: ScenarioOutcome) -> list[Finding]:
    """The findings of a scenario's outcome, each naming at least that scenario."""
    return [one if one.about else replace(one, about=(outcome.id,)) for one in outcome.findings]
