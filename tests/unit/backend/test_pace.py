"""The waits of a paced stream, by a clock of the test."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from harness.model.model import ScriptedModel
from harness.model.script import ModelStep
from harness.model.wire.registry import wire_of
from harness.model.wire.responses import ResponsesEncoder

pytestmark = pytest.mark.anyio
SCRIPT = TypeAdapter(list[ModelStep])
SHELL = {"type": "function", "name": "shell_command"}


class Clock:
    """A clock that only the waits move; `heard` are the chunks with the time of each."""

    def __init__(self) -> None:
        self.now = 0.0
        self.heard: list[tuple[float, bytes]] = []

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def waits(*steps: dict[str, Any], path: str = "/responses") -> list[list[float]]:
    """Return the waits before the chunks of each step's answer, those without one left out."""
    model, clock = ScriptedModel(SCRIPT.validate_python(steps), ResponsesEncoder()), Clock()
    model.sleep = clock.sleep
    found: list[list[float]] = []
    wire = wire_of(path)
    assert wire is not None
    tools = [SHELL] if path == "/responses" else [{"type": "function", "function": SHELL}]
    for _ in steps:
        body = {"input": "hi", "messages": [], "tools": tools, "stream": True}
        chunks, before = model.answer(json.dumps(body).encode(), wire).chunks, clock.now
        assert chunks is not None
        found.append([])
        async for _chunk in chunks:
            if clock.now > before:
                found[-1].append(round(clock.now - before, 6))
            before = clock.now
    return found


def message(*deltas: str, **step: Any) -> dict[str, Any]:
    return {"reply": [{"message": {"deltas": list(deltas)}}], **step}


async def test_each_piece_waits_for_its_tokens_from_the_step_on() -> None:
    pace = {"tokens_per_second": 50}
    faster = {"tokens_per_second": 100}
    assert await waits(
        message("before"),
        message("eight ch", "a", pace=pace),
        message("x" * 40),
        message("x" * 40, pace=faster),
    ) == [[], [0.04, 0.02], [0.2], [0.1]]


async def test_reasoning_and_arguments_wait_too() -> None:
    reply = [{"reasoning": {"raw": ["x" * 40]}}, {"run": "x" * 180}]
    step = {"reply": reply, "pace": {"tokens_per_second": 10}}
    (whole,) = await waits(step)
    assert whole[0] == 1.0
    # 15 characters around the command make 195: 65 for each of three events.
    assert whole[1:] == [1.625] * 3
    (pieces,) = await waits(step, path="/chat/completions")
    assert pieces[0] == 1.0
    assert len(pieces) > 8
    assert sum(pieces[1:]) == pytest.approx(195 / 4 / 10, rel=0.1)


async def test_jitter_is_drawn_from_the_seed_within_its_part() -> None:
    pace = {"tokens_per_second": 100, "jitter": 0.5}
    texts = ["x" * 40] * 20
    (first,), (again,) = (
        await waits(message(*texts, pace=pace)),
        await waits(message(*texts, pace=pace)),
    )
    (other,) = await waits(message(*texts, pace={**pace, "seed": 2}))
    assert first == again != other
    assert len(set(first)) > 10
    assert all(0.05 <= wait <= 0.15 for wait in first)
    assert min(first) < 0.08 < 0.12 < max(first)


async def test_an_answer_waits_thirty_seconds_at_most() -> None:
    slow = message("a", pace={"tokens_per_second": 1})
    _, whole = await waits(slow, message(*["x" * 40] * 5))
    assert whole == [10.0, 10.0, 10.0]


async def test_a_script_without_pace_never_waits() -> None:
    assert await waits(message("a", "b")) == [[]]
