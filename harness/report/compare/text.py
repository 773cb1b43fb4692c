"""A comparison as lines of text: for a terminal, and as Markdown for a page."""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.report.compare.values import Change, Comparison, Kind, Run, Where
from harness.report.results.rerun_command import near_path

_WIDTH = 200
_FEW = 3
_SCENARIO = "scenario "
# What the kinds of differences are called above their lists in Markdown.
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


def lines(found: Comparison) -> Iterator[str]:
    """The differences by kind, what was left out, and a last line with the sums."""
    before, after = found.before, found.after
    yield f"before: {before.name} ({_programs(before)})"
    yield f"after:  {after.name} ({_programs(after)})"
    yield f"compared: {found.common} scenarios, which both played"
    yield from _left_out(found)
    for kind, group in _by_kind(found):
        yield ""
        yield f"{kind} ({len(group)})"
        yield from _changes(group)
    if found.unsteady:
        yield ""
        yield f"unsteady ({len(found.unsteady)}): too seldom to tell from chance"
        yield from _changes(found.unsteady)
    yield ""
    yield sums(found)


def _left_out(found: Comparison) -> Iterator[str]:
    for run, names in ((found.before, found.only_before), (found.after, found.only_after)):
        if names:
            yield f"left out: {len(names)} that only {run.name} played, such as {names[0]}"
    yield from (f"note: {remark}" for remark in found.remarks)


def _by_kind(found: Comparison) -> Iterator[tuple[Kind, list[Change]]]:
    for kind in Kind:
        group = [one for one in found.changes if one.kind is kind]
        if group:
            yield kind, group


def _changes(group: Sequence[Change]) -> Iterator[str]:
    for change in _joined(group):
        yield _cut(f"  {change.subject}: {change.before} -> {change.after}")
        if change.note:
            yield _cut(f"      {change.note}")
        for word, where in (("before", change.shown_before), ("after ", change.shown_after)):
            if where.trace:
                yield f"      {word}  {_where(where)}"


def _joined(group: Sequence[Change]) -> list[Change]:
    """Scenarios that failed for one reason as one change, and so situations of one point."""
    kept: dict[tuple[str, ...], list[Change]] = {}
    for change in group:
        alone = change.subject
        if change.subject.startswith(_SCENARIO):
            alone = ""
        elif change.kind is Kind.CHOICE:
            alone = change.subject.partition(" (")[0]
        key = (alone, change.before, change.after, change.note)
        kept.setdefault(key, []).append(change)
    return [_one_of(same) for same in kept.values()]


def _one_of(same: list[Change]) -> Change:
    first = same[0]
    if len(same) == 1:
        return first
    if first.kind is Kind.CHOICE:
        names = [one.subject.partition(" (")[2].removesuffix(")") for one in same]
        what = f"{first.subject.partition(' (')[0]}, {len(same)} situations"
    else:
        names = [one.subject.removeprefix(_SCENARIO).partition(": ")[0] for one in same]
        what = f"{len(same)} scenarios"
    shown = ", ".join(names[:_FEW]) + (", …" if len(names) > _FEW else "")
    return replace(first, subject=f"{what} ({shown})")


def _where(where: Where) -> str:
    frame = f" --message {where.frame}" if where.frame >= 0 else ""
    return f"harness show {near_path(where.trace)}{frame}"


def _cut(line: str) -> str:
    if len(line) <= _WIDTH:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return indent + textwrap.shorten(line, _WIDTH - len(indent), placeholder=" …")


def sums(found: Comparison) -> str:
    """Return the number of differences of each kind, in one line."""
    counts = Counter(one.kind for one in found.changes)
    parts = [f"{counts[kind]} {kind}" for kind in Kind if counts[kind]]
    if found.unsteady:
        parts.append(f"{len(found.unsteady)} unsteady")
    return f"differences: {', '.join(parts) or 'none'}"


def _programs(run: Run) -> str:
    """The commands of what was played: of a server, of an agent, of the driver of an SDK."""
    report = run.report
    return "; ".join(one for one in (report.command, report.agent, report.sdk) if one)


def markdown(found: Comparison, shown: Callable[[Where], str] = lambda _: "") -> Iterator[str]:
    """The same for a page. `shown` gives the words for a trace, "" to leave it out."""
    names = f"{found.before.name} and {found.after.name}"
    yield f"{names}: {found.common} scenarios, which both played."
    for line in _left_out(found):
        yield ""
        yield f"{line[0].upper()}{line[1:]}."
    for kind, group in _by_kind(found):
        yield ""
        yield f"## {HEADINGS[kind]}"
        yield ""
        yield "| what | before | after | why it matters, or what shows it |"
        yield "|---|---|---|---|"
        for change in _joined(group):
            words = [change.note, shown(change.shown_before), shown(change.shown_after)]
            note = "; ".join(dict.fromkeys(_shortened(one) for one in words if one))
            yield _row(change.subject, change.before, change.after, note)
    if found.unsteady:
        yield ""
        yield f"## {UNSTEADY}"
        yield ""
        yield "| what | before | after |"
        yield "|---|---|---|"
        yield from (_row(one.subject, one.before, one.after) for one in found.unsteady)
    yield ""
    yield f"{sums(found).capitalize()}."


def _shortened(words: str) -> str:
    return textwrap.shorten(words, _WIDTH, placeholder=" …")


def _row(*cells: str) -> str:
    return "| " + " | ".join(" ".join(one.replace("|", "\\|").split()) for one in cells) + " |"
