"""The CPU cost of further clients of a thread, and of each transport of a listening server.

Costs are the CPU time of the server's process, since elapsed time would include the benchmark's
own clients on the same cores. Rounds with one client and with two alternate.
"""

import os
import select
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from tools.bench.client import BOUND, TURN_COMPLETED, MeasurementFailed, monotonic
from tools.bench.model import STREAM_WORD
from tools.bench.sockets import SocketClient
from tools.bench.stats import Absent, Cell, Figure
from tools.bench.targets import INITIALIZE, Target

Cells = dict[str, Cell]

KEYS = (
    "second-turn",
    "second-deltas",
    "stuck-deltas",
    "second-turn-ws",
    "second-deltas-ws",
    "stuck-deltas-ws",
    "turn-cpu-unix",
    "turn-cpu-ws",
    "deltas-unix",
    "deltas-ws",
)
ROUNDS = 10
TURNS, STREAMS = 50, 4
"""Turns per round: those of two deltas, and those of 5,000."""
ALONE, SECOND, STUCK = "alone", "with a second", "with one that reads nothing"


def all_of(target: Target, model_url: str) -> Cells:
    """Measure over a Unix socket and over a WebSocket on TCP; a failure's cells hold its reason."""
    cells: Cells = {}
    for kind, ending in (("unix", ""), ("ws", "-ws")):
        keys = [f"second-turn{ending}", f"second-deltas{ending}", f"stuck-deltas{ending}"]
        keys += [f"turn-cpu-{kind}", f"deltas-{kind}"]
        try:
            with _listening_server(target, model_url, kind) as listening:
                turns, _ = listening.rounds("hi", TURNS, (ALONE, SECOND))
                deltas, rates = listening.rounds(STREAM_WORD, STREAMS, (ALONE, SECOND, STUCK))
        except (MeasurementFailed, OSError) as error:
            cells.update(dict.fromkeys(keys, Absent(f"failed: {error}")))
            continue
        cells |= {
            keys[0]: _cost(turns, SECOND),
            keys[1]: _cost(deltas, SECOND),
            keys[2]: _cost(deltas, STUCK),
            keys[3]: Figure(1000 * turns[ALONE] / (ROUNDS * TURNS)),
            keys[4]: Figure(rates[ALONE]),
        }
    return cells


def _cost(cpu: dict[str, float], kind: str) -> Figure:
    return Figure(100 * (cpu[kind] / cpu[ALONE] - 1))


class _ListeningServer:
    """A server that listens on a socket, with one client connected."""

    def __init__(self, pid: int, address: str, work: Path) -> None:
        self._process = psutil.Process(pid)
        self._address = address
        self._work = work
        self._client = self._connect()

    def _connect(self) -> SocketClient:
        client = SocketClient(self._address)
        client.request("initialize", INITIALIZE)
        return client

    def rounds(
        self, text: str, turns: int, kinds: Sequence[str]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Run all rounds; return by kind the total CPU seconds, and the deltas per second."""
        cpu, took = dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 0.0)
        self._round(text, turns, SECOND)
        for _ in range(ROUNDS):
            for kind in kinds:
                seconds, clock = self._round(text, turns, kind)
                cpu[kind] += seconds
                took[kind] += clock
        count = 5000 * turns * ROUNDS if text == STREAM_WORD else 0
        return cpu, {kind: count / took[kind] for kind in kinds}

    def _round(self, text: str, turns: int, kind: str) -> tuple[float, float]:
        client = self._client
        thread = client.request("thread/start", {"cwd": str(self._work)})["thread"]["id"]
        other = None if kind == ALONE else self._connect()
        reading: threading.Thread | None = None
        if other is not None:
            other.request("thread/resume", {"threadId": thread})
            if kind == SECOND:
                reading = other.drain(_Ends(turns))
        before, began = self._cpu(), monotonic()
        for _ in range(turns):
            message: dict[str, Any] = {"type": "text", "text": text}
            client.send("turn/start", {"threadId": thread, "input": [message]})
            client.read_until(TURN_COMPLETED)
        took = monotonic() - began
        if reading is not None:
            reading.join(BOUND)
        seconds = self._cpu() - before
        if other is not None:
            other.close()
        client.request("thread/unsubscribe", {"threadId": thread})
        return seconds, took

    def _cpu(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system


class _Ends:
    """A counter of ended turns: true once `turns` have ended in all bytes it was called with."""

    def __init__(self, turns: int) -> None:
        self._left = turns
        self._tail = b""

    def __call__(self, data: bytes) -> bool:
        text = self._tail + data
        self._left -= text.count(TURN_COMPLETED)
        self._tail = text[1 - len(TURN_COMPLETED) :]
        return self._left <= 0


@contextmanager
def _listening_server(target: Target, model_url: str, kind: str) -> Generator[_ListeningServer]:
    address = {"unix": "unix:s", "ws": "ws://127.0.0.1:0"}[kind]
    command = [*target.profile.command, "--listen", address]
    listening = replace(target, profile=target.profile.model_copy(update={"command": command}))
    descriptor = -1

    def read_what_it_says(home: Path) -> None:
        nonlocal descriptor
        pipe = home.with_name(home.name.removesuffix("-home") + ".stderr")
        os.mkfifo(pipe)
        descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    with listening.start(model_url, read_what_it_says) as (client, work):
        try:
            address_found = _address(descriptor)
            yield _ListeningServer(
                client.pid, address_found.replace("unix:s", f"unix:{work / 's'}"), work
            )
        finally:
            os.close(descriptor)
            # A listening server does not stop at the end of its input.
            os.kill(client.pid, signal.SIGTERM)


def _address(descriptor: int) -> str:
    """Read the server's first line and return its address. Raises MeasurementFailed."""
    text = b""
    while b"\n" not in text:
        readable, _, _ = select.select([descriptor], [], [], BOUND)
        piece = os.read(descriptor, 4096) if readable else b""
        if not piece:
            raise MeasurementFailed(f"the server does not say where it listens: {text!r}")
        text += piece
    return text.decode().partition("listening on ")[2].partition("\n")[0]
