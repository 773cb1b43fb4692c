"""The harness's own time: a run without the server's time and the silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.ending import QUIET_SECONDS
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import Trace
from tools.bench.overhead import figure_of, overhead, server_time
from tools.bench.stats import Figure

Message = dict[str, Any]


def trace_of(*frames: tuple[float, Message]) -> Trace:
    """A trace of messages at these seconds; what has params and an id is ours."""
    now = 0.0
    recorder = Recorder(clock=lambda: now)
    for at, message in frames:
        now = at
        ours = "method" in message and "id" in message
        direction = Direction.TO_TARGET if ours else Direction.FROM_TARGET
        recorder.record(json.dumps(message).encode(), direction)
    return recorder.trace


def ask(number: int, method: str) -> Message:
    return {"id": number, "method": method, "params": {}}


def answer(number: int) -> Message:
    return {"id": number, "result": {}}


ENDED: Message = {"method": "turn/completed", "params": {"turn": {"id": "u"}}}


def test_wait_for_an_answer_is_the_servers_and_the_time_between_is_ours() -> None:
    trace = trace_of(
        (1.0, ask(1, "thread/start")),
        (1.5, answer(1)),
        (3.0, ask(2, "thread/read")),
        (3.25, answer(2)),
    )
    assert server_time(trace) == pytest.approx(0.75)


def test_turn_counts_to_its_end_and_what_overlaps_once() -> None:
    trace = trace_of(
        (1.0, ask(1, "turn/start")),
        (1.5, answer(1)),
        (1.75, ask(2, "thread/read")),
        (2.0, answer(2)),
        (3.0, ENDED),
        (4.0, ask(3, "thread/read")),
        (4.5, answer(3)),
    )
    assert server_time(trace) == pytest.approx(2.5)


def test_start_of_the_server_is_its_own_time() -> None:
    assert server_time(trace_of((0.9, ask(1, "initialize")), (1.25, answer(1)))) == 1.25


def test_overhead_is_what_is_left_for_each_scenario() -> None:
    trace = trace_of((0.0, ask(1, "thread/start")), (0.5, answer(1)))
    figure = figure_of(2 * (0.5 + QUIET_SECONDS + 0.01), 0.03, [trace, trace])
    assert figure.value == pytest.approx(10)
    assert figure.note == (
        "2 scenarios in 1.1 s, 1.0 s of it the server's; CPU 15.0 ms each with the server's"
    )


@pytest.mark.slow
@pytest.mark.socket
def test_generated_scenarios_are_played_and_their_traces_found(tmp_path: Path) -> None:
    cell = overhead(tmp_path, count=1)["overhead"]
    assert isinstance(cell, Figure)
    assert cell.note.startswith("1 scenarios in ")
