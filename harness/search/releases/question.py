"""Questions of a bisection: is a finding shown, or how does a scenario end?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.faults.base import all_faults
from harness.judge.rules.discovery import every_rule
from harness.judge.verdict import Verdict
from harness.protocol.spec.findings import finding_kinds
from harness.report.compare.values import PLAYED, Run
from harness.report.compare.verdicts import unsteady_scenarios
from harness.report.results.report import Proof, Report, RuleResult, ScenarioResult
from harness.scenario.bundled import bundled_files, bundled_scenario, bundled_with
from harness.scenario.loader import load
from harness.scenario.scenario_names import named_files
from harness.search.mutation.campaign import known_occasions
from harness.search.releases.halving import Answer
from harness.trace.nearest import unknown_name

SHOWN, NOT_SHOWN, NOT_JUDGED = "shown", "not shown", "not judged"
_BROKEN = (Verdict.FAIL, Verdict.KNOWN)
# A conversation that comes first: if it fails, the release cannot be judged.
SANITY_SCENARIO = "turns/plain-turn"
# Scenarios that are played once one of the ends has shown the finding in them.
MAX_SCENARIOS_KEPT = 3


@dataclass(frozen=True, slots=True)
class Question:
    """A finding, in these scenarios, or without a finding how the scenarios end."""

    finding: str
    scenarios: tuple[str, ...]

    @classmethod
    def parse(cls, finding: str, scenario: str) -> "Question":
        """Return the question of `--finding RULE[@SCENARIO]` or `--scenario ID`.

        Raises `UsageError` for an unknown id, or if no scenario is known to show the finding.
        """
        if bool(finding) == bool(scenario):
            raise UsageError("name either --finding RULE[@SCENARIO] or --scenario ID")
        if scenario:
            if (count := len(named_files([scenario]))) > 1:
                raise UsageError(f"--scenario {scenario}: it names {count} scenarios; name one")
            return cls("", (scenario,))
        name, place = re.findall("([^@]*)@?(.*)", finding)[0]
        if name not in every_rule() and name not in finding_kinds():
            raise UsageError(unknown_name("finding", name, [*every_rule(), *finding_kinds()]))
        scenarios = [place] if place else _scenarios_of(name)
        if not scenarios:
            raise UsageError(f"no scenario is known to show {name}; name one: {name}@SCENARIO")
        named_files(scenarios)
        return cls(name, tuple(scenarios))

    @property
    def words(self) -> str:
        """The finding or the scenario, as it was named."""
        if not self.finding:
            return self.scenarios[0]
        place = f"@{self.scenarios[0]}" if len(self.scenarios) == 1 else ""
        return f"{self.finding}{place}"

    def played_scenarios(self) -> list[str]:
        """Return the scenarios to play: those of the question, and a plain turn before any turn."""
        starts_turns = any(load(file).scenario.starts_turns for file in named_files(self.scenarios))
        return list(dict.fromkeys([*([SANITY_SCENARIO] if starts_turns else ()), *self.scenarios]))

    def answer(self, report: Report) -> Answer:
        """Return the answer of a run of the scenarios to play."""
        errors = [
            one.id for one in (*report.rules, *report.scenarios) if one.verdict is Verdict.ERROR
        ]
        if errors:
            return Answer(problem=f"the harness failed: ERROR of {errors[0]}")
        unsteady = any(map(self._is_asked, unsteady_scenarios(Run("", report))))
        flaky = unsteady or any(proof.flaky for proof in self._proofs(report))
        return Answer(self._state(report), is_flaky=flaky)

    def broken_in(self, report: Report) -> list[str]:
        """Return the scenarios in which a run shows the finding, or all played of a scenario."""
        if self.finding in every_rule():
            names = [proof.scenario for proof in self._proofs(report)]
            names += filter(self._is_asked, self._rule(report).broken_in)
            return list(dict.fromkeys(names))
        return [
            scenario.id
            for scenario in self._results(report)
            if not self.finding or any(name == self.finding for name, _, _ in scenario.messages)
        ]

    def narrow(self, reports: Sequence[Report]) -> "Question":
        """Return the same question in a few scenarios that tell these runs apart."""
        broken = [name for report in reports for name in self.broken_in(report)]
        judged = [set(self._judged_in(report)) for report in reports]
        telling = [name for name in broken if all(name in one for one in judged)]
        names = list(dict.fromkeys(telling or broken))[:MAX_SCENARIOS_KEPT]
        return Question(self.finding, tuple(names)) if self.finding and names else self

    def proof(self, report: Report) -> Proof | None:
        """Return the first violation of the rule in a run, None if there is none."""
        return next(iter(self._proofs(report)), None)

    def _state(self, report: Report) -> str:
        if not self.finding:
            verdicts = {str(scenario.verdict) for scenario in self._results(report)}
            # A known failure is one: what differs is the server, not what is said of it.
            return ", ".join(sorted(verdicts)).replace(Verdict.KNOWN, Verdict.FAIL)
        if self.broken_in(report) or any(issue.id == self.finding for issue in report.issues):
            return SHOWN
        return NOT_SHOWN if self._judged_in(report) else NOT_JUDGED

    def _judged_in(self, report: Report) -> list[str]:
        if self.finding in every_rule():
            return list(filter(self._is_asked, self._rule(report).scenarios))
        return [one.id for one in self._results(report) if one.verdict in PLAYED]

    def _proofs(self, report: Report) -> list[Proof]:
        if self.finding not in every_rule():
            return []
        return [
            proof
            for proof in self._rule(report).proofs
            if proof.row.verdict in _BROKEN and self._is_asked(proof.scenario)
        ]

    def _is_asked(self, scenario: str) -> bool:
        return scenario != SANITY_SCENARIO or SANITY_SCENARIO in self.scenarios

    def _results(self, report: Report) -> list[ScenarioResult]:
        return [one for one in report.scenarios if self._is_asked(one.id)]

    def _rule(self, report: Report) -> RuleResult:
        found = (rule for rule in report.rules if rule.id == self.finding)
        rule = every_rule()[self.finding]
        return next(found, RuleResult(rule.id, rule.title, rule.level, Verdict.NOT_APPLICABLE))


def _scenarios_of(finding: str) -> list[str]:
    """Return the bundled scenarios that cover a rule, or in which a fault of it can act."""
    covering = [
        name for name in bundled_with(finding) if finding in bundled_scenario(name).scenario.covers
    ]
    faults = [fault.id for fault in all_faults().values() if fault.rule == finding]
    occasions = [name for fault in faults for name in known_occasions().get(fault, ())]
    known = bundled_files()
    return [name for name in dict.fromkeys([*covering, *occasions]) if name in known]
