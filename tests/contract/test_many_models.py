"""Many scenarios behind one model server: each call reaches the script whose marker it carries."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest

from harness.model.model import ScriptedModel
from harness.model.script import ModelStep
from harness.model.server import model_server
from harness.model.wire.responses import ResponsesEncoder

pytestmark = [pytest.mark.socket]

COUNT = 20


def scripted(number: int) -> ScriptedModel:
    deltas = [f"{number}: ", {"hold": "together"}, "done"]
    steps: list[dict[str, Any]] = [
        {"reply": [{"message": {"deltas": deltas}}]},
        {"fail": {"status": 503, "times": 2}},
        {"reply": [{"message": f"{number} again"}]},
    ]
    script = [ModelStep.model_validate(step) for step in steps]
    return ScriptedModel(script, ResponsesEncoder(), markers={"t": f"#{number}#"})


def body(number: int) -> dict[str, Any]:
    return {"input": [{"role": "user", "content": f"#{number}# hello"}]}


async def test_twenty_scenarios_at_once_each_get_their_own_script() -> None:
    models = [scripted(number) for number in range(COUNT)]
    said: dict[int, list[str]] = {number: [] for number in range(COUNT)}
    with anyio.fail_after(30):
        async with (
            model_server() as server,
            httpx.AsyncClient(base_url=server.url, timeout=20) as caller,
        ):
            for model in models:
                server.add_model(model)

            async def converse(number: int) -> None:
                for _ in range(4):
                    answer = await caller.post("responses", json=body(number))
                    said[number].append(answer.text if answer.is_success else "failed")

            async with anyio.create_task_group() as tasks:
                for number in range(COUNT):
                    tasks.start_soon(converse, number)
                # All twenty streams are open and held before any of them goes on.
                for model in models:
                    await model.gates.wait_until_reached("together")
                assert [model.open_streams for model in models] == [1] * COUNT
                for model in models:
                    model.gates.open("together")
            stray = await caller.post("responses", json=body(COUNT))
            assert stray.status_code == 503
            assert server.strays == ["a model call of no running scenario"]
            server.remove_model(models[3])
            assert (await caller.post("responses", json=body(3))).status_code == 503
    for number, (first, *failed, last) in said.items():
        assert f'"{number}: done"' in first
        assert failed == ["failed", "failed"]
        assert f'"{number} again"' in last
    assert [model.unplayed_count for model in models] == [0] * COUNT
    assert [problem for model in models for call in model.calls for problem in call.problems] == []
