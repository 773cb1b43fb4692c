"""The report as Markdown: short, most important first, without active text of a server."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from harness.judge.verdict import Level, Verdict
from harness.report.markdown import format_code, markdown
from harness.report.results.report import Report
from tests.unit.results.outcomes import BOOK, Finding, entry, failed, outcome, passed, report_of

READ = MarkdownIt("commonmark").enable("table")


def page(report: Report) -> str:
    return markdown(report, BOOK, "1.2.3")


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "`grave`",
        "a | b",
        "``` | ```",
        "<img src=x>",
        "[a](b)",
        "@you #1",
        "a\\",
        "a\\|b",
        "&lt;",
        "*b* _c_ ~d~",
        "::error::x",
    ],
)
def test_any_text_is_one_cell_and_is_read_as_it_was(text: str) -> None:
    tokens = READ.parse(f"| a | b |\n|---|---|\n| {format_code(text)} | end |\n")
    cells = [tokens[at + 1] for at, one in enumerate(tokens) if one.type == "td_open"]
    assert [cell.content for cell in cells][1:] == ["end"]
    inner = [one for one in cells[0].children or () if one.type != "html_inline"]
    assert {one.type for one in inner} <= {"code_inline", "text", "text_special"}
    assert "".join(one.content for one in inner) == text


def test_a_text_of_many_lines_or_of_control_characters_is_one_short_line() -> None:
    assert format_code("a\n\n# b\x1b[31m\u202ec") == "`a # b [31m c`"
    assert len(format_code("x" * 5000)) < 310
    assert format_code("  \n") == ""


def test_three_worst_causes_come_first_with_what_was_expected() -> None:
    rules = ("archive.told", "turn.completes", "item.completes", "request.answered")
    bad = outcome("a/one", *(failed(rule, expected="`one` end") for rule in rules))
    died = outcome("a/two", failed("item.completes"), verdict=Verdict.FAIL, reason="<b>it died")
    lines = page(report_of(bad, died)).splitlines()
    expected = "expected <code>&#96;one&#96; end</code>, actual `two of them` in `a/one`"
    assert lines[2] == f"1. `item.completes`: {expected} and 1 more"
    assert [line[:3] for line in lines[2:6]] == ["1. ", "2. ", "3. ", ""]
    (of_scenario,) = [line for line in page(report_of(died)).splitlines() if "2. " in line[:3]]
    assert of_scenario == "2. `scenario`: `<b>it died` in `a/two`"
    assert "\n1. " not in page(report_of(outcome("a/one", passed("turn.completes"))))


def test_findings_that_count_come_first_and_others_are_folded() -> None:
    told = Finding("hygiene.panic", "it panicked", level=Level.INFO)
    bad = outcome("a/one", failed("turn.completed-once"), failed("model.named", level=Level.INFO))
    text = page(report_of(bad, outcome("a/two", passed("turn.completes")), loose=(told,)))
    parts = text.split("<details>")
    assert "`turn.completed-once` MUST" in parts[0]
    assert "harness run --target p" in parts[0]
    assert "model.named" not in parts[0]
    assert "Reported, but not counted (2)" in parts[1]
    assert "`hygiene.panic` INFO" in parts[1]
    assert "| scenarios | 2 (2 PASS) |" in parts[0]


def test_known_deviations_are_apart_and_have_their_reasons() -> None:
    row = failed("turn.completed-once")
    known = outcome("a/one", row, verdict=Verdict.PASS)
    known.rows = [passed("turn.completes")]
    report = report_of(known)
    assert "Known deviations" not in page(report)
    issue = Finding("setup.no-answer", "nothing", known="as we know")
    text = page(report_of(known, loose=(issue,), entries=(entry("setup.no-answer"),)))
    assert "Known deviations (1)" in text
    assert "What makes the run fail" not in text


def test_a_run_that_was_interrupted_says_so_in_its_heading() -> None:
    report = report_of(outcome("a/one", passed("turn.completes")))
    assert page(report).startswith("## Conformance of `p`: GREEN\n")
    report.interrupted = "SIGINT"
    assert page(report).startswith("## Conformance of `p`: INTERRUPTED (GREEN so far)\n")


def test_a_table_of_hundreds_of_findings_is_cut_with_their_number() -> None:
    lost = [
        outcome(f"a/s{number}", verdict=Verdict.FAIL, reason=f"reason {number}")
        for number in range(70)
    ]
    text = page(report_of(*lost))
    assert text.count("❌ scenario") == 50
    assert "| … | | 20 more |" in text
