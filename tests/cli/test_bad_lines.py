"""`harness faulty --line`: slices of a byte, a reader that stops, half-closed and reset lines."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import call
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from tests.processes import BOUND, COMMANDS

pytestmark = [pytest.mark.slow, pytest.mark.socket]

ECHO = ("--", sys.executable, "-c", "import sys\nfor x in sys.stdin: print(x, end='', flush=True)")
LISTENING = "faulty: listening at "


def on_pipes(*words: str, output: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    """Start a proxy whose standard streams are pipes of ours."""
    return subprocess.Popen(
        [COMMANDS / "harness", "faulty", "--line", *words],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


@contextmanager
def listening(
    folder: Path, address: str, *words: str, server: tuple[str, ...] = ECHO
) -> Generator[str]:
    """Start a proxy that listens; yield its address."""
    process = subprocess.Popen(
        [COMMANDS / "harness", "faulty", "--line", *words, "--listen", address, *server],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=folder,
    )
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith(LISTENING))
        yield line.removeprefix(LISTENING).strip()
        process.send_signal(signal.SIGTERM)
        process.wait(BOUND)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def unix_client(folder: Path) -> Generator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(BOUND)
        client.connect(str(folder / "s"))
        yield client


def test_bytes_come_one_by_one_on_a_pipe() -> None:
    # In a pipe of packets each read gets what one write wrote.
    reader, writer = os.pipe2(os.O_DIRECT)
    with on_pipes("slices", "--after", "1", *ECHO, output=writer) as process:
        os.close(writer)
        assert process.stdin is not None
        process.stdin.write(b"whole\nin slices\n")
        process.stdin.close()
        packets = list(iter(lambda: os.read(reader, 100), b""))
        os.close(reader)
    assert packets == [b"whole\n", *(bytes([byte]) for byte in b"in slices\n")]


def test_a_websocket_message_comes_in_fragments_of_a_byte(tmp_path: Path) -> None:
    with (
        listening(tmp_path, "ws://127.0.0.1:0", "slices") as address,
        connect(address, open_timeout=BOUND) as client,
    ):
        client.send("é!")
        assert list(client.recv_streaming(decode=False)) == [b"\xc3", b"\xa9", b"!", b""]


def test_lines_in_slices_arrive_whole_on_a_unix_socket(tmp_path: Path) -> None:
    with listening(tmp_path, "unix:s", "slices"), unix_client(tmp_path) as client:
        client.sendall(b"in slices\n")
        with client.makefile("rb") as lines:
            assert lines.readline() == b"in slices\n"


def test_a_half_closed_pipe_still_takes_what_the_client_says(tmp_path: Path) -> None:
    process = on_pipes("half-closed", "--after", "1", "--", "tee", str(tmp_path / "got"))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"one\ntwo\n")
    assert process.stdout.read() == b"one\n"
    process.stdin.write(b"three\n")
    _, said = process.communicate(timeout=BOUND)
    assert (tmp_path / "got").read_bytes() == b"one\ntwo\nthree\n"
    assert (process.returncode, said) == (0, b"faulty: line: half-closed\n")


def test_a_half_closed_unix_socket_still_takes_what_the_client_says(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "got")
    got = os.open(tmp_path / "got", os.O_RDONLY | os.O_NONBLOCK)
    tee = ("--", "tee", str(tmp_path / "got"))
    with (
        open(got, "rb") as heard,
        listening(tmp_path, "unix:s", "half-closed", server=tee),
        unix_client(tmp_path) as client,
    ):
        client.sendall(b"one\n")
        assert client.recv(100) == b""
        client.sendall(b"two\n")
        client.shutdown(socket.SHUT_WR)
        os.set_blocking(got, True)
        assert heard.read() == b"one\ntwo\n"


@pytest.mark.parametrize("kind", ["half-closed", "reset"])
def test_a_websocket_ends_without_a_word_and_a_client_can_come_back(
    kind: str, tmp_path: Path
) -> None:
    words = (kind, "--after", "1", "--once")
    with listening(tmp_path, "ws://127.0.0.1:0", *words) as address:
        with connect(address, open_timeout=BOUND) as client:
            client.send("one")
            assert client.recv(BOUND) == "one"
            client.send("two")
            with pytest.raises(ConnectionClosedError) as caught:
                client.recv(BOUND)
            assert caught.value.rcvd is None
        with connect(address, open_timeout=BOUND) as client:
            for text in ("one", "two", "three"):
                client.send(text)
                assert client.recv(BOUND) == text


def test_a_reset_ends_both_directions_of_a_pipe() -> None:
    with on_pipes("reset", "--after", "1", *ECHO) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"one\ntwo\n")
        assert process.stdout.read() == b"one\n"
        with pytest.raises(BrokenPipeError):
            process.stdin.write(b"three\n")
        assert process.wait(BOUND) == 0


def test_a_reset_ends_both_directions_of_a_unix_socket(tmp_path: Path) -> None:
    with listening(tmp_path, "unix:s", "reset"), unix_client(tmp_path) as client:
        client.sendall(b"one\n")
        assert client.recv(100) == b""
        with pytest.raises(BrokenPipeError):
            client.sendall(b"two\n")


def test_a_reader_that_stops_reads_on_after_its_pause() -> None:
    text, code = (
        (b"x" * 65535 + b"\n") * 64,
        "import sys; print(flush=True); print(len(sys.stdin.read()))",
    )
    size = len(text)
    with on_pipes("unread", "--quiet", "1.5", "--", sys.executable, "-c", code) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        sink, left = process.stdin.fileno(), size
        os.set_blocking(sink, False)
        for bound in (0.5, BOUND):
            while left and select.select([], [sink], [], bound)[1]:
                left -= os.write(sink, text[-left:][: 1 << 16])
            assert left > size // 2 or bound == BOUND
        assert not left
        process.stdin.close()
        assert process.stdout.readline() == b"%d\n" % size


def test_an_unknown_line_is_told() -> None:
    said = call("harness", "faulty", "--line", "slice", "--", "cat")
    assert (said.status, "unknown line 'slice'; did you mean 'slices'?" in said.err) == (2, True)
