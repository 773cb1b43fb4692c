"""The report as a Markdown page, for the summary of a CI job or the comment on a pull request.

What a server said is shown as code, in which Markdown and HTML mean nothing: it can make no link,
image, mention, heading or cell.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.book import Book
from harness.report.requirements import judged_requirements
from harness.report.results.report import Report, RuleResult, gravest, is_red
from harness.report.results.rerun_command import named, play_again
from harness.report.terminal import rule_line, verdict_words
from harness.trace.surfaces import surface_of

# GitHub takes 1 MiB a step; a table of more rows is read by nobody.
_ROWS: Final = 50
_COMMANDS: Final = 5
_MAX_LINE_CHARACTERS: Final = 300
_MARKS: Final = {Verdict.FAIL: "❌", Verdict.ERROR: "💥"}

Row = tuple[str, str, str]


def markdown(report: Report, book: Book, harness: str) -> str:
    """The whole page, ending in a newline; `harness` is the version that judged."""
    lines = [f"## Conformance of {code(report.target)}: {verdict_words(report)}", ""]
    lines += _facts(report, book, harness)
    lines += _section("What makes the run fail", list(_failing(report)))
    lines += _again(report)
    lines += _folded("Told, and not counted", list(_told(report)))
    lines += _folded("Known deviations", list(_known(report)))
    lines += _folded("Not judged", list(_not_judged(report)))
    return "\n".join(lines).rstrip() + "\n"


def code(text: str) -> str:
    """Somebody's text as one line of code that fits into a table."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = line if len(line) <= _MAX_LINE_CHARACTERS else line[: _MAX_LINE_CHARACTERS - 1] + "…"
    if not line:
        return ""
    if "`" not in line and "|" not in line:
        return f"`{line}`"
    # A cell ends at a bar even in code, and code at a grave accent.
    safe = "".join(c if c.isalnum() or c in " .,-/" else f"&#{ord(c)};" for c in line)
    return f"<code>{safe}</code>"


def _facts(report: Report, book: Book, harness: str) -> Iterator[str]:
    command = report.command or report.agent or report.sdk
    server = ", ".join(filter(None, (code(report.server), code(command))))
    placements = [one for race in report.races for one in race.placements]
    rows = {
        "judged": server,
        "by": f"harness {code(harness)}, documents {code(report.revision)}",
        "rules": _counted([_word(rule, report) for rule in report.rules]),
        "scenarios": _counted([str(one.verdict) for one in report.scenarios]),
        "placements of races": _counted([str(one.verdict) for one in placements]),
        "generated cases": ", ".join(
            _searched(one) for fuzz in report.fuzz for one in fuzz["searches"]
        ),
        "requirements judged": judged_requirements(report, book).words(),
        "when": f"{code(report.started)}, {report.took:.1f} s" if report.started else "",
    }
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {value} |" for name, value in rows.items() if value)
    yield ""


def _searched(one: dict[str, Any]) -> str:
    return f"{one['conversations']} of {one['kind']}"


def _word(rule: RuleResult, report: Report) -> str:
    counted = rule.verdict is not Verdict.FAIL or is_red(rule, strict=report.strict)
    return str(rule.verdict if counted else gravest(rule))


def _counted(words: Sequence[str]) -> str:
    counts = Counter(words)
    order = [*map(str, Verdict), *map(str, Level)]
    shown = ", ".join(f"{counts[word]} {word}" for word in order if counts[word])
    return f"{len(words)} ({shown})" if words else ""


def _failing(report: Report) -> Iterator[Row]:
    for issue in report.issues:
        if issue.level is Level.MUST and not issue.known:
            yield f"❌ {code(issue.id)}", "", code(issue.message)
    for rule in report.red_rules():
        yield _of_rule(rule, report)
    for one in report.scenarios:
        if one.verdict in _MARKS:
            yield f"{_MARKS[one.verdict]} scenario", code(one.id), code(one.reason)
    for race in report.races:
        if race.verdict in _MARKS:
            yield f"{_MARKS[race.verdict]} race", code(race.id), code(race.reason)
    for fuzz in report.fuzz:
        for one in fuzz["failures"]:
            yield f"❌ {code(one['cause'])}, generated", code(one["id"]), code(one["text"])
        if "RED" in fuzz["verdict"]:
            # What kept the search from going on makes the run fail as well.
            yield from (("❌ generated cases", "", code(note)) for note in fuzz["notes"])


def _of_rule(rule: RuleResult, report: Report) -> Row:
    told = rule_line(rule, strict=report.strict)
    where, _, what = told.partition(f" {rule.id} in ")[2].partition(": ")
    mark = _MARKS.get(rule.verdict, "") if is_red(rule, strict=report.strict) else ""
    return f"{mark} {code(rule.id)} {gravest(rule)}".strip(), code(where), code(what)


def _again(report: Report) -> Iterator[str]:
    """Give the commands that play what failed on one's own machine."""
    commands: dict[str, None] = {}
    for rule in report.red_rules():
        first = next((one for one in rule.proofs if one.row.verdict is not Verdict.KNOWN), None)
        if first is not None:
            path = named(first.path, first.scenario)
            surfaces = [surface_of(first.scenario)]
            again = play_again(report.programs, surfaces, [path], rule=rule.id, race=first.race)
            commands[again] = None
    for one in report.scenarios:
        if one.verdict in _MARKS:
            again = play_again(report.programs, [surface_of(one.id)], [named(one.path, one.id)])
            commands[again] = None
    commands |= {
        one["replay"]: None for fuzz in report.fuzz for one in fuzz["failures"] if one["replay"]
    }
    shown = [one for one in commands if one.isprintable() and "```" not in one][:_COMMANDS]
    if shown:
        yield from ("```sh", *shown, "```", "")


def _told(report: Report) -> Iterator[Row]:
    for issue in report.issues:
        if issue.level is not Level.MUST and not issue.known:
            yield f"{code(issue.id)} {issue.level}", "", code(issue.message)
    for rule in report.rules:
        if rule.verdict is Verdict.FAIL and not is_red(rule, strict=report.strict):
            yield _of_rule(rule, report)
    for fuzz in report.fuzz:
        for one in fuzz["searches"]:
            yield from (
                ("not seen again", code(one["kind"]), code(text)) for text in one["unsteady"]
            )
        if "RED" not in fuzz["verdict"]:
            yield from (("generated cases", "", code(note)) for note in fuzz["notes"])


def _known(report: Report) -> Iterator[Row]:
    for rule in report.rules:
        known = [one for one in rule.proofs if one.row.verdict is Verdict.KNOWN]
        if known:
            reasons = dict.fromkeys(one.reason for one in known if one.reason)
            yield code(rule.id), code(known[0].scenario), code("; ".join(reasons))
    for one in report.scenarios:
        if one.verdict is Verdict.KNOWN:
            yield "scenario", code(one.id), code(one.reason)
    for issue in report.issues:
        if issue.known:
            yield code(issue.id), "", code(issue.known)


def _not_judged(report: Report) -> Iterator[Row]:
    for verdict in (Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE):
        rules = Counter(one.reason for one in report.rules if one.verdict is verdict)
        scenarios = Counter(one.reason for one in report.scenarios if one.verdict is verdict)
        for kind, reasons in (("rule(s)", rules), ("scenario(s)", scenarios)):
            for reason, count in reasons.most_common():
                yield str(verdict), f"{count} {kind}", code(reason)


def _section(title: str, rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield from (f"### {title}", "", *_table(rows))


def _folded(title: str, rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield f"<details><summary>{title} ({len(rows)})</summary>"
        yield ""
        yield from _table(rows)
        yield "</details>"
        yield ""


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| finding | where | what |"
    yield "|---|---|---|"
    yield from (f"| {' | '.join(row)} |" for row in rows[:_ROWS])
    if len(rows) > _ROWS:
        yield f"| … | | {len(rows) - _ROWS} more |"
    yield ""
