"""`harness record` with sockets, `agent exec` and a model: the content of recordings."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from command_line import call
from websockets.sync.client import ClientConnection, connect, unix_connect

from harness.trace.frame import Kind
from harness.trace.marks import (
    CallEnd,
    Closed,
    ModelCall,
    ModelEnd,
    ProgramEnded,
    ProgramErrors,
    ProgramStarted,
)
from harness.trace.model_marks import ModelOutput
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from tests.processes import BOUND, COMMANDS

pytestmark = [pytest.mark.slow, pytest.mark.socket]

AGENT = (str(COMMANDS / "agent"), "app-server", "--scenario", "turns/plain-turn")
HELLO = {"clientInfo": {"name": "test", "version": "1"}}
LISTENING = "record: listening at "


@contextmanager
def listening(folder: Path, address: str, *server: str, again: bool = False) -> Generator[str]:
    """The address of a recorder; it is ended by TERM, with `again` until it has ended."""
    process = subprocess.Popen(
        [COMMANDS / "harness", "record", "-o", "s.jsonl", "--listen", address, *server],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "AGENT_HOME": str(folder / "home")},
        cwd=folder,
    )
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith(LISTENING))
        yield line.removeprefix(LISTENING).strip()
        process.send_signal(signal.SIGTERM)
        while again and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.005)
        status = process.wait(BOUND)
        assert status >= 0 or not again, "a signal killed it"
    finally:
        process.kill()
        process.communicate()


def greeted(socket: ClientConnection) -> str:
    """The answer to a greeting over a WebSocket."""
    socket.send(json.dumps({"id": 1, "method": "initialize", "params": HELLO}))
    return str(socket.recv(BOUND))


@pytest.mark.parametrize("more", [(), ("--listen", "{listen}")], ids=["each its own", "shared"])
def test_each_client_is_a_connection_of_one_recording(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    with listening(tmp_path, "ws://127.0.0.1:0", "--", *AGENT, *more) as address:
        for _ in range(2):
            with connect(address, open_timeout=BOUND) as client:
                assert "userAgent" in greeted(client)
    trace = load(tmp_path / "s.jsonl")
    kinds = [(frame.connection, frame.kind) for frame in trace.frames]
    assert kinds == [(c, kind) for c in ("c1", "c2") for kind in (Kind.REQUEST, Kind.RESPONSE)]
    # The server takes its time to let go of the first: its end may be seen after the other's.
    assert sorted(mark.body.connection for mark in trace.marks_of(Closed)) == ["c1", "c2"]


def test_a_websocket_over_a_unix_socket_is_recorded(tmp_path: Path) -> None:
    with listening(tmp_path, "ws+unix:s", "--", *AGENT) as address:
        assert address == "ws+unix:s"
        with unix_connect(str(tmp_path / "s"), "ws://localhost/", open_timeout=BOUND) as client:
            assert "userAgent" in greeted(client)
    assert len(load(tmp_path / "s.jsonl").frames) == 2
    assert not (tmp_path / "s").exists()


def test_lines_over_unix_sockets_on_both_sides(tmp_path: Path) -> None:
    """One recorder listens on a path, a second one connects to it from its standard streams."""
    with listening(tmp_path, "unix:s", "--", *AGENT):
        said = subprocess.run(
            [COMMANDS / "harness", "record", "-o", "t.jsonl", "--connect", "unix:s"],
            input=json.dumps({"id": 1, "method": "initialize", "params": HELLO}) + "\n",
            capture_output=True,
            encoding="utf-8",
            timeout=BOUND,
            cwd=tmp_path,
        )
        assert "userAgent" in said.stdout, said.stderr
    for name in ("s.jsonl", "t.jsonl"):
        assert [frame.kind for frame in load(tmp_path / name).frames] == [
            Kind.REQUEST,
            Kind.RESPONSE,
        ]


def test_nobody_at_the_address_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    said = call("harness", "record", "-o", str(file), "--connect", "ws://127.0.0.1:1")
    assert said.status == 2
    assert said.err.startswith("harness: --connect ws://127.0.0.1:1: nobody can be reached there")
    assert not file.exists()


def test_a_port_in_use_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"ws://127.0.0.1:{taken.getsockname()[1]}"
        said = call("harness", "record", "-o", str(file), "--listen", address, "--", "cat")
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    assert f"cannot listen at {address}: something listens there already" in said.err
    assert not file.exists()


def test_an_address_that_is_refused_is_named_as_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    said = call("harness", "record", "-o", str(file), "--listen", "ws://0.0.0.0:0", "--", "cat")
    assert said.status == 2
    assert "'ws://0.0.0.0:0' is not on this machine" in said.err


def test_a_run_of_agent_exec_is_recorded_as_the_surface_has_it(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    agent = [str(COMMANDS / "agent"), "exec", "--json", "--skip-git-repo-check"]
    agent += ["--scenario", "turns/plain-turn", "-"]
    told = subprocess.run(
        [COMMANDS / "harness", "record", "--surface", "exec", "-o", file, "--", *agent],
        input="say it\n",
        capture_output=True,
        encoding="utf-8",
        timeout=BOUND,
        env={**os.environ, "AGENT_HOME": str(tmp_path / "home")},
        cwd=tmp_path,
    )
    assert told.returncode == 0, told.stderr
    trace = load(file, classify_of=classify_of)
    [started] = trace.marks_of(ProgramStarted)
    assert started.body.argv[1:3] == ("exec", "--json")
    assert trace.frames[0].raw == b"say it\n"
    written = [frame.raw.decode() for frame in trace.frames if frame.kind is Kind.EVENT]
    assert written == told.stdout.splitlines()
    assert [mark.body.text for mark in trace.marks_of(ProgramErrors)] == [told.stderr]
    assert [mark.body.status for mark in trace.marks_of(ProgramEnded)] == [0]
    checked = call("harness", "check", str(file))
    assert (checked.status, "rules passed" in checked.out) == (0, True)


MODEL = """
import http.server, sys

EVENTS = (
    'data: {"type":"response.output_item.done","item":{"type":"message","role":"assistant",'
    '"content":[{"type":"output_text","text":"Hello."}]}}\\n\\n'
    'data: {"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":2,'
    '"total_tokens":5}}}\\n\\n'
)

class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        good = self.path.startswith("/v1/")
        said = EVENTS if good else '{"error":{"message":"no","code":"bad"}}'
        self.send_response(200 if good else 400)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said.encode())
    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
CALLER = """
import os, sys, urllib.error, urllib.request
for path in sys.argv[2:]:
    body = b'{"model":"m","input":[{"role":"user","content":"my key is sk-abcdefghijklmnop"}]}'
    headers = {"authorization": "Bearer abcdefghijkl", "content-type": "application/json"}
    request = urllib.request.Request(sys.argv[1] + path, body, headers)
    try:
        print(urllib.request.urlopen(request).read().decode().count("data:"))
    except urllib.error.HTTPError as error:
        print(error.code)
print(os.environ["OPENAI_BASE_URL"] == sys.argv[1])
"""


def test_the_models_side_is_recorded_and_passes(tmp_path: Path) -> None:
    python = str(COMMANDS / "python")
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "caller.py").write_text(CALLER)
    with subprocess.Popen(
        [python, tmp_path / "model.py"], stdout=subprocess.PIPE, encoding="utf-8"
    ) as model:
        try:
            assert model.stdout is not None
            port = model.stdout.readline().strip()
            real = f"http://127.0.0.1:{port}/v1"
            record = [COMMANDS / "harness", "record", "-o", tmp_path / "s.jsonl"]
            caller = [python, tmp_path / "caller.py", "{model_url}", "/responses"]
            done = subprocess.run(
                [*record, "--model-url", real, "--", *caller, "/../v2/responses"],
                input="",
                capture_output=True,
                encoding="utf-8",
                timeout=BOUND,
            )
        finally:
            model.kill()
    assert done.stdout.split() == ["2", "400", "True"], done.stderr
    trace = load(tmp_path / "s.jsonl")
    [call_, refused] = [mark.body for mark in trace.marks_of(ModelCall)]
    assert (call_.call, call_.model, refused.call) == (1, "m", 2)
    [said] = [mark.body for mark in trace.marks_of(ModelOutput)]
    assert json.loads(said.items[0])["content"][0]["text"] == "Hello."
    assert said.usage == (3, 0, 2, 0)
    ends = [mark.body for mark in trace.marks_of(ModelEnd)]
    assert [(end.outcome, end.status, end.code, end.usage) for end in ends] == [
        (CallEnd.COMPLETED, 0, "", 5),
        (CallEnd.STATUS, 400, "bad", 0),
    ]
    assert "sk-abcdef" not in (tmp_path / "s.jsonl").read_text()


def test_a_model_that_cannot_be_reached_is_an_answer_of_502(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(CALLER)
    record = [COMMANDS / "harness", "record", "-o", tmp_path / "s.jsonl", "--record-model"]
    caller = [COMMANDS / "python", tmp_path / "caller.py", "{model_url}", "/responses"]
    done = subprocess.run(
        [*record, "--", *caller],
        input="",
        capture_output=True,
        encoding="utf-8",
        timeout=BOUND,
        env={**os.environ, "PROVIDER_BASE_URL": "http://127.0.0.1:1/v1"},
    )
    assert done.stdout.split() == ["502", "True"], done.stderr
    [end] = [mark.body for mark in load(tmp_path / "s.jsonl").marks_of(ModelEnd)]
    assert (end.outcome, end.status) == (CallEnd.STATUS, 502)
    assert end.said.startswith("the model cannot be reached")


def test_further_signals_do_not_cut_the_end_short(tmp_path: Path) -> None:
    """`timeout` sends its signal to the command and to its group, at once or a moment later."""
    shared = ("--", *AGENT, "--listen", "{listen}")
    with (
        listening(tmp_path, "ws://127.0.0.1:0", *shared, again=True) as address,
        connect(address, open_timeout=BOUND) as client,
    ):
        assert "userAgent" in greeted(client)
    assert "nobody is listened to any more" in (tmp_path / "s.jsonl").read_text()
