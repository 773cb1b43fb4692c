"""Measurements of a server over pipes, each with a new process and home.

`Effort` sets the number of repetitions, since the real servers are ten times slower.
"""

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psutil

from tools.bench.client import (
    DELTA,
    TURN_COMPLETED,
    Client,
    MeasurementFailed,
    monotonic,
)
from tools.bench.model import DELTAS, STREAM_WORD
from tools.bench.stats import Absent, Cell, Figure, median
from tools.bench.targets import Target

Json = dict[str, Any]
Cells = dict[str, Cell]

THREADS_AT_ONCE = 20
TURNS_PER_THREAD = 10
"""Maximum turns of a timed thread: a trivial turn is one with almost no history."""
METHOD_NOT_FOUND = -32601
LIST_SIZE = 25
START_KEYS = ("first-answer", "first-turn", "start-cpu")


@dataclass(frozen=True, slots=True)
class Effort:
    """The number of repetitions of each measurement."""

    starts: int
    turns: int
    rounds: int
    streams: int
    loaded_threads: int
    lists: int


FULL = Effort(starts=11, turns=300, rounds=15, streams=7, loaded_threads=400, lists=50)
SLOW = Effort(starts=7, turns=60, rounds=3, streams=5, loaded_threads=50, lists=20)


def all_of(
    target: Target, model_url: str, effort: Effort, keys_wanted: Sequence[str] | None = None
) -> Cells:
    """Return the cells of all measurements, or of those with any of `keys_wanted`.

    The cells of a failed measurement hold its reason. Sets `target.opted_out`.
    """
    cells: Cells = {}
    _learn_what_to_opt_out_of(target, model_url)
    for keys, measurement in _MEASUREMENTS:
        if keys_wanted is not None and not set(keys) & set(keys_wanted):
            continue
        try:
            cells.update(measurement(target, model_url, effort))
        except MeasurementFailed as error:
            cells.update(dict.fromkeys(keys, Absent(f"failed: {error}")))
    return cells


@contextmanager
def _greeted_client(target: Target, model_url: str) -> Generator[tuple[Client, Json]]:
    """Yield a client after the handshake, and the params of thread/start for its workspace."""
    with target.start(model_url) as (client, work):
        client.request("initialize", target.greeting())
        client.notify("initialized")
        yield client, {**target.profile.thread, "cwd": str(work)}


def _learn_what_to_opt_out_of(target: Target, model_url: str) -> None:
    """Run one turn, which also warms the disk cache, to opt out of legacy notifications."""
    try:
        with _greeted_client(target, model_url) as (client, params):
            thread_id = _thread(client, params)
            client.send("turn/start", _turn(thread_id))
            output = client.read_until(TURN_COMPLETED).splitlines()
    except MeasurementFailed:
        return
    methods = {json.loads(line).get("method", "") for line in output}
    target.opted_out = sorted(method for method in methods if method.startswith("codex/event/"))


def start(target: Target, model_url: str, effort: Effort) -> Cells:
    """Measure from the spawn to the answer to initialize, and to the end of the first turn.

    Each request directly follows the previous answer, so work that a server defers until after
    an answer counts too.
    """
    answers: list[float] = []
    turns: list[float] = []
    cpu: list[float] = []
    for _ in range(effort.starts):
        with target.start(model_url) as (client, work):
            client.request("initialize", target.greeting())
            answers.append(monotonic() - client.spawned)
            client.notify("initialized")
            thread_id = _thread(client, {**target.profile.thread, "cwd": str(work)})
            client.send("turn/start", _turn(thread_id))
            client.read_until(TURN_COMPLETED)
            turns.append(monotonic() - client.spawned)
            cpu.append(_cpu(psutil.Process(client.pid)))
    return {
        "first-answer": median(answers, scale=1000),
        "first-turn": median(turns, scale=1000),
        "start-cpu": median(cpu, scale=1000),
    }


def trivial_turns(target: Target, model_url: str, effort: Effort) -> Cells:
    """Measure single turns from turn/start to turn/completed, and the server's CPU per turn."""
    with _greeted_client(target, model_url) as (client, params):
        _run_turns(client, [_thread(client, params)], TURNS_PER_THREAD)
        threads = [_thread(client, params) for _ in range(effort.turns // TURNS_PER_THREAD)]
        server = psutil.Process(client.pid)
        before = _cpu(server)
        seconds = [
            _timed_turn(client, thread) for thread in threads for _ in range(TURNS_PER_THREAD)
        ]
        cpu = (_cpu(server) - before) / len(seconds)
    return {
        "turn-p50": median(seconds, scale=1000),
        "turn-cpu": Figure(cpu * 1000),
    }


def turn_rate(target: Target, model_url: str, effort: Effort) -> Cells:
    """Measure turns per second of 20 threads side by side, each with one turn at a time."""
    rates: list[float] = []
    with _greeted_client(target, model_url) as (client, params):
        for sample in range(4):
            threads = [_thread(client, params) for _ in range(THREADS_AT_ONCE)]
            rounds = effort.rounds if sample else 1
            began = monotonic()
            _run_turns(client, threads, rounds)
            if sample:
                rates.append(len(threads) * rounds / (monotonic() - began))
    return {"turns": median(rates)}


def delta_stream(target: Target, model_url: str, effort: Effort) -> Cells:
    """Measure the notifications per second of a turn of 5,000 deltas."""
    rates: list[float] = []
    with _greeted_client(target, model_url) as (client, params):
        for sample in range(effort.streams + 1):
            thread_id = _thread(client, params)
            began = monotonic()
            client.send("turn/start", _turn(thread_id, STREAM_WORD))
            output = client.read_until(TURN_COMPLETED)
            took = monotonic() - began
            if output.count(DELTA) != DELTAS:
                raise MeasurementFailed(f"{output.count(DELTA)} deltas came instead of {DELTAS}")
            if sample:
                rates.append(output.count(b"\n") / took)
    return {"deltas": median(rates)}


def memory(target: Target, model_url: str, effort: Effort) -> Cells:
    """Measure memory after one turn, and its growth per further idle loaded thread."""
    with _greeted_client(target, model_url) as (client, params):
        first = _thread(client, params)
        _run_turns(client, [first], 1)
        _barrier(client, first)
        server = psutil.Process(client.pid)
        idle, kind = _memory(server)
        for _ in range(effort.loaded_threads):
            _thread(client, params)
        _barrier(client, first)
        loaded_bytes, _ = _memory(server)
    return {
        "idle": Figure(idle / 2**20, note=kind),
        "per-thread": Figure((loaded_bytes - idle) / effort.loaded_threads / 2**10),
    }


def thread_list(target: Target, model_url: str, effort: Effort) -> Cells:
    """Measure thread/list among the few threads of this measurement; no cell if unsupported."""
    with _greeted_client(target, model_url) as (client, params):
        threads = [_thread(client, params) for _ in range(LIST_SIZE)]
        answer = client.answer(client.send("thread/list", {"limit": LIST_SIZE}))
        if "error" in answer:
            if answer["error"].get("code") == METHOD_NOT_FOUND:
                return {}
            raise MeasurementFailed(f"thread/list was refused: {answer['error']}")
        _run_turns(client, threads, 1)
        seconds: list[float] = []
        for _ in range(effort.lists):
            began = monotonic()
            client.request("thread/list", {"limit": LIST_SIZE})
            seconds.append(monotonic() - began)
    figure = median(seconds, scale=1000, note=f"among {LIST_SIZE}")
    return {"thread-list": replace(figure, comparable=False)}


_Measurement = Callable[[Target, str, Effort], Cells]
_MEASUREMENTS: tuple[tuple[tuple[str, ...], _Measurement], ...] = (
    (START_KEYS, start),
    (("turn-p50", "turn-cpu"), trivial_turns),
    (("turns",), turn_rate),
    (("deltas",), delta_stream),
    (("thread-list",), thread_list),
    (("idle", "per-thread"), memory),
)
KEYS = tuple(keys for keys, _ in _MEASUREMENTS)
"""The keys of the cells that each measurement returns."""


def _thread(client: Client, params: Json) -> str:
    return client.request("thread/start", params)["thread"]["id"]


def _turn(thread_id: str, words: str = "go") -> Json:
    return {"threadId": thread_id, "input": [{"type": "text", "text": words}]}


def _timed_turn(client: Client, thread_id: str) -> float:
    began = monotonic()
    client.send("turn/start", _turn(thread_id))
    client.read_until(TURN_COMPLETED)
    return monotonic() - began


def _run_turns(client: Client, threads: Iterable[str], rounds: int) -> None:
    """Run `rounds` turns in each thread, all threads at once; each must end as completed."""
    remaining = dict.fromkeys(threads, rounds)
    for thread_id in remaining:
        client.send("turn/start", _turn(thread_id))
    for line in client.lines():
        if TURN_COMPLETED not in line:
            continue
        params = json.loads(line)["params"]
        if params["turn"]["status"] != "completed":
            raise MeasurementFailed(f"a turn ended as {params['turn']}")
        thread_id = params["threadId"]
        remaining[thread_id] -= 1
        if remaining[thread_id]:
            client.send("turn/start", _turn(thread_id))
        elif not any(remaining.values()):
            return


def _barrier(client: Client, thread_id: str) -> None:
    """Wait for the answer to a request, so that all earlier ones are handled."""
    client.answer(client.send("thread/read", {"threadId": thread_id}))


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _memory(process: psutil.Process) -> tuple[int, str]:
    """Return the bytes used, and "PSS" (with its share of shared pages) or else "RSS"."""
    full = process.memory_full_info()
    pss = getattr(full, "pss", 0)
    return (pss, "PSS") if pss else (full.rss, "RSS")
