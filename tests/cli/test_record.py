"""`harness record` on standard streams: passed messages, the recording, and process ends."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call

from harness.trace.frame import Direction
from harness.trace.marks import ClientLeft, RecorderNote
from harness.trace.store import load
from tests.processes import BOUND, COMMANDS, run_warm

pytestmark = [pytest.mark.slow, pytest.mark.socket]

BYTES = b'{"x": 1 }\r\n\n \xff\x00\n{"method":"a"}\nno end'
HELLO = {"method": "initialize", "id": 1, "params": {"clientInfo": {"name": "t", "version": "1"}}}
AGENT = (str(COMMANDS / "agent"), "app-server", "--scenario", "turns/plain-turn")
SLEEPER = "import os, time; print(os.getpid(), flush=True); time.sleep(999)"


def started(
    file: Path, *words: str, env: dict[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [COMMANDS / "harness", "record", "-o", file, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
        cwd=file.parent,
    )


def python(code: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", code)


def ask(process: "subprocess.Popen[bytes]", *messages: object) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def turn(process: "subprocess.Popen[bytes]") -> list[str]:
    """A turn of a client until its end: the methods that it was told."""
    heard: list[str] = []
    ask(
        process, HELLO, {"method": "initialized"}, {"method": "thread/start", "id": 2, "params": {}}
    )
    assert process.stdout is not None
    for line in process.stdout:
        message = json.loads(line)
        heard.append(message.get("method", ""))
        if message.get("id") == 2:
            thread = message["result"]["thread"]["id"]
            said = [{"type": "text", "text": "my key is sk-abcdefghijklmnop"}]
            ask(
                process,
                {"method": "turn/start", "id": 3, "params": {"threadId": thread, "input": said}},
            )
        if heard[-1] == "turn/completed":
            break
    return heard


def test_traffic_is_passed_on_unchanged_and_written_whole(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    assert started(file, "--", "cat").communicate(BYTES, BOUND) == (BYTES, b"")
    trace = load(file)
    lines = BYTES.split(b"\n")
    for direction in Direction:
        assert [one.raw for one in trace.frames if one.direction is direction] == lines
    assert [mark.body.status for mark in trace.marks_of(RecorderNote)] == [None, 0]


def test_the_exit_status_and_the_signal_of_the_server_are_passed_on(tmp_path: Path) -> None:
    for number, (code, status) in enumerate(
        (("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9))
    ):
        file = tmp_path / f"{number}.jsonl"
        process = started(file, *python(code))
        process.communicate(b"", BOUND)
        assert process.returncode == status
        assert load(file).marks_of(RecorderNote)[-1].body.status == status


def test_a_recording_is_checked_and_shown_and_holds_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    key = "the-value-of-a-key"
    process = started(
        file, "--", *AGENT, env={"AGENT_HOME": str(tmp_path), "PROVIDER_API_KEY": key}
    )
    assert turn(process)[-1] == "turn/completed"
    process.communicate(timeout=BOUND)
    assert process.returncode == 0
    written = file.read_text("utf-8")
    assert "sk-abcdefghijklmnop" not in written
    assert "my key is <secret " in written
    checked = call("harness", "check", str(file))
    assert (checked.status, "rules passed" in checked.out) == (0, True)
    assert "turn/completed" in call("harness", "show", str(file)).out


def test_without_masks_the_file_has_what_passed(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    said = b'{"apiKey":"0123456789"}\n'
    started(file, "--no-mask", "--", "cat").communicate(said, BOUND)
    assert load(file).frames[0].raw + b"\n" == said


@pytest.mark.parametrize("who", ["recorder", "server"])
def test_a_recording_is_whole_when_somebody_is_killed(tmp_path: Path, who: str) -> None:
    file = tmp_path / "s.jsonl"
    process = started(file, *python(SLEEPER))
    assert process.stdout is not None
    server = int(process.stdout.readline())
    os.kill(process.pid if who == "recorder" else server, signal.SIGKILL)
    assert process.wait(BOUND) == -signal.SIGKILL
    if who == "recorder":
        # Its pipes are closed now; this server does not mind, and has our standard error.
        os.kill(server, signal.SIGKILL)
    process.communicate(timeout=BOUND)
    trace = load(file)
    assert [frame.raw for frame in trace.frames] == [str(server).encode()]
    ended = [mark.body.status for mark in trace.marks_of(RecorderNote) if mark.body.server_ended]
    assert ended == ([] if who == "recorder" else [-signal.SIGKILL])


def test_a_client_that_is_gone_ends_the_server_and_the_recording(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    process = started(file, *python(SLEEPER))
    assert process.stdin is not None
    assert process.stdout is not None
    server = int(process.stdout.readline())
    process.stdin.close()
    process.stdout.close()
    assert process.wait(BOUND) == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
    assert process.stderr is not None
    process.stderr.close()
    assert load(file).marks_of(RecorderNote)[-1].body.server_ended


@pytest.mark.parametrize("who", ["client", "signal", "server"])
def test_mark_tells_that_the_client_left_before_the_server(tmp_path: Path, who: str) -> None:
    file = tmp_path / "s.jsonl"
    end = "sys.exit()" if who == "server" else "sys.stdin.read()"
    code = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(print('over'))); "
        f"print('open', flush=True); {end}; print('over')"
    )
    process = started(file, *python(code))
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"open\n"
    if who == "signal":
        process.terminate()
    elif who == "client":
        process.stdin.close()
    assert process.stdout.read() == (b"" if who == "server" else b"over\n")
    process.wait(BOUND)
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    # Marked once, and before what the server wrote then.
    after = [mark.after for mark in load(file).marks_of(ClientLeft)]
    assert after == ([] if who == "server" else [0])


def test_a_full_disk_is_told_once_and_the_session_goes_on(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk."""
    file = tmp_path / "s.jsonl"
    code = (
        "import os, resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (2000, {resource.RLIM_INFINITY})); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [str(COMMANDS / "harness"), "record", "-o", str(file), "--", "cat"]
    said = b"".join(b'{"method":"n","params":%d}\n' % number for number in range(50))
    done = subprocess.run(
        [sys.executable, "-c", code, *command], input=said, capture_output=True, timeout=BOUND
    )
    assert (done.returncode, done.stdout) == (0, said)
    [told] = done.stderr.decode().splitlines()
    assert told.startswith(f"record: {file}: File too large: the recording ends after ")
    assert 0 < len(load(file).frames) < 100


def test_a_folder_gets_a_file_for_each_recording(tmp_path: Path) -> None:
    for _ in range(2):
        started(tmp_path / "all", "-o", f"{tmp_path}/all/", "--", "cat").communicate(b"", BOUND)
    assert sorted(one.name for one in (tmp_path / "all").iterdir()) == ["1.jsonl", "2.jsonl"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--", "no-such-server"), "no-such-server"),
        ((), "no server; write its command behind --: harness record …"),
        (("--surface", "sdk", "--", "cat"), "--surface sdk: expected one of session, exec"),
        (("--mask", "(", "--", "cat"), "--mask (: "),
        (("--target", "nobody", "--", "cat"), "nobody"),
        (("--connect", "ws://127.0.0.1:1", "--", "cat"), "leave out the command"),
        (("--connect", "http://x"), "expected ws://127.0.0.1:PORT"),
        (("--listen", "tcp://x", "--", "cat"), "--listen takes ws://127.0.0.1:PORT"),
        (("--record-model", "--", "cat"), "--record-model: neither --model-url nor"),
        (("--model-url", "host/v1", "--", "cat"), "--model-url host/v1: expected an address"),
        (("--model-url", "http://h:99999", "--", "cat"), "h:99999: expected an address"),
        (("--model-url", "http://[h/v1", "--", "cat"), "http://[h/v1: expected an address"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    clean = {**os.environ, "PROVIDER_BASE_URL": "", "OPENAI_BASE_URL": ""}
    said = run_warm("harness", "record", "-o", "s.jsonl", *words, cwd=tmp_path, env=clean)
    assert said.status == 2
    [line] = said.err.splitlines()
    assert told in line


def test_a_recording_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text("precious")
    _, said = started(file, "--", "cat").communicate(b"", BOUND)
    assert b"is there already" in said
    assert file.read_text() == "precious"
    started(file, "--force", "--", "cat").communicate(b"", BOUND)
    assert load(file).frames == []
