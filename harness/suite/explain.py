"""What a rule demands, why, and what exercises it: `harness explain` and `harness list`."""

import inspect
import textwrap
from collections.abc import Iterator

from harness.faults.base import all_faults
from harness.report.tracecheck import UsageProblem
from harness.rules.base import all_rules
from harness.scenario.bundled import bundled_folder
from harness.scenario.explain import unknown
from harness.scenario.loader import find, load
from harness.spec.book import load_book


def explain_rule(rule_id: str) -> Iterator[str]:
    """The lines of an explanation. Raises `UsageProblem` for an unknown id."""
    rules = all_rules()
    rule = rules.get(rule_id)
    if rule is None:
        raise UsageProblem(unknown("rule", rule_id, rules))
    yield f"{rule.id} ({rule.level}): {rule.title}"
    yield ""
    yield from textwrap.wrap(" ".join((inspect.getdoc(rule) or "").split()), 96)
    yield ""
    for requirement in load_book().requirements_of(rule_id):
        clause = requirement.clause
        yield f"requirement {requirement.id} ({clause.basis})"
        yield from textwrap.wrap(clause.statement, 92, initial_indent="  ", subsequent_indent="  ")
        yield f"  {clause.document}, {clause.heading!r}, line {clause.line}"
    yield ""
    if rule.needs:
        yield f"needs: {', '.join(rule.needs)}"
    covering = [
        scenario.id
        for root, file in find([bundled_folder()])
        if rule_id in (scenario := load(file, root=root)).scenario.covers
    ]
    yield f"scenarios that cover it: {', '.join(covering) or 'none by name; see harness status'}"
    killers = [fault for fault in all_faults().values() if fault.rule == rule_id]
    for fault in killers:
        yield f"caught by it: {fault.id}: {fault.reason}"


def rule_table(*, markdown: bool = False) -> Iterator[str]:
    """All rules, one line each."""
    rules = all_rules().values()
    if markdown:
        yield "| rule | level | title |"
        yield "|---|---|---|"
        for rule in rules:
            yield f"| `{rule.id}` | {rule.level} | {rule.title} |"
        return
    width = max(len(rule.id) for rule in rules)
    for rule in rules:
        yield f"{rule.id:{width}}  {rule.level:6}  {rule.title}"
