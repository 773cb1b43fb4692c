"""A comparison as lines of text: for a terminal, and as Markdown for a page."""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.report.compare.values import Change, Comparison, Kind, Run, TracePlace
from harness.report.results.rerun_command import near_path

_WIDTH = 200
_MAX_NAMES_LISTED = 3
_SCENARIO = "scenario "
OF_KNOWN = ", of known deviations"
# The headings of the kinds of differences in Markdown.
UNSTEADY = "Too seldom to tell from chance"
HEADINGS = {
    Kind.REGRESSED: "What got worse",
    Kind.CAPABILITY_GONE: "What is no longer offered",
    Kind.MENDED: "What was mended",
    Kind.CAPABILITY_NEW: "What is newly offered",
    Kind.BROKEN_ANEW: "What is broken where nothing was judged before",
    Kind.UNJUDGED: "What is no longer judged",
    Kind.CHOICE: "What is chosen differently where the text leaves it open",
    Kind.BREAKING: "Messages: what may break a client",
    Kind.ADDITIVE: "Messages: what a client can pass over",
}


def text_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the two runs, notes on parts left out, the differences by kind, and their counts."""
    before, after = comparison.before, comparison.after
    yield f"before: {before.name} ({_programs(before)})"
    yield f"after:  {after.name} ({_programs(after)})"
    yield f"compared: {comparison.common} scenarios, which both played"
    yield from left_out(comparison)
    for kind, known, group in changes_by_kind(comparison):
        yield ""
        yield f"{kind}{OF_KNOWN if known else ''} ({len(group)})"
        yield from _changes(group)
    if comparison.unsteady:
        yield ""
        yield f"unsteady ({len(comparison.unsteady)}): too seldom to tell from chance"
        yield from _changes(comparison.unsteady)
    yield ""
    yield summary_line(comparison)


def left_out(comparison: Comparison) -> Iterator[str]:
    """Yield notes on what was not compared."""
    for run, names in (
        (comparison.before, comparison.only_before),
        (comparison.after, comparison.only_after),
    ):
        if names:
            yield f"left out: {len(names)} that only {run.name} played, such as {names[0]}"
    yield from (f"note: {remark}" for remark in comparison.remarks)


def changes_by_kind(comparison: Comparison) -> Iterator[tuple[Kind, bool, list[Change]]]:
    """Yield the changes of each kind, then those of known deviations."""
    for known in (False, True):
        for kind in Kind:
            group = [
                change
                for change in comparison.changes
                if change.kind is kind and change.known is known
            ]
            if group:
                yield kind, known, group


def _changes(group: Sequence[Change]) -> Iterator[str]:
    for change in merge_alike(group):
        yield _cut(f"  {change.subject}: {change.before} -> {change.after}")
        if change.note:
            yield _cut(f"      {change.note}")
        for word, trace_place in (("before", change.shown_before), ("after ", change.shown_after)):
            if trace_place.trace:
                yield f"      {word}  {show_command(trace_place)}"


def merge_alike(group: Sequence[Change]) -> list[Change]:
    """Return the changes; scenarios that failed alike, and situations of a point, are merged."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in group:
        alone = change.subject
        if change.subject.startswith(_SCENARIO):
            alone = ""
        elif change.kind is Kind.CHOICE:
            alone = change.subject.partition(" (")[0]
        key = (alone, change.before, change.after, change.note)
        groups.setdefault(key, []).append(change)
    return [_merge(same) for same in groups.values()]


def _merge(same: list[Change]) -> Change:
    first = same[0]
    if len(same) == 1:
        return first
    if first.kind is Kind.CHOICE:
        names = [change.subject.partition(" (")[2].removesuffix(")") for change in same]
        subject = f"{first.subject.partition(' (')[0]}, {len(same)} situations"
    else:
        names = [change.subject.removeprefix(_SCENARIO).partition(": ")[0] for change in same]
        subject = f"{len(same)} scenarios"
    names_shown = ", ".join(names[:_MAX_NAMES_LISTED]) + (
        ", …" if len(names) > _MAX_NAMES_LISTED else ""
    )
    return replace(first, subject=f"{subject} ({names_shown})")


def show_command(place: TracePlace) -> str:
    """Return the command that prints the trace of a change."""
    frame = f" --message {place.frame}" if place.frame >= 0 else ""
    return f"harness show {near_path(place.trace)}{frame}"


def _cut(line: str) -> str:
    if len(line) <= _WIDTH:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return indent + textwrap.shorten(line, _WIDTH - len(indent), placeholder=" …")


def summary_line(comparison: Comparison) -> str:
    """Return the number of differences of each kind, in one line."""
    counts = Counter(change.kind for change in comparison.changes)
    parts = [f"{counts[kind]} {kind}" for kind in Kind if counts[kind]]
    if comparison.unsteady:
        parts.append(f"{len(comparison.unsteady)} unsteady")
    return f"differences: {', '.join(parts) or 'none'}"


def _programs(run: Run) -> str:
    """Return the commands that were played: of a server, of an agent, of an SDK's driver."""
    report = run.report
    return "; ".join(command for command in (report.command, report.agent, report.sdk) if command)


def markdown(
    comparison: Comparison, describe_place: Callable[[TracePlace], str] = lambda _: ""
) -> Iterator[str]:
    """Yield the lines of a Markdown page. `describe_place` returns the words for a trace, or ""."""
    names = f"{comparison.before.name} and {comparison.after.name}"
    yield f"{names}: {comparison.common} scenarios, which both played."
    for line in left_out(comparison):
        yield ""
        yield f"{line[0].upper()}{line[1:]}."
    for kind, known, group in changes_by_kind(comparison):
        yield ""
        yield f"## {HEADINGS[kind]}{OF_KNOWN if known else ''}"
        yield ""
        yield "| what | before | after | why it matters, or what shows it |"
        yield "|---|---|---|---|"
        for change in merge_alike(group):
            words = [
                change.note,
                describe_place(change.shown_before),
                describe_place(change.shown_after),
            ]
            note = "; ".join(dict.fromkeys(_shorten(word) for word in words if word))
            yield _row(change.subject, change.before, change.after, note)
    if comparison.unsteady:
        yield ""
        yield f"## {UNSTEADY}"
        yield ""
        yield "| what | before | after |"
        yield "|---|---|---|"
        yield from (
            _row(change.subject, change.before, change.after) for change in comparison.unsteady
        )
    yield ""
    yield f"{summary_line(comparison).capitalize()}."


def _shorten(words: str) -> str:
    return textwrap.shorten(words, _WIDTH, placeholder=" …")


def _row(*cells: str) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"
