"""A process that has imported the server, and forks one for each requested play.

A request is a line of JSON; the answer has the messages that the client received. The forked server
is that of the command line, with the model in its process. A moment is one after writing a message,
half of a record, or a record. At a chosen moment the server kills itself and its process group, so
the result does not depend on how fast its client reads. Or it is stopped at every moment; then the
answer has, for each, what a kill there would leave: the folder's state (`disk_states`, in the file
STATES) and the number of messages that the server has written.
"""

import json
import mmap
import os
import pickle
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import anyio
from disk_states import State, read_state
from kill_cases import CASES, Case, Message
from model_side import ModelSide, Refused, Reply
from session_peer import config

from reference_server.cli import app_server
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.tool_provider import ToolProvider
from reference_server.handlers import discover
from reference_server.rollout import writer
from reference_server.scripted_answers import NO_ANSWERS
from reference_server.session.server_requests import ServerRequests
from reference_server.transport.stdio import StdioTransport

HOME, WORK, ERRORS, STATES = "home", "work", "errors.txt", ".states"
BOUND = 20.0
"""Maximum seconds of a wait for a message."""
TURNS_OF_THE_LOOP = 4
"""Iterations of the event loop between an item and its message to the client."""


class Gone(Exception):
    """The server's output ended."""


class Moments:
    """Counter of moments, shared with the forked server.

    It is killed at the moment `fatal`, or stopped at every moment.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)
        self._lock = threading.Lock()
        self.fatal = 0
        self.stops = False

    @property
    def count(self) -> int:
        return struct.unpack("q", self._shared[:8])[0]

    @count.setter
    def count(self, value: int) -> None:
        self._shared[:8] = struct.pack("q", value)

    def one(self) -> None:
        with self._lock:
            self.count += 1
            if self.stops:
                # A signal to this thread takes effect before the call returns, in all threads.
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
            elif self.count == self.fatal:
                os.killpg(0, signal.SIGKILL)


MOMENTS = Moments()
SIGNALS, _WAKER = socket.socketpair()
"""Readable after a signal, such as that a server has stopped or ended."""


class _WritesInHalves:
    """Replacement for the module `os` in the writer of rollouts, which writes in two halves."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, descriptor: int, data: bytes) -> int:
        half = len(data) // 2
        os.write(descriptor, data[:half])
        MOMENTS.one()
        os.write(descriptor, data[half:])
        MOMENTS.one()
        return len(data)


_send = StdioTransport.send


async def _one_by_one(self: StdioTransport, messages: list[bytes]) -> None:
    for message in messages:
        await _send(self, [message])
        MOMENTS.one()


class SocketClient:
    """The client of one server; calls `on_signal` if the server may have stopped or ended."""

    def __init__(self, ours: socket.socket, on_signal: Callable[[], None]) -> None:
        self._socket = ours
        self._on_signal = on_signal
        self._sent = 0
        self._unread = bytearray()
        self._lines_received = 0
        self.seen: list[Message] = []

    def request(self, method: str, params: Any = None) -> Message:
        self._sent += 1
        number = self._sent
        self._send({"id": number, "method": method, "params": params or {}})
        answer = self.until(lambda m: m.get("id") == number and "method" not in m)
        return answer["result"]

    def until(self, wanted: Callable[[Message], bool]) -> Message:
        for message in self.seen:
            if wanted(message):
                return message
        while not wanted(message := self._receive()):
            pass
        return message

    def decide(self, question: Message, decision: str) -> None:
        self.answer(question, {"decision": decision})

    def answer(self, question: Message, result: Message) -> None:
        self._send({"id": question["id"], "result": result})

    def leave(self) -> NoReturn:
        """Close the server's input and read its output to the end. Always raises Gone."""
        self._socket.shutdown(socket.SHUT_WR)
        self._drain()

    def _drain(self) -> NoReturn:
        while True:
            self._receive()

    def lines_received(self) -> int:
        """Return the number of whole lines that the server has written."""
        self._fetch()
        return self._lines_received

    def _receive(self) -> Message:
        while not (end := self._unread.find(b"\n") + 1):
            ready, _, _ = select.select([self._socket, SIGNALS], [], [], BOUND)
            if not ready:
                raise TimeoutError
            if SIGNALS in ready:
                SIGNALS.recv(1 << 12)
                self._on_signal()
            if self._socket in ready and not self._fetch() and b"\n" not in self._unread:
                raise Gone
        self.seen.append(json.loads(self._unread[:end]))
        del self._unread[:end]
        return self.seen[-1]

    def _fetch(self) -> bool:
        """Read all that has arrived; False if the server's output has ended."""
        try:
            while data := self._socket.recv(1 << 16, socket.MSG_DONTWAIT):
                self._unread += data
                self._lines_received += data.count(b"\n")
        except BlockingIOError:
            return True
        except ConnectionResetError:
            pass
        return False

    def _send(self, message: Message) -> None:
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # Read the messages that it wrote before its end.
            self._drain()


class Attendant:
    """Observer of a server's process: its end, and what a kill at each stop would leave."""

    def __init__(self, pid: int, folder: Path, fatal: int, lines: Callable[[], int]) -> None:
        self._pid = pid
        self._folder = folder
        self._fatal = fatal
        self._lines = lines
        self.status: int | None = None
        self.states: list[State] = []
        self.stops: list[tuple[int, int]] = []
        """The number of the state, and of the messages that the server has written."""

    def look(self, options: int = os.WNOHANG) -> None:
        """Note a stop, and let the server go on; or note its end. Does nothing after that."""
        if self.status is not None:
            return
        pid, status = os.waitpid(self._pid, os.WUNTRACED | options)
        if pid and os.WIFSTOPPED(status):
            os.killpg(self._pid, signal.SIGSTOP)
            state = read_state(self._folder)
            if not self.states or self.states[-1] != state:
                self.states.append(state)
            self.stops.append((len(self.states) - 1, self._lines()))
            dies = len(self.stops) == self._fatal
            os.killpg(self._pid, signal.SIGKILL if dies else signal.SIGCONT)
        elif pid:
            self.status = status

    def wait(self) -> int:
        """Return the status with which the server has ended."""
        while self.status is None:
            self.look(0)
        return os.waitstatus_to_exitcode(self.status)


def play(case: Case, folder: Path, fatal: int, *, stops: bool) -> Message:
    """Play a case in this folder; the server dies at the moment `fatal`, or not at all if 0.

    With `stops` it is stopped at each moment, and killed while it is stopped.
    """
    MOMENTS.count, MOMENTS.fatal, MOMENTS.stops = 0, fatal, stops
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        serve(case, folder, theirs)
    theirs.close()
    client = SocketClient(ours, lambda: attendant.look())
    attendant = Attendant(pid, folder, fatal, client.lines_received)
    failed = ""
    try:
        case.play(client, str(folder / WORK))
        client.leave()
    except Gone:
        pass
    except Exception as error:
        failed = f"{type(error).__name__}: {error}"
        if attendant.status is None:
            os.killpg(pid, signal.SIGKILL)
    status = attendant.wait()
    ours.close()
    folder.with_suffix(STATES).write_bytes(pickle.dumps(attendant.states))
    return {
        "told": client.seen,
        "moments": MOMENTS.count,
        "stops": attendant.stops,
        "status": status,
        "failed": failed,
    }


def serve(case: Case, folder: Path, theirs: socket.socket) -> NoReturn:
    """Run a server in this process, with the socket as its standard streams, and exit."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (0, 1):
        os.dup2(theirs.fileno(), number)
    errors = os.open(folder / ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(errors, 2)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    os.closerange(3, max(errors, theirs.fileno()) + 1)
    os.environ.update(AGENT_HOME=str(folder / HOME), HOME=str(folder))
    side = ModelSide([slowly(reply) for reply in case.replies()])
    app_server.scenario_transport = lambda _path: side.transport  # type: ignore[assignment]
    app_server.scenario_answers = lambda _path: NO_ANSWERS  # type: ignore[assignment]
    app_server.scenario_defaults = lambda _path: Config()  # type: ignore[assignment]
    app_server.go_behind_faults = lambda *_, **_more: None  # type: ignore[assignment]
    settings = config(stream_max_retries=1)
    app_server.load_config = lambda *_, **_more: settings  # type: ignore[assignment]
    writer.os = _WritesInHalves()  # type: ignore[assignment]
    StdioTransport.send = _one_by_one  # type: ignore[method-assign]
    status = 70
    try:
        status = app_server.run(["--scenario", "none"])
    finally:
        sys.stderr.flush()
        os._exit(status)


def slowly(reply: Reply | Refused) -> Reply | Refused:
    """Return the reply with pauses between its parts, in which the server writes its messages."""
    if isinstance(reply, Refused):
        return reply
    over = anyio.Event()
    over.set()
    parts = [one for part in reply.parts for one in (*[over] * TURNS_OF_THE_LOOP, part)]
    return replace(reply, parts=parts)


def main() -> None:
    """Answer requests until standard input ends."""
    _WAKER.setblocking(False)
    signal.set_wakeup_fd(_WAKER.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    import_module("reference_server.services")
    discover()
    assert ToolProvider(Home(Path("/none")), config(), ServerRequests()).toolbox.names
    for line in sys.stdin:
        asked = json.loads(line)
        answer = play(
            CASES[asked["case"]], Path(asked["folder"]), asked["fatal"], stops=asked["stops"]
        )
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
