"""`agent app-server` whose client disconnects without reading: all its processes end."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

import reference_server
from tests.agent_process import AgentProcess

pytestmark = [pytest.mark.socket, pytest.mark.slow]

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 20
ASKED = 300
"""Requests that fit into a pipe, while their answers, each with the words of the user, are more
than the server keeps for a client."""
WORDS = "x" * 20_000
SCENARIO = """\
title: A command that says much and then waits
model:
  - reply:
      - run: "echo $$ > pid; yes | head -c 2000000; read x < never"
client:
  - start_thread: {as: t}
"""
HOLDING = """\
title: Nothing but a beginning
model:
  - reply:
      - message: {deltas: ["Hel", {hold: never}, "lo"]}
client:
  - start_thread: {as: t}
"""
Server = subprocess.Popen[bytes]


@pytest.fixture
def started(tmp_path, request) -> Iterator[Server]:
    """A server whose model says what the test's parameter tells it."""
    scenario = tmp_path / "one.scenario.yaml"
    scenario.write_text(getattr(request, "param", HOLDING))
    process = AgentProcess(
        [sys.executable, "-m", "reference_server", "app-server", "--scenario", str(scenario)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
            "AGENT_HOME": str(tmp_path / "home"),
        },
    )
    yield process
    process.kill()
    for stream in streams(process):
        stream.close()
    process.wait()


def streams(process: Server) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def say(process: Server, method: str, **params: object) -> None:
    given, _, _ = streams(process)
    given.write(json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n")
    given.flush()


def flood(process: Server) -> None:
    """Ask for more than is read, and leave."""
    given, _, _ = streams(process)
    question = {"id": 7, "method": "thread/read", "params": {"threadId": "thr_1"}}
    given.write((json.dumps(question, separators=(",", ":")).encode() + b"\n") * ASKED)
    given.close()


def begin_turn(process: Server, folder: Path) -> None:
    unasked = {"sandbox": "danger-full-access", "approvalPolicy": "never"}
    say(process, "thread/start", cwd=str(folder), **unasked)
    say(process, "turn/start", threadId="thr_1", input=[{"type": "text", "text": WORDS}])


def told(fifo: Path) -> bytes:
    """Return the line that a command writes to a pipe, b"" if none comes within the bound."""
    descriptor = os.open(fifo, os.O_RDWR)
    ready, _, _ = select.select([descriptor], [], [], BOUND)
    line = os.read(descriptor, 100) if ready else b""
    os.close(descriptor)
    return line


def ended_turns(home: Path) -> list[str]:
    records = [
        json.loads(line)
        for rollout in home.glob("sessions/*/*/*/*.jsonl")
        for line in rollout.read_text().splitlines()
    ]
    return [record["status"] for record in records if record["type"] == "turn-completed"]


def test_a_server_that_is_not_read_ends_with_its_client(started: Server, tmp_path) -> None:
    begin_turn(started, tmp_path)
    flood(started)
    assert started.wait(BOUND) == 0
    assert ended_turns(tmp_path / "home") == ["interrupted"]
    assert streams(started)[2].read() == b""


@pytest.mark.parametrize("started", [SCENARIO], indirect=True)
def test_a_command_that_is_not_listened_to_ends_with_the_client(started: Server, tmp_path) -> None:
    for name in ("pid", "never"):
        os.mkfifo(tmp_path / name)
    begin_turn(started, tmp_path)
    pid = int(told(tmp_path / "pid"))
    flood(started)
    assert started.wait(BOUND) == 0
    assert not Path(f"/proc/{pid}").exists()
    assert ended_turns(tmp_path / "home") == ["interrupted"]
    assert streams(started)[2].read() == b""


def test_a_client_that_leaves_and_reads_on_gets_every_answer(started: Server, tmp_path) -> None:
    begin_turn(started, tmp_path)
    flood(started)
    _, output, errors = streams(started)
    answers = 0
    for line in output:
        answers += json.loads(line).get("id") == 7
    assert answers == ASKED
    assert (started.wait(BOUND), errors.read()) == (0, b"")
