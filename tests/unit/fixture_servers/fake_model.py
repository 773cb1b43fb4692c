"""A small fake of the Responses API for tests of the fixture servers: an HTTP server in a thread.

It sends one prepared reply per call, in order, and stores the request bodies. It shares no code
with the harness's fake model, so that the fixture servers are tested without the harness.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

Json = dict[str, Any]
Part = Json | int | threading.Event
BOUND = 5.0


def message(*deltas: str, item_id: str = "msg_1", text: str | None = None) -> list[Json]:
    """Return the events of one message; without deltas only the finished item is sent."""
    final = "".join(deltas) if text is None else text
    shell = {"type": "message", "id": item_id, "role": "assistant"}
    done = {**shell, "content": [{"type": "output_text", "text": final}]}
    events: list[Json] = []
    if deltas:
        events.append({"type": "response.output_item.added", "item": {**shell, "content": []}})
    events += [
        {"type": "response.output_text.delta", "item_id": item_id, "delta": delta}
        for delta in deltas
    ]
    return [*events, {"type": "response.output_item.done", "item": done}]


COMPLETED: Json = {"type": "response.completed", "response": {"id": "r", "usage": None}}


@dataclass
class FakeModel:
    """The fake model; each call consumes one of `replies`, which `will` adds."""

    url: str
    replies: Queue[list[Part]] = field(default_factory=Queue[list[Part]])
    calls: list[Json] = field(default_factory=list[Json])
    hung_up: threading.Event = field(default_factory=threading.Event)

    def will(self, *parts: Part | list[Json]) -> None:
        """Queue a reply: an int is an HTTP status, an Event is waited for; its end disconnects."""
        flat: list[Part] = []
        for part in parts:
            if isinstance(part, list):
                flat.extend(part)
            else:
                flat.append(part)
        self.replies.put(flat)


def _handler(model: FakeModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.calls.append({"path": self.path, **body})
            reply = model.replies.get(timeout=BOUND)
            status = reply[0]
            self.send_response(status if isinstance(status, int) else 200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for part in reply:
                self.play(part)

        def play(self, part: Part) -> None:
            if isinstance(part, threading.Event):
                part.wait(BOUND)
            elif isinstance(part, dict):
                try:
                    self.wfile.write(b"data: " + json.dumps(part).encode() + b"\n\n")
                    self.wfile.flush()
                except OSError:
                    model.hung_up.set()

        def log_message(self, format: str, *args: Any) -> None:
            """Write no log into the output of the tests."""

    return Handler


@contextmanager
def fake_model() -> Generator[FakeModel]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    model = FakeModel(f"http://127.0.0.1:{server.server_address[1]}/v1")
    server.RequestHandlerClass = _handler(model)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join(BOUND)
        server.server_close()
