"""The page of a run: what it says and in which order, and that no text of a server acts in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from harness.judge.verdict import Level, Place, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.html.findings import finding_cards
from harness.report.html.other_pages import matrix_page
from harness.report.html.rendering import anchor
from harness.report.html.scenario_facts import ScenarioFacts
from harness.report.matrix import Column, Matrix
from harness.report.results.outcome import SnapshotResult
from harness.report.results.report import Issue, PlacementResult, RaceResult, Report
from tests.unit.report.html_pages import Page, assert_only_own_code, page_of
from tests.unit.results.outcomes import Finding, entry, failed, outcome, passed, report_of

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    '" onmouseover="alert(1)" x=\'',
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "<!-- -->]]>&lt;",
    "a\x1b[31mred\x07\x00",
    "\u202edesrever\u2066\u200f",
    "half \ud83d of a pair",
    "line\u2028separator\r\nbreak",
)


def sections(page: Page) -> list[str]:
    return [one.attributes.get("id", "verdict") for one in page.named("section")]


def red_report() -> Report:
    bad = outcome(
        "a/one",
        failed("turn.completed-once", expected="one turn/completed", subject="turn 1"),
        failed("turn.completed-once", subject="turn 2"),
        failed("model.named", level=Level.INFO),
        seconds=2.0,
        stderr="it crashed here",
    )
    slow = outcome("b/two", passed("turn.completes"), seconds=4.0)
    broken = outcome("b/three", verdict=Verdict.FAIL, reason="step 3 timed out")
    return report_of(bad, slow, broken, loose=(Finding("hygiene.panic", "it panicked"),))


def test_verdict_comes_first_then_findings_requirements_and_scenarios() -> None:
    page = page_of(red_report())
    assert sections(page) == ["verdict", "findings", "requirements", "scenarios", "slowest"]
    assert page.with_id("finding/1").text.count("it crashed here") == 1
    assert page.with_id("verdict").text == "RED because of 1 rule, 1 scenario, hygiene.panic"
    told = next(one for one in page.named("pre") if "verdict: RED" in one.text).text
    assert "FAIL turn.completed-once in a/one: two of them" in told


def test_crashes_with_the_same_last_words_are_one_finding() -> None:
    plays = [
        outcome(
            f"a/{name}",
            verdict=Verdict.FAIL,
            reason=f"the server ended in step {name}",
            findings=[Finding("scenario.crash", f"the server ended in step {name}")],
            stderr=f"Traceback\nRuntimeError: {words}\n",
        )
        for name, words in (("wait", "index"), ("interrupt", "index"), ("read", "key"))
    ]
    cards = finding_cards(report_of(*plays), load_book())
    assert [(card.scenarios, card.actual) for card in cards] == [
        (
            ("a/interrupt", "a/wait"),
            "the server ended in step interrupt; its last words: RuntimeError: index",
        ),
        (("a/read",), "the server ended in step read; its last words: RuntimeError: key"),
    ]


def test_three_worst_findings_stand_below_the_verdict() -> None:
    rules = ("archive.told", "turn.completes", "item.completes", "request.answered")
    bad = outcome("a/one", *(failed(rule, expected="one end") for rule in rules))
    again = outcome("a/two", failed("item.completes", expected="one end"))
    page = page_of(report_of(bad, again))
    (worst,) = (one for one in page.named("ol") if one.attributes.get("class") == "worst")
    assert worst.text.count("Expected one end; actual: two of them in a/one") == 3
    widespread = "Every started item is completed. Expected one end; actual: two of them in a/one"
    assert worst.text.split("\n")[1].strip() == f"item.completes {widespread} and 1 more"
    assert [one.text for one in page.named("a") if one.attributes["href"] == "#findings"] == [
        "Findings 4",
        "1 more finding",
    ]


def test_server_that_cannot_be_played_is_the_first_finding() -> None:
    bad = outcome("setup/plain-turn", failed("turn.completes"))
    page = page_of(report_of(bad, loose=(Finding("setup.no-plain-turn", "x " * 190 + "why"),)))
    first = next(one for one in page.named("ol") if one.attributes.get("class") == "worst")
    assert " ".join(first.text.split()).startswith("setup.no-plain-turn x x")
    assert "why" in first.text


def test_finding_has_its_sentence_what_was_expected_where_and_how_to_repeat_it() -> None:
    page = page_of(red_report())
    card = next(
        one
        for one in page.elements
        if "finding" in one.attributes.get("class", "") and "turn.completed-once" in one.text
    )
    assert card.attributes["class"] == "row finding fail"
    for words in (
        "A turn has one turn/completed",
        "one turn/completed",
        "two of them",
        "turn 1",
        "1 more with the same cause",
        "it crashed here",
        "harness run --target p --server-cmd server --rule turn.completed-once /there/a/one",
    ):
        assert words in card.text, words


def test_findings_that_count_come_before_others_and_known_ones_are_last() -> None:
    row = failed("turn.completed-once")
    known = outcome("a/two", row, verdict=Verdict.PASS)
    issue = Finding("setup.no-answer", "nothing", known="as we know")
    bad = outcome("a/one", failed("turn.completed-last"), failed("model.named", level=Level.INFO))
    page = page_of(report_of(bad, known, loose=(issue,), entries=(entry("setup.no-answer"),)))
    classes = [one.attributes["class"].split()[-1] for one in findings(page)]
    assert classes == ["fail", "fail", "info", "known"]
    heads = [one.text for one in page.named("h3")]
    assert heads == ["Reported, but not counted 1", "Known deviations 1"]
    heads = [one.text for one in page_of(report_of(known, loose=(issue,))).named("h3")]
    assert heads == ["Known deviations 1"]


def findings(page: Page) -> list[Any]:
    return [one for one in page.named("details") if "finding" in one.attributes.get("class", "")]


def test_green_page_says_that_nothing_is_wrong() -> None:
    page = page_of(report_of(outcome("a/one", passed("turn.completes"))))
    assert page.with_id("verdict").text == "GREEN"
    assert "Nothing that counts is wrong. 1 rules were kept" in page.with_id("findings").text
    assert not findings(page)


@pytest.mark.parametrize(("strict", "word"), [(False, "should"), (True, "fail")])
def test_requirement_that_only_a_should_breaks_is_shown_so_where_it_does_not_count(
    strict: bool, word: str
) -> None:
    broken = failed("turn.completes", level=Level.SHOULD)
    report = report_of(outcome("a/one", broken), strict=strict)
    assert report.requirements["turn.completes"] == "FAIL"
    row = page_of(report).with_id("requirement/turn.completes")
    assert row.text.strip().startswith(word.upper())
    columns = [Column("one", "spec", "1", "spec", {}, report=report)]
    row = Page(matrix_page(Matrix(columns))).with_id("requirement/turn.completes")
    assert row.text.strip().endswith(word)


def test_known_deviations_are_folded_away() -> None:
    known = Finding("setup.no-answer", "nothing", known="as we know")
    page = page_of(report_of(outcome("a/one", passed("turn.completes")), loose=(known,)))
    [group] = [one for one in page.named("details") if one.attributes.get("class") == "group"]
    assert "open" not in group.attributes
    assert page.with_id("finding/1").text in group.text
    assert "Reported, but not counted: 0; known deviations: 1." in page.named("section")[0].text


def test_run_without_any_play_still_makes_a_page() -> None:
    page = page_of(Report("p", "server"))
    assert "No scenario was played." in page.with_id("scenarios").text


def test_map_of_requirements_adds_up_and_shows_broken_areas_first() -> None:
    report = red_report()
    report.requirements = {"turn.completes": "FAIL", "rpc.json-object": "PASS"}
    page = page_of(report)
    areas = [one for one in page.named("details") if "area" in one.attributes["class"].split()]
    assert areas[0].attributes["class"] == "area wrong"
    assert "open" in areas[0].attributes
    assert areas[0].text.strip().startswith("turn1 fail")
    rows = [one for one in page.named("li") if one.attributes.get("id", "")[:12] == "requirement/"]
    shown = next(one.text for one in page.named("p") if one.text.endswith(" requirements"))
    assert shown == f"{len(rows)} requirements"


def test_scenario_can_be_filtered_by_verdict_area_capability_tag_and_rule() -> None:
    report = report_of(
        outcome("a/one", passed("turn.completes")), outcome("b/two", passed("model.named"))
    )
    page = page_of(report, **{"a/one": ScenarioFacts(("steering",), ("smoke",))})
    row = page.with_id("scenario/a/one").attributes
    assert row["data-verdict"] == "PASS"
    assert (row["data-area"], row["data-capability"]) == ("a", "steering")
    assert row["data-tag"] == "smoke"
    index = json.loads(page.with_id("index").text)
    assert index == {"rules": {"turn.completes": [0], "model.named": [1]}}
    filters = [one.attributes.get("data-filter") for one in page.named("select")]
    assert filters == ["area", "capability", "tag", "rule"]


def test_each_link_leads_to_something_on_the_page() -> None:
    page = page_of(red_report())
    targets = {anchor(name) for name in page.ids}
    links = [one.attributes["href"] for one in page.named("a")]
    assert {"#rule/turn.completed-once", "#scenario/a/one", "#finding/1"} <= set(links)
    assert [link for link in links if link not in targets] == []
    assert len(page.ids) == len(set(page.ids))


def test_scenario_that_is_not_in_the_report_is_no_link() -> None:
    setup = outcome("a/one", before=[outcome("setup/plain-turn", failed("turn.completes"))])
    page = page_of(report_of(setup))
    assert "setup/plain-turn" in page.with_id("findings").text
    assert "scenario/setup/plain-turn" not in page.source


def test_races_are_rows_with_their_placements() -> None:
    report = report_of(outcome("a/one", passed("turn.completes")))
    placement = PlacementResult("delta:2", Verdict.FAIL, True, 5, "it waited", 1.0, "")
    race = RaceResult(
        "a/one@interrupt", "a/one", "/there/a", "interrupt", Verdict.FAIL, "it waited", (placement,)
    )
    report.races = [race]
    page = page_of(report)
    row = page.with_id("scenario/a/one@interrupt")
    assert "delta:2" in row.text
    assert "racy, 5 plays" in row.text
    strip = next(one for one in page.named("ol") if one.attributes["class"] == "strip")
    assert strip.attributes["aria-label"] == "Verdicts by position"
    assert "delta:2: fail" in [one.attributes.get("title") for one in page.named("li")]
    assert "--race interrupt@delta:2" in findings(page)[0].text


def test_timeline_has_each_play_on_its_lane_as_a_link_in_the_colour_of_its_verdict() -> None:
    plays = [
        ("a/one", "main", 100.0, 2.0, failed("turn.completes")),
        ("a/two", "main", 102.0, 6.0, passed("turn.completes")),
        ("a/three", "main-2", 100.5, 0.001, passed("turn.completes")),
        ("a/unplayed", "main-2", 101.0, 0.0, passed("turn.completes")),
    ]
    outcomes = [
        replace(
            outcome(name, row, seconds=seconds), lane=lane, began=began, replayed=name == "a/two"
        )
        for name, lane, began, seconds, row in plays
    ]
    page = page_of(report_of(*outcomes))
    assert "lanes" in sections(page)
    assert page.with_id("lanes").text.split()[1:3] == ["8.0", "s"]
    bars = [one.attributes for one in page.named("rect") if "vector" not in one.attributes]
    spans = {bar["x"]: (bar["class"], bar["width"]) for bar in bars if bar["height"] == "10"}
    assert (spans["0.0"], spans["250.0"], spans["62.5"]) == (
        ("fail", "250.0"),
        ("pass", "750.0"),
        ("pass", "1.5"),
    )
    links = [one.attributes["href"] for one in page.named("a") if "tabindex" in one.attributes]
    assert [link for link in links if "scenario/" in link] == [
        "#scenario/a/one",
        "#scenario/a/two",
        "#scenario/a/three",
    ]
    assert [bar["x"] for bar in bars if bar["class"] == "foot"] == ["250.0"]
    assert "replayed alone, which counts (a/two)" in page.with_id("lanes").text
    assert "replayed alone" in page.with_id("scenario/a/two").text
    assert "replayed alone" not in page.with_id("scenario/a/one").text
    assert "lanes" not in sections(page_of(red_report()))


def test_generated_cases_that_fail_are_findings() -> None:
    report = report_of(outcome("a/one", passed("turn.completes")))
    failure = {
        "id": "abc123",
        "kind": "sessions",
        "cause": "turn.completes",
        "occasion": "turn/start",
        "text": "it never ended",
        "document": "title: x\n",
        "replay": "harness replay x",
    }
    search = {"kind": "sessions", "conversations": 3, "unsteady": [], "coverage": []}
    report.fuzz = [{"verdict": "RED", "failures": [failure], "notes": [], "searches": [search]}]
    card = findings(page_of(report))[0]
    for words in ("abc123", "it never ended", "turn/start", "harness replay x", "title: x"):
        assert words in card.text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_of_a_server_adds_no_element_and_does_nothing(text: str) -> None:
    plain, hostile = page_of(hostile_report("plain")), page_of(hostile_report(text))
    assert_only_own_code(hostile)
    assert [one.tag for one in hostile.elements] == [one.tag for one in plain.elements]
    assert [list(one.attributes) for one in hostile.elements] == [
        list(one.attributes) for one in plain.elements
    ]
    assert all(line.isprintable() for line in hostile.source.split("\n"))
    hostile.source.encode("utf-8")


def hostile_report(text: str) -> Report:
    """Return a report that has a text everywhere."""
    place = (Place(0, f"params.{text}"),)
    row = failed("turn.completed-once", text, expected=text, actual=text, places=place)
    bad = outcome(
        "a/one", row, reason=text, stderr=text, seconds=1.0, verdict=Verdict.FAIL, trace=text
    )
    bad = replace(bad, title=text, path=text, id=f"a/{text}", kept=text)
    bad.snapshot = SnapshotResult("new", (text,))
    report = report_of(bad, loose=(Finding("hygiene.panic", text),))
    report.issues.append(Issue(text, text, Level.MUST, "", text, text, text))
    report.server = report.command = report.release = report.release_note = text
    report.target = report.agent = report.sdk = report.started = report.revision = text
    return report


def test_text_of_ten_megabytes_is_shortened() -> None:
    report = hostile_report("x" * 10_000_000)
    page = page_of(report)
    assert len(page.source) < 1_000_000
    assert "more characters" in page.source


def test_control_characters_are_shown_as_escapes() -> None:
    page = page_of(hostile_report("a\x1b[31m\u202eb"))
    assert r"a\x1b[31m\u202eb" in page.with_id("findings").text
    assert re.search(r'href="#scenario/a/[^"]*%5Cu202e', page.source)
