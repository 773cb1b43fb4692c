"""The report as a Markdown page, for the summary of a CI job or the comment on a pull request.

A server's text is shown as code, in which Markdown and HTML mean nothing: it can make no link,
image, mention, heading or cell.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.book import Book
from harness.report.html.findings import COUNTS, finding_cards
from harness.report.requirements import judged_requirements
from harness.report.results.report import Report, RuleResult, gravest_level, is_red
from harness.report.results.rerun_command import replay_command, scenario_argument
from harness.report.sequence_coverage import coverage_lines
from harness.report.terminal import rule_line, verdict_words
from harness.trace.surfaces import surface_of

# GitHub takes 1 MiB a step, and nobody reads longer tables.
_MAX_ROWS: Final = 50
_MAX_COMMANDS: Final = 5
_MAX_WORST: Final = 3
_MAX_LINE_CHARACTERS: Final = 300
_MARKS: Final = {Verdict.FAIL: "❌", Verdict.ERROR: "💥"}

Row = tuple[str, str, str]


def markdown(report: Report, book: Book, harness: str) -> str:
    """Return the whole page, ending in a newline; `harness` is the version that judged."""
    lines = [f"## Conformance of {format_code(report.target)}: {verdict_words(report)}", ""]
    lines += _worst_findings(report, book)
    lines += _fact_rows(report, book, harness)
    lines += _section("What makes the run fail", list(_failing_rows(report)))
    lines += _replay_commands(report)
    lines += _folded_section("Reported, but not counted", list(_uncounted_rows(report)))
    lines += _folded_section("Known deviations", list(_known_rows(report)))
    lines += _folded_section("Not judged", list(_unjudged_rows(report)))
    return "\n".join(lines).rstrip() + "\n"


def format_code(text: str) -> str:
    """Return foreign text as one line of code that fits into a table."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = line if len(line) <= _MAX_LINE_CHARACTERS else line[: _MAX_LINE_CHARACTERS - 1] + "…"
    if not line:
        return ""
    if "`" not in line and "|" not in line:
        return f"`{line}`"
    # A cell ends at a bar even in code, and code at a grave accent.
    safe = "".join(c if c.isalnum() or c in " .,-/" else f"&#{ord(c)};" for c in line)
    return f"<code>{safe}</code>"


def _worst_findings(report: Report, book: Book) -> Iterator[str]:
    """Yield a list of the causes that count most: what was expected, what came, and where."""
    cards = [card for card in finding_cards(report, book) if card.group == COUNTS]
    for card in cards[:_MAX_WORST]:
        expected = f"expected {format_code(card.expected)}, actual " if card.expected else ""
        others = len(card.broken_in or card.scenarios) - 1
        place = f" in {format_code(card.scenario)}" if card.scenario else ""
        place += f" and {others} more" if others > 0 else ""
        yield f"{card.number}. {format_code(card.id)}: {expected}{format_code(card.actual)}{place}"
    if cards:
        yield ""


def _fact_rows(report: Report, book: Book, harness: str) -> Iterator[str]:
    command = report.command or report.agent or report.sdk
    server = ", ".join(filter(None, (format_code(report.server), format_code(command))))
    placements = [placement for race in report.races for placement in race.placements]
    rows = {
        "judged": server,
        "release": format_code(report.release_note or report.release),
        "suite": report.suite,
        "by": f"harness {format_code(harness)}, documents {format_code(report.revision)}",
        "rules": _count_words([_verdict_word(rule, report) for rule in report.rules]),
        "scenarios": _count_words([str(scenario.verdict) for scenario in report.scenarios]),
        "placements of races": _count_words([str(placement.verdict) for placement in placements]),
        "generated cases": ", ".join(
            _describe_search(search) for fuzz in report.fuzz for search in fuzz["searches"]
        ),
        "sequences": "; ".join(
            line
            for fuzz in report.fuzz
            for search in fuzz["searches"]
            for line in coverage_lines(search.get("coverage", ()))
        ),
        "requirements": judged_requirements(report, book).words(),
        "times": "<br>".join(
            f"{format_code(one.step or one.name)}: {one.words()}" for one in report.times
        ),
        "when": f"{format_code(report.started)}, {report.took:.1f} s" if report.started else "",
    }
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {value} |" for name, value in rows.items() if value)
    yield ""


def _describe_search(search: dict[str, Any]) -> str:
    return f"{search['conversations']} of {search['kind']}"


def _verdict_word(rule: RuleResult, report: Report) -> str:
    counted = rule.verdict is not Verdict.FAIL or is_red(rule, strict=report.strict)
    return str(rule.verdict if counted else gravest_level(rule))


def _count_words(words: Sequence[str]) -> str:
    counts = Counter(words)
    order = [*map(str, Verdict), *map(str, Level)]
    words_shown = ", ".join(f"{counts[word]} {word}" for word in order if counts[word])
    return f"{len(words)} ({words_shown})" if words else ""


def _failing_rows(report: Report) -> Iterator[Row]:
    for issue in report.issues:
        if issue.level is Level.MUST and not issue.known:
            lines = [issue.message, *filter(None, issue.paste.splitlines())]
            yield f"❌ {format_code(issue.id)}", "", "<br>".join(map(format_code, lines))
    for rule in report.red_rules():
        yield _rule_row(rule, report)
    for scenario in report.scenarios:
        if scenario.verdict in _MARKS:
            yield (
                f"{_MARKS[scenario.verdict]} scenario",
                format_code(scenario.id),
                format_code(scenario.reason),
            )
    for race in report.races:
        if race.verdict in _MARKS:
            yield f"{_MARKS[race.verdict]} race", format_code(race.id), format_code(race.reason)
    for fuzz in report.fuzz:
        for scenario in fuzz["failures"]:
            yield (
                f"❌ {format_code(scenario['cause'])}, generated",
                format_code(scenario["id"]),
                format_code(scenario["text"]),
            )
        if "RED" in fuzz["verdict"]:
            # The reason why a search stopped early makes the run fail as well.
            yield from (("❌ generated cases", "", format_code(note)) for note in fuzz["notes"])


def _rule_row(rule: RuleResult, report: Report) -> Row:
    line = rule_line(rule, strict=report.strict)
    place, _, actual = line.partition(f" {rule.id} in ")[2].partition(": ")
    mark = _MARKS.get(rule.verdict, "") if is_red(rule, strict=report.strict) else ""
    return (
        f"{mark} {format_code(rule.id)} {gravest_level(rule)}".strip(),
        format_code(place),
        format_code(actual),
    )


def _replay_commands(report: Report) -> Iterator[str]:
    """Yield a block of commands that replay the failures on one's own machine."""
    commands: dict[str, None] = {}
    for rule in report.red_rules():
        first = next(
            (proof for proof in rule.proofs if proof.row.verdict is not Verdict.KNOWN), None
        )
        if first is not None:
            path = scenario_argument(first.path, first.scenario)
            surfaces = [surface_of(first.scenario)]
            again = replay_command(report.programs, surfaces, [path], rule=rule.id, race=first.race)
            commands[again] = None
    for scenario in report.scenarios:
        if scenario.verdict in _MARKS:
            again = replay_command(
                report.programs,
                [surface_of(scenario.id)],
                [scenario_argument(scenario.path, scenario.id)],
            )
            commands[again] = None
    commands |= {
        failure["replay"]: None
        for fuzz in report.fuzz
        for failure in fuzz["failures"]
        if failure["replay"]
    }
    commands_shown = [
        command for command in commands if command.isprintable() and "```" not in command
    ][:_MAX_COMMANDS]
    if commands_shown:
        yield from ("```sh", *commands_shown, "```", "")


def _uncounted_rows(report: Report) -> Iterator[Row]:
    for issue in report.issues:
        if issue.level is not Level.MUST and not issue.known:
            yield f"{format_code(issue.id)} {issue.level}", "", format_code(issue.message)
    for rule in report.rules:
        if rule.verdict is Verdict.FAIL and not is_red(rule, strict=report.strict):
            yield _rule_row(rule, report)
    for fuzz in report.fuzz:
        for search in fuzz["searches"]:
            yield from (
                ("not seen again", format_code(search["kind"]), format_code(text))
                for text in search["unsteady"]
            )
            yield from (
                ("SHOULD", format_code(search["kind"]), format_code(text))
                for text in search.get("broken_should", ())
            )
        if "RED" not in fuzz["verdict"]:
            yield from (("generated cases", "", format_code(note)) for note in fuzz["notes"])


def _known_rows(report: Report) -> Iterator[Row]:
    for rule in report.rules:
        proofs = [proof for proof in rule.proofs if proof.row.verdict is Verdict.KNOWN]
        if proofs:
            reasons = dict.fromkeys(proof.reason for proof in proofs if proof.reason)
            yield (
                format_code(rule.id),
                format_code(proofs[0].scenario),
                format_code("; ".join(reasons)),
            )
    for scenario in report.scenarios:
        if scenario.verdict is Verdict.KNOWN:
            yield "scenario", format_code(scenario.id), format_code(scenario.reason)
    for issue in report.issues:
        if issue.known:
            yield format_code(issue.id), "", format_code(issue.known)


def _unjudged_rows(report: Report) -> Iterator[Row]:
    for verdict in (Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE):
        rules = Counter(rule.reason for rule in report.rules if rule.verdict is verdict)
        scenarios = Counter(
            scenario.reason for scenario in report.scenarios if scenario.verdict is verdict
        )
        for kind, reasons in (("rule(s)", rules), ("scenario(s)", scenarios)):
            for reason, count in reasons.most_common():
                yield str(verdict), f"{count} {kind}", format_code(reason)


def _section(title: str, rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield from (f"### {title}", "", *_table(rows))


def _folded_section(title: str, rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield f"<details><summary>{title} ({len(rows)})</summary>"
        yield ""
        yield from _table(rows)
        yield "</details>"
        yield ""


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| finding | where | what |"
    yield "|---|---|---|"
    yield from (f"| {' | '.join(row)} |" for row in rows[:_MAX_ROWS])
    if len(rows) > _MAX_ROWS:
        yield f"| … | | {len(rows) - _MAX_ROWS} more |"
    yield ""
