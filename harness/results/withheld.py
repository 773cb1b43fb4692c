"""Capabilities that the target promises and this machine cannot provide, for the report."""

from collections.abc import Sequence

from harness.judge.base import Monitor
from harness.results.report import Report, Withheld
from harness.target.host import Lack
from harness.target.profile import Profile


def rule_reason(rule: type[Monitor], profile: Profile, lacks: Sequence[Lack]) -> str:
    """Why a rule does not apply to this target on this machine, "" where it does."""
    declared = profile.capabilities
    gone = {lack.capability: lack.reason for lack in lacks}
    missing = [need for need in rule.needs if need not in gone]
    missing = [] if declared == "probe" else [need for need in missing if need not in declared]
    if missing:
        return f"the target does not declare {', '.join(missing)}"
    return next((gone[need] for need in rule.needs if need in gone), "")


def not_judged(report: Report, lacks: Sequence[Lack]) -> list[Withheld]:
    """For each lack, the rules and scenarios that were not judged because of it."""
    return [
        Withheld(
            lack.capability,
            lack.program,
            lack.why,
            lack.advice,
            tuple(one.id for one in report.scenarios if one.reason == lack.reason),
            tuple(one.id for one in report.races if one.reason == lack.reason),
            tuple(one.id for one in report.rules if one.reason == lack.reason),
        )
        for lack in lacks
    ]
