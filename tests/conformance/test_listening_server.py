"""A server that listens is judged as one that speaks over its standard streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scenario.loader import load_text
from harness.trace.store import load
from harness.trace.trace import End

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
BACK = """
title: The only client leaves in the middle of a turn and comes back
needs: [several-clients]
model:
  first: [{reply: [{hold: away}, {message: one}]}]
  second: [{reply: [{message: two}]}]
client:
  - start_thread: {as: first}
  - start_turn: {thread: first, text: "a", as: x}
  - wait: {gate: away}
  - disconnect: true
  - connect: main
  - start_thread: {as: second}
  - start_turn: {thread: second, text: "b", as: y}
  - wait: {turn: y, status: completed}
expect: {turns: {y: completed}}
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


def test_any_server_of_standard_streams_is_put_behind_a_socket_by_the_example() -> None:
    behind = f"{command('listening')} {{listen}} {command('minimal')}"
    found = judged(behind, [load_text(TWO, name="two")], scale=1)
    assert found.verdicts() == {"two": "PASS"}
    assert found.failed_rules() == []


def test_the_first_client_can_come_back_and_its_trace_is_brought_to_an_end() -> None:
    found = judged(f"{command('listening')} {{listen}}", [load_text(BACK, name="back")], scale=1)
    assert found.verdicts() == {"back": "PASS"}
    assert found.failed_rules() == []
    trace = load(Path(found.outcomes["back"].trace))
    assert {frame.connection for frame in trace.frames} == {"c1", "c2"}
    assert trace.end is End.QUIESCENT


def test_a_server_that_ends_with_its_client_is_found_when_it_comes_back() -> None:
    server = f"{command('listening')} {{listen}} once"
    found = judged(server, [load_text(BACK, name="back")], scale=1)
    assert found.verdicts() == {"back": "FAIL"}
    assert "scenario.crash" in {one.id for one in found.outcomes["back"].findings}


def test_over_pipes_the_first_client_cannot_come_back() -> None:
    found = judged(command("minimal"), [load_text(BACK, name="back")], scale=1)
    assert found.verdicts() == {"back": "NOT_APPLICABLE"}


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
