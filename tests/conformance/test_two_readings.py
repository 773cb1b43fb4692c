"""Two servers written from the specification alone are GREEN, and play most of the suite.

The plain one takes the plainest reading everywhere, the odd one the most unusual that the text
allows. Where one is red, the specification says who is right: a breach is mended in the server,
anything else in the suite.

`make test` plays one scenario of each area on both: enough to see that neither the servers nor the
suite were broken altogether.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.judge.verdict import Verdict
from harness.report.json_form import read_report
from harness.report.results.report import Report
from tests.processes import run_warm

from .judging import ROOT, SERVERS, bundled, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow]

PLAY_BOUND = 390
"""Maximum seconds of the whole suite on a server, on a machine under load."""
NODE = shutil.which("node")
COMMANDS = {
    "plain": [sys.executable, str(SERVERS / "plain" / "plain.py")],
    "odd": [NODE or "node", str(SERVERS / "odd" / "odd.mjs")],
}
# What they are told, none of it a MUST or a SHOULD, and why they are right all the same.
REMARKS = {
    "plain": {
        # Its next turns send all that the user gave, an image that the model rejected too: the text
        # does not say what a turn after a failed one sends.
        "model.rejected-left-out",
        # Which word a failure gets that the text does not classify is its own choice.
        "turn-error.info-fits",
        # A model that breaks the schema is not the server's doing, and it passes its text on.
        "turn.schema-kept",
    },
    "odd": {
        # A client's tool that says it failed was called to its end: completed, without success.
        "dynamic.success-fits-status",
        # It writes a turn when the turn is over: one that its death cuts off leaves nothing behind.
        "durable.messages-kept",
        # It tells the progress of a compaction by a notification of its own, as it may, and asks a
        # client to run the client's own tool by a request, of which the text has only the item.
        "method.known",
        # As the plain one, it sends an image again that the model rejected.
        "model.rejected-left-out",
        # Its answers come late: the text does not order an answer and what its request brings.
        "response.before-effects",
        # It takes a file without a title for a skill that is named as its folder is, and what is no
        # UTF-8 for text.
        "skills.error-told",
        # It has words of its own beside those given, as real servers do.
        "turn-error.info-fits",
        "turn.schema-kept",
    },
}
# So many of each area are really played at least: a server that offered next to nothing would be
# GREEN too. The numbers may grow.
PLAYED = {
    "plain": {
        "approvals": 46,
        "choices": 8,
        "clients": 25,
        "commands": 15,
        "compaction": 7,
        "failures": 44,
        "files": 9,
        "interrupts": 12,
        "language": 12,
        "lasting": 62,
        "plans": 2,
        "recorded": 1,
        "reported": 7,
        "skills": 12,
        "steering": 11,
        "threads": 68,
        "tools": 30,
        "turns": 17,
    },
    "odd": {
        "approvals": 54,
        "choices": 9,
        "clients": 25,
        "commands": 15,
        "compaction": 3,
        "failures": 44,
        "files": 9,
        "interrupts": 10,
        "language": 12,
        "lasting": 65,
        "plans": 2,
        "recorded": 1,
        "reported": 7,
        "skills": 12,
        "steering": 11,
        "threads": 69,
        "tools": 22,
        "turns": 18,
    },
}
# Of each area one that both offer; neither has reviews.
SAMPLE = (
    "approvals/accept-command",
    "choices/odd-requests",
    "clients/same-request-ids",
    "commands/both-streams",
    "compaction/asked-for",
    "failures/bad-request",
    "files/add",
    "interrupts/after-the-end",
    "language/answer-later",
    "lasting/declined/command/next-turn",
    "plans/changed-twice",
    "recorded/python-client",
    "reported/interrupted-again",
    "skills/invoke",
    "steering/at-its-end",
    "threads/archive",
    "tools/decline-command",
    "turns/many-deltas",
)


@pytest.fixture(params=COMMANDS)
def server(request: pytest.FixtureRequest) -> str:
    if request.param == "odd" and NODE is None:
        pytest.skip("the odd server needs node, which is not installed")
    return request.param


def profile(server: str, folder: Path) -> str:
    """Over its standard streams, and listening where a scenario has several clients."""
    words = json.dumps(COMMANDS[server])
    text = f'name = "{server}"\ncommand = {words}\nlisten_arguments = ["--listen", "{{listen}}"]\n'
    path = folder / f"{server}.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def remarks(report: Report) -> set[str]:
    """The rules with a finding of any level."""
    findings = (Verdict.FAIL, Verdict.ERROR, Verdict.KNOWN)
    return {rule.id for rule in report.rules if rule.verdict in findings}


def area(scenario: str) -> str:
    return scenario.split("/")[0]


@pytest.mark.readings
@pytest.mark.timeout(PLAY_BOUND + 10)
def test_the_whole_suite_is_green_and_most_of_it_is_played(server: str, place: Path) -> None:
    path = ROOT / ".harness" / "reports" / f"{server}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    words = ["--target", profile(server, place), "--lanes", "4", "--json", str(path)]
    ran = run_warm("harness", "run", *words, cwd=place, together=True, bound=PLAY_BOUND)
    assert ran.status == 0, ran.out
    report = read_report(path)
    assert not report.red
    assert report.red_rules() == []
    assert report.issues == []
    verdicts = {one.id: one.verdict for one in report.scenarios}
    assert set(verdicts) == {one.id for one in bundled()}
    assert set(verdicts.values()) <= {Verdict.PASS, Verdict.NOT_APPLICABLE}
    played = Counter(area(name) for name, said in verdicts.items() if said is Verdict.PASS)
    least = PLAYED[server]
    assert {name: played[name] for name in least if played[name] < least[name]} == {}
    assert remarks(report) <= REMARKS[server]


def test_a_scenario_of_each_area_passes(server: str, place: Path) -> None:
    found = judged("", bundled(*SAMPLE), target=profile(server, place), scale=1)
    assert found.verdicts() == dict.fromkeys(SAMPLE, "PASS")
    assert found.failed_rules() == []
    assert found.issues() == {}
    assert remarks(found.report) <= REMARKS[server]
    assert not found.report.red


def test_most_areas_are_played_and_all_but_one_have_a_sample() -> None:
    areas = {area(one.id) for one in bundled()}
    assert areas - {area(name) for name in SAMPLE} == {"reviews"}
    assert all(set(least) == areas - {"reviews"} for least in PLAYED.values())
    assert all(sum(least.values()) >= 200 for least in PLAYED.values())
