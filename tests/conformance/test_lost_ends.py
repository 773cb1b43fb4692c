"""Turns whose turn/completed is lost, for many causes: each is found as owed.

The servers are fixtures/servers/broken/loses_the_end, which stands before the reference server, and
forgets_who_left. What is found names the turn, how long nothing came, and what was outstanding.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import psutil
import pytest

from harness.scenario.loader import load
from tests.sampling import one_in

from .judging import SERVERS, Judged, bundled, command, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

LOSER = SERVERS / "broken" / "loses_the_end.py"
PLAIN = "turns/plain-turn"
# Way -> a scenario in which a turn ends after it; the last turn of each is another one.
LOST = {
    "after-a-failed-command": "tools/run-command-fails",
    "after-a-file-change": "tools/patch",
    "after-a-compaction": "threads/compact",
    "after-a-denial": "tools/decline-command",
    "after-a-retry": "failures/disconnect-retry",
    "after-a-failure": "failures/bad-request",
    "after-an-addition": "steering/while-it-speaks",
    "interrupted-twice": "interrupts/twice",
    "interrupted-while-asking": "interrupts/during-an-approval",
    "after-a-second-start": "turns/second-start",
}
NOTHING = "outstanding: 0 model streams, 0 server requests, 0 child processes, 0 announced retries"


def losing(way: str, *names: str) -> Judged:
    agent = Path(sys.executable).with_name("agent")
    line = [sys.executable, str(LOSER), way, str(agent), "app-server"]
    return judged(shlex.join(line), bundled(*names), target="reference", scale=0.4)


def is_owed(found: Judged, name: str) -> bool:
    """Return True if the only failure is a turn/completed that never came."""
    [scenario] = [one for one in found.report.scenarios if one.id == name]
    [proof] = found.rule("turn.completes").proofs
    return (
        found.failed_rules() == ["turn.completes"]
        and scenario.verdict.value == "FAIL"
        and scenario.end == "quiescent"
        and proof.scenario == name
        and proof.row.expected == f"turn/completed for {proof.row.subject}"
        and proof.row.actual.startswith("none came in ")
        and proof.row.actual.endswith(f" s of silence; {NOTHING}")
    )


def test_every_way_of_the_server_is_tried() -> None:
    spec = importlib.util.spec_from_file_location("loses_the_end", LOSER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert sorted(module.WAYS) == sorted(LOST)
    assert len(LOST) == 10


@pytest.mark.parametrize("way", one_in(4, LOST, pytest.mark.runs))
def test_a_lost_end_is_owed_and_other_turns_are_well(way: str) -> None:
    found = losing(way, LOST[way], PLAIN)
    assert is_owed(found, LOST[way])
    assert found.verdicts()[PLAIN] == "PASS"
    assert "scenario.timeout" in found.story(LOST[way])


LEAVING = """
title: A client that leaves and comes back while a turn runs is told of its end
model:
  - reply: [{message: {deltas: ["One ", {hold: away}, "two."]}}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "count", as: u}
  - wait: {gate: away}
  - request: {method: thread/unsubscribe, params: {threadId: $t.thread.id}}
  - request: {method: thread/resume, params: {threadId: $t.thread.id}}
  - open: away
  - wait: {turn: u, status: completed}
"""


def test_an_end_that_is_lost_when_the_last_subscriber_leaves_is_owed(tmp_path: Path) -> None:
    file = tmp_path / "leaving.scenario.yaml"
    file.write_text(LEAVING, encoding="utf-8")
    server = command("broken/forgets_who_left")
    found = judged(server, [load(file, root=tmp_path), *bundled(PLAIN)], scale=0.4)
    assert is_owed(found, "leaving")
    assert found.verdicts()[PLAIN] == "PASS"


@pytest.mark.parametrize(
    ("server", "outstanding"),
    [
        ("promises_a_retry", "a retry that was announced"),
        ("waits_for_a_child", "child processes (\\d+)"),
    ],
)
def test_an_end_that_something_keeps_away_is_no_lost_one(server: str, outstanding: str) -> None:
    found = judged(command(f"broken/{server}"), bundled(PLAIN), scale=0.2, keep_going=True)
    outcome = found.outcomes[PLAIN]
    assert found.failed_rules() == []
    assert found.verdicts() == {PLAIN: "FAIL"}
    assert found.report.scenarios[0].end == "timed-out"
    [busy] = [one for one in outcome.findings if one.id == "liveness.turn-does-not-end"]
    words = re.fullmatch(rf"the server was still busy at .* of 4 s: {outstanding}", busy.message)
    assert words is not None
    if children := re.findall(r"^child (\d+)$", outcome.stderr, re.MULTILINE):
        assert words.groups() == (children[0],)
        assert [pid for pid in children if psutil.pid_exists(int(pid))] == []
