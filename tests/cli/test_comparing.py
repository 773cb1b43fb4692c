"""`harness compare` and `harness ledger`: input, output and exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import call

from harness.judge.ledger.record import Record
from harness.judge.ledger.trace_observer import Sighting
from harness.judge.verdict import Verdict
from harness.report.json_form import to_plain
from tests.unit.compare.recorded_runs import SCENARIO, played, row, run

PASS, FAIL = row(Verdict.PASS), row(Verdict.FAIL, expected="one", actual="two")
CHOSEN = Record(choices=[Sighting("turn-start.while-active", "", "refused: -32600", 1, 4)])


def written(path: Path, *outcomes: Any) -> Path:
    path.write_text(json.dumps(to_plain(run("any", *outcomes).report)), "utf-8")
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return written(tmp_path / "old.json", played(SCENARIO, PASS, record=CHOSEN))


def test_two_runs_that_went_alike_have_no_differences(old: Path) -> None:
    said = call("harness", "compare", str(old), str(old))
    assert (said.status, said.out.splitlines()[-1]) == (0, "differences: none")


def test_a_worse_verdict_is_status_1_and_says_how_to_see_it(old: Path) -> None:
    new = written(old.with_name("new.json"), played(SCENARIO, FAIL, record=CHOSEN))
    said = call("harness", "compare", str(old), str(new))
    assert said.status == 1
    assert "regressed (1)" in said.out
    assert "after   harness show /turns/one.jsonl --message 3" in said.out
    assert said.out.splitlines()[-1] == "differences: 1 regressed"
    back = call("harness", "compare", str(new), str(old))
    assert (back.status, back.out.splitlines()[-1]) == (0, "differences: 1 mended")


def test_json_and_markdown_say_the_same(old: Path) -> None:
    new = written(old.with_name("new.json"), played(SCENARIO, FAIL, record=CHOSEN))
    plain = json.loads(call("harness", "compare", str(old), str(new), "--json", "-").out)
    assert (plain["version"], plain["worse"], plain["compared"]) == (1, True, 1)
    assert [one["kind"] for one in plain["changes"]] == ["regressed"]
    page = call("harness", "compare", str(old), str(new), "--markdown", "-").out
    assert "## What got worse" in page
    assert "| PASS | FAIL |" in page


def test_the_ledger_shows_our_choice_and_the_servers(old: Path) -> None:
    said = call("harness", "ledger", str(old), "--point", "turn-start.while")
    assert said.status == 0
    assert "ours    The reference server refuses it" in said.out
    assert "server  refused: -32600 (1)" in said.out
    assert "harness show /turns/one.jsonl --message 4" in said.out
    assert said.out.splitlines()[-1] == "the server's choice was seen at 1 of 1 open points"


def test_a_report_of_before_the_ledger_says_what_to_do(tmp_path: Path) -> None:
    former = written(tmp_path / "former.json", played(SCENARIO, PASS, record=None))
    said = call("harness", "ledger", str(former))
    assert (said.status, said.err) == (
        2,
        "harness: former: no choices are recorded in this report; run it again",
    )
    said = call("harness", "compare", str(former), str(former))
    assert said.status == 0
    assert "note: former was recorded without choices and messages" in said.out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file; harness run … --json FILE writes one"),
        ("{", "no report of a run that this can read: Expecting property name"),
        ("[]", "no report of a run that this can read"),
        ('{"version": 0}', "no report of a run that this can read: report version 0; this reads 1"),
        ('{"version": 1}', "no report of a run that this can read"),
        (
            '{"trace": {"version": 2}}\n{"end": "closed"}\n',
            "this is a recording, not a report of a run: make a scenario of it with harness "
            "scenario from-trace",
        ),
        ('{"t": 0, "dir": "C>S", "msg": {}}\n{"t": 1, "dir": "S>C", "msg": {}}\n', "a recording"),
        ('{"verdict": "GREEN",\n "files": []}', "this is a result of harness check"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "ledger"])
def test_an_unreadable_run_is_one_line_and_status_2(
    tmp_path: Path, command: str, content: str | None, words: str
) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content, "utf-8")
    said = call("harness", command, *[str(path)] * (2 if command == "compare" else 1))
    assert (said.status, said.out) == (2, "")
    assert words in said.err
    assert len(said.err.splitlines()) == 1


def test_an_unknown_point_and_an_unknown_message_are_named(old: Path) -> None:
    said = call("harness", "ledger", str(old), "--point", "turn-strat.while-active")
    assert said.status == 2
    assert "turn-start.while-active" in said.err
    said = call("harness", "show", "fixtures/traces/good/interrupted.jsonl", "--message", "9999")
    assert said.status == 2
    assert "there is no message 9999" in said.err


def test_one_message_is_shown_with_those_around_it() -> None:
    said = call("harness", "show", "fixtures/traces/good/interrupted.jsonl", "--message", "3")
    assert said.status == 0
    assert [line.lstrip()[:1] == "*" for line in said.out.splitlines()].count(True) == 1
    assert 1 < len(said.out.splitlines()) < 10
