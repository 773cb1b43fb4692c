"""Every bound is printed when it is hit, and raised by a profile and by `--timeout-scale` alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.client.target.profile import Bounds
from harness.scenario.loader import Loaded, load_text

from .judging import SERVERS, Judged, bundled, command, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

PLAIN = "turns/plain-turn"
# Each turn starts a process that only the end of the server ends, and is not completed.
BUSY = f"""
import subprocess, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class Busy(Server):
    def finish(self, thread, status, error=None):
        line = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        self.child = subprocess.Popen(line, stdin=subprocess.PIPE)
Busy().serve()
"""
# Half a second lies between two of its messages about a turn.
SLOW = f"""
import sys, threading
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class Slow(Server):
    def step(self, thread, event):
        if event["type"] == "response.output_text.delta":
            threading.Event().wait(0.5)
        super().step(thread, event)
Slow().serve()
"""
EIGHT_DELTAS = """
title: a reply of eight deltas
model: [{reply: [{message: {deltas: [a, b, c, d, e, f, g, h]}}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hello, as: u}
  - wait: {turn: u, status: completed}
"""
UNHEARD = """
title: a turn is started and not waited for
model: [{reply: [{message: "hello"}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hello, as: u}
"""


def bounded(place: Path, server: str | Path, loaded: Loaded, scale: float, bounds: str) -> Judged:
    profile = place / "mine.toml"
    environment = '[env]\nPROVIDER_BASE_URL = "{model_url}"\n'
    profile.write_text(f'name = "mine"\n[bounds]\n{bounds}\n{environment}')
    line = command(server if isinstance(server, Path) else f"broken/{server}")
    return judged(line, [loaded], target=str(profile), scale=scale, keep_going=True)


def test_bounds_are_those_of_the_documents() -> None:
    assert Bounds().model_dump() == {
        "start": 10.0,
        "step": 5.0,
        "scenario": 20.0,
        "settle": 1.0,
        "stop": 2.0,
    }


# Each is 0.6 s: said by the profile, or by the profile and the scale together.
BOTH = pytest.mark.parametrize(("said", "scale"), [(0.6, 1.0), (3.0, 0.2)])


@BOTH
def test_start_has_its_bound(said: float, scale: float, place: Path) -> None:
    (plain,) = bundled(PLAIN)
    found = bounded(place, "never_answers", plain, scale, f"start = {said}")
    assert "did not answer initialize within 0.6 s" in found.issues()["setup.no-handshake"]


@BOTH
def test_step_has_its_bound(said: float, scale: float, place: Path) -> None:
    (plain,) = bundled(PLAIN)
    found = bounded(place, "never_completes", plain, scale, f"step = {said}")
    assert "step wait: waited 0.6 s for the end of turn u; it did not come" in found.story(PLAIN)


def test_server_that_goes_on_telling_of_its_turn_is_not_cut_off(place: Path) -> None:
    script = place / "slow.py"
    script.write_text(SLOW)
    found = bounded(place, script, load_text(EIGHT_DELTAS, name="eight"), 1.0, "step = 2.0")
    assert found.verdicts() == {"eight": "PASS"}


@BOTH
def test_scenario_has_its_bound(said: float, scale: float, place: Path) -> None:
    (plain,) = bundled(PLAIN)
    found = bounded(
        place, "never_completes", plain, scale, f"scenario = {said}\nstep = {60 / scale}"
    )
    message = "step scenario: the scenario took longer than its bound of 0.6 s"
    assert ("scenario.timeout", message, 1) in found.scenario(PLAIN).messages


# Long enough for a machine under load to come to the model's call.
@pytest.mark.parametrize(("said", "scale"), [(2.0, 1.0), (10.0, 0.2)])
def test_server_that_stays_busy_has_the_scenarios_bound(
    said: float, scale: float, place: Path
) -> None:
    script = place / "busy.py"
    script.write_text(BUSY)
    loaded = load_text(UNHEARD, name="unheard")
    found = bounded(place, script, loaded, scale, f"scenario = {said}\nsettle = {0.1 / scale}")
    message = found.scenario("unheard").messages[0]
    assert message[0] == "liveness.turn-does-not-end"
    assert message[1].startswith(
        "the server was still busy at the scenario's bound of 2 s: child processes "
    )


@BOTH
def test_each_push_at_the_end_has_its_bound(said: float, scale: float, place: Path) -> None:
    (plain,) = bundled(PLAIN)
    found = bounded(place, "ignores_sigterm", plain, scale, f"stop = {said}")
    message = found.issues()["hygiene.ignores-term"]
    assert message == "the server ignored the end of its input and TERM (0.6 s each)"
