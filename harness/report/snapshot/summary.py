"""Snapshots that wait for review, as Markdown: for a pull request, or the summary of a CI job.

Servers wrote the words in it: nothing of them is read as Markdown or HTML, or names a person.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from harness.report.snapshot.changes import headline
from harness.report.snapshot.folder import State, Waiting
from harness.report.snapshot.review import counted, difference, sentences
from harness.report.snapshot.sides import unified

_MAX_DIFFERENCES, _LINES = 50, 60
"""So many snapshots are shown with their difference, and so many lines of each."""
_TITLES = {
    State.CHANGED: "Changed",
    State.NEW: "New",
    State.UNUSED: "Unused",
    State.DAMAGED: "Cannot be read",
}


def markdown(waiting: Sequence[Waiting], accepted: int) -> Iterator[str]:
    """The lines of the page; `accepted` is the number of all accepted snapshots."""
    yield "## Snapshots"
    yield ""
    if not waiting:
        yield f"Nothing waits for review: {accepted} snapshot(s) are as accepted."
        return
    yield f"{counted(waiting)}, of {accepted} accepted."
    for state, title in _TITLES.items():
        group = [one for one in waiting if one.state is state]
        if not group:
            continue
        yield from (
            "",
            f"### {title} ({len(group)})",
            "",
            "| snapshot | what it means |",
            "|---|---|",
        )
        for one in group:
            yield f"| {code(one.name)} | {code(headline(sentences(one)))} |"
    changed = [one for one in waiting if one.state is State.CHANGED]
    for one in changed[:_MAX_DIFFERENCES]:
        yield from _details(one)
    if len(changed) > _MAX_DIFFERENCES:
        yield from (
            "",
            f"The differences of {len(changed) - _MAX_DIFFERENCES} more are not shown here.",
        )


def _details(one: Waiting) -> Iterator[str]:
    lines = list(unified(difference(one)))
    runs = [len(run) for line in lines for run in re.findall("`+", line)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    yield from ("", "<details>", f"<summary>{_html(one.name)}</summary>", "")
    yield from (f"- {code(sentence)}" for sentence in sentences(one))
    yield from ("", f"{fence}diff", *islice(lines, _LINES), fence)
    if len(lines) > _LINES:
        yield f"… {len(lines) - _LINES} lines more"
    yield from ("", "</details>")


def code(words: str) -> str:
    """Words as code, which a table can hold."""
    runs = [len(run) for run in re.findall("`+", words)]
    fence = "`" * (1 + max(runs, default=0))
    space = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{space}{words.replace('|', chr(92) + '|')}{space}{fence}"


def _html(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
