"""`harness faulty`: a server that misbehaves on demand, for tests of clients."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call

from harness.faults.base import all_faults
from harness.faults.client_duties import client_faults
from tests.processes import BOUND, COMMANDS

pytestmark = [pytest.mark.slow, pytest.mark.socket]

FAULT = "turn-ends-twice"
BYTES = b'{"x": 1 }\r\n\n \xff\x00\n{"method":"a"}\nno end'
HELLO = {"method": "initialize", "id": 1, "params": {"clientInfo": {"name": "t", "version": "1"}}}


def started(*words: str, faults: tuple[str, ...] = (FAULT,)) -> "subprocess.Popen[bytes]":
    given = [word for fault in faults for word in ("--fault", fault)]
    return subprocess.Popen(
        [COMMANDS / "harness", "faulty", *given, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def python(code: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", code)


def test_lines_without_a_fault_are_passed_on_byte_by_byte() -> None:
    said = started("--", "cat").communicate(BYTES, BOUND)
    assert said == (BYTES, b"faulty: turn-ends-twice: it never acted: no turn/completed\n")


def test_the_exit_status_and_the_signal_of_the_server_are_passed_on() -> None:
    for code, status in (("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9)):
        process = started(*python(code))
        process.communicate(b"", BOUND)
        assert process.returncode == status


def test_a_signal_reaches_the_server() -> None:
    """It writes its id, and ends by the signal that it gets."""
    process = started(*python("import os, time; print(os.getpid(), flush=True); time.sleep(999)"))
    assert process.stdout is not None
    server = int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=BOUND)
    assert process.returncode == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


def test_a_server_whose_client_is_gone_is_ended() -> None:
    """It ignores the end of its input, and nobody reads what it never writes."""
    process = started(*python("import os, time; print(os.getpid(), flush=True); time.sleep(999)"))
    assert process.stdout is not None
    assert process.stdin is not None
    server = int(process.stdout.readline())
    process.stdin.close()
    process.stdout.close()
    assert process.wait(BOUND) == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
    assert process.stderr is not None
    process.stderr.close()


SCENARIO = """
title: A turn whose end comes twice, and of which a delta is lost
model:
  - reply: [{message: {deltas: ["Hello ", "there."]}}]
faults:
  - fault: turn-ends-twice
  - drop: {method: item/agentMessage/delta, nth: 1}
client:
  - start_thread: {as: t}
"""
AGENT = str(COMMANDS / "agent")


def played(folder: Path, *command: str) -> tuple[list[str], list[str], int]:
    """A turn of a client until its end came twice: the methods heard, what was told, the status."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "AGENT_HOME": str(folder)},
        cwd=folder,
    )
    assert process.stdout is not None
    heard: list[str] = []

    def ask(message: object) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()

    asked = [HELLO, {"method": "initialized"}, {"method": "thread/start", "id": 2, "params": {}}]
    for message in asked:
        ask(message)
    for line in process.stdout:
        message = json.loads(line)
        heard.append(message.get("method", ""))
        if message.get("id") == 2:
            thread = message["result"]["thread"]["id"]
            ask_for = {"threadId": thread, "input": [{"type": "text", "text": "hi"}]}
            ask({"method": "turn/start", "id": 3, "params": ask_for})
        if heard.count("turn/completed") == 2:
            break
    _, told = process.communicate(timeout=BOUND)
    return heard, [line.split(" (")[0] for line in told.decode().splitlines()], process.returncode


def test_a_client_meets_the_faults_and_is_told_of_them(tmp_path: Path) -> None:
    faults = ("--fault", FAULT, "--fault", "delta-lost", "--once")
    server = ("--", AGENT, "app-server", "--scenario", "turns/plain-turn")
    heard, told, status = played(tmp_path, str(COMMANDS / "harness"), "faulty", *faults, *server)
    assert heard.count("item/agentMessage/delta") == 1
    assert told == [
        "faulty: delta-lost: dropped item/agentMessage/delta",
        "faulty: turn-ends-twice: repeated turn/completed",
    ]
    assert status == 0


def test_a_server_plays_the_faults_of_its_scenario(tmp_path: Path) -> None:
    """The working folder may have modules with the same names as ours."""
    (tmp_path / "harness.py").write_text("raise SystemExit('not this one')", "utf-8")
    file = tmp_path / "mine.scenario.yaml"
    file.write_text(SCENARIO, "utf-8")
    heard, told, status = played(tmp_path, AGENT, "app-server", "--scenario", str(file))
    assert heard.count("item/agentMessage/delta") == 1
    assert told == [
        "faulty: drop item/agentMessage/delta number 1: dropped item/agentMessage/delta",
        "faulty: turn-ends-twice: repeated turn/completed",
    ]
    assert status == 0


def test_who_runs_one_turn_does_not_play_the_faults_of_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "mine.scenario.yaml"
    file.write_text(SCENARIO, "utf-8")
    words = ("exec", "--skip-git-repo-check", "hi", "--scenario", str(file))
    said = call("agent", *words, cwd=tmp_path)
    assert said.status != 0
    assert "which agent app-server alone plays" in said.err


def test_every_fault_is_listed_with_the_sentence_that_it_breaks() -> None:
    listed = json.loads(call("harness", "faulty", "--list", "--json", "-").out)
    assert {one["id"] for one in listed if one["side"] == "server"} == set(all_faults())
    assert {one["id"] for one in listed if one["side"] == "client"} == set(client_faults())
    assert len(listed) == len(all_faults()) + len(client_faults())
    assert all(one["sentences"] and one["reason"] for one in listed)
    assert all(bool(one["why"]) != one["live"] for one in listed)


def test_the_list_can_be_searched_by_word_and_by_rule() -> None:
    said = call("harness", "faulty", "--list", "TWICE", "turn/completed")
    assert "turn-ends-twice (turn.completed-once, MUST)" in said.out.splitlines()
    rule = json.loads(call("harness", "faulty", "--list", "--rule", "delta", "--json", "-").out)
    assert {one["rule"].split(".")[0] for one in rule} == {"delta"}


def test_the_faults_of_clients_are_listed_as_such() -> None:
    said = call("harness", "faulty", "--list", "--rule", "duty")
    *lines, total = said.out.splitlines()
    count = len(client_faults())
    assert total == f"{count} faults, 0 of them live, {count} of clients"
    heads = [line for line in lines if not line.startswith("    ")]
    assert len(heads) == count
    assert all(line.endswith(", of clients, stored traces only)") for line in heads)
    assert call("harness", "faulty", "--list", "--rule", "duty.answers").status == 0
    explained = call("harness", "explain", "client-answers-twice").out
    assert explained.startswith("client-answers-twice (fault): breaks the rule duty.answer-once")


def test_a_fault_can_be_explained_by_its_id() -> None:
    live, stored = (call("harness", "explain", one).out for one in (FAULT, "schema-kept"))
    assert live.splitlines()[0] == f"{FAULT} (fault): breaks the rule turn.completed-once (MUST)"
    assert f"harness faulty --fault {FAULT} -- SERVER" in live
    assert "not live: the change is in marks" in stored
    assert "harness faulty" not in stored


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--fault", "turn-ends-twic", "--", "cat"), "did you mean 'turn-ends-twice'?"),
        (("--fault", "schema-kept", "--", "cat"), "stored traces only: the change is in marks"),
        (("--fault", "client-answers-twice", "--", "cat"), "stored traces only: it is a client's"),
        (("--list", "--rule", "turn.completed-onc"), "did you mean 'turn.completed-once'?"),
        (("--", "cat"), "no fault; give --fault ID, or see them all: harness faulty --list"),
        (("--fault", FAULT), "no server; write its command behind --"),
        (("--fault", FAULT, "--", "no-such-server"), "'no-such-server' was not found"),
        (("--fault", FAULT, "--fault", "exec-turn-ends-twice", "--", "cat"), "of different"),
        (("--scenario", "turns/plain-turn", "--", "cat"), "turns/plain-turn: it has no faults"),
        (("--scenario", "turns/", "--", "cat"), "name one"),
        (("--fault", FAULT, "--after", "-1", "--", "cat"), "--after"),
    ],
)
def test_a_mistake_is_told(words: tuple[str, ...], told: str) -> None:
    said = call("harness", "faulty", *words)
    assert said.status == 2
    assert told in said.err
