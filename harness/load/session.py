"""A user's session over a blocking transport: requests, their times, and a recording of them.

A session is used by one thread or greenlet. It plays one operation at a time, so each message that
arrives belongs to that operation or to another client of the server.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import IO, Any

from harness.client.transport.blocking import BlockingTransport
from harness.errors import HarnessError, TargetGone
from harness.protocol.values import obj

MAX_RECORDING_BYTES = 1024 * 1024
"""A longer conversation is judged up to there."""
CLIENT = {"name": "harness-load", "title": "Load of the conformance harness", "version": "1"}


class OperationFailed(HarnessError):
    """Error for an operation without its result; `kind` is `timeout`, `refused` or `gone`."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind


class Session:
    """One connection: `request` and `messages` each wait `bound` seconds at most.

    With a `recording` each message is written to that file in the form of `harness.trace.foreign`,
    before it is parsed. `at_rest` says that nothing was owed when it ended.
    """

    def __init__(
        self, transport: BlockingTransport, bound: float, recording: Path | None = None
    ) -> None:
        self.bound = bound
        self.recording = recording
        self.at_rest = False
        self._transport = transport
        self._began = monotonic()
        self._file: IO[bytes] | None = recording.open("wb") if recording is not None else None
        self._next_id = 0

    def initialize(self, params: Mapping[str, Any]) -> None:
        """Do the handshake; like a play, accept any answer, an error too."""
        request = self.send_request("initialize", {"clientInfo": CLIENT, **params})
        next(one for one in self.messages("initialize") if is_answer(one, request))
        self._send({"method": "initialized"})

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its result. Raises `OperationFailed`."""
        request_id = self.send_request(method, params)
        for message in self.messages(method):
            if is_answer(message, request_id):
                return result_of(method, message)
        raise AssertionError("`messages` ends by an exception alone")

    def send_request(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request and return its id."""
        self._next_id += 1
        self._send({"method": method, "id": self._next_id, "params": params})
        return self._next_id

    def messages(self, purpose: str) -> Iterator[dict[str, Any]]:
        """Yield messages as they arrive; `OperationFailed` if `bound` seconds pass before enough.

        Requests of the server are refused, so that it does not wait for a user.
        """
        end = monotonic() + self.bound
        while (left := end - monotonic()) > 0:
            for message in self._receive(left):
                if "method" in message and "id" in message:
                    error = {"code": -32601, "message": "a user of `harness load` answers nothing"}
                    self._send({"id": message["id"], "error": error})
                yield message
        raise OperationFailed("timeout", f"{purpose} took more than {self.bound:g} s")

    def come_to_rest(self, barrier: str, thread_id: str, silence: float) -> None:
        """Wait until nothing more arrives: the answer to a barrier, then `silence` seconds."""
        self.request(barrier, {"threadId": thread_id})
        end = monotonic() + self.bound
        while monotonic() < end:
            if not self._receive(silence):
                self.at_rest = self._file is not None
                return

    def close(self) -> None:
        """Close the connection and the recording."""
        self._transport.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _send(self, message: Mapping[str, Any]) -> None:
        raw = json.dumps(message, separators=(",", ":")).encode()
        self._record("C>S", raw)
        try:
            self._transport.send(raw)
        except TargetGone as error:
            raise OperationFailed("gone", str(error)) from error

    def _receive(self, seconds: float) -> list[dict[str, Any]]:
        try:
            lines = self._transport.receive(seconds)
        except TargetGone as error:
            raise OperationFailed("gone", str(error)) from error
        messages: list[dict[str, Any]] = []
        for raw in lines:
            self._record("S>C", raw)
            try:
                messages.append(obj(json.loads(raw)))
            except ValueError:
                continue  # The judge reports it.
        return messages

    def _record(self, direction: str, raw: bytes) -> None:
        if self._file is not None:
            head = {"t": monotonic() - self._began, "dir": direction}
            # As it came, whatever its members and their order, if it is JSON at all.
            shown = raw if _is_json(raw) else json.dumps(raw.decode("utf-8", "replace")).encode()
            name = b"msg" if shown is raw else b"raw"
            self._file.write(json.dumps(head)[:-1].encode() + b', "%s": %s}\n' % (name, shown))
            if self._file.tell() > MAX_RECORDING_BYTES:
                self._file.close()
                self._file = None


def is_answer(message: Mapping[str, Any], request_id: int) -> bool:
    """Return whether a message answers a request of ours."""
    return message.get("id") == request_id and "method" not in message


def result_of(method: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of an answer. Raises `OperationFailed` if it is an error."""
    if "error" in answer:
        error = obj(answer["error"])
        raise OperationFailed("refused", f"{method}: {error.get('code')} {error.get('message')}")
    return obj(answer.get("result"))


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except ValueError:
        return False
    return b"\n" not in raw
