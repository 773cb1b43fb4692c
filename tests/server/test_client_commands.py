"""`command/exec` of release 0.169: a client's own commands, with their streams and their ends."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_server.client_commands.commands import MAX_RUNNING
from tests.agent_process import AgentProcess

pytestmark = [pytest.mark.socket, pytest.mark.timeout(60)]
AGENT = Path(sys.executable).parent / "agent"
OUTPUT = "command/exec/outputDelta"
FREE = {"type": "dangerFullAccess"}


class Talk:
    """A conversation with `agent app-server` by the method's names of a release."""

    def __init__(self, home: Path, dialect: str = "codex-0.169") -> None:
        home.mkdir()
        self.folder = home
        self.process = AgentProcess[str](
            [str(AGENT), "app-server", "--dialect", dialect],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
            cwd=home,
            text=True,
        )
        self.notes: list[dict[str, Any]] = []
        self._answers: dict[int, dict[str, Any]] = {}
        self._number = 0
        self.ask("initialize", clientInfo={"name": "me", "version": "2"})

    def send(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        assert self.process.stdin is not None
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return self._number

    def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to a request, with its result or its error."""
        while number not in self._answers:
            self._read()
        return self._answers.pop(number)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to a new request."""
        return self.answer(self.send(method, **params))

    def result(self, *command: str, **params: Any) -> dict[str, Any]:
        """Return the result of a command, outside any sandbox."""
        answer = self.ask("command/exec", command=command, **{"sandboxPolicy": FREE, **params})
        return answer.get("result") or answer

    def output(self, process_id: str, stream: str) -> bytes:
        """Return what came of a stream."""
        return b"".join(
            base64.b64decode(note["params"]["deltaBase64"])
            for note in self.notes
            if note["method"] == OUTPUT
            and note["params"]["processId"] == process_id
            and note["params"]["stream"] == stream
        )

    def wait_for_output(self, process_id: str, data: bytes) -> None:
        """Read until this output has come."""
        while data not in self.output(process_id, "stdout"):
            self._read()

    def _read(self) -> None:
        assert self.process.stdout is not None
        message = json.loads(self.process.stdout.readline())
        if "method" in message:
            self.notes.append(message)
        else:
            self._answers[message["id"]] = message

    def close(self) -> None:
        """End the input, and wait for the server's end."""
        self.process.communicate(timeout=30)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path / "home")
    yield talk
    talk.close()


def error(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["error"]["code"], answer["error"]["message"]


def test_a_command_is_answered_with_its_status_and_both_streams(talk: Talk) -> None:
    result = talk.result("sh", "-c", "echo out; echo err >&2; exit 3")
    assert result == {"exitCode": 3, "stdout": "out\n", "stderr": "err\n"}
    assert talk.result("cat") == {"exitCode": 0, "stdout": "", "stderr": ""}
    assert talk.result("printf", "\\377a")["stdout"] == "ÿa"
    assert talk.result("sh", "-c", "kill -9 $$")["exitCode"] == 137


def test_folder_and_variables_are_those_of_the_request(talk: Talk, tmp_path: Path) -> None:
    assert talk.result("pwd")["stdout"] == f"{tmp_path / 'home'}\n"
    assert talk.result("pwd", cwd=str(tmp_path))["stdout"] == f"{tmp_path}\n"
    told = talk.result("sh", "-c", "echo $A-${HOME:-none}", env={"A": "1", "HOME": None})
    assert told["stdout"] == "1-none\n"


def test_a_command_out_of_time_keeps_what_it_printed(talk: Talk) -> None:
    result = talk.result("sh", "-c", "echo a; sleep 60", timeoutMs=300)
    assert result == {"exitCode": 124, "stdout": "a\n", "stderr": ""}


def test_more_output_than_wanted_is_left_out(talk: Talk) -> None:
    words = "head -c 2000000 /dev/zero; echo e >&2"
    assert len(talk.result("sh", "-c", words)["stdout"]) == 1 << 20
    assert len(talk.result("sh", "-c", words, disableOutputCap=True)["stdout"]) == 2_000_000
    few = talk.result("sh", "-c", words, outputBytesCap=1)
    assert few == {"exitCode": 0, "stdout": "\0", "stderr": "e"}


@pytest.mark.parametrize(
    ("params", "code", "words"),
    [
        ({"command": []}, -32600, "command must not be empty"),
        ({"tty": True}, -32600, "requires a client-supplied processId"),
        ({"streamStdin": True}, -32600, "requires a client-supplied processId"),
        ({"streamStdoutStderr": True}, -32600, "requires a client-supplied processId"),
        ({"size": {"rows": 1, "cols": 1}}, -32602, "size requires tty: true"),
        ({"outputBytesCap": 1, "disableOutputCap": True}, -32602, "cannot set both"),
        ({"timeoutMs": 1, "disableTimeout": True}, -32602, "cannot set both"),
        ({"timeoutMs": -1}, -32602, "must be non-negative, got -1"),
        ({"cwd": "/no/such"}, -32603, "failed to spawn command"),
        ({"command": ["no-such-program"]}, -32603, "no-such-program"),
    ],
)
def test_params_that_no_command_can_have_are_refused(
    params: dict[str, Any], code: int, words: str, talk: Talk
) -> None:
    refused = error(
        talk.ask("command/exec", **{"command": ["echo"], "sandboxPolicy": FREE} | params)
    )
    assert refused[0] == code
    assert words in refused[1]
    assert talk.result("echo", "on")["stdout"] == "on\n"


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("command/exec", {}, -32600),
        ("command/exec", {"command": "ls"}, -32600),
        ("command/exec", {"command": ["ls"], "tty": 1}, -32600),
        ("command/exec", {"command": ["ls"], "sandboxPolicy": {"type": "odd"}}, -32600),
        ("command/exec/write", {}, -32600),
        ("command/exec/write", {"processId": "x"}, -32602),
        ("command/exec/write", {"processId": "x", "deltaBase64": "%%"}, -32602),
        ("command/exec/write", {"processId": "x", "deltaBase64": "YQ=="}, -32600),
        ("command/exec/resize", {"processId": "x", "size": {"rows": -1, "cols": 1}}, -32600),
        ("command/exec/resize", {"processId": "x", "size": {"rows": 1, "cols": 65536}}, -32600),
        ("command/exec/resize", {"processId": "x", "size": {"rows": 0, "cols": 1}}, -32602),
        ("command/exec/terminate", {}, -32600),
    ],
)
def test_params_that_cannot_be_read_have_another_code_than_wrong_values(
    method: str, params: dict[str, Any], code: int, talk: Talk
) -> None:
    assert error(talk.ask(method, **params))[0] == code


def test_output_is_streamed_in_place_of_the_result(talk: Talk) -> None:
    words = "echo o; echo e >&2"
    result = talk.result("sh", "-c", words, processId="p", streamStdoutStderr=True)
    assert result == {"exitCode": 0, "stdout": "", "stderr": ""}
    assert talk.output("p", "stdout") == b"o\n"
    assert talk.output("p", "stderr") == b"e\n"
    assert all(note["emittedAtMs"] for note in talk.notes)
    words = "head -c 30 /dev/zero"
    talk.result("sh", "-c", words, processId="q", streamStdoutStderr=True, outputBytesCap=10)
    assert talk.output("q", "stdout") == bytes(10)
    pieces = [note["params"] for note in talk.notes if note["method"] == OUTPUT]
    assert [piece["capReached"] for piece in pieces] == [False, False, True]


def test_a_running_command_takes_input_until_it_is_closed(talk: Talk) -> None:
    streams = {"processId": "c", "streamStdin": True, "streamStdoutStderr": True}
    running = talk.send("command/exec", command=["cat"], sandboxPolicy=FREE, **streams)
    data = base64.b64encode(b"hi\n").decode()
    assert talk.ask("command/exec/write", processId="c", deltaBase64=data)["result"] == {}
    talk.wait_for_output("c", b"hi\n")
    again = talk.ask("command/exec", command=["cat"], sandboxPolicy=FREE, **streams)
    assert error(again) == (-32600, 'duplicate active command/exec process id: "c"')
    no_terminal = talk.ask("command/exec/resize", processId="c", size={"rows": 1, "cols": 2})
    assert error(no_terminal)[0] == -32600
    assert talk.ask("command/exec/write", processId="c", closeStdin=True)["result"] == {}
    assert talk.answer(running)["result"] == {"exitCode": 0, "stdout": "", "stderr": ""}
    ended = talk.ask("command/exec/write", processId="c", deltaBase64=data)
    assert error(ended) == (-32600, 'no active command/exec for process id "c"')


def test_writes_reach_a_slow_reader_in_order(talk: Talk) -> None:
    streams = {"processId": "c", "streamStdin": True, "streamStdoutStderr": True}
    script = "read go < gate; cat | cksum"
    gate = talk.folder / "gate"
    os.mkfifo(gate)
    running = talk.send("command/exec", command=["sh", "-c", script], sandboxPolicy=FREE, **streams)
    pieces = [bytes([number]) * 200_000 for number in range(4)]
    for piece in pieces:
        data = base64.b64encode(piece).decode()
        assert talk.ask("command/exec/write", processId="c", deltaBase64=data)["result"] == {}
    assert talk.ask("command/exec/write", processId="c", closeStdin=True)["result"] == {}
    gate.write_text("go\n")
    assert talk.answer(running)["result"]["exitCode"] == 0
    summed = subprocess.run(["cksum"], input=b"".join(pieces), stdout=subprocess.PIPE, check=True)
    assert talk.output("c", "stdout") == summed.stdout


def test_a_client_with_as_many_commands_as_allowed_can_still_end_them(talk: Talk) -> None:
    settings = {"command": ["sleep", "600"], "sandboxPolicy": FREE, "disableTimeout": True}
    running = [
        talk.send("command/exec", processId=str(number), **settings)
        for number in range(MAX_RUNNING)
    ]
    code, words = error(talk.ask("command/exec", **settings))
    assert code == -32600
    assert f"{MAX_RUNNING} commands run already" in words
    for number in range(MAX_RUNNING):
        assert talk.ask("command/exec/terminate", processId=str(number))["result"] == {}
    assert {talk.answer(one)["result"]["exitCode"] for one in running} == {137}


def test_a_bound_beyond_all_numbers_is_none(talk: Talk) -> None:
    assert talk.result("echo", "on", timeoutMs=10**400)["stdout"] == "on\n"


def test_a_terminal_has_the_size_that_the_client_gives_it(talk: Talk) -> None:
    script = "stty size; read word; stty size; echo $word"
    running = talk.send(
        "command/exec",
        command=["sh", "-c", script],
        sandboxPolicy=FREE,
        processId="t",
        tty=True,
        size={"rows": 10, "cols": 20},
    )
    talk.wait_for_output("t", b"10 20")
    wrong = talk.ask("command/exec/resize", processId="t", size={"rows": 0, "cols": 2})
    assert error(wrong)[0] == -32602
    assert (
        talk.ask("command/exec/resize", processId="t", size={"rows": 5, "cols": 6})["result"] == {}
    )
    data = base64.b64encode(b"word\n").decode()
    talk.ask("command/exec/write", processId="t", deltaBase64=data)
    assert talk.answer(running)["result"]["exitCode"] == 0
    assert b"5 6" in talk.output("t", "stdout")


def test_a_terminated_command_takes_all_its_processes_with_it(talk: Talk) -> None:
    script = "sleep 600 & echo $!; wait"
    running = talk.send(
        "command/exec",
        command=["sh", "-c", script],
        sandboxPolicy=FREE,
        processId="k",
        streamStdoutStderr=True,
        disableTimeout=True,
    )
    talk.wait_for_output("k", b"\n")
    inner = int(talk.output("k", "stdout"))
    not_enabled = talk.ask("command/exec/write", processId="k", closeStdin=True)
    assert error(not_enabled)[1] == "stdin streaming is not enabled for this command/exec"
    assert talk.ask("command/exec/terminate", processId="k")["result"] == {}
    assert talk.answer(running)["result"]["exitCode"] == 137
    assert not Path(f"/proc/{inner}").exists()


@pytest.mark.parametrize("end", ["the server", "the input"])
def test_no_command_outlives_its_server_or_client(end: str, tmp_path: Path) -> None:
    talk = Talk(tmp_path / "home")
    talk.send(
        "command/exec",
        command=["sh", "-c", "echo $$; exec sleep 600"],
        sandboxPolicy=FREE,
        processId="s",
        streamStdoutStderr=True,
        disableTimeout=True,
    )
    talk.wait_for_output("s", b"\n")
    inner = int(talk.output("s", "stdout"))
    if end == "the server":
        talk.process.terminate()
    talk.close()
    assert not Path(f"/proc/{inner}").exists()


@pytest.mark.usefixtures("bubblewrap")
def test_a_command_is_confined_by_the_policy_of_the_request_or_the_settings(
    talk: Talk, tmp_path: Path
) -> None:
    words = ["sh", "-c", "touch made && ls"]
    denied = talk.ask("command/exec", command=words)["result"]
    assert denied["exitCode"] != 0
    assert "Read-only file system" in denied["stderr"]
    work = tmp_path / "work"
    work.mkdir()
    policy = {"type": "workspaceWrite", "writableRoots": []}
    assert talk.result(*words, sandboxPolicy=policy, cwd=str(work))["stdout"] == "made\n"
    outside = talk.result("touch", str(tmp_path / "other"), sandboxPolicy=policy, cwd=str(work))
    assert outside["exitCode"] != 0
    assert not (tmp_path / "other").exists()


def test_an_older_release_runs_no_command(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "home", "codex-0.107")
    assert "not run by this double" in error(talk.ask("command/exec", command=["echo"]))[1]
    assert error(talk.ask("command/exec/terminate", processId="p"))[0] == -32600
    talk.close()
