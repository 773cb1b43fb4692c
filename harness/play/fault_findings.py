"""Checks of a scenario with faults: that each acted, and that the rules it names noticed."""

from collections.abc import Iterator, Sequence

from harness.judge.verdict import Level, Row, Verdict
from harness.play.run import Run
from harness.report.results.outcome import Finding
from harness.scenario.loader import Loaded


def check_faults(loaded: Loaded, run: Run, rows: Sequence[Row]) -> list[Finding]:
    """Return findings: a fault that never acted, a silent rule, a rule that was not named.

    Rules of the level MUST have to be named when they are broken; others may be.
    """
    found = list(_idle_fault_findings(loaded, run))
    broken = {row.rule: row for row in rows if row.verdict in (Verdict.FAIL, Verdict.KNOWN)}
    named = loaded.scenario.expect.violations
    for index, rule in enumerate(named):
        if rule not in broken:
            message = f"{rule} was to be broken, and it found nothing wrong"
            line = loaded.line("expect", "violations", index)
            found.append(Finding("scenario.fault-unnoticed", message, line))
    others = sorted(
        rule
        for rule, row in broken.items()
        if rule not in named and row.level is Level.MUST and row.verdict is Verdict.FAIL
    )
    if others:
        message = (
            f"with the faults at work more rules are broken: {', '.join(others)}; name them under "
            "expect: violations if the faults are why"
        )
        found.append(Finding("scenario.fault-breaks-more", message, loaded.line("faults")))
    return found


def _idle_fault_findings(loaded: Loaded, run: Run) -> Iterator[Finding]:
    for index, missing in run.idle_faults.items():
        entry = loaded.scenario.faults[index]
        what = entry.fault or entry.operation
        why = f": {missing}" if missing else ""
        message = f"the fault {what} never acted{why}"
        yield Finding("scenario.fault-idle", message, loaded.line("faults", index))
