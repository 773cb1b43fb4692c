"""Snapshots that wait for review, as Markdown: for a pull request, or the summary of a CI job.

Words of servers in it are code, so that they cannot act as Markdown or HTML, or mention a person.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from harness.report.snapshot.changes import headline
from harness.report.snapshot.difference_lines import unified_lines
from harness.report.snapshot.folder import State, WaitingSnapshot
from harness.report.snapshot.review import count_by_state, describe_snapshot, difference_lines

_MAX_DIFFERENCES, _LINES = 50, 60
"""The snapshots that are shown with their difference, and the lines of each."""
_TITLES = {
    State.CHANGED: "Changed",
    State.NEW: "New",
    State.UNUSED: "Unused",
    State.DAMAGED: "Cannot be read",
}


def markdown(waiting: Sequence[WaitingSnapshot], accepted: int) -> Iterator[str]:
    """Yield the lines of the page; `accepted` is the number of all accepted snapshots."""
    yield "## Snapshots"
    yield ""
    if not waiting:
        yield f"Nothing waits for review: {accepted} snapshot(s) are as accepted."
        return
    yield f"{count_by_state(waiting)}, of {accepted} accepted."
    for state, title in _TITLES.items():
        group = [snapshot for snapshot in waiting if snapshot.state is state]
        if not group:
            continue
        yield from (
            "",
            f"### {title} ({len(group)})",
            "",
            "| snapshot | what it means |",
            "|---|---|",
        )
        for snapshot in group:
            sentence = headline(describe_snapshot(snapshot))
            yield f"| {format_code(snapshot.name)} | {format_code(sentence)} |"
    changed = [snapshot for snapshot in waiting if snapshot.state is State.CHANGED]
    for snapshot in changed[:_MAX_DIFFERENCES]:
        yield from _details(snapshot)
    if len(changed) > _MAX_DIFFERENCES:
        yield from (
            "",
            f"The differences of {len(changed) - _MAX_DIFFERENCES} more are not shown here.",
        )


def _details(snapshot: WaitingSnapshot) -> Iterator[str]:
    lines = list(unified_lines(difference_lines(snapshot)))
    runs = [len(run) for line in lines for run in re.findall("`+", line)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    yield from ("", "<details>", f"<summary>{_html(snapshot.name)}</summary>", "")
    yield from (f"- {format_code(sentence)}" for sentence in describe_snapshot(snapshot))
    yield from ("", f"{fence}diff", *islice(lines, _LINES), fence)
    if len(lines) > _LINES:
        yield f"… {len(lines) - _LINES} lines more"
    yield from ("", "</details>")


def format_code(words: str) -> str:
    """Return words as code that fits into a table."""
    runs = [len(run) for run in re.findall("`+", words)]
    fence = "`" * (1 + max(runs, default=0))
    space = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{space}{words.replace('|', chr(92) + '|')}{space}{fence}"


def _html(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
