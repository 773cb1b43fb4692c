"""`agent app-server --scenario … --listen …` as a process: its words, its status, its report."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from staged import GREETING
from websockets.sync.client import connect

import reference_server
from tests.agent_process import AgentProcess

pytestmark = [pytest.mark.socket, pytest.mark.slow]

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 20
TURN = {"threadId": "thr_1", "input": [{"type": "text", "text": "hi"}]}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("initialize", {"clientInfo": {"name": "test", "version": "1"}}),
    ("thread/start", {}),
    ("turn/start", TURN),
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "greeting.scenario.yaml").write_text(GREETING, "utf-8")
    return "greeting.scenario.yaml"


@contextmanager
def agent(folder: Path, *options: str) -> Generator["subprocess.Popen[bytes]"]:
    process = AgentProcess(
        [sys.executable, "-m", "reference_server", "app-server", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "TMPDIR": str(folder),
        },
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, list[str]]:
    """Its exit status and the lines on standard error; its input is closed."""
    _, told = process.communicate(timeout=BOUND)
    return process.returncode, told.decode().splitlines()


def over_stdio(
    process: "subprocess.Popen[bytes]", requests: Sequence[Any], until: str = "turn/completed"
) -> list[Any]:
    """Send each request when the one before is answered; gives all until the turn's end."""
    assert process.stdin is not None
    assert process.stdout is not None
    heard: list[Any] = []
    for number, (method, params) in enumerate(requests, 1):
        line = json.dumps({"id": number, "method": method, "params": params}).encode()
        # The handshake ends before the second request.
        greeting = b'{"method": "initialized"}\n' if number == 2 else b""
        process.stdin.write(greeting + line + b"\n")
        process.stdin.flush()
        while True:
            heard.append(json.loads(process.stdout.readline()))
            if heard[-1].get("id") == number:
                break
    while heard[-1].get("method") != until:
        heard.append(json.loads(process.stdout.readline()))
    return heard


@pytest.mark.parametrize("address", ["stdio", "stdio://"])
def test_a_client_on_standard_streams_is_judged_too(tmp_path: Path, file: str, address) -> None:
    with agent(tmp_path, "--scenario", file, "--listen", address, "--json", "out.json") as process:
        over_stdio(process, REQUESTS)
        status, told = ended(process)
    assert status == 0
    assert told == ["connection 1 (greeting): GREEN", "1 connection(s), 0 RED"]
    report = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert {name: report[name] for name in ("verdict", "unused")} == {
        "verdict": "GREEN",
        "unused": [],
    }
    [connection] = report["connections"]
    assert (connection["connection"], connection["scenario"]) == ("1", "greeting")
    assert connection["problems"] == []
    members = {"rule", "level", "verdict", "clause", "expected", "actual", "wire"}
    assert connection["duties"]
    assert all(duty.keys() == members for duty in connection["duties"])
    assert not (tmp_path / ".agent").exists(), "the home of the user is left alone"
    assert [one.name for one in tmp_path.glob("agent-stage-*")] == []


@pytest.mark.parametrize("options", [(), ("--strict",)], ids=["", "strict"])
def test_a_broken_should_counts_with_strict(tmp_path: Path, file: str, options) -> None:
    with agent(tmp_path, "--scenario", file, "--listen", "stdio", *options) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"method": "turn/started", "params": {}}\n')
        over_stdio(process, REQUESTS)
        status, told = ended(process)
    assert status == len(options)
    assert told[0] == f"connection 1 (greeting): {'RED' if options else 'GREEN'}"
    assert any(line.startswith("  SHOULD duty.right-direction: ") for line in told)


def test_problems_are_in_the_output_the_status_and_the_report(tmp_path: Path, file: str) -> None:
    with agent(tmp_path, "--scenario", file, "--listen", "stdio", "--json", "out.json") as process:
        over_stdio(process, REQUESTS)
        over_stdio(process, REQUESTS[-1:])
        status, told = ended(process)
    assert status == 1
    problem = (
        "greeting.scenario.yaml:3: call 2 is not in the script; add a step, or start no further "
        "turn"
    )
    assert told == ["connection 1 (greeting): RED", f"  {problem}", "1 connection(s), 1 RED"]
    report = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert (report["verdict"], report["connections"][0]["problems"]) == ("RED", [problem])


def test_a_machine_without_room_for_folders_is_told_in_a_line(tmp_path: Path, file: str) -> None:
    words = ("--scenario", file, "--listen", "unix:s", "--idle", "1")
    code = (
        "import tempfile\n"
        "def full(**_): raise OSError(28, 'No space left on device', 'x')\n"
        "tempfile.mkdtemp = full\n"
        "from reference_server.cli import main\n"
        f"raise SystemExit(main(['app-server', *{words!r}]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("no folder for the connections can be made ([Errno 28] No space left")
    assert not (tmp_path / "s").exists()


def test_nobody_who_connects_is_no_success(tmp_path: Path, file: str) -> None:
    with agent(tmp_path, "--scenario", file, "--listen", "stdio", "--json", "out.json") as process:
        assert ended(process) == (1, ["RED: no client connected"])
    report = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert report == {"verdict": "RED", "connections": [], "unused": ["greeting"]}


def test_files_of_a_killed_stage_are_removed_by_the_next(tmp_path: Path, file: str) -> None:
    with agent(tmp_path, "--scenario", file, "--listen", "stdio") as killed:
        over_stdio(killed, REQUESTS)
        [left] = tmp_path.glob("agent-stage-*")
        with agent(tmp_path, "--scenario", file, "--listen", "stdio") as beside:
            over_stdio(beside, REQUESTS)
            assert left.exists(), "its server is running"
            assert ended(beside)[0] == 0
        killed.kill()
        killed.wait(BOUND)
    assert left.exists()
    with agent(tmp_path, "--scenario", file, "--listen", "stdio") as after:
        over_stdio(after, REQUESTS)
        assert ended(after)[0] == 0
    assert not left.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_its_report(tmp_path: Path, file: str, number: int) -> None:
    (tmp_path / "other.scenario.yaml").write_text(GREETING, "utf-8")
    words = ("--scenario", ".", "--listen", "ws://127.0.0.1:0", "--json", "out.json")
    with agent(tmp_path, *words) as process:
        assert process.stderr is not None
        address = process.stderr.readline().decode().removeprefix("listening on ").strip()
        with connect(f"{address}/greeting", proxy=None) as client:
            for at, (method, params) in enumerate(REQUESTS, 1):
                client.send(json.dumps({"id": at, "method": method, "params": params}))
            while json.loads(client.recv(BOUND)).get("method") != "turn/completed":
                pass
            process.send_signal(number)
            status, told = ended(process)
    assert status == 0
    assert told[-1] == "1 connection(s), 0 RED; no client began other"
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["unused"] == ["other"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--json", "x"), "--json needs --scenario and --listen"),
        (("--once", "--listen", "stdio"), "--once needs --scenario and --listen"),
        (("--scenario", "a", "b"), "--scenario takes one file; with --listen each connection"),
        (
            ("--scenario", ".", "--listen", "stdio", "--idle", "0"),
            "--idle: must be seconds, greater",
        ),
        (("--idle", "soon"), "--idle: must be seconds, greater than 0, not soon; see agent app-s"),
        (("--connections", "x"), "--connections: must be a whole number greater than 0, not x"),
        (("--listen",), "--listen: expected one argument; see agent app-server --help"),
        (("--lisen", "stdio"), "there is no option --lisen; did you mean --listen?"),
        (("serve",), "serve: it takes options alone; see agent app-server --help"),
        (("--listen", "ws://127.0.0.1:x"), "ws://127.0.0.1:x: a port is a number up to 65535"),
        (("--token-env", "T", "--token-file", "f"), "--token-file: not allowed with argument --to"),
        (("--scenario", ".", "--listen", "stdio"), "2 scenarios, and standard input and output"),
        (("--scenario", "no", "--listen", "stdio"), "--scenario no: no such file or folder"),
        (
            ("--scenario", "one.scenario.yaml", "--listen", "stdio", "--json", "no/x"),
            "--json no/x: cannot be written: No such file or directory",
        ),
        (
            ("--scenario", ".", "--listen", "{taken}"),
            "--listen {taken}: another program listens there",
        ),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    for name in ("one", "other"):
        (tmp_path / f"{name}.scenario.yaml").write_text(GREETING, "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"ws://127.0.0.1:{taken.getsockname()[1]}"
        given = [word.replace("{taken}", address) for word in words]
        with agent(tmp_path, *given) as process:
            status, lines = ended(process)
    assert status == 2
    (line,) = lines
    assert told.replace("{taken}", address) in line
