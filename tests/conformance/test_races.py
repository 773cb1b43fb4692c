"""Races on servers of ours: a fault at one position is found there and nowhere else.

Bounds are scaled down, so that each hang is short; whatever happens, nothing stays behind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.judge.verdict import Verdict
from harness.play.config import Config, configure
from harness.play.worker_session import WorkerSession
from harness.report.results.merge import merge
from harness.report.results.outcome import RaceOutcome, broken_must_rules
from harness.report.results.report import Report
from harness.report.scenario_story import race_story
from harness.report.story import rule_story
from harness.report.terminal import summary
from harness.scenario.loader import load_text
from harness.scenario.model import Action
from harness.scenario.positions import DONE, positions
from harness.scenario.races import placements

from .judging import ROOT, bundled, command, run_pytest

pytestmark = [pytest.mark.socket, pytest.mark.slow]

PLAIN = "turns/plain-turn"
FILE = ROOT / "scenarios" / f"{PLAIN}.scenario.yaml"


class Raced:
    """One race in this process, and its report."""

    def __init__(
        self, server_cmd: str, action: Action, *, target: str = "spec", only: str = ""
    ) -> None:
        self.config: Config = configure(target=target, server_cmd=server_cmd, scale=0.2)
        session = WorkerSession(self.config)
        try:
            self.race: RaceOutcome = session.race(bundled(PLAIN)[0], action, only)
        finally:
            loose = session.close()
        self.report: Report = merge(
            [],
            loose,
            races=[self.race],
            profile=self.config.profile,
            entries=self.config.entries,
            rules=self.config.rules,
            book=self.config.book,
        )

    @property
    def wrong(self) -> dict[str, list[str]]:
        """Position -> findings and broken MUST rules, of those that have any.

        At `model:done` the server may still be at any delta before it, so that one is left out;
        every other position is held, or comes before the model has said anything.
        """
        found = {
            one.race.partition("@")[2]: sorted(
                {*(f.id for f in one.findings), *broken_must_rules(one)}
            )
            for one in self.race.placements
            if not one.race.endswith(f"@{DONE}")
        }
        return {position: what for position, what in found.items() if what}

    @property
    def story(self) -> str:
        return race_story(self.race, self.report.programs)


def wrong(way: str) -> str:
    return f"{command('broken/wrong_at_one_position')} {way}"


@pytest.mark.usefixtures("place")
class TestOnePosition:
    def test_end_that_is_lost_at_one_position_is_found_there(self) -> None:
        found = Raced(wrong("lost-end"), "interrupt")
        assert list(found.wrong) == ["delta:1"]
        assert {"scenario.timeout", "turn.completes"} <= set(found.wrong["delta:1"])
        assert found.race.verdict is Verdict.FAIL
        assert found.report.red

    def test_its_stories_name_action_and_position_and_repeat_just_that(self) -> None:
        found = Raced(wrong("lost-end"), "interrupt")
        failed = [one.race for one in found.race.placements if one.verdict is Verdict.FAIL]
        assert "interrupt@delta:1" in failed
        # At `model:done` the server may still be at its first delta: then it fails there too.
        assert set(failed) <= {"interrupt@delta:1", f"interrupt@{DONE}"}
        assert f"{len(failed)} of 9 placement(s) of interrupt fail" in found.story
        assert "action interrupt at position delta:1 (the server is held there)" in found.story
        assert "waited 1 s for the end of the interrupted turn; it did not come" in found.story
        rule = next(one for one in found.report.rules if one.id == "turn.completes")
        told = rule_story(rule, found.config.book, found.report)
        assert "race      interrupt at delta:1" in told
        for text in (found.story, told):
            repeat = next(line for line in text.splitlines() if line.startswith("repeat"))
            assert "--race interrupt@delta:1" in repeat
            assert repeat.endswith(str(FILE))
        lines = list(summary(found.report, found.config.book))
        # This server begins a message's item with its first delta, so not where nothing was said.
        counted = f"{8 - len(failed)} PASS, {len(failed)} FAIL, 1 NOT_EXERCISED"
        assert f"placements: 9 ({counted}), 3 of them racy" in lines
        missed = f"NOT_EXERCISED {PLAIN}@interrupt: never reached: item:1:started"
        assert missed in lines
        assert any(line.startswith(f"FAIL race {PLAIN}@interrupt@delta:1: ") for line in lines)

    def test_input_that_is_forgotten_at_one_position_is_found_there(self) -> None:
        found = Raced(wrong("lost-addition"), "steer")
        assert list(found.wrong) == ["delta:1"]
        assert "scenario.expectation" in found.wrong["delta:1"]
        message = "the input of an accepted turn/steer never reached the model"
        assert message in found.story

    def test_second_answer_at_one_position_is_found_there(self) -> None:
        found = Raced(wrong("answers-twice"), "steer")
        assert found.wrong == {"delta:1": ["response.once"]}
        # It is the rule's: the race itself got where it wanted.
        assert found.race.verdict is Verdict.PASS
        assert found.report.red

    def test_exit_status_at_one_position_is_found_there(self) -> None:
        found = Raced(wrong("bad-exit"), "disconnect")
        assert found.wrong == {"delta:1": ["hygiene.exit-status"]}
        # Of a server that is not held to it, it is only told.
        assert found.race.verdict is Verdict.PASS
        told = next(one for one in found.report.issues if one.id == "hygiene.exit-status")
        assert told.message.startswith(f"{PLAIN}@disconnect@delta:1: ")
        assert "status 3" in told.message


@pytest.mark.usefixtures("place")
class TestListening:
    """A listening server must survive the end of a connection."""

    SERVER = f"{command('listening')} {{listen}}"

    def test_client_that_comes_back_is_served(self) -> None:
        found = Raced(self.SERVER, "disconnect", only="delta:1")
        assert found.wrong == {}
        assert found.race.verdict is Verdict.PASS

    def test_server_that_ends_with_its_client_is_found(self) -> None:
        found = Raced(f"{self.SERVER} once", "disconnect", only="delta:1")
        assert "scenario.crash" in found.wrong["delta:1"]
        assert found.race.verdict is Verdict.FAIL


# It stays if nobody reads its last words.
STAYS_UNHEARD = """
import os, sys, threading
sys.path.insert(0, {folder!r})
from minimal import Server, json

class Stays(Server):
    def serve(self):
        for line in sys.stdin.buffer:
            with self.lock:
                self.handle(json.loads(line))
        try:
            self.send({{"method": "bye"}})
        except OSError:
            threading.Event().wait(60)
        os._exit(3)

Stays().serve()
"""
# It takes each fragment of a WebSocket message for a whole one. What one read of a pipe gets would
# depend on the machine's load.
FRAGMENTS_ARE_MESSAGES = """
import runpy
from websockets.asyncio.server import ServerConnection

async def each_fragment(self):
    while True:
        async for fragment in self.recv_streaming():
            yield fragment

ServerConnection.__aiter__ = each_fragment
runpy.run_path({listening!r}, run_name="__main__")
"""


@pytest.mark.usefixtures("place")
class TestBadLines:
    """Bad lines to a server: slices of a byte, a reset, a client that is back at once."""

    @pytest.mark.parametrize("action", ["slices", "reset", "reconnect"])
    @pytest.mark.parametrize("address", ["", "ws", "unix"])
    def test_sound_server_passes_on_every_transport(
        self, action: Action, address: str, place: Path
    ) -> None:
        target, server = "spec", TestListening.SERVER if address else command("minimal")
        if address == "unix":
            profile = f"name = 'u'\nlisten = 'unix'\ncommand = {server!r}\n"
            (place / "unix.toml").write_text(profile)
            server, target = "", str(place / "unix.toml")
        found = Raced(server, action, target=target, only="delta:1")
        # minimal.py may print the traceback of a write that nobody reads.
        allowed = {"hygiene.panic"} if action == "reset" else set[str]()
        assert set(found.wrong.get("delta:1", [])) <= allowed
        assert found.race.verdict is Verdict.PASS

    def test_server_that_takes_each_fragment_for_a_message_is_found(self, place: Path) -> None:
        script, listening = place / "planted.py", str(ROOT / "fixtures/servers/listening.py")
        script.write_text(FRAGMENTS_ARE_MESSAGES.format(listening=listening))
        server = f"{command(script)} {{listen}}"
        assert "scenario.timeout" in Raced(server, "slices", only="delta:1").wrong["delta:1"]
        assert Raced(server, "interrupt", only="delta:1").wrong == {}

    def test_server_that_outlives_a_reset_is_found(self, place: Path) -> None:
        script = place / "planted.py"
        script.write_text(STAYS_UNHEARD.format(folder=str(ROOT / "fixtures/servers")))
        server = command(script)
        found = Raced(server, "reset", only="delta:1")
        assert "hygiene.outlives-input" in found.wrong["delta:1"]
        # Read, its last words end it; only then its exit status counts.
        polite = Raced(server, "disconnect", only="delta:1")
        assert "hygiene.outlives-input" not in polite.wrong["delta:1"]
        assert "hygiene.exit-status" in polite.wrong["delta:1"]

    @pytest.mark.parametrize("action", ["reset", "reconnect"])
    def test_server_that_ends_with_its_client_is_found(self, action: Action) -> None:
        found = Raced(f"{TestListening.SERVER} once", action, only="delta:1")
        assert found.race.verdict is Verdict.FAIL


@pytest.mark.usefixtures("place")
class TestVerdicts:
    def test_server_that_is_right_everywhere_passes_everywhere(self) -> None:
        found = Raced(command("minimal"), "interrupt")
        assert found.wrong == {}
        rest = {one.race: one.verdict for one in found.race.placements}
        assert rest.pop("interrupt@item:1:started") is Verdict.NOT_EXERCISED
        assert set(rest.values()) == {Verdict.PASS}
        racy = {one.race.partition("@")[2]: one.runs for one in found.race.placements if one.racy}
        assert racy == {"turn-start:answered": 5, "turn:started": 5, "model:done": 5}

    def test_action_that_is_not_offered_does_not_apply(self) -> None:
        found = Raced(command("minimal"), "steer")
        assert found.race.verdict is Verdict.NOT_APPLICABLE
        assert found.race.reason == "the server does not offer steering"

    def test_scenario_that_does_not_pass_is_not_raced(self) -> None:
        found = Raced(command("broken/never_completes"), "kill")
        assert found.race.verdict is Verdict.NOT_EXERCISED
        assert found.race.reason.startswith("the scenario itself does not pass: ")
        assert found.race.placements == []

    def test_server_that_does_not_start_is_one_finding(self) -> None:
        found = Raced(command("broken/does_not_start"), "kill")
        assert found.race.verdict is Verdict.NOT_EXERCISED
        assert [issue.id for issue in found.report.issues] == ["setup.not-started"]

    def test_position_that_does_not_come_is_not_exercised(self, place: Path) -> None:
        # A server that says nothing of a reply before it is whole is never at its first delta.
        text = FILE.read_text("utf-8")
        assert [one.name for one in positions(load_text(text).scenario)][5:7] == [
            "delta:1",
            "delta:2",
        ]
        script = place / "whole.py"
        script.write_text(WHOLE.format(folder=str(ROOT / "fixtures" / "servers")))
        found = Raced(command(script), "interrupt")
        unreached = [
            one.race for one in found.race.placements if one.verdict is Verdict.NOT_EXERCISED
        ]
        assert unreached == ["interrupt@item:1:started", "interrupt@delta:1", "interrupt@delta:2"]
        assert found.wrong == {}
        assert found.race.verdict is Verdict.PASS


WHOLE = """
import sys
sys.path.insert(0, {folder!r})
from minimal import Server

class Whole(Server):
    def step(self, thread, event):
        if event["type"] != "response.output_text.delta":
            super().step(thread, event)

Whole().serve()
"""


class TestCommandLine:
    def test_marker_takes_the_races_and_the_option_one_placement(
        self, place: Path, mark: str
    ) -> None:
        server = ["--target", "spec", "--server-cmd", command("minimal"), str(FILE)]
        one = run_pytest("--race", "second-turn@delta:1", *server, folder=place, mark=mark)
        assert one.status == 0
        race = one.report["races"][0]
        assert (race["id"], race["verdict"]) == (f"{PLAIN}@second-turn", "PASS")
        assert [each["position"] for each in race["placements"]] == ["delta:1"]
        assert one.report["scenarios"] == []
        listed = run_pytest("--collect-only", "-m", "race", *server, folder=place, mark=mark)
        actions = ("interrupt", "steer", "second-turn", "disconnect", "kill")
        assert all(f"{PLAIN}@{action}" in listed.text for action in actions)
        assert f"{PLAIN}@answer" not in listed.text
        plain = run_pytest("--collect-only", *server, folder=place, mark=mark)
        assert f"{PLAIN}@" not in plain.text

    def test_unknown_position_finds_nothing_to_play(self, place: Path, mark: str) -> None:
        server = ["--target", "spec", "--server-cmd", command("minimal"), str(FILE)]
        ran = run_pytest("--race", "kill@delta:7", *server, folder=place, mark=mark)
        assert ran.status == 5


def test_every_raced_scenario_has_placements_for_what_it_names() -> None:
    raced = [one for one in bundled() if one.scenario.race_actions]
    assert len(raced) >= 6
    for one in raced:
        listed = one.scenario.races if isinstance(one.scenario.races, list) else []
        assert [a for a in listed if not placements(one.scenario, a)] == [], one.id
