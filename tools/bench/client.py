"""A lean client of a server on pipes, which parses a line as JSON only if it must."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

BOUND = 20.0
"""Maximum seconds of any one wait."""
STOP_BOUND = 3.0
"""Seconds that a server has to end after the end of its input, and again after SIGTERM."""

TURN_COMPLETED = b'"method":"turn/completed"'
DELTA = b'"method":"item/agentMessage/delta"'

Json = dict[str, Any]


class MeasurementFailed(Exception):
    """A measurement could not be made; the text says why."""


class Client:
    """The only client of one server process. Make it with `running_server`."""

    def __init__(self, process: subprocess.Popen[bytes], stderr: Path, spawned: float) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process was started without pipes")
        self.pid = process.pid
        self.spawned = spawned
        """Time just before the process was made, on the clock of `monotonic`."""
        self._input = process.stdin.fileno()
        self._output = process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN | select.POLLHUP)
        self._stderr = stderr
        self._complete_lines: deque[bytes] = deque()
        self._rest = b""
        self._last_id = 0

    def send(self, method: str, params: Json) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        self._write({"method": method, "id": self._last_id, "params": params})
        return self._last_id

    def notify(self, method: str) -> None:
        """Send a notification without params."""
        self._write({"method": method})

    def request(self, method: str, params: Json) -> Json:
        """Send a request and return its result. Raises MeasurementFailed for an error."""
        request_id = self.send(method, params)
        answer = self.answer(request_id)
        if "result" not in answer:
            raise MeasurementFailed(f"{method} was refused: {answer.get('error')}")
        return answer["result"]

    def answer(self, request_id: int) -> Json:
        """Return the response to a request, dropping earlier messages. Raises MeasurementFailed."""
        mark = b'"id":%d' % request_id
        for line in self.lines():
            if mark in line:
                message = json.loads(line)
                if message.get("id") == request_id and "method" not in message:
                    return message
        raise AssertionError("lines() ends only by raising")

    def lines(self) -> Iterator[bytes]:
        """Yield lines without end. Raises MeasurementFailed after BOUND seconds or at the end."""
        while True:
            while self._complete_lines:
                yield self._complete_lines.popleft()
            *lines, self._rest = (self._rest + self._read()).split(b"\n")
            self._complete_lines.extend(lines)

    def read_until(self, mark: bytes) -> bytes:
        """Return the output up to and including the line with `mark`, as one piece."""
        tail = b"\n".join([*self._complete_lines, self._rest])
        pieces = [tail]
        self._complete_lines.clear()
        self._rest = b""
        is_found = mark in tail
        while not (is_found and tail.endswith(b"\n")):
            piece = self._read()
            pieces.append(piece)
            # Two reads may have split the mark.
            tail = tail[-len(mark) :] + piece
            is_found = is_found or mark in tail
        return b"".join(pieces)

    def _read(self) -> bytes:
        if not self._poll.poll(BOUND * 1000):
            raise MeasurementFailed(f"nothing was received for {BOUND:g} s{self._stderr_note()}")
        data = os.read(self._output, 1 << 20)
        if not data:
            raise MeasurementFailed(f"the server ended{self._stderr_note()}")
        return data

    def _write(self, message: Json) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._input, line) :]
        except BrokenPipeError as error:
            raise MeasurementFailed(f"the server reads no more{self._stderr_note()}") from error

    def _stderr_note(self) -> str:
        try:
            text = self._stderr.read_text("utf-8", "replace").strip()
        except OSError:
            text = ""
        return f"; stderr: {text[-300:]}" if text else ""


@contextlib.contextmanager
def running_server(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stderr: Path
) -> Generator[Client]:
    """Run a server while the block runs. Raises MeasurementFailed if it cannot be started."""
    with stderr.open("ab") as sink:
        spawned = monotonic()
        try:
            process = subprocess.Popen(
                list(command),
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise MeasurementFailed(f"{command[0]}: {error.strerror}") from error
    try:
        yield Client(process, stderr, spawned)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the server's pipes, then send SIGTERM and SIGKILL to its process group."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_BOUND)
    for number in (signal.SIGTERM, signal.SIGKILL):
        # Children may live on after the leader of the group has ended.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_BOUND)


def monotonic() -> float:
    """Return the seconds of the benchmark's clock."""
    return time.perf_counter()
