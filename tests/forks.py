"""Parts of a process that has imported a program and forks for each request (tests/warm*.py).

A request is a line of JSON, sent over a socket with descriptors for the fork. `begin` turns a fork
into what a started process would be.
"""

import atexit
import io
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from pydantic import BaseModel

OURS = ("harness.", "reference_server.")
"""First parts of the names of modules with our models."""
MAX_DESCRIPTORS = 64
"""Maximum number of descriptors that come with a request."""


def receive(requests: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return a request and the descriptors that came with it; None if there are no more."""
    received, descriptors, _, _ = socket.recv_fds(requests, 1 << 16, MAX_DESCRIPTORS)
    if not received:
        return None
    while not received.endswith(b"\n"):
        received += requests.recv(1 << 16)
    return json.loads(received), descriptors


def send(requests: socket.socket, request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Send a request with these descriptors."""
    line = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(requests, [line], descriptors) if descriptors else 0
    requests.sendall(line[sent:])


def close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def build_models(base: type[BaseModel] = BaseModel) -> None:
    """Build the validators of all our models, which a process builds when it first needs them."""
    for model in base.__subclasses__():
        if model.__module__.startswith(OURS) and not model.__pydantic_complete__:
            model.model_rebuild()
        build_models(model)


def begin(words: Sequence[str], env: Mapping[str, str]) -> None:
    """Be as a process that has just been started."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[:] = words
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8")
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=False)
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True
    )


def leave(run: Callable[[], int | None]) -> NoReturn:
    """Run and end as an interpreter does, but free nothing.

    To free all that was imported would copy each page of memory that the fork shares.
    """
    try:
        status = run()
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        status = end.code
    try:
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BrokenPipeError:
        # The interpreter tries again, and says so in its own way.
        sys.exit(status)
    os._exit(status or 0)
