"""Failures inside one scenario: the others are played and judged as usual.

The server here is correct until a user's text asks it to misbehave.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from harness.judge.verdict import Level, Verdict
from harness.play.config import configure
from harness.play.worker_session import WorkerSession
from harness.scenario.loader import Loaded, load_text

from .judging import SERVERS, Judged, command, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow]

MOODY = f"""
import os, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class Moody(Server):
    silent = False
    def send(self, message):
        if not self.silent:
            super().send(message)
    def tell(self, thread, method, **params):
        super().tell(thread, method, **params)
        if method != "item/agentMessage/delta":
            return
        mood = thread.turn["items"][0]["content"][0]["text"]
        if mood == "die":
            os._exit(9)
        if mood == "fall silent":
            self.silent = True
        if mood == "say half":
            os.write(1, b'{{"method": "item/')
            self.silent = True
        while mood == "talk on":
            super().tell(thread, method, itemId=params["itemId"], delta="")
Moody().serve()
"""
SCENARIO = """
title: a scenario
model: [{{reply: [{{message: "hello"}}]}}]
client:
  - start_thread: {{as: t}}
  - start_turn: {{thread: t, text: "{text}", as: u}}
  - wait: {{turn: u, status: completed}}
expect:
  items: [userMessage, {{agentMessage: {{text: hello}}}}]
"""
NAMES = ("1-good", "2-bad", "3-good", "4-good")


def scenario(name: str, text: str) -> Loaded:
    return load_text(SCENARIO.format(text=text), name=name)


def with_mood(mood: str, folder: Path) -> Judged:
    script = folder / "moody.py"
    script.write_text(MOODY)
    texts = ("behave", mood, "behave", "behave")
    return judged(command(script), [scenario(*one) for one in zip(NAMES, texts, strict=True)])


ENDS = {
    "die": ("scenario.crash", "exited"),
    "fall silent": ("scenario.timeout", "quiescent"),
    "say half": ("scenario.timeout", "quiescent"),
    "talk on": ("liveness.turn-does-not-end", "closed"),
}


@pytest.mark.parametrize("mood", ENDS)
def test_only_the_scenario_in_which_it_went_wrong_fails(mood: str, place: Path) -> None:
    found = with_mood(mood, place)
    assert found.verdicts() == dict(zip(NAMES, ("PASS", "FAIL", "PASS", "PASS"), strict=True))
    finding, end = ENDS[mood]
    bad = found.scenario("2-bad")
    assert finding in [message[0] for message in bad.messages]
    if mood != "talk on":  # either bound may be hit first
        assert bad.end == end
    assert found.issues() == {}
    assert all(Path(outcome.trace).is_file() for outcome in found.outcomes.values())


@pytest.mark.usefixtures("place")
def test_server_that_is_gone_between_two_scenarios_is_started_again_and_named() -> None:
    session = WorkerSession(configure(server_cmd=command("minimal")))
    try:
        outcomes = [session.play(scenario("1", "hello"))]
        portal, bench = session._thread._open()
        server = bench.servers.current
        assert server is not None
        os.kill(server.process.pid, signal.SIGKILL)
        portal.call(server.peer.ended.wait)
        outcomes.append(session.play(scenario("2", "hello")))
    finally:
        findings = session.close()
    assert [outcome.verdict for outcome in outcomes] == [Verdict.PASS, Verdict.PASS]
    assert [(finding.id, finding.message, finding.level) for finding in findings] == [
        (
            "hygiene.ended-unasked",
            "the server ended with exit status -9 by itself between two scenarios",
            Level.INFO,
        )
    ]
