"""`harness double`: a command's clients find a scripted agent on PATH, and are judged."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import COMMANDS

from tests.processes import run_warm

pytestmark = pytest.mark.slow

SECONDS = 60
HANDSHAKE = [
    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "x", "version": "1"}}},
    {"method": "initialized"},
]
START = {"id": 2, "method": "thread/start", "params": {}}
# Starts the agent that it finds on PATH, sends lines and prints how many answers came.
CLIENT = """
import json, subprocess, sys
words = [sys.argv[1], "app-server", "--listen", "stdio://"]
agent = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in json.loads(sys.argv[2]):
    agent.stdin.write(json.dumps(line) + "\\n")
agent.stdin.close()
print(sum("result" in json.loads(line) for line in agent.stdout), "answers")
sys.exit(agent.wait())
"""

# Answers the approval of the default script with a decision, on an agent for each of its words;
# "offered" is the object of the offer.
APPROVING_CLIENT = """
import json, subprocess, sys
def play(word):
    words = ["codex", "app-server"]
    agent = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    def send(**message):
        agent.stdin.write(json.dumps(message) + "\\n")
        agent.stdin.flush()
    def receive(is_wanted):
        return next(one for one in map(json.loads, agent.stdout) if is_wanted(one))
    send(id=1, method="initialize", params={"clientInfo": {"name": "x", "version": "1"}})
    receive(lambda one: one.get("id") == 1)
    send(method="initialized")
    send(id=2, method="thread/start", params={"approvalPolicy": "untrusted"})
    thread = receive(lambda one: one.get("id") == 2)["result"]["thread"]["id"]
    text = [{"type": "text", "text": "approval"}]
    send(id=3, method="turn/start", params={"threadId": thread, "input": text})
    asked = receive(lambda one: "requestApproval" in one.get("method", ""))
    offers = [one for one in asked["params"]["availableDecisions"] if isinstance(one, dict)]
    send(id=asked["id"], result={"decision": offers[0] if word == "offered" else word})
    receive(lambda one: one.get("method") == "turn/completed")
    agent.stdin.close()
    return agent.wait()
sys.exit(max([play(word) for word in sys.argv[1:]]))
"""


def double(
    folder: Path, *words: str, command: Sequence[str] = ()
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMANDS / "harness", "double", *words, "--", *command],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def client(*messages: object, name: str = "codex") -> list[str]:
    return [sys.executable, "-c", CLIENT, name, json.dumps([*HANDSHAKE, *messages])]


def test_a_correct_client_of_the_agent_on_path_is_green(tmp_path: Path) -> None:
    said = double(tmp_path, command=client(START))
    assert (said.returncode, said.stdout) == (0, "2 answers\n"), said.stderr
    assert list(tmp_path.iterdir()) == []


def test_words_and_methods_of_the_release_are_no_faults(tmp_path: Path) -> None:
    said = double(tmp_path, command=client({"id": 3, "method": "model/list", "params": {}}))
    assert (said.returncode, said.stdout) == (0, "2 answers\n"), said.stderr
    assert said.stderr == "harness double: GREEN (1 start judged)\n"


def test_decisions_that_the_release_offers_are_right(tmp_path: Path) -> None:
    command = [sys.executable, "-c", APPROVING_CLIENT, "offered", "cancel", "acceptForSession"]
    said = double(tmp_path, command=command)
    assert (said.returncode, said.stderr) == (0, "harness double: GREEN (3 starts judged)\n")


def test_a_decision_that_the_release_does_not_offer_is_wrong(tmp_path: Path) -> None:
    said = double(tmp_path, command=[sys.executable, "-c", APPROVING_CLIENT, "maybe"])
    assert "duty.decision-known" in said.stderr
    assert said.returncode == 1, said.stderr


def test_a_client_that_breaks_a_duty_makes_a_command_fail_that_succeeds(tmp_path: Path) -> None:
    twice = [START, {**START, "id": [7]}]
    said = double(tmp_path, command=client(*twice))
    assert said.returncode == 1
    assert "harness double: the client is not as it should be" in said.stderr
    assert "duty.message-form" in said.stderr


def test_the_results_are_written_as_json(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    said = double(tmp_path, "--json", str(report), command=client(START))
    assert said.returncode == 0
    results = json.loads(report.read_text("utf-8"))
    assert (results["verdict"], len(results["connections"])) == ("GREEN", 1)


def test_the_exit_status_of_the_command_comes_first(tmp_path: Path) -> None:
    said = double(tmp_path, command=["sh", "-c", "exit 7"])
    assert said.returncode == 7
    assert "no client started the agent" in said.stderr


def test_another_name_and_release_are_those_of_the_double(tmp_path: Path) -> None:
    words = ("--name", "my-agent", "--dialect", "codex-0.107")
    said = double(tmp_path, *words, command=["my-agent", "--version"])
    assert said.stdout == "codex-cli 0.107.0\n"


@pytest.mark.parametrize(
    ("words", "command", "message"),
    [
        ((), (), "no command; give it behind --: harness double -- npm test"),
        ((), ("no-such-program",), "no-such-program: cannot be started"),
        (("--dialect", "codex-9"), ("true",), "unknown dialect 'codex-9'; known: codex-0.107"),
        (("--scenario", "nope"), ("true",), "unknown scenario 'nope'"),
        (("--name", "a/b"), ("true",), "'a/b': expected the name of a file"),
    ],
)
def test_a_mistake_is_one_message_and_status_2(
    words: tuple[str, ...], command: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    said = run_warm("harness", "double", *words, "--", *command, cwd=tmp_path, env=env)
    assert said.status == 2
    assert message in said.err
    assert "Traceback" not in said.err
    assert list(tmp_path.iterdir()) == []


def test_sigterm_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-uc", "import os, time; print(os.environ['PATH']); time.sleep(99)"]
    running = subprocess.Popen(
        [COMMANDS / "harness", "double", "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert running.stdout
    assert running.stdout.readline().startswith(str(tmp_path))
    running.send_signal(signal.SIGTERM)
    assert running.wait(SECONDS) == 128 + signal.SIGTERM
    running.stdout.close()
    assert list(tmp_path.iterdir()) == []
