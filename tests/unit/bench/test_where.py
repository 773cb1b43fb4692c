"""Profile of the time of a run: phases of a trace, causes of a stack, reasons of starts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.trace.frame import Direction
from harness.trace.marks import EndingBegins, MarkBody, ServerEnded, Settled, Setup, StepBegins
from harness.trace.recorder import Recorder
from harness.trace.trace import Trace
from tools.bench import causes, where
from tools.bench.causes import cause_of
from tools.bench.where import Measurement, Phases, lines_of, phases_of, starts_of

INITIALIZE = {"id": 1, "method": "initialize", "params": {}}


def trace_of(*events: tuple[float, dict[str, Any] | MarkBody]) -> Trace:
    """A trace of marks and messages at these seconds; what has a method is ours."""
    now = 0.0
    recorder = Recorder(clock=lambda: now)
    for at, event in events:
        now = at
        if isinstance(event, MarkBody):
            recorder.mark(event)
        else:
            ours = Direction.TO_TARGET if "method" in event else Direction.FROM_TARGET
            recorder.record(json.dumps(event).encode(), ours)
    return recorder.trace


STARTED = (
    (0.0, Setup(active=True)),
    (0.25, INITIALIZE),
    (0.75, {"id": 1, "result": {}}),
    (1.0, Setup(active=False)),
)


def test_start_of_a_server_is_split_from_its_handshake() -> None:
    phases = phases_of([trace_of(*STARTED)])
    assert phases.seconds == {where.START: 0.25, where.HANDSHAKE: 0.75}


def test_step_lasts_to_the_next_and_the_last_one_to_the_ending() -> None:
    trace = trace_of(
        (1.0, StepBegins("start_thread", 3)),
        (1.5, StepBegins("wait", 4)),
        (3.5, EndingBegins()),
        (3.75, {"id": 2, "result": {}}),
    )
    phases = phases_of([trace])
    assert phases.seconds == {where.STEPS: 2.5, where.ENDING: 0.25, where.SHORT: 0.05}
    assert phases.counts[where.STEPS] == 2
    assert phases.long_steps == {"wait": 1}


def test_silence_after_which_something_is_still_owed_is_counted_apart() -> None:
    settled = Settled(silence=0.5, owed=("turn",))
    phases = phases_of([trace_of((1.0, EndingBegins()), (2.0, settled))])
    assert phases.seconds == {where.ENDING: 0.5, where.SETTLED: 0.5}


def test_reasons_of_starts_are_the_reports_where_it_has_them() -> None:
    ended = (2.0, ServerEnded(killed=True))
    traces = [trace_of(*STARTED, ended), trace_of((0.0, StepBegins("wait", 1)))]
    assert sorted(starts_of({}, traces).values()) == [1, 1]
    told = [{"reason": "own config", "scenario": name} for name in ("a", "b", "c")]
    assert starts_of({"starts": told}, traces) == {"own config": 3}


@pytest.mark.parametrize(
    ("stack", "cause"),
    [
        (
            ["/x/harness/judge/rules/turns/order.py:f", "/x/harness/judge/judge.py:judge"],
            causes.JUDGING,
        ),
        (
            ["/x/harness/scenario/spelling_checks.py:f", "/x/harness/scenario/loader.py:load"],
            "collection",
        ),
        (["/x/harness/scenario/ending.py:run", "/x/asyncio/events.py:_run"], causes.PLAYING),
        (
            [
                "/x/harness/protocol/wire/item.py:<module>",
                "<frozen importlib._bootstrap>:_load",
                "/x/a.py:f",
            ],
            causes.IMPORTS,
        ),
        (["/x/lib/threading.py:wait"], causes.ELSE),
        ([], causes.ELSE),
    ],
)
def test_stack_is_of_the_innermost_cause(stack: list[str], cause: str) -> None:
    assert cause_of(stack) == cause


def test_table_adds_up_to_the_clock_and_to_the_cpu() -> None:
    report = {"scenarios": [{"trace": "t", "seconds": 3.0}, {"trace": "", "seconds": 0.0}]}
    used = {"wall": 5.0, "harness": 2.0, "children": 1.0, "causes": {"judging": 1.5}}
    phases = Phases(seconds={where.STEPS: 2.0})
    phases.starts["first"] = 4
    text = "\n".join(lines_of(Measurement(report, phases, used)))
    rows = {line[2:60].strip(): line[60:].split() for line in text.splitlines() if line[:2] == "  "}
    assert "1 scenarios, one worker, 4 starts" in text
    assert rows[where.STEPS][0] == "2.0"
    assert rows[where.BETWEEN[:58]][0] == "1.0"
    assert rows["judging"] == ["1.5", "75%"]
    assert rows[where.UNSEEN] == ["0.5", "25%"]


@pytest.mark.slow
@pytest.mark.socket
def test_run_is_measured_from_its_report_its_traces_and_its_samples(tmp_path: Any) -> None:
    plain = where.bundled_folder() / "turns" / "plain-turn.scenario.yaml"
    measured = where.measure(tmp_path, [plain])
    assert [one["id"] for one in measured.report["scenarios"]] == ["turns/plain-turn"]
    assert measured.phases.counts[where.HANDSHAKE] == 1
    assert sum(measured.phases.starts.values()) == 1
    assert measured.cpu["causes"][causes.IMPORTS] > 0
    assert measured.cpu["children"] > 0
