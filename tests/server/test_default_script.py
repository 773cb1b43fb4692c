"""The default script: what a word of the prompt makes happen, in any turn of any thread."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from test_stage_process import BOUND, agent, ended
from test_stage_program import stage, started

from harness.model.default_script import WORDS, answer_to

pytestmark = [pytest.mark.socket, pytest.mark.slow]

DEFAULT = ("--scenario", "default")
JUDGED = (*DEFAULT, "--listen", "stdio", "--strict")


class Talk:
    """A client that answers whatever it is asked with `decision`."""

    def __init__(self, process: "subprocess.Popen[bytes]", decision: str = "accept") -> None:
        self.process = process
        self.decision = decision
        self.ids = 0
        self.ask("initialize", clientInfo={"name": "test", "version": "1"})
        self.send({"method": "initialized"})

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        self.ids += 1
        self.send({"id": self.ids, "method": method, "params": params})
        while (message := self.receive()).get("id") != self.ids or "method" in message:
            pass
        return message["result"]

    def thread(self) -> str:
        return self.ask("thread/start")["thread"]["id"]

    def turn(self, thread: str, text: str) -> "Turn":
        said = [{"type": "text", "text": text}]
        self.ask("turn/start", threadId=thread, input=said)
        turn = Turn()
        while (message := self.receive()).get("method") != "turn/completed":
            turn.messages.append(message)
            if "id" in message:
                self.send({"id": message["id"], "result": {"decision": self.decision}})
        turn.ended = message["params"]["turn"]
        return turn


class Turn:
    """The messages of one turn."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.ended: dict[str, Any] = {}

    @property
    def status(self) -> str:
        return self.ended["status"]

    @property
    def items(self) -> list[dict[str, Any]]:
        ends = (each for each in self.messages if each["method"] == "item/completed")
        return [each["params"]["item"] for each in ends]

    @property
    def types(self) -> list[str]:
        return [item["type"] for item in self.items[1:]]

    def count(self, method: str) -> int:
        return sum(each["method"].endswith(method) for each in self.messages)


def test_each_word_does_what_it_says_in_any_thread(tmp_path: Path) -> None:
    with agent(tmp_path, *JUDGED) as process:
        client = Talk(process)
        for thread in (client.thread(), client.thread()):
            echo = client.turn(thread, "say it back to me")
            assert (echo.items[-1]["text"], echo.count("/delta")) == ("say it back to me", 5)
            tool = client.turn(thread, "Use a TOOL, please")
            assert (tool.types, tool.count("Approval")) == (["commandExecution", "agentMessage"], 0)
            approval = client.turn(thread, "approval")
            assert (approval.types, approval.count("Approval")) == (tool.types, 1)
            assert client.turn(thread, "long").count("/delta") == 200
            assert client.turn(thread, "failing").status == "failed"
            compacting = client.turn(thread, "compacting")
            assert compacting.types == ["commandExecution", "contextCompaction", "agentMessage"]
            again = client.turn(thread, "ECHO: a stool is no tool")
            assert again.items[-1]["text"] == "ECHO: a stool is no tool"
        assert ended(process) == (0, ["connection 1 (default): GREEN", "1 connection(s), 0 RED"])


def test_a_plain_server_plays_it_too(tmp_path: Path) -> None:
    with agent(tmp_path, *DEFAULT) as process:
        client = Talk(process, decision="decline")
        thread = client.thread()
        declined = client.turn(thread, "approval")
        assert declined.items[1]["status"] == "declined"
        assert "contextCompaction" in client.turn(thread, "compacting").types
        client.ask("thread/compact/start", threadId=thread)
        while client.receive()["method"] != "turn/completed":
            pass
        assert client.turn(thread, "hello").items[-1]["text"] == "hello"


def test_a_failing_turn_of_a_dialect_has_items(tmp_path: Path) -> None:
    with agent(tmp_path, "--dialect", "codex-0.169", *JUDGED) as process:
        client = Talk(process)
        assert client.turn(client.thread(), "failing").ended["items"] == []


def test_a_client_that_starts_its_agent_gets_it(tmp_path: Path) -> None:
    with stage(tmp_path, scenario="default") as process:
        for text in ("one", "two"):
            with started(tmp_path, "app-server") as program:
                client = Talk(program)
                assert client.turn(client.thread(), text).items[-1]["text"] == text
                assert ended(program) == (0, [])
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0


def test_exec_of_the_program_plays_it_and_counts_as_a_start(tmp_path: Path) -> None:
    with stage(tmp_path, scenario="default") as process:
        words = ("exec", "--json", "--skip-git-repo-check", "say this")
        with started(tmp_path, *words, env={"HOME": str(tmp_path)}) as program:
            out, err = program.communicate(timeout=BOUND)
            assert (program.returncode, err) == (0, b"")
        assert b'"say this"' in out
        process.send_signal(signal.SIGTERM)
        status, said = ended(process)
        assert (status, said[0]) == (0, "connection 1 (default): GREEN")
    assert not (tmp_path / ".agent").exists(), "the home of the user is left alone"


def faulty(*command: str) -> Sequence[str]:
    return [sys.executable, "-m", "harness", "faulty", "--fault", "turn-ends-twice", "--", *command]


def test_faults_by_name_act_on_it(tmp_path: Path) -> None:
    text = "title: t\ndefault_script: true\nfaults: [{fault: turn-ends-twice}]\n"
    (tmp_path / "twice.scenario.yaml").write_text(text, "utf-8")
    with agent(tmp_path, "--scenario", "twice.scenario.yaml", "--listen", "stdio") as process:
        client = Talk(process)
        client.turn(client.thread(), "hello")
        assert client.receive()["method"] == "turn/completed"
        assert ended(process)[0] == 0


def test_faults_act_between_a_client_and_its_program(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with (
        stage(tmp_path, scenario="default"),
        subprocess.Popen(
            faulty(str(tmp_path / "my-agent"), "app-server"),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        ) as process,
    ):
        client = Talk(process)
        client.turn(client.thread(), "hello")
        assert client.receive()["method"] == "turn/completed"
        _, said = process.communicate(timeout=BOUND)
        assert b"faulty: turn-ends-twice: repeated turn/completed" in said


def test_every_word_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scripted-server.md").read_text("utf-8")
    for word in WORDS:
        assert f"| `{word}`" in page


@pytest.mark.parametrize("body", [{}, {"input": "echo"}, {"input": [], "tools": [{}]}])
def test_any_call_is_answered(body: dict[str, Any]) -> None:
    [part] = answer_to(body)["reply"]
    assert "".join(part["message"]["deltas"])
