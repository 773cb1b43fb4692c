"""The commands that reproduce the findings of a run."""

from collections.abc import Iterable
from dataclasses import replace

from harness.client.target.profile import Deviation
from harness.judge.rules.discovery import all_rules
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.report.results.report import Report
from harness.report.results.rerun_command import doctor_command, replay_command, scenario_argument
from harness.scenario.race_id import RaceId
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION, surface_of


class ReplayCommands:
    """Builder of the commands of one run, for its target, with the files of its scenarios."""

    def __init__(self, report: Report, outcomes: Iterable[ScenarioOutcome]) -> None:
        self._programs = report.programs
        self._played: dict[str, ScenarioOutcome] = {}
        for outcome in outcomes:
            self._played.setdefault(outcome.id, outcome)
            self._played.setdefault(RaceId.parse(outcome.id).scenario, outcome)

    def for_finding(self, finding: Finding) -> str:
        """Return the command that reproduces a finding, "" for none."""
        if finding.id.startswith("setup."):
            is_program = finding.kind in (EXEC, COMMAND, SDK)
            return doctor_command(self._programs, finding.kind if is_program else SESSION)
        played = [self._played[name] for name in finding.about if name in self._played]
        if not played or len(played) < len(finding.about):
            return ""
        race = played[0].race if played[0].id == finding.about[0] and len(played) == 1 else ""
        paths = [scenario_argument(outcome.path, outcome.id) for outcome in played]
        surfaces = [surface_of(outcome.id) for outcome in played]
        return replay_command(self._programs, surfaces, paths, race=race)

    def for_entry(self, entry: Deviation) -> str:
        """Return the command that plays the rule of a stale entry, "" if it names no rule."""
        if entry.rule not in all_rules():
            return ""
        surface = all_rules()[entry.rule].surface
        return replay_command(self._programs, [surface], (), rule=entry.rule)


def findings_naming_scenario(outcome: ScenarioOutcome) -> list[Finding]:
    """Return the findings of a scenario's outcome, each naming at least that scenario."""
    return [
        finding if finding.about else replace(finding, about=(outcome.id,))
        for finding in outcome.findings
    ]
