"""Capabilities that the target promises and this machine cannot provide, for the report."""

from collections.abc import Collection, Sequence

from harness.client.target.host import Lack
from harness.judge.base import Monitor
from harness.judge.verdict import Verdict
from harness.report.results.report import NOT_KNOWN, Report, RuleResult, Withheld


def mark_inapplicable(
    result: RuleResult,
    rule: type[Monitor],
    declared: Collection[str],
    lacks: Sequence[Lack],
    unknown: Collection[str] = (),
) -> None:
    """Mark a rule that was not exercised and does not apply as NOT_APPLICABLE, with the reason.

    It needs a capability that the target does not declare or this machine cannot provide, or a
    command that the agent does not know (`unknown`). `declared` is "probe" for a target that
    declares nothing. Other rules stay NOT_EXERCISED.
    """
    gone = {lack.capability: lack.reason for lack in lacks}
    needs = [need for need in rule.needs if need not in gone]
    if declared == "probe":
        missing = [need for need in needs if need in unknown]
        if missing:
            result.verdict, result.missing = Verdict.NOT_APPLICABLE, tuple(missing)
            result.reason = f"{NOT_KNOWN}{', '.join(missing)}"
            return
    missing = [] if declared == "probe" else [need for need in needs if need not in declared]
    withheld = [need for need in rule.needs if need in gone]
    if missing:
        result.verdict, result.missing = Verdict.NOT_APPLICABLE, tuple(missing)
        result.reason = f"the target does not declare {', '.join(missing)}"
    elif withheld:
        result.verdict, result.withheld = Verdict.NOT_APPLICABLE, withheld[0]
        result.reason = gone[withheld[0]]


def withheld_results(report: Report, lacks: Sequence[Lack]) -> list[Withheld]:
    """Return, for each lack, the rules and scenarios that were not judged because of it."""
    return [
        Withheld(
            lack.capability,
            lack.program,
            lack.cause,
            lack.advice,
            tuple(
                scenario.id for scenario in report.scenarios if scenario.withheld == lack.capability
            ),
            tuple(race.id for race in report.races if race.withheld == lack.capability),
            tuple(rule.id for rule in report.rules if rule.withheld == lack.capability),
        )
        for lack in lacks
    ]
