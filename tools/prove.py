"""Proof of one rule: `python -m tools.prove ID` checks all parts that the rule needs.

It runs the rule's cases, writes its faults' rows of fixtures/matrix.yaml and of occasions.yaml, its
line of fixtures/golden_findings.txt and the generated docs, and prints missing parts: also each
good or legal conversation to which the rule objects, and a good trace in which it judges something.
Review the written files; `make test` checks all rules together.
"""

import inspect
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from harness.faults.base import Fault, all_faults
from harness.faults.mutation import Outcome, mutate
from harness.judge.base import Monitor
from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.search.mutation.campaign import known_occasions
from harness.trace.nearest import unknown_name
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from tests.golden import findings
from tests.golden.conversations import conversations, legal_name
from tests.rules.edge import legal
from tools import docs, matrix, occasions

ROOT = Path(__file__).parents[1]
PLAYED = ROOT / ".harness" / "traces" / "reference"
MISSING = "missing: "


def prove(rule_id: str) -> Iterator[str]:
    """Yield a line for each part; that of a missing part begins with MISSING.

    Writes files. Raises SystemExit for an unknown rule.
    """
    rules = all_rules()
    if rule_id not in rules:
        raise SystemExit(unknown_name("rule", rule_id, rules))
    rule = rules[rule_id]
    yield f"class: {place_of(rule)}"
    yield from _requirements(rule)
    yield from _case(rule)
    faults = [fault for fault in all_faults().values() if fault.rule == rule_id]
    if not faults:
        yield f"{MISSING}a fault in harness/faults/tables/ that names this rule"
    yield from _matrix(faults)
    yield from _occasions(faults)
    yield from _golden(rule)
    docs.main()
    yield "docs: written"


def place_of(rule: type[Monitor]) -> str:
    """Return `file:line class` of a rule."""
    path = Path(inspect.getsourcefile(rule) or "").relative_to(ROOT)
    return f"{path}:{inspect.getsourcelines(rule)[1]} {rule.__name__}"


def _requirements(rule: type[Monitor]) -> Iterator[str]:
    rows = load_book().requirements_of(rule.id)
    for row in rows:
        clause = row.clause
        yield f"requirement: {row.id} ({clause.basis}, {clause.document}, line {clause.line})"
    if not rows:
        yield f"{MISSING}a row of harness/protocol/spec/requirements/ that names this rule"


def _case(rule: type[Monitor]) -> Iterator[str]:
    """Run the tests of the rule's case and edges, and yield the result."""
    files = ("tests/rules/test_rule_cases.py", "tests/rules/test_edges.py")
    selected = f"[{rule.id}] or [{rule.id}: or test_every_rule_has_its_three_traces_once"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *files,
        "-k",
        selected,
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ran.returncode == 0:
        yield f"case and edges: {ran.stdout.splitlines()[-1]}"
    else:
        yield f"{MISSING}a case that is judged as written:\n{ran.stdout}"


def _matrix(faults: list[Fault]) -> Iterator[str]:
    rows = matrix.read_table()
    for fault in faults:
        trace = load(matrix.GOOD / f"{fault.on}.jsonl", classify_of=classify_of)
        mutation = mutate(load_book(), trace, [fault])[0]
        row = matrix.table({fault.id: mutation})[fault.id]
        noticed = mutation.outcome is Outcome.KILLED
        yield (
            f"{'fault' if noticed else MISSING + 'a rule that notices the fault'}: {fault.id} on "
            f"{fault.on}: {', '.join(mutation.noticing_rules) or 'no rule'}"
            f"{'' if rows.get(fault.id) == row else ' (matrix changed)'}"
        )
        rows[fault.id] = row
    matrix.write(rows)


def _occasions(faults: list[Fault]) -> Iterator[str]:
    """Find scenarios for new faults in the traces of the last `make demo`; write occasions.yaml."""
    table = {fault: list(ids) for fault, ids in known_occasions().items()}
    new = [fault for fault in faults if fault.id not in table]
    paths = sorted(PLAYED.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    if new and not paths:
        yield f"{MISSING}traces of the reference server: run make demo, then this again"
    for path in paths if new else ():
        trace = load(path, classify_of=classify_of)
        for mutation in mutate(load_book(), trace, new, only_own=True):
            if mutation.outcome is Outcome.KILLED:
                table.setdefault(mutation.fault_id, []).append(trace.header.scenario)
        new = [one for one in new if len(table.get(one.id, ())) < occasions.MAX_SCENARIOS]
        if not new:
            break
    for fault in faults:
        if fault.id in table:
            yield f"occasions: {fault.id}: {', '.join(table[fault.id])}"
        elif paths:
            yield f"{MISSING}a scenario in which {fault.id} can act"
    occasions.write({fault: table[fault] for fault in sorted(table)})


def _golden(rule: type[Monitor]) -> Iterator[str]:
    """Judge the tests' conversations by this rule alone; write its line of the golden findings."""
    found = findings.Findings()
    hints = {legal_name(edge): edge.hints for edge in legal()}
    judged_good = False
    for name, trace in conversations():
        rows = judge(load_book(), trace, [rule])
        found.add(name, rows)
        judged_good |= name.startswith("good/") and bool(rows)
        for row in wrong_objections(name, rows, hints.get(name, frozenset())):
            yield (
                f"{MISSING}agreement with {name}: the rule objects at {row.level} to {row.subject} "
                f"({row.actual}); see it: python -m tests.golden.conversations {name}"
            )
    if not judged_good:
        yield (
            f"{MISSING}a good trace in which the rule judges something: extend one in "
            "tests/rules/good_*.py, then python -m tests.rules.good_traces"
        )
    yield f"golden: {findings.replace_rule(rule.id, found)}"


def wrong_objections(name: str, rows: Iterable[Row], hints: Collection[str]) -> list[Row]:
    """Return the objections to a conversation that is correct.

    Nothing may object to a good one; to a legal one, and to a server that chose otherwise at an
    open point, rules may object at INFO, and those in `hints` at SHOULD.
    """
    objections = [row for row in rows if row.verdict is not Verdict.PASS]
    if name.startswith("good/"):
        return objections
    if not name.startswith(("legal/", "open/")):
        return []
    return [
        row
        for row in objections
        if row.verdict is Verdict.ERROR
        or row.level is Level.MUST
        or (row.level is Level.SHOULD and row.rule not in hints)
    ]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("use: make prove RULE=family.slug")
    proof = list(prove(sys.argv[1]))
    sys.stdout.write("\n".join([*proof, ""]))
    sys.exit(any(line.startswith(MISSING) for line in proof))
