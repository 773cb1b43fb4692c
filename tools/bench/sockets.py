"""A lean client of a listening server, which parses only responses as JSON."""

import json
import re
import socket
import threading
from collections.abc import Callable
from typing import Any

from websockets.client import ClientProtocol
from websockets.uri import parse_uri

from tools.bench.client import BOUND, MeasurementFailed

Json = dict[str, Any]
_decode = json.JSONDecoder().raw_decode


class SocketClient:
    """One connection to an address as the server prints it: `ws://…`, `unix:…`, `ws+unix:…`.

    Every wait raises MeasurementFailed after BOUND seconds or when the server closes.
    """

    def __init__(self, address: str) -> None:
        self._read = b""
        self._last_id = 0
        self._socket = _connect(address)
        self._websocket: ClientProtocol | None = None
        if address.startswith("ws"):
            self._websocket = ClientProtocol(parse_uri("ws://localhost/"))
            self._websocket.send_request(self._websocket.connect())
            self._flush(self._websocket)
            while b"\r\n\r\n" not in self._read:
                self._read += self._receive()
            head, end, rest = self._read.partition(b"\r\n\r\n")
            self._websocket.receive_data(head + end)
            self._read = rest

    def send(self, method: str, params: Json) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        message = {"method": method, "id": self._last_id, "params": params}
        text = json.dumps(message, separators=(",", ":")).encode()
        if self._websocket is None:
            self._socket.sendall(text + b"\n")
        else:
            self._websocket.send_text(text)
            self._flush(self._websocket)
        return self._last_id

    def request(self, method: str, params: Json) -> Json:
        """Send a request and return its result. Raises MeasurementFailed for an error."""
        beginning = b'{"id":%d,' % self.send(method, params)
        self.read_until(beginning, keep=True)
        start = self._read.index(beginning)
        while True:
            try:
                text = self._read[start:].decode("utf-8", "ignore")
                answer, _ = _decode(text)
                break
            except ValueError:
                self._read += self._receive()
        if "result" not in answer:
            raise MeasurementFailed(f"{method} was refused: {answer.get('error')}")
        return answer["result"]

    def read_until(self, mark: bytes, *, keep: bool = False) -> None:
        """Read until `mark` was received; drop the data up to its end unless `keep`."""
        while mark not in self._read:
            if not keep:
                self._read = self._read[-len(mark) :]
            self._read += self._receive()
        if not keep:
            self._read = self._read.partition(mark)[2]

    def drain(self, is_done: Callable[[bytes], bool]) -> threading.Thread:
        """Read in a new thread until `is_done` is true for a piece of data; return the thread."""

        def read() -> None:
            while not is_done(self._receive()):
                pass

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _flush(self, protocol: ClientProtocol) -> None:
        self._socket.sendall(b"".join(protocol.data_to_send()))

    def _receive(self) -> bytes:
        try:
            data = self._socket.recv(1 << 20)
        except TimeoutError:
            raise MeasurementFailed(f"nothing was received for {BOUND:g} s") from None
        if not data:
            raise MeasurementFailed("the server closed the connection")
        return data


def _connect(address: str) -> socket.socket:
    match = re.fullmatch(r"ws://([^:]+):(\d+)|(?:ws\+)?unix:(.+)", address)
    if match is None:
        raise MeasurementFailed(f"the server listens at {address}")
    if match[3] is not None:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(BOUND)
        connection.connect(match[3])
        return connection
    return socket.create_connection((match[1], int(match[2])), BOUND)
