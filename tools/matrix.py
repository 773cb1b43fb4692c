"""The reviewed table of the rules that notice each fault on its stored trace.

`python -m tools.matrix` rewrites fixtures/matrix.yaml; a test compares it. Review every change: a
rule that notices more faults than before may judge too much, or repeat another rule's finding.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from harness.faults.base import Fault, all_faults
from harness.faults.mutation import Mutation, mutate
from harness.protocol.spec.book import Book
from harness.protocol.spec.loading import load_book
from harness.trace.store import load
from harness.trace.surface.registry import classify_of

ROOT = Path(__file__).resolve().parents[1]
MATRIX = ROOT / "fixtures" / "matrix.yaml"
GOOD = ROOT / "fixtures" / "traces" / "good"

HEADER = """\
# Written by `python -m tools.matrix`, to be reviewed. For each fault: the stored trace it
# is made on, and exactly the rules that then fire; the first is the one that must.
"""


def mutations(book: Book | None = None) -> dict[str, Mutation]:
    """Apply each fault to its stored trace, judge it, and return the results by fault id."""
    book = load_book() if book is None else book
    faults_by_trace: dict[str, list[Fault]] = defaultdict(list)
    for fault in all_faults().values():
        faults_by_trace[fault.on].append(fault)
    results = {
        one.fault_id: one
        for name, faults in faults_by_trace.items()
        for one in mutate(book, load(GOOD / f"{name}.jsonl", classify_of=classify_of), faults)
    }
    return dict(sorted(results.items()))


def table(mutations: dict[str, Mutation]) -> dict[str, dict[str, Any]]:
    """Return the content of the file: fault id -> trace and rules, the fault's own rule first."""
    faults = all_faults()
    return {
        fault_id: {
            "trace": faults[fault_id].on,
            "fires": sorted(
                mutation.noticing_rules, key=lambda rule: (rule != mutation.rule, rule)
            ),
        }
        for fault_id, mutation in mutations.items()
    }


def read_table() -> dict[str, dict[str, Any]]:
    """Return the table stored in fixtures/matrix.yaml."""
    return yaml.safe_load(MATRIX.read_text("utf-8"))


def write(rows: dict[str, dict[str, Any]]) -> None:
    """Write the table to fixtures/matrix.yaml."""
    body = yaml.safe_dump(rows, sort_keys=True, width=100)
    MATRIX.write_text(HEADER + body, "utf-8")


if __name__ == "__main__":
    write(table(mutations()))
