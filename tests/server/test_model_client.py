"""The model client: one contract, in process and over a real socket."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
import respx
from model_side import (
    CREATED,
    CUT,
    USAGE,
    ModelSide,
    Refused,
    Reply,
    calls,
    completed,
    delta,
    event,
    http_error,
    opened,
    over_a_socket,
    says,
)

from reference_server.config.model import Provider
from reference_server.model.client import ModelClient
from reference_server.model.errors import ModelError
from reference_server.model.events import Completed, ModelEvent, OutputItemDone, TextDelta

BODY: dict[str, Any] = {"model": "m", "input": [], "stream": True}
Open = Callable[..., Any]


class Caller:
    """A model client with the model's side it calls."""

    def __init__(self, client: ModelClient, provider: Provider) -> None:
        self.client = client
        self.provider = provider
        self.events: list[ModelEvent] = []

    async def receive(self, events: list[ModelEvent]) -> None:
        self.events += events

    async def call(self) -> list[ModelEvent]:
        self.events = []
        with anyio.fail_after(5):
            await self.client.call(self.provider, BODY, self.receive)
        return self.events

    async def failure(self) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.call()
        return caught.value

    def text(self) -> str:
        return "".join(e.delta for e in self.events if isinstance(e, TextDelta))


@pytest.fixture(params=["in-process", pytest.param("socket", marks=pytest.mark.socket)])
def caller(request) -> Open:
    """Open a caller of a model's side with these replies."""

    @asynccontextmanager
    async def in_process(side: ModelSide, **fields: Any) -> AsyncGenerator[Caller]:
        provider = Provider("p", base_url="http://model.invalid/v1", **fields)
        async with anyio.create_task_group() as tasks:
            client = ModelClient(tasks, side.transport)
            yield Caller(client, provider)
            await client.close()

    @asynccontextmanager
    async def socket(side: ModelSide, **fields: Any) -> AsyncGenerator[Caller]:
        async with over_a_socket(side) as url, anyio.create_task_group() as tasks:
            client = ModelClient(tasks)
            yield Caller(client, Provider("p", base_url=url, **fields))
            await client.close()

    return in_process if request.param == "in-process" else socket


class TestEveryModel:
    async def test_events_come_in_order_and_end_with_completed(self, caller: Open) -> None:
        async with caller(ModelSide([says("a", "b", usage=USAGE)])) as model:
            events = await model.call()
        assert [type(e).__name__ for e in events] == [
            "OutputItemAdded",
            "TextDelta",
            "TextDelta",
            "OutputItemDone",
            "Completed",
        ]
        assert events[-1] == Completed(USAGE)

    async def test_one_call_after_the_other_works(self, caller: Open) -> None:
        side = ModelSide([says("a"), says("b"), says("c")])
        async with caller(side) as model:
            texts: list[str] = []
            for _ in range(3):
                await model.call()
                texts.append(model.text())
        assert texts == ["a", "b", "c"]

    async def test_calls_side_by_side_do_not_mix(self, caller: Open) -> None:
        gate = anyio.Event()
        held = Reply([CREATED, opened(), delta("x"), gate, delta("y"), completed()])
        async with caller(ModelSide([held, says("z")])) as first:
            second = Caller(first.client, first.provider)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(first.call)
                await wait_for(lambda: first.text() == "x")
                await second.call()
                gate.set()
            assert (first.text(), second.text()) == ("xy", "z")

    async def test_events_are_handed_over_as_they_come(self, caller: Open) -> None:
        gate = anyio.Event()
        side = ModelSide([Reply([CREATED, opened(), delta("early"), gate, completed()])])
        async with caller(side) as model, anyio.create_task_group() as tasks:
            tasks.start_soon(model.call)
            await wait_for(lambda: model.text() == "early")
            gate.set()

    async def test_a_call_is_over_at_completed_even_if_the_stream_goes_on(
        self, caller: Open
    ) -> None:
        never = anyio.Event()
        async with caller(ModelSide([Reply([CREATED, completed(), never])])) as model:
            assert isinstance((await model.call())[-1], Completed)
            never.set()

    @pytest.mark.parametrize("tail", [(), (CUT,)], ids=["end", "cut"])
    async def test_a_stream_without_completed_is_a_disconnect(
        self, caller: Open, tail: tuple[Any, ...]
    ) -> None:
        side = ModelSide([Reply([CREATED, opened(), delta("part"), *tail])])
        async with caller(side) as model:
            error = await model.failure()
            assert model.text() == "part"
        assert (error.info, error.phase) == ("ResponseStreamDisconnected", "stream")
        assert error.retryable

    async def test_silence_is_a_disconnect(self, caller: Open) -> None:
        never = anyio.Event()
        side = ModelSide([Reply([CREATED, never])])
        async with caller(side, stream_idle_timeout_ms=30) as model:
            error = await model.failure()
            never.set()
        assert error.info == "ResponseStreamDisconnected"
        assert "0.03 s" in error.details

    async def test_time_spent_on_the_events_is_not_silence(self, caller: Open) -> None:
        gate = anyio.Event()

        async def slow(events: list[ModelEvent]) -> None:
            with anyio.move_on_after(0.1):
                await gate.wait()
            gate.set()

        side = ModelSide([says("a")])
        async with caller(side, stream_idle_timeout_ms=50) as model:
            with anyio.fail_after(5):
                await model.client.call(model.provider, BODY, slow)
        assert len(side.bodies) == 1

    async def test_an_error_status_carries_the_providers_words(self, caller: Open) -> None:
        async with caller(ModelSide([http_error(400, "odd")])) as model:
            error = await model.failure()
        assert (error.info, error.phase) == ("BadRequest", "request")
        assert "words of the provider" in error.details

    async def test_retry_after_is_read(self, caller: Open) -> None:
        async with caller(ModelSide([http_error(503, retry_after="3")])) as model:
            assert (await model.failure()).retry_after == 3

    async def test_a_refused_connection_is_named(self, caller: Open) -> None:
        async with caller(ModelSide([Refused(), says("back")])) as model:
            assert (await model.failure()).info == "HttpConnectionFailed"
            await model.call()
            assert model.text() == "back"

    async def test_a_reported_failure_ends_the_call(self, caller: Open) -> None:
        failed = event(
            "response.failed",
            response={"error": {"code": "context_length_exceeded", "message": "too long"}},
        )
        async with caller(ModelSide([Reply([CREATED, failed])])) as model:
            error = await model.failure()
        assert (error.info, error.details) == ("ContextWindowExceeded", "too long")

    async def test_an_incomplete_response_is_a_failure(self, caller: Open) -> None:
        cut = event(
            "response.incomplete",
            response={"incomplete_details": {"reason": "max_output_tokens"}},
        )
        async with caller(ModelSide([Reply([CREATED, cut])])) as model:
            error = await model.failure()
        assert (error.details, error.retryable) == ("max_output_tokens", False)

    async def test_an_event_that_is_not_json_is_a_disconnect(self, caller: Open) -> None:
        async with caller(ModelSide([Reply([CREATED, b"data: {oops\n\n"])])) as model:
            assert (await model.failure()).info == "ResponseStreamDisconnected"

    async def test_unknown_events_are_passed_over(self, caller: Open) -> None:
        odd = event("response.sparkles", output_index=0)
        async with caller(ModelSide([Reply([odd, CREATED, completed()])])) as model:
            assert [type(e).__name__ for e in await model.call()] == ["Completed"]

    async def test_text_without_a_utf8_form_is_replaced(self, caller: Open) -> None:
        lone = b'data: {"type":"response.output_text.delta","delta":"a\\ud800b"}\n\n'
        async with caller(ModelSide([Reply([lone, completed()])])) as model:
            await model.call()
            assert model.text() == "a?b"

    async def test_cancelling_a_call_drops_the_stream(self, caller: Open) -> None:
        never = anyio.Event()
        side = ModelSide([Reply([CREATED, opened(), delta("x"), never])])
        async with caller(side) as model, anyio.create_task_group() as tasks:
            scope = anyio.CancelScope()

            async def cancelled() -> None:
                with scope:
                    await model.call()

            tasks.start_soon(cancelled)
            await wait_for(lambda: model.text() == "x")
            scope.cancel()
            with anyio.fail_after(5):
                await side.dropped.wait()
            never.set()

    async def test_function_calls_are_handed_over_whole(self, caller: Open) -> None:
        async with caller(ModelSide([calls("tool")])) as model:
            events = await model.call()
        [item] = [e.item for e in events if isinstance(e, OutputItemDone)]
        assert (item["name"], item["call_id"]) == ("tool", "call_1")

    async def test_the_request_goes_where_the_provider_says(self, caller: Open) -> None:
        side = ModelSide([says("a")])
        async with caller(side, api_key="secret") as model:
            await model.call()
        assert side.paths == ["/v1/responses"]
        assert side.bodies == [BODY]
        assert side.headers[0]["authorization"] == "Bearer secret"
        assert side.headers[0]["accept"] == "text/event-stream"
        assert side.headers[0]["accept-encoding"] == "identity"


async def wait_for(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(5):
        while not condition():
            await anyio.lowlevel.checkpoint()


@pytest.mark.socket
async def test_a_connection_is_used_again_by_the_next_call() -> None:
    side = ModelSide([says("a"), says("b")])
    async with over_a_socket(side) as url, anyio.create_task_group() as tasks:
        client = ModelClient(tasks)
        model = Caller(client, Provider("p", base_url=url))
        await model.call()
        await wait_for(lambda: client.idle_connections(url) == 1)
        await model.call()
        await wait_for(lambda: client.idle_connections(url) == 1)
        await client.close()
        assert client.idle_connections(url) == 0


async def test_without_a_key_no_authorization_is_sent(respx_mock: respx.MockRouter) -> None:
    route = respx_mock.post("http://model.invalid/v1/responses").mock(
        return_value=httpx.Response(200, content=CREATED + completed())
    )
    async with anyio.create_task_group() as tasks:
        client = ModelClient(tasks, httpx.AsyncHTTPTransport)
        provider = Provider("p", base_url="http://model.invalid/v1/")
        await Caller(client, provider).call()
        await client.close()
    assert route.call_count == 1
    assert "authorization" not in route.calls.last.request.headers


@pytest.mark.parametrize(
    ("cause", "info"),
    [
        (httpx.ConnectTimeout("slow"), "HttpConnectionFailed"),
        (httpx.RemoteProtocolError("no answer"), "HttpConnectionFailed"),
        (httpx.UnsupportedProtocol("ftp"), "HttpConnectionFailed"),
    ],
)
async def test_causes_before_the_answer_are_connection_failures(
    respx_mock: respx.MockRouter, cause: Exception, info: str
) -> None:
    respx_mock.post("http://model.invalid/v1/responses").mock(side_effect=cause)
    async with anyio.create_task_group() as tasks:
        client = ModelClient(tasks, httpx.AsyncHTTPTransport)
        error = await Caller(client, Provider("p", base_url="http://model.invalid/v1")).failure()
        await client.close()
        assert error.info == info
        assert error.retryable is not isinstance(cause, httpx.UnsupportedProtocol)


async def test_no_address_is_said_without_a_call() -> None:
    async with anyio.create_task_group() as tasks:
        error = await Caller(ModelClient(tasks), Provider("mine")).failure()
        assert "[model_providers.mine]" in error.details
