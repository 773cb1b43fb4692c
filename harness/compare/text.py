"""A comparison as lines of text for a terminal.

Here: lines. Not here: what differs (verdicts, between).
"""

import textwrap
from collections import Counter
from collections.abc import Iterator

from harness.compare.values import Change, Comparison, Kind, Where
from harness.results.rerun_command import near_path

_WIDTH = 160


def lines(found: Comparison) -> Iterator[str]:
    """The differences by kind, what was left out, and a last line with the sums."""
    before, after = found.before, found.after
    yield f"before: {before.name} ({before.report.command})"
    yield f"after:  {after.name} ({after.report.command})"
    yield f"compared: {found.common} scenarios, which both played"
    for run, names in ((before, found.only_before), (after, found.only_after)):
        if names:
            yield f"left out: {len(names)} that only {run.name} played, such as {names[0]}"
    yield from (f"note: {remark}" for remark in found.remarks)
    for kind in Kind:
        group = [one for one in found.changes if one.kind is kind]
        if group:
            yield ""
            yield f"{kind} ({len(group)})"
            for change in group:
                yield from _change(change)
    if found.unsteady:
        yield ""
        yield f"unsteady ({len(found.unsteady)}): seen in one run only, which may be chance"
        for change in found.unsteady:
            yield from _change(change)
    yield ""
    yield _sums(found)


def _change(change: Change) -> Iterator[str]:
    yield f"  {change.subject}: {change.before} -> {change.after}"
    if change.note:
        yield f"      {textwrap.shorten(change.note, _WIDTH, placeholder=' …')}"
    for word, where in (("before", change.shown_before), ("after ", change.shown_after)):
        if where.trace:
            yield f"      {word}  {_where(where)}"


def _where(where: Where) -> str:
    frame = f" frame {where.frame}" if where.frame >= 0 else ""
    return f"harness show {near_path(where.trace)}{frame}"


def _sums(found: Comparison) -> str:
    counts = Counter(one.kind for one in found.changes)
    parts = [f"{counts[kind]} {kind}" for kind in Kind if counts[kind]]
    if found.unsteady:
        parts.append(f"{len(found.unsteady)} unsteady")
    return f"differences: {', '.join(parts) or 'none'}"
