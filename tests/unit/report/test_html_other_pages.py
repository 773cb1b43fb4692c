"""The pages of a comparison, a matrix and a fuzz campaign, and the files that they are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli.commands.matrix import write_badges
from harness.cli.commands.recorded_report import find_recorded
from harness.errors import UsageError
from harness.judge.verdict import Verdict
from harness.report.compare.comparison import compare
from harness.report.html.conversations import unpack
from harness.report.html.other_pages import comparison_page, fuzz_page, matrix_page
from harness.report.json_form import to_plain
from harness.report.matrix import Column, Matrix, from_plain
from tests.unit.compare.recorded_runs import SCENARIO, played, row, run
from tests.unit.report.html_pages import Page, assert_only_own_code
from tests.unit.report.test_html_conversations import stored_trace
from tests.unit.report.test_html_page import HOSTILE
from tests.unit.results.outcomes import failed, outcome, passed, report_of


def comparison_with(text: str) -> Page:
    broken = row(Verdict.FAIL, expected=text, actual=text)
    before = run("old", played(SCENARIO, row(Verdict.PASS)))
    return Page(comparison_page(compare(before, run(text, played(SCENARIO, broken)))))


def matrix_of(text: str) -> Matrix:
    good = report_of(outcome("a/one", passed("turn.completes")))
    bad = report_of(outcome("a/one", failed("turn.completes", actual=text)))
    commands = {"server": text}
    return Matrix(
        [
            Column("one", "spec", "1", "spec", commands, report=good),
            Column(text, "spec", "2", "spec", commands, report=bad, note=text),
            Column("none", "spec", "3", "spec", commands, problem=text),
        ]
    )


def fuzz_with(text: str, replay: str | None = None) -> dict[str, Any]:
    search = {
        "kind": "sessions",
        "conversations": 3,
        "answered": 5,
        "refused": 1,
        "seconds": 1.5,
        "unsteady": [text],
    }
    failure = {
        "id": text,
        "kind": "sessions",
        "cause": "turn.completes",
        "occasion": text,
        "text": text,
        "flaky": False,
        "known": False,
        "document": {"title": text},
        "replay": replay,
    }
    return {
        "verdict": "RED",
        "seed": 1,
        "searches": [search],
        "failures": [failure],
        "fixed": [text],
        "notes": [text],
        "interrupted": "",
    }


PAGES: dict[str, Callable[[str], Page]] = {
    "comparison": comparison_with,
    "matrix": lambda text: Page(matrix_page(matrix_of(text))),
    "fuzz": lambda text: Page(fuzz_page(fuzz_with(text))),
}


@pytest.mark.parametrize("name", PAGES)
def test_hostile_text_adds_no_element_to_other_pages(name: str) -> None:
    tags = [element.tag for element in PAGES[name]("plain").elements]
    for text in HOSTILE:
        page = PAGES[name](text)
        assert_only_own_code(page)
        assert [element.tag for element in page.elements] == tags
        assert all(line.isprintable() for line in page.source.split("\n"))


def test_comparison_shows_only_differences_with_both_sides() -> None:
    page = comparison_with("three of them")
    assert page.with_id("verdict").text == "Worse"
    shown = page.with_id("differences").text
    for words in ("What got worse", "turn.completed-once", "PASS", "FAIL", "harness show"):
        assert words in shown
    same = run("old", played(SCENARIO, row(Verdict.PASS)))
    alike = Page(comparison_page(compare(same, same)))
    assert alike.with_id("verdict").text == "Nothing got worse"
    assert "The two runs do not differ." in alike.with_id("differences").text


def test_comparison_draws_the_parts_of_both_conversations_that_differ(tmp_path: Path) -> None:
    traces = [stored_trace(tmp_path, name, 20) for name in ("before", "after")]
    rows = row(Verdict.PASS), row(Verdict.FAIL, frames=(12,))
    sides = [
        run(name, played(SCENARIO, one, kept=trace))
        for name, one, trace in zip(("old", "new"), rows, traces, strict=True)
    ]
    page = Page(comparison_page(compare(*sides)))
    labels = [one.text for one in page.named("summary") if "where it differs" in one.text]
    assert labels == [f"Conversation {side}, where it differs" for side in ("before", "after")]
    before, after = (unpack(page.with_id(f"conversation-{number}").text) for number in (0, 1))
    for diagram in (before, after):
        left_out = [one["text"] for one in diagram["rows"] if one.get("kind") == "left-out"]
        assert left_out == ["8 rows are alike in both", "4 rows are alike in both"]
    [wrong] = [one for one in after["rows"] if one.get("marks")]
    assert wrong["frame"] == 12


def test_matrix_has_a_column_for_each_judged_target_and_marks_differences() -> None:
    page = Page(matrix_page(matrix_of("two")))
    assert page.with_id("verdict").text == "2 of 3 targets judged"
    differing = page.with_id("requirement/turn.completes")
    assert "data-differs" in differing.attributes
    assert differing.text.split()[-1].endswith("partlyfail")
    heads = [one.text for one in page.named("th") if one.attributes["scope"] == "col"]
    assert heads == ["requirement", "one", "two"]
    assert "not judged" in page.with_id("targets").text


def test_matrix_is_read_as_it_was_written() -> None:
    plain = json.loads(json.dumps(matrix_of("two").to_plain()))
    assert matrix_page(from_plain(plain)) == matrix_page(matrix_of("two"))
    with pytest.raises(UsageError, match="not the JSON of harness matrix, version 1"):
        from_plain({**plain, "version": 2})


def test_failure_of_generated_cases_has_its_case_and_its_conversation(tmp_path: Path) -> None:
    stored_trace(tmp_path, "case")
    page = Page(fuzz_page(fuzz_with("words", f"harness replay {tmp_path}/case.scenario.yaml")))
    card = page.with_id("finding/1")
    for words in ("words", "title: words", "harness replay"):
        assert words in card.text
    diagram = unpack(page.with_id("conversation-0").text)
    assert [one["text"] for one in diagram["rows"] if one.get("kind") == "finding"] == ["words"]


def test_recorded_results_are_found_by_what_their_file_holds(tmp_path: Path) -> None:
    report = report_of(outcome("a/one", passed("turn.completes")))
    titles: dict[str, str] = {}
    for name, plain in {
        "run": to_plain(report),
        "matrix": matrix_of("two").to_plain(),
        "fuzz": fuzz_with("words"),
    }.items():
        (path := tmp_path / f"{name}.json").write_text(json.dumps(plain))
        recorded = find_recorded(str(path))
        assert list(recorded.text_lines())
        assert json.loads(json.dumps(recorded.to_plain())) == json.loads(json.dumps(plain))
        titles[name] = Page(recorded.html()).named("title")[0].text
    assert titles == {
        "run": "GREEN: p",
        "matrix": "3 targets: matrix",
        "fuzz": "harness fuzz: fuzz",
    }
    with pytest.raises(UsageError, match="no Markdown page"):
        find_recorded(str(tmp_path / "fuzz.json")).markdown_lines()
    with pytest.raises(UsageError, match="no badge"):
        find_recorded(str(tmp_path / "fuzz.json")).columns()
    columns = find_recorded(str(tmp_path / "run.json")).columns()
    write_badges(columns, tmp_path / "badges")
    badge = json.loads((tmp_path / "badges" / "p.json").read_text())
    assert badge["message"].endswith("requirements")
    assert [one.name for one in find_recorded(str(tmp_path / "matrix.json")).columns()] == [
        one.name for one in matrix_of("two").columns
    ]
    (tmp_path / "other.json").write_text('{"verdict": "GREEN", "files": []}')
    with pytest.raises(UsageError, match="result of harness check, not a report"):
        find_recorded(str(tmp_path / "other.json"))
