"""A request that its caller breaks off is not recorded as a model call."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from harness.model.model import ScriptedModel
from harness.model.script import ModelStep
from harness.model.server import model_server
from harness.model.wire.responses import ResponsesEncoder

pytestmark = pytest.mark.socket

SCOPE = {"type": "http", "method": "POST", "path": "/v1/responses"}
HALF = {"type": "http.request", "body": b'{"model": "mock-mo', "more_body": True}


async def test_call_whose_body_ends_early_is_none() -> None:
    script = [ModelStep.model_validate({"reply": [{"message": "never said"}]})]
    model = ScriptedModel(script, ResponsesEncoder())
    coming = [HALF, {"type": "http.disconnect"}]
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return coming.pop(0)

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async with model_server() as server:
        server.set_model(model)
        await server(SCOPE, receive, send)
    assert (model.calls, model.unplayed_count, server.strays, sent) == ([], 1, [], [])
