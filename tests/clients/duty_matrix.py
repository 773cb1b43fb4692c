"""Table of the duties that each fault of a client breaks, on a trace that keeps all duties.

`python -m tests.clients.duty_matrix` writes fixtures/duties.yaml; review it. A test compares it.
"""

from collections import Counter
from pathlib import Path

import yaml

from harness.faults.client_duties import client_faults
from harness.faults.stored import apply
from harness.judge.judge import judge
from harness.judge.rows import CRASH_SUBJECT
from harness.judge.rules.discovery import client_rules
from harness.judge.verdict import Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.trace import Trace
from tests.clients.dutiful import dutiful

MATRIX = Path(__file__).parents[2] / "fixtures" / "duties.yaml"
HEADER = """\
# Written by `python -m tests.clients.duty_matrix`, to be reviewed. For each fault of a client:
# exactly the duties that it breaks on fixtures/traces/clients/dutiful.jsonl, its own duty first.
"""


def rows(trace: Trace) -> list[Row]:
    """Judge a trace by the duties and return the rows."""
    return judge(load_book(), trace, client_rules().values())


def broken(trace: Trace) -> Counter[str]:
    """Count the violations in a trace by duty, without crashes of rules."""
    return Counter(
        row.rule
        for row in rows(trace)
        if row.verdict is Verdict.FAIL and row.subject != CRASH_SUBJECT
    )


def table() -> dict[str, list[str]]:
    """Return fault id -> the duties that it breaks, its own first."""
    good = dutiful()
    return {
        name: sorted(broken(apply(fault, good)), key=lambda one: (one != fault.rule, one))
        for name, fault in client_faults().items()
    }


if __name__ == "__main__":
    MATRIX.write_text(HEADER + yaml.safe_dump(table(), width=100), "utf-8")
