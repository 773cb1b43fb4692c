"""Bounds that count silence about turns, not the whole time."""

import json

import anyio
import pytest

from harness.scenario.patience import MAX_BOUNDS_PER_WAIT, Patience
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder

BOUND = 100.0


def tell(recorder: Recorder, method: str, params: dict[str, object]) -> None:
    raw = json.dumps({"method": method, "params": params}).encode()
    recorder.record(raw, Direction.FROM_TARGET)


@pytest.mark.parametrize(
    ("method", "params", "counts"),
    [
        ("item/agentMessage/delta", {"threadId": "t", "turnId": "u", "delta": "x"}, True),
        ("turn/started", {"threadId": "t", "turn": {"id": "u"}}, True),
        ("thread/status/changed", {"threadId": "t", "status": {"type": "active"}}, False),
        ("heartbeat", {}, False),
    ],
)
async def test_only_what_tells_of_a_turn_begins_the_bound_anew(
    method: str, params: dict[str, object], counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, now, extended = Recorder(), anyio.current_time(), list[bool]()
    patience = Patience(recorder, BOUND, on_extended=lambda: extended.append(True))
    with patience.wait():
        monkeypatch.setattr(anyio, "current_time", lambda: now + 60)
        tell(recorder, method, params)
        assert (patience.deadline > now + 150) is counts
        tell(recorder, method, params)
    assert extended == [True] * counts
    assert patience.seconds == BOUND


async def test_server_that_tells_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, begun = Recorder(), anyio.current_time()
    patience = Patience(recorder, BOUND)
    with patience.wait():
        for number in range(20):
            monkeypatch.setattr(anyio, "current_time", lambda at=number: begun + 50 * at)
            tell(recorder, "turn/started", {"turn": {"id": "u"}})
    assert patience.seconds == MAX_BOUNDS_PER_WAIT * BOUND


async def test_step_takes_as_long_as_its_scenario_while_pieces_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder, begun = Recorder(), anyio.current_time()
    patience = Patience(recorder, BOUND, longest=100 * BOUND)
    with patience.wait():
        for number in range(180):
            monkeypatch.setattr(anyio, "current_time", lambda at=number: begun + 50 * at)
            tell(recorder, "item/agentMessage/delta", {"turnId": "u", "delta": "x"})
        assert patience.deadline > begun + 50 * 180
    assert patience.seconds == BOUND


async def test_silence_ends_the_wait() -> None:
    patience = Patience(Recorder(), 0.01)
    is_over = False
    with patience.wait():
        await anyio.Event().wait()
        is_over = True
    assert not is_over
    assert patience.seconds == 0.01


async def test_nothing_is_heard_after_the_wait() -> None:
    recorder = Recorder()
    with Patience(recorder, BOUND).wait():
        pass
    assert recorder.listeners == []
