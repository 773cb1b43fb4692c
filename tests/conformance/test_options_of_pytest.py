"""`-x`, `--lf`, `--sw`, `-k`, `--tag`, JUnit and the progress column mean rules too.

A rule is reported after the last scenario, by a report that no item stands behind.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from .judging import command
from .running import SCENARIO, harness_run, own_pytest, scenario

pytestmark = [pytest.mark.socket, pytest.mark.slow]

BROKEN, MINIMAL = command("broken/double_completed"), command("minimal")
WORKERS = pytest.mark.parametrize(
    "workers",
    [
        pytest.param([], id="alone"),
        pytest.param(["-n", "2"], id="workers", marks=pytest.mark.runs),
    ],
)


@WORKERS
def test_x_stops_after_the_scenario_that_breaks_a_rule_and_reports_it(
    workers: list[str], place: Path
) -> None:
    told = harness_run("-x", *workers, "turns", server=BROKEN, folder=place)
    assert told.status == 1, told.text
    assert "FAILED rules::turn.completed-once" in told.text
    assert 1 <= int(told.score.split()[0]) < 8, "not all of them"
    assert "verdict: RED" in told.text


def test_lf_plays_the_scenarios_that_broke_a_rule(place: Path) -> None:
    first = harness_run("turns/plain-turn", "-k", "plain", server=BROKEN, folder=place)
    assert first.tally["failed"] == 1, "the rule, and no scenario"
    again = harness_run("--lf", server=BROKEN, folder=place)
    assert (again.status, again.score) == (1, "1 PASS"), again.text
    assert "FAIL turn.completed-once in turns/plain-turn" in again.text
    mended = harness_run("--lf", server=MINIMAL, folder=place)
    assert (mended.status, mended.score) == (0, "1 PASS"), mended.text
    assert [path.name for path in place.iterdir() if path.name != "home"] == []


def test_lf_and_sw_of_pytest_go_on_at_the_scenario_that_broke_a_rule(place: Path) -> None:
    (place / "pytest.ini").write_text("[pytest]\n")
    words = ["turns/plain-turn", "turns/two-turns"]
    stepped = own_pytest("--sw", *words, server=BROKEN, folder=place)
    assert stepped.score == "1 PASS", stepped.text
    assert "continuing from this scenario next run" in stepped.text
    again = own_pytest("--sw", *words, server=MINIMAL, folder=place)
    assert again.score == "2 PASS", again.text
    own_pytest("turns/two-turns", server=BROKEN, folder=place)
    last = own_pytest("--lf", *words, server=MINIMAL, folder=place)
    assert last.score == "1 PASS", last.text


def test_tags_keywords_and_rules_choose(place: Path) -> None:
    scenario(place / "my" / "hello.scenario.yaml")
    words = ["my", "turns", "rules::turn.completes", "--tag", "my,smoke", "-k", "hello or plain"]
    told = harness_run(*words, "-v", server=MINIMAL, folder=place)
    assert told.status == 0, told.text
    assert re.findall(r"^([a-z]\S+) PASSED", told.text, re.M) == [
        "my/hello",
        "turns/plain-turn",
        "rules::turn.completes",
    ]


def test_folder_without_scenarios_is_explained(place: Path) -> None:
    (place / "empty").mkdir()
    told = harness_run("empty", server=MINIMAL, folder=place)
    assert told.status == 5
    assert "empty: no file below this folder has a name that ends in .scen" in told.line("ERROR: ")


@WORKERS
def test_progress_never_falls_and_ends_at_100(workers: list[str], place: Path) -> None:
    words = ["-v", *workers, "turns/plain-turn", "turns/two-turns"]
    told = harness_run(*words, server=command("broken/no_model_call"), folder=place)
    percents = [int(one) for one in re.findall(r"\[ *(\d+)%\]", told.text)]
    assert percents == sorted(percents)
    assert percents[-1] == 100
    assert len(percents) > 100
    assert "findings::setup" in told.text


def test_junit_groups_scenarios_and_rules_and_names_files(place: Path) -> None:
    own = scenario(place / "my" / "hello.scenario.yaml")
    words = ["my", "turns/plain-turn@kill@turn:completed", "turns/two-turns", "--junit", "x.xml"]
    harness_run(*words, server=BROKEN, folder=place)
    cases = {
        (one.get("classname"), one.get("name")): one.get("file")
        for one in ET.parse(place / "x.xml").iter("testcase")
    }
    bundled = "scenarios/turns/{}.scenario.yaml"
    assert cases["scenarios.my", "my/hello"] == str(own.relative_to(place))
    assert cases["scenarios.turns", "turns/two-turns"] == bundled.format("two-turns")
    race = ("races.turns", "turns/plain-turn@kill@turn:completed")
    assert cases[race] == bundled.format("plain-turn")
    assert cases["rules.turn", "turn.completed-once"] == str(own.relative_to(place))
    assert cases["rules.turn", "turn.completes"] is None
    assert str(place) not in "".join(one or "" for one in cases.values())


@WORKERS
def test_run_whose_reader_leaves_ends_quietly(workers: list[str], place: Path) -> None:
    run = [sys.executable, "-m", "harness.cli.main", "run", "--server-cmd", MINIMAL]
    words = [*run, "-v", *workers, "turns", "--json", "x.json"]
    with (place / "err").open("wb") as err:
        process = subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, stderr=err)
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        status = process.wait(timeout=60)
    assert status == 128 + signal.SIGPIPE
    assert (place / "err").read_text() == ""
    assert (place / "x.json").is_file(), "what was judged until then"


@pytest.mark.parametrize("words", ["list", "scenario list", "scenario schema"])
def test_command_whose_reader_leaves_ends_quietly(words: str, place: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli.main", *words.split()],
        cwd=place,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


UNUSED = {
    "capability": (["--require", "deltas,mcp-tools"], "--require deltas: no scenario of this run"),
    "not-played": (
        ["threads/unsubscribe", "--require", "subscription"],
        "--require subscription: every scenario that needs it also needs another capability",
    ),
    "tag": (["--tag", "turns,skills"], "--tag: no scenario of this run has the tag 'skills'"),
    "misspelt-tag": (["--tag", "turns,skils"], "--tag: unknown tag 'skils'; did you mean 'skills'"),
    "race": (
        ["--race", "kill@turn:started,kill@nope"],
        "--race kill@nope: no scenario of this run has this race",
    ),
    "workers": (["--require", "mcp-tools", "-n", "2"], "--require mcp-tools: no scenario of this"),
}


@pytest.mark.parametrize("case", UNUSED)
def test_a_word_that_no_scenario_of_the_run_uses_is_an_error(case: str, place: Path) -> None:
    words, message = UNUSED[case]
    told = harness_run("turns/plain-turn", *words, server=MINIMAL, folder=place)
    assert (told.status, told.score) == (2, ""), told.text
    assert message in told.line("ERROR: ")


USED = {
    "all": ["turns/plain-turn", "--require", "all"],
    "core": ["turns/plain-turn", "--require", "core"],
    "needed": ["turns/plain-turn", "approvals/accept-command", "--require", "command-approval"],
    "own": ["my/needs.scenario.yaml", "--require", "plan", "--tag", "plan"],
    "covered-rule-needs-it": ["my/needs.scenario.yaml", "--require", "skills,plan"],
}


@pytest.mark.parametrize("case", USED)
def test_a_word_that_some_scenario_uses_is_none(case: str, place: Path) -> None:
    text = SCENARIO.replace("[turn.completes]", "[turn.completes, skills.icon-names]")
    scenario(place / "my" / "needs.scenario.yaml", text + "needs: [plan]\n")
    told = harness_run(*USED[case], server=MINIMAL, folder=place)
    assert told.status in (0, 1), told.text
    assert "ERROR: --" not in told.text
