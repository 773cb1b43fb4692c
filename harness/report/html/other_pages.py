"""Pages of what is not one run: a comparison, a matrix of targets, a fuzz campaign."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from harness.protocol.spec.loading import load_book
from harness.report.compare.text import (
    HEADINGS,
    OF_KNOWN,
    UNSTEADY,
    changes_by_kind,
    left_out,
    merge_alike,
    show_command,
)
from harness.report.compare.values import Change, Comparison
from harness.report.diagram.differences import differing_rows
from harness.report.html.conversations import (
    MAX_CONVERSATION_BYTES,
    Conversations,
    PlacedFinding,
    draw_stored,
)
from harness.report.html.findings import case_text, failure_trace
from harness.report.html.page import shown_findings
from harness.report.html.rendering import render
from harness.report.json_form import DISTRIBUTION
from harness.report.matrix import Matrix
from harness.report.requirements import with_levels
from harness.report.results.outcome import Finding
from harness.report.sequence_coverage import coverage_lines

SIDES = ("before", "after")


def comparison_page(comparison: Comparison) -> str:
    """Return the page of two runs: their differences alone, the most important first."""
    groups = list(_change_groups(comparison))
    return _render(
        "comparison.html.j2",
        heading=f"{comparison.before.name} → {comparison.after.name}",
        tone="fail" if comparison.worse else "pass",
        sections=[("differences", "Differences", len(comparison.changes))],
        comparison=comparison,
        groups=groups,
        conversations=_differing_conversations(comparison, groups),
        left_out=list(left_out(comparison)),
        show_command=show_command,
        sides=SIDES,
    )


def _differing_conversations(
    comparison: Comparison, groups: Sequence[tuple[str, int, Sequence[Change]]]
) -> Conversations:
    """Return the rows in which the conversations of each change differ, as `before TRACE TRACE`."""
    findings: dict[str, list[PlacedFinding]] = defaultdict(list)
    for run in (comparison.before, comparison.after):
        for trace, finding in shown_findings(run.report):
            findings[trace].append(finding)
    conversations = Conversations(MAX_CONVERSATION_BYTES)
    changes = [change for *_, group in groups for change in group]
    for names in dict.fromkeys((one.shown_before.trace, one.shown_after.trace) for one in changes):
        before, after = (draw_stored(name, findings[name]) for name in names)
        if before is not None and after is not None:
            for side, diagram in zip(SIDES, differing_rows(before, after), strict=True):
                conversations.put(f"{side} {names[0]} {names[1]}", diagram)
    return conversations


def _change_groups(comparison: Comparison) -> Iterator[tuple[str, int, list[Change]]]:
    """Yield each group's title, number of changes and rows: what makes it worse first."""
    groups = [
        (f"{HEADINGS[kind]}{OF_KNOWN if known else ''}", group)
        for kind, known, group in changes_by_kind(comparison)
    ]
    groups.sort(key=lambda group: not any(change.counts for change in group[1]))
    if comparison.unsteady:
        groups.append((UNSTEADY, [replace(one, counts=False) for one in comparison.unsteady]))
    for title, group in groups:
        yield title, len(group), merge_alike(group)


def matrix_page(matrix: Matrix) -> str:
    """Return the page of many targets: a column for each, a row for each requirement."""
    book = load_book()
    columns = [
        replace(one, report=with_levels(one.report, book)) if one.report else one
        for one in matrix.columns
    ]
    matrix = replace(matrix, columns=columns)
    is_red = any(column.verdict == "RED" for column in columns)
    judged = matrix.judged_columns()
    differing = matrix.rows(only_differences=True)
    return _render(
        "matrix.html.j2",
        heading=f"{len(matrix.columns)} targets",
        tone="fail" if is_red else "pass" if judged else "error",
        sections=[
            ("targets", "Targets", len(matrix.columns)),
            ("requirements", "Requirements", None),
        ],
        columns=columns,
        judged=judged,
        rows=matrix.rows(only_differences=False),
        differing=set(differing),
        statements={one.id: one.clause.statement for one in book.requirements},
        count_line=matrix.count_line(full=True),
        interrupted=matrix.interrupted,
    )


def fuzz_page(fuzz: dict[str, Any]) -> str:
    """Return the page of the JSON results of `harness fuzz`."""
    traces = {failure["id"]: failure_trace(failure) for failure in fuzz["failures"]}
    conversations = Conversations(MAX_CONVERSATION_BYTES)
    conversations.add_all(
        traces.values(),
        [],
        [
            (traces[failure["id"]], (Finding(failure["cause"], failure["text"]), ""))
            for failure in fuzz["failures"]
        ],
    )
    return _render(
        "fuzz.html.j2",
        heading="harness fuzz",
        tone="fail" if "RED" in fuzz["verdict"] else "pass",
        sections=[("findings", "Failures", len(fuzz["failures"]))],
        fuzz=fuzz,
        coverage=[
            line
            for search in fuzz["searches"]
            for line in coverage_lines(search.get("coverage", ()))
        ],
        case_text=case_text,
        traces=traces,
        conversations=conversations,
    )


def load_page(load: dict[str, Any]) -> str:
    """Return the page of the JSON results of `harness load`, which links to Locust's pages."""
    clean = all(step["clean"] for step in load["steps"])
    return _render(
        "load.html.j2",
        heading="harness load",
        tone="pass" if clean else "fail",
        sections=[("steps", "Steps", len(load["steps"]))],
        load=load,
    )


def _render(template: str, **values: Any) -> str:
    title = f"{values['heading']}: {template.partition('.')[0]}"
    return render(template, title=title, harness=version(DISTRIBUTION), **values)
