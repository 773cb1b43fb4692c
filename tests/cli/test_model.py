"""`harness model`: the scripted model as a service, for debugging a server."""

import json
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import call

from tests.processes import BOUND, COMMANDS

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SCRIPT = """
model:
  - reply: [{message: "Hello."}]
  - expect: {input_contains: ["Please say hello"]}
    reply: [{run: "ls"}, {message: "Bye."}]
"""
HELD = "model: [{reply: [{message: {deltas: ['a', {hold: g}, 'b']}}]}]"
SHELL = {"type": "function", "name": "shell_command"}


class Model:
    """A running `harness model`: its output line by line, and calls of it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.url = self.until(" is at ").rsplit(" ", 1)[-1]

    def until(self, words: str) -> str:
        """The next line that holds these words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if words in line:
                return line.strip()
        raise AssertionError(f"it ended without saying {words!r}")

    def ask(self, *texts: str, path: str = "/responses", **body: Any) -> str:
        """Call it with these texts of a user; gives the body of the answer."""
        entries = [{"role": "user", "content": text} for text in texts]
        return self.post(json.dumps({"model": "m", "input": entries, **body}).encode(), path)

    def post(self, body: bytes, path: str = "/responses") -> str:
        """Send a body; gives that of the answer."""
        request = urllib.request.Request(self.url + path, body, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=BOUND) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def ended(self, number: int = signal.SIGINT) -> tuple[int, list[str]]:
        """End it by a signal, unless it has ended; its status and its last lines."""
        if number:
            self.process.send_signal(number)
        out = self.process.communicate(timeout=BOUND)[0]
        return self.process.returncode, [line.strip() for line in out.splitlines()]


@contextmanager
def model(folder: Path, text: str, *words: str, name: str = "s.yaml") -> Generator[Model]:
    (folder / name).write_text(text)
    process = subprocess.Popen(
        [COMMANDS / "harness", "model", name, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Model(process)
    finally:
        process.kill()
        process.communicate()


def test_a_script_played_to_its_end_is_green(tmp_path: Path) -> None:
    with model(tmp_path, SCRIPT) as served:
        assert '"delta":"Hello."' in served.ask("hi")
        assert "response.completed" in served.ask("hi", "Please say hello", tools=[SHELL])
        assert served.until("+ user:") == '+ user: "hi"'
        assert served.until("step 2") == "step 2 of 2 (s.yaml:4): run, message"
        assert served.until("> run") == '> run: "ls"'
        status, lines = served.ended()
    assert (status, lines[-2:]) == (0, ["2 calls, 0 things unexpected", "verdict: GREEN"])


def test_only_what_is_new_in_a_call_is_shown(tmp_path: Path) -> None:
    with model(tmp_path, SCRIPT) as served:
        served.ask("one", tools=[SHELL])
        served.ask("one", "Please say hello", tools=[SHELL])
        _, lines = served.ended()
    second = lines[lines.index('call 2 asks the model "m"') :]
    assert second[1] == '+ user: "Please say hello"'
    assert not [line for line in second if line.startswith("tools:")]


def test_an_unmet_expectation_is_told_with_what_is_nearest(tmp_path: Path) -> None:
    with model(tmp_path, SCRIPT) as served:
        served.ask("hi")
        served.ask("hi", "Please sey hello", tools=[SHELL])
        assert "'Please say hello'" in served.until("unexpected:")
        assert served.until("nearest") == 'nearest to "Please say hello" is "Please sey hello"'
        assert served.ended()[0] == 1


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/responses", b"{", "its body is no JSON object: Expecting property name"),
        ("/responses", b"[1]", "its body is no JSON object: it is JSON, and no object"),
        ("/chat/completions", b"[1]", "its body is no JSON object: it is JSON, and no object"),
        ("/nothing", b"{}", "POST /v1/nothing: this model has POST …/responses, POST …/chat"),
    ],
)
def test_an_invalid_call_is_reported_and_uses_no_step(
    tmp_path: Path, path: str, body: bytes, said: str
) -> None:
    with model(tmp_path, "model: [{reply: [{message: x}]}]") as served:
        assert "error" in served.post(body, path)
        assert said in served.until("unexpected:")
        assert '"delta":"x"' in served.ask("hi")
        assert served.ended() == (
            1,
            [*served_call(), "", "1 call, 1 thing unexpected", "verdict: RED"],
        )


def served_call() -> list[str]:
    return [
        'call 1 asks the model "m"',
        '+ user: "hi"',
        "tools: none",
        "step 1 of 1 (s.yaml:1): message",
        '> message: "x"',
    ]


def test_a_call_beyond_the_script_and_a_step_that_is_left_are_told(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    with model(tmp_path, SCRIPT, "--json", str(report)) as served:
        served.ask("hi")
        status, lines = served.ended(signal.SIGTERM)
    assert status == 1
    assert "unexpected: step 2 was not used (s.yaml:4)" in lines
    told = json.loads(report.read_text())
    assert told["verdict"] == "RED"
    assert told["unexpected"] == [
        {"message": "step 2 was not used (s.yaml:4)", "step": 2, "thread": "", "line": 4}
    ]
    assert [(one["call"], one["step"], one["told"]) for one in told["calls"]] == [
        (1, 1, ['message: "Hello."'])
    ]
    with model(tmp_path, "model: [{reply: [{message: x}]}]") as served:
        served.ask("hi")
        served.ask("hi", "again")
        assert served.until("unexpected:") == (
            "unexpected: the script has no step left for this call"
        )


def test_a_gate_is_told_and_opened_by_a_request(tmp_path: Path) -> None:
    with model(tmp_path, HELD, "--once") as served:
        request = urllib.request.Request(f"{served.url}/responses", b'{"input":"x"}')
        answer = urllib.request.urlopen(request, timeout=BOUND)
        assert "waits at the gate g" in served.until("waits at")
        gates = served.url.removesuffix("/v1") + "/gates"
        with urllib.request.urlopen(gates, timeout=BOUND) as told:
            assert json.loads(told.read()) == {"waiting": ["g"]}
        with urllib.request.urlopen(urllib.request.Request(f"{gates}/g", b""), timeout=BOUND):
            pass
        assert b'"delta":"b"' in answer.read()
        assert served.ended(0)[0] == 0


def test_open_gates_hold_nothing_and_once_ends_with_the_script(tmp_path: Path) -> None:
    with model(tmp_path, HELD, "--once", "--open-gates") as served:
        assert '"delta":"b"' in served.ask("hi")
        status, lines = served.ended(0)
    assert status == 0
    assert lines[lines.index('call 1 asks the model "m"') :] == [
        'call 1 asks the model "m"',
        '+ user: "hi"',
        "tools: none",
        "step 1 of 1 (s.yaml:1): message",
        '> message: "ab" (in 2 deltas)',
        "",
        "1 call, 0 things unexpected",
        "verdict: GREEN",
    ]


def test_with_loop_the_next_conversation_begins_the_script_again(tmp_path: Path) -> None:
    text = "model: [{reply: [{message: first}]}, {reply: [{message: second}]}]"
    said = {"role": "assistant", "content": "first"}
    user = {"role": "user", "content": "hi"}
    with model(tmp_path, text, "--loop") as served:
        for _ in range(2):
            assert '"delta":"first"' in served.ask("hi")
            body = {"input": [user, said, user]}
            assert '"delta":"second"' in served.post(json.dumps(body).encode())
        served.until("conversation 2 begins")
        assert served.ended()[0] == 0


def test_conversations_that_name_themselves_are_told_apart(tmp_path: Path) -> None:
    text = "model: [{reply: [{message: first}]}, {reply: [{message: second}]}]"
    with model(tmp_path, text, "--loop") as served:
        for key, wanted in (("a", "first"), ("b", "first"), ("a", "second"), ("b", "second")):
            assert f'"delta":"{wanted}"' in served.ask("hi", prompt_cache_key=key)
        assert served.ended()[0] == 0


def test_threads_get_their_scripts_in_order(tmp_path: Path) -> None:
    text = "model: {a: [{reply: [{message: A}]}], b: [{reply: [{message: B}]}]}"
    with model(tmp_path, text) as served:
        assert '"delta":"A"' in served.ask("one")
        status, lines = served.ended()
    assert status == 1
    assert "unexpected: step 1 of the thread b was not used (s.yaml:1)" in lines
    with model(tmp_path, text) as served:
        assert '"delta":"A"' in served.ask("one")
        assert '"delta":"B"' in served.ask("two")
        assert served.ended()[0] == 0


CLIENTLESS = """
title: For a client of yours
settings: {approvalPolicy: untrusted}
model: [{reply: [{message: "Done."}]}]
expect: {turns: {a: completed}}
"""


@pytest.mark.parametrize("name", ["my.scenario.yaml", "s.yaml"])
def test_model_of_a_scenario_without_a_client_is_played(tmp_path: Path, name: str) -> None:
    with model(tmp_path, CLIENTLESS, name=name) as served:
        assert served.until("not played") == (
            "not played, since this is the model alone: its settings, its expectations "
            "(harness scenario show)"
        )
        assert '"delta":"Done."' in served.ask("hi")
        assert served.ended()[0] == 0


def test_threads_of_a_scenario_without_a_client_get_their_scripts(tmp_path: Path) -> None:
    text = "title: x\nmodel: {a: [{reply: [{message: A}]}], b: [{reply: [{message: B}]}]}\n"
    with model(tmp_path, text + "expect: {}", name="my.scenario.yaml") as served:
        assert '"delta":"A"' in served.ask("one")
        assert '"delta":"B"' in served.ask("two")
        assert served.ended()[0] == 0


def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = call("harness", "model", "turns/plain-turn", "--port", str(port))
    assert (said.status, said.out) == (2, "")
    assert said.err.strip() == (
        f"harness: --port {port}: something listens on 127.0.0.1:{port} already; "
        "end it, or give another port (0 for any free one)"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no.yaml"], "no.yaml: no such file or folder, and unknown scenario"),
        (["empty.yaml"], "empty.yaml:1:1: empty; expected a scenario: a mapping with"),
        (["list.yaml"], "list.yaml:1:1: expected a mapping with model:"),
        (["none.yaml"], "none.yaml: its model: has no step"),
        (["wrong.yaml"], "wrong.yaml:1:10: unknown key 'replie'; did you mean 'reply'?"),
        (["good.yaml", "--once", "--loop"], "--once ends with the script and --loop"),
        (["good.yaml", "--host", "1.2.3.4"], "--host 1.2.3.4: no address of this machine"),
        (["good.yaml", "--json", "no/x.json"], "--json no/x.json: it cannot be written"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    for name, text in (
        ("empty.yaml", ""),
        ("list.yaml", "[]"),
        ("none.yaml", "model: []"),
        ("wrong.yaml", "model: [{replie: []}]"),
        ("good.yaml", "model: [{reply: [{message: x}]}]"),
    ):
        (tmp_path / name).write_text(text)
    found = call("harness", "model", *words, cwd=tmp_path)
    assert found.status == 2
    assert found.err.startswith(f"harness: {said}"), found.err
    assert len(found.err.strip().splitlines()) == 1
