"""Checks of a scenario with faults: that each fault acted, and that the expected rules failed."""

from collections.abc import Iterator, Sequence

from harness.judge.verdict import Level, Row, Verdict
from harness.play.run import Run
from harness.report.results.outcome import Finding
from harness.scenario.loader import Loaded


def check_faults(loaded: Loaded, run: Run, rows: Sequence[Row]) -> list[Finding]:
    """Return findings for faults that never acted, rules that stayed silent, and unexpected ones.

    A broken rule of the level MUST has to be named; others may be.
    """
    findings = list(_idle_fault_findings(loaded, run))
    broken = {row.rule: row for row in rows if row.verdict in (Verdict.FAIL, Verdict.KNOWN)}
    named = loaded.scenario.expect.violations
    for index, rule in enumerate(named):
        if rule not in broken:
            message = f"{rule} was expected to fail, but it found nothing wrong"
            line = loaded.line_of("expect", "violations", index)
            findings.append(Finding("scenario.fault-unnoticed", message, line))
    unnamed = sorted(
        rule
        for rule, row in broken.items()
        if rule not in named and row.level is Level.MUST and row.verdict is Verdict.FAIL
    )
    if unnamed:
        message = (
            f"with the faults at work more rules are broken: {', '.join(unnamed)}; name them under "
            "expect: violations if the faults are why"
        )
        findings.append(Finding("scenario.fault-breaks-more", message, loaded.line_of("faults")))
    return findings


def _idle_fault_findings(loaded: Loaded, run: Run) -> Iterator[Finding]:
    for index, missing in run.idle_faults.items():
        entry = loaded.scenario.faults[index]
        name = entry.fault or entry.operation
        reason = f": {missing}" if missing else ""
        message = f"the fault {name} never acted{reason}"
        yield Finding("scenario.fault-idle", message, loaded.line_of("faults", index))
