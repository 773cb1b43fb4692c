"""A server that listens is judged as one that speaks over its standard streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scenario.loader import load_text
from harness.trace.store import load

from .judging import bundled, command, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

TWO = """
title: Two connections, a turn on each
needs: [several-clients]
model:
  first: [{reply: [{message: one}]}]
  second: [{reply: [{message: two}]}]
client:
  - start_thread: {as: first}
  - connect: other
  - start_thread: {as: second, "on": other}
  - start_turn: {thread: first, text: "a", as: x}
  - wait: {turn: x}
  - start_turn: {thread: second, text: "b", as: y, "on": other}
  - wait: {turn: y, "on": other}
"""
NAMES = ("turns/plain-turn", "turns/interrupt-mid-text", "language/disconnect")


def profile(folder: Path, kind: str) -> str:
    path = folder / "listening.toml"
    path.write_text(
        f'name = "listening"\nlisten = "{kind}"\n'
        '[env]\nPROVIDER_BASE_URL = "{model_url}"\nPROVIDER_API_KEY = "harness-key"\n'
    )
    return str(path)


@pytest.mark.parametrize("kind", ["ws", "unix"])
def test_scenarios_pass_over_a_socket_as_they_do_over_pipes(kind: str, place: Path) -> None:
    server = f"{command('listening')} {{listen}}"
    found = judged(server, bundled(*NAMES), target=profile(place, kind), scale=1)
    assert found.verdicts() == dict.fromkeys(NAMES, "PASS")
    assert found.failed_rules() == []
    assert found.issues() == {}


def test_a_command_that_asks_for_an_address_needs_no_profile_and_takes_two_clients() -> None:
    found = judged(f"{command('listening')} {{listen}}", [load_text(TWO, name="two")], scale=1)
    assert found.verdicts() == {"two": "PASS"}
    assert found.failed_rules() == []
    trace = load(Path(found.outcomes["two"].trace))
    assert {frame.connection for frame in trace.frames} == {"c1", "c2"}


def test_over_pipes_a_second_client_is_not_offered() -> None:
    found = judged(command("minimal"), [load_text(TWO, name="two")], scale=1)
    assert found.verdicts() == {"two": "NOT_APPLICABLE"}


def test_a_server_that_ends_instead_of_listening_is_one_finding(place: Path) -> None:
    script = place / "ends.py"
    script.write_text("import sys; sys.exit('no such option: --listen')\n")
    found = judged(f"{command(script)} {{listen}}", bundled(*NAMES[:2]), scale=1)
    (message,) = found.issues().values()
    assert list(found.issues()) == ["setup.not-started"]
    assert "ended with exit status 1 before it listened at ws://127.0.0.1:" in message
    assert "no such option: --listen" in message
