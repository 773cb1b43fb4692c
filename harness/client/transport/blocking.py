"""Transports for a thread or a greenlet of its own: they block, and know no event loop.

They wait with `socket` and `select` alone, which gevent replaces, so one process can hold hundreds
of them as greenlets. `receive` returns the bytes of whole messages, as `base.Transport` does.
"""

import os
import select
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Protocol
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from harness.client.transport.connect import check_address
from harness.errors import TargetGone

_CHUNK_BYTES = 256 * 1024
# Writes of at most this many bytes to a pipe never block once it is writable.
_PIPE_BYTES = select.PIPE_BUF
_STOP_SECONDS = 2.0


class BlockingTransport(Protocol):
    """One connection that blocks its caller."""

    def send(self, raw: bytes) -> None:
        """Write one message without a line end. Raises `TargetGone` if the server left."""
        ...

    def receive(self, seconds: float) -> list[bytes]:
        """Return the next messages, none after `seconds`. Raises `TargetGone` at the end."""
        ...

    def close(self) -> None:
        """Close both directions. Idempotent."""
        ...


class BlockingWebSocket:
    """A WebSocket connection to `address`, without compression.

    Raises `OSError` if nothing listens there within `seconds`, `TargetGone` if the handshake fails.
    """

    def __init__(self, address: str, seconds: float) -> None:
        check_address(address)
        parts = urlsplit(address)
        place = (parts.hostname or "", parts.port or 0)
        self._socket = socket.create_connection(place, timeout=seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._protocol = ClientProtocol(parse_uri(address), max_size=None)
        self._pieces: list[bytes] = []
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        while self._protocol.state is State.CONNECTING:
            if self._protocol.handshake_exc is not None or not self._read():
                self._socket.close()
                raise TargetGone(f"no WebSocket began: {self._protocol.handshake_exc}")
        self._early = self._take_messages()

    def send(self, raw: bytes) -> None:
        """Write one message as a text frame."""
        try:
            self._protocol.send_text(raw)
        except InvalidState as error:
            raise TargetGone("the connection is closed") from error
        self._flush()

    def receive(self, seconds: float) -> list[bytes]:
        """Return the next messages, none after `seconds`; a binary frame counts as text."""
        messages, self._early = self._early, []
        end = monotonic() + seconds
        while not messages and (left := end - monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                is_open = self._read()
            except TimeoutError:
                break
            messages = self._take_messages()
            if not is_open and not messages:
                raise TargetGone("the server closed the connection")
            self._flush()
        return messages

    def close(self) -> None:
        """Send a close frame and close the socket."""
        try:
            if self._protocol.state is State.OPEN:
                self._protocol.send_close(1000)
                self._flush()
        except TargetGone:
            pass
        finally:
            self._socket.close()

    def _read(self) -> bool:
        """Read once; False at the end of the stream."""
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except TimeoutError:
            raise
        except OSError:
            data = b""
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        return bool(data)

    def _flush(self) -> None:
        try:
            if waiting := self._protocol.data_to_send():
                self._socket.sendall(b"".join(waiting))
        except OSError as error:
            raise TargetGone("the server closed its input") from error

    def _take_messages(self) -> list[bytes]:
        messages: list[bytes] = []
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode in (
                Opcode.TEXT,
                Opcode.BINARY,
                Opcode.CONT,
            ):
                self._pieces.append(bytes(event.data))
                if event.fin:
                    messages.append(b"".join(self._pieces))
                    self._pieces.clear()
        return messages


class BlockingPipes:
    """A server process of one's own, as lines on its standard streams. `close` ends it.

    Raises `OSError` if it cannot be started.
    """

    def __init__(self, command: Sequence[str], env: dict[str, str], stderr: Path) -> None:
        with stderr.open("ab") as sink:
            self._process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                bufsize=0,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._rest = b""

    @property
    def pid(self) -> int:
        """Return the process id of the server."""
        return self._process.pid

    def send(self, raw: bytes) -> None:
        """Write one line."""
        data = memoryview(raw + b"\n")
        try:
            while data:
                select.select([], [self._input], [])
                data = data[os.write(self._input, data[:_PIPE_BYTES]) :]
        except (OSError, ValueError) as error:
            raise TargetGone("the server closed its input") from error

    def receive(self, seconds: float) -> list[bytes]:
        """Return the next lines, none after `seconds`."""
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            if not select.select([self._output], [], [], left)[0]:
                break
            data = os.read(self._output, _CHUNK_BYTES)
            if not data:
                raise TargetGone("the server closed its output")
            *lines, self._rest = (self._rest + data).split(b"\n")
            if lines := [line for line in lines if line.strip()]:
                return lines
        return []

    def close(self) -> None:
        """Close its input, and kill it unless it ends within seconds."""
        if self._process.returncode is not None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
