"""Failures of the scripted model: over HTTP on loopback and in process the caller sees the same."""

from __future__ import annotations

import socket
from email.utils import parsedate_to_datetime

import httpx
import pytest
import yaml

from harness.model.model import ScriptedModel
from harness.model.script import ModelStep
from harness.model.server import model_server
from harness.model.wire.responses import ResponsesEncoder

from .test_models import (
    SCRIPT,
    Json,
    MakeSide,
    Side,
    ask,
    ask_into,
    body,
    in_process,
    over_http,
    said,
)

pytestmark = [pytest.mark.socket]
both = pytest.mark.parametrize("make", [in_process, over_http])


def script(text: str) -> list[ModelStep]:
    return SCRIPT.validate_python(yaml.safe_load(text))


@both
async def test_an_answer_that_is_no_stream_is_sent_as_it_stands(make: MakeSide) -> None:
    text = "[{fail: {status: 200, body: <html>, content_type: text/html}}]"
    async with make(script(text)) as one:
        response = await one.caller.post("responses", json=body("hi"))
    assert (response.status_code, response.text) == (200, "<html>")
    assert response.headers["content-type"] == "text/html"
    assert one.model.calls[0].outcome_text == "status 200"


@both
async def test_a_heap_has_as_many_bytes_as_the_script_says(make: MakeSide) -> None:
    async with make(script("[{fail: {status: 502, body_bytes: 300000}}]")) as one:
        response = await one.caller.post("responses", json=body("hi"))
    assert len(response.content) == 300_000
    assert response.headers["content-type"] == "application/json"


@both
async def test_a_moment_to_come_back_is_told_by_one_clock(make: MakeSide) -> None:
    async with make(script("[{fail: {status: 503, retry_after: 90, retry_date: true}}]")) as one:
        headers = (await one.caller.post("responses", json=body("hi"))).headers
    until, now = (parsedate_to_datetime(headers[name]) for name in ("retry-after", "date"))
    assert (until - now).total_seconds() == 90


@both
async def test_a_pause_may_be_any_text(make: MakeSide) -> None:
    async with make(script("[{fail: {status: 503, retry_after: after lunch}}]")) as one:
        headers = (await one.caller.post("responses", json=body("hi"))).headers
    assert headers["retry-after"] == "after lunch"


@both
async def test_a_cut_after_the_end_of_an_answer_leaves_it_complete(make: MakeSide) -> None:
    text = "[{reply: [{message: whole}, {disconnect: {after: response.completed}}]}]"
    async with make(script(text)) as one:
        events: list[Json] = []
        with pytest.raises(httpx.RemoteProtocolError):
            await ask_into(events, one, "hi")
    assert events[-1]["type"] == "response.completed"
    assert one.model.calls[0].outcome_text == "completed"


async def test_a_model_that_does_not_listen_refuses_and_comes_back_to_its_address() -> None:
    model = ScriptedModel(script("[{reply: [{message: back}]}]"), ResponsesEncoder())
    async with model_server() as server, httpx.AsyncClient(base_url=server.url) as caller:
        server.set_model(model)
        for _ in range(2):
            await server.listen(listening=False)
            with pytest.raises(httpx.ConnectError):
                await caller.post("responses", json=body("hi"))
            with pytest.raises(OSError, match="in use"), socket.socket() as other:
                other.bind(("127.0.0.1", httpx.URL(server.url).port))
        await server.listen(listening=True)
        assert said(await ask(Side(caller, model), "hi")) == "back"


@both
async def test_a_failure_that_is_cut_off_has_been_told(make: MakeSide) -> None:
    text = "[{fail: {code: insufficient_quota, message: gone, disconnect: true}}]"
    async with make(script(text)) as one:
        events: list[Json] = []
        with pytest.raises(httpx.RemoteProtocolError):
            await ask_into(events, one, "hi")
    assert events[-1]["type"] == "response.failed"
    assert one.model.calls[0].outcome_text == "failed insufficient_quota"
