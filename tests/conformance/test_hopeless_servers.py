"""A server that cannot be judged at all gives one early finding with advice.

How long that takes is counted in plays, not by the clock: what fell silent first, and a plain turn
of its own, are at most 11 s and 12 s at the bounds as they are.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.play.session.conversation import Conversations
from harness.play.session.conversation_context import ConversationContext
from harness.play.session.first_turn import silence_of
from harness.play.session.repeated_timeouts import SAME_SILENCE, SCENARIOS_TO_SUSPECT, traits_of
from tests.sampling import one_in

from .judging import SERVERS, bundled, command, judged, run_pytest

pytestmark = [pytest.mark.socket, pytest.mark.slow]

SCALE = 0.2
PLAIN, TWO = "turns/plain-turn", "turns/two-turns"
AGENT = Path(sys.executable).with_name("agent")
# Server -> the finding, and what it says that did not come, that came, and of the model.
HOPELESS = {
    "never_completes": (
        "setup.no-plain-turn",
        ("turn/completed did not come", "the answer to turn/start", "the model was called"),
    ),
    "hangs_after_model": (
        "setup.no-plain-turn",
        ("turn/completed did not come", "turn/started", "the model was called"),
    ),
    "wrong_id": (
        "setup.no-plain-turn",
        ("turn/start was not answered", "1 answer(s) with an id that no request has"),
    ),
    "wrong_ids": (
        "setup.no-answer",
        ("thread/start was not answered", "2 answer(s) with an id that no request has"),
    ),
    "answers_initialize_only": (
        "setup.no-answer",
        ("thread/start was not answered", "nothing came after initialize"),
    ),
    "every_second": (
        "setup.no-answer",
        ("thread/start was not answered", "the answer to thread/read"),
    ),
}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("server", one_in(3, HOPELESS, pytest.mark.runs))
def test_hopeless_server_is_one_setup_finding_after_two_plays(
    server: str, silent: list[str]
) -> None:
    found = judged(command(f"broken/{server}"), bundled(), scale=SCALE)
    assert len(silent) == 2
    assert silent[-1] == "setup/plain-turn"
    name, words = HOPELESS[server]
    assert list(found.issues()) == [name]
    message = found.issues()[name]
    for said in (*words, "setup/plain-turn", "waiting 2 s", "harness doctor"):
        assert said in message
    assert "--timeout-scale 3" in message
    assert "--keep-going" in message
    assert "\n" not in message
    verdicts = found.verdicts()
    turns = {one.id for one in bundled() if one.scenario.starts_turns}
    # What the probes had shown to be absent before does not apply.
    assert {verdicts[one] for one in turns} <= {"NOT_EXERCISED", "NOT_APPLICABLE"}
    assert "FAIL" not in verdicts.values()
    assert found.report.red


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all conversations that end in silence, in order."""
    held: list[str] = []
    opened = Conversations.open

    @asynccontextmanager
    async def counted(
        self: Conversations, name: str, *rest: Any, **more: Any
    ) -> AsyncGenerator[ConversationContext]:
        async with opened(self, name, *rest, **more) as stage:
            yield stage
        held.extend([name] if silence_of(stage.run) else [])

    monkeypatch.setattr(Conversations, "open", counted)
    return held


@pytest.mark.usefixtures("place")
def test_breaches_of_the_plain_turn_are_reported_by_the_rule_with_its_lines() -> None:
    found = judged(command("broken/wrong_ids"), bundled(PLAIN, TWO), scale=SCALE)
    assert found.failed_rules() == ["request.answered", "response.known-id"]
    story = found.story("response.known-id")
    assert "setup/plain-turn.scenario.yaml" in story
    assert "1000002" in story
    assert re.search(r"judge +harness check \S*traces/spec/setup/plain-turn\.jsonl", story)


@pytest.mark.usefixtures("place")
def test_server_that_is_silent_once_is_played_on(tmp_path: Path) -> None:
    script = tmp_path / "starts_cold.py"
    script.write_text(COLD.format(servers=str(SERVERS), flag=str(tmp_path / "warm")))
    found = judged(command(script), bundled(PLAIN, TWO), scale=SCALE)
    assert found.verdicts() == {PLAIN: "FAIL", TWO: "PASS"}
    assert list(found.issues()) == ["unsteady"]


# The first process hangs in its first turn.
COLD = """
import pathlib, sys
sys.path.insert(0, {servers!r})
from minimal import Server
FLAG = pathlib.Path({flag!r})
class Cold(Server):
    def turn_start(self, params, reply):
        if not FLAG.exists():
            FLAG.touch()
            return
        super().turn_start(params, reply)
Cold().serve()
"""
SLOW = """
import sys, threading
sys.path.insert(0, {servers!r})
from minimal import Server
class Slow(Server):
    def model_events(self, thread, params):
        for event in super().model_events(thread, params):
            if event["type"] == "response.completed":
                threading.Event().wait(2)
            yield event
Slow().serve()
"""


@pytest.mark.usefixtures("place")
def test_server_that_is_slow_is_judged_with_more_time(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW.format(servers=str(SERVERS)))
    hasty = judged(command(script), bundled(PLAIN), scale=0.1)
    assert list(hasty.issues()) == ["setup.no-plain-turn"]
    assert judged(command(script), bundled(PLAIN), scale=1).verdicts() == {PLAIN: "PASS"}


@pytest.mark.usefixtures("place")
def test_other_thread_at_the_end_of_turns_is_a_rule_and_hopeless_in_nothing() -> None:
    found = judged(command("broken/other_thread"), bundled(PLAIN, TWO), scale=SCALE)
    assert found.issues() == {}
    assert found.failed_rules() == ["turn.known-thread"]


def swallowing(method: str) -> str:
    swallows = SERVERS / "broken" / "swallows.py"
    return shlex.join([sys.executable, str(swallows), method, str(AGENT), "app-server"])


@pytest.mark.usefixtures("place")
class TestOneFeature:
    def test_notification_that_never_comes_is_one_finding_though_its_request_works(self) -> None:
        script = Path(__file__).with_name("slow_and_silent.py")
        server = shlex.join([sys.executable, str(script), "app-server"])
        waiting = ["threads/archive", "threads/archive-file", "threads/archive-resume"]
        played = bundled("threads/archive-unloaded", *waiting)
        found = judged(server, played, target="reference", scale=SCALE)
        verdicts = found.verdicts()
        assert verdicts.pop("threads/archive-unloaded") == "PASS"
        assert verdicts == dict.fromkeys(waiting, "FAIL")
        message = found.issues()[SAME_SILENCE]
        assert "timed out waiting for thread/archived, in " in message
        assert "confirmed in threads/archive" in message
        assert "nothing that has the server's thread/archived came to its end" in message

    def test_interrupts_that_hang_are_one_finding_and_all_else_is_judged(self) -> None:
        chosen = [one for one in bundled() if one.id.startswith(("interrupts/", "turns/"))]
        asking = {one.id for one in chosen if "the request turn/interrupt" in traits_of(one)}
        names = [one.id for one in chosen]
        found = judged(command("broken/never_interrupted"), bundled(*names), scale=SCALE)
        message = found.issues()[SAME_SILENCE]
        assert "timed out waiting for an answer to turn/interrupt, in " in message
        assert "the request turn/interrupt" in message
        assert "confirmed in " in message
        verdicts = [found.verdicts()[name] for name in asking]
        assert verdicts.count("FAIL") > SCENARIOS_TO_SUSPECT
        assert "NOT_EXERCISED" not in verdicts
        others = [name for name in names if name not in asking]
        correct = judged(command("minimal"), bundled(*others), scale=SCALE).verdicts()
        assert {name: found.verdicts()[name] for name in others} == correct

    @pytest.mark.runs
    def test_approvals_that_never_come_are_one_finding_and_all_else_is_judged(self) -> None:
        needing = [one for one in bundled() if one.scenario.needs == ["command-approval"]]
        names = [one.id for one in needing[: 4 * SCENARIOS_TO_SUSPECT]]
        assert len(names) == 4 * SCENARIOS_TO_SUSPECT
        others = ["tools/run-command", "tools/patch", "steering/while-it-speaks", PLAIN]
        method = "item/commandExecution/requestApproval"
        scenarios = bundled(*names, *others)
        found = judged(swallowing(method), scenarios, target="reference", scale=SCALE)
        verdicts = found.verdicts()
        assert {verdicts[name] for name in others} == {"PASS"}
        assert {verdicts[name] for name in names} == {"FAIL"}
        assert f"timed out waiting for the server request {method}" in found.issues()[SAME_SILENCE]
        assert found.report.red

    def test_keep_going_plays_every_scenario_all_the_same(self) -> None:
        names = [
            one.id
            for one in bundled()
            if one.id.startswith("interrupts/") and not one.scenario.needs
        ]
        server = command("broken/never_interrupted")
        found = judged(server, bundled(*names), scale=0.1, keep_going=True)
        assert SAME_SILENCE not in found.issues()
        assert "NOT_EXERCISED" not in found.verdicts().values()


SOME = ("interrupts", "language", "threads", "turns")
RUNS = [("wrong_ids", SOME), ("hangs_after_model", ())]


@pytest.mark.parametrize(("server", "played"), one_in(len(RUNS), RUNS, pytest.mark.runs))
def test_two_workers_find_the_same_as_one(
    server: str, played: tuple[str, ...], place: Path, mark: str
) -> None:
    options = ["--server-cmd", command(f"broken/{server}"), "--timeout-scale", str(SCALE), *played]
    runs = [run_pytest(*options, f"-n{n}", folder=place, mark=mark) for n in (0, 2)]
    assert runs[0].status == runs[1].status == 1
    # What is absent is found by probes, of which a worker plays none once it knows.
    told = [
        {name: verdict.replace("APPLICABLE", "EXERCISED") for name, verdict in run.verdicts.items()}
        for run in runs
    ]
    assert told[0] == told[1]
    assert runs[0].report["issues"] == runs[1].report["issues"]


@pytest.mark.runs
def test_races_of_a_hopeless_server_are_the_same_finding(place: Path, mark: str) -> None:
    options = ["--server-cmd", command("broken/hangs_after_model"), "--race", "all"]
    ran = run_pytest(*options, "--timeout-scale", str(SCALE), folder=place, mark=mark)
    assert ran.status == 1
    assert [issue["id"] for issue in ran.report["issues"]] == ["setup.no-plain-turn"]
    assert {race["verdict"] for race in ran.report["races"]} <= {"NOT_EXERCISED", "NOT_APPLICABLE"}
    assert [rule["id"] for rule in ran.report["rules"] if rule["verdict"] == "FAIL"] == [
        "turn.completes"
    ]


def test_races_of_one_action_that_hangs_are_one_finding(place: Path, mark: str) -> None:
    folder = SERVERS.parents[1] / "scenarios" / "turns"
    options = ["--server-cmd", command("broken/never_interrupted"), "--race", "all", str(folder)]
    ran = run_pytest(*options, "--timeout-scale", "0.1", folder=place, mark=mark)
    races = {race["id"]: race for race in ran.report["races"]}
    tried = [
        one["verdict"]
        for race in races.values()
        if race["action"] == "interrupt"
        for one in race["placements"]
    ]
    assert set(tried) <= {"FAIL", "NOT_EXERCISED"}
    assert SAME_SILENCE in [issue["id"] for issue in ran.report["issues"]]
    others = [one["verdict"] for one in races.values() if one["action"] == "second-turn"]
    assert "PASS" in others
    assert set(others) <= {"PASS", "NOT_APPLICABLE"}
