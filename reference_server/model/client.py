"""Calls of a model: a request is sent, and events are received.

The engine retries, since clients are notified of each retry. `direct` and `through_httpx` connect
to the model.
"""

import contextlib
import json
import math
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes, urlsplit

import anyio
from anyio.abc import TaskGroup

from reference_server import VERSION
from reference_server.brief import brief
from reference_server.config.model import Provider
from reference_server.model.answer import Answer, ModelConnection, TransportError
from reference_server.model.encoding import Undecodable, decode, is_plain, is_readable
from reference_server.model.errors import (
    ModelError,
    ReadFailure,
    bad_key,
    cannot_connect,
    connection_failed,
    describe,
    http_failed,
    no_address,
    not_a_stream,
    stream_broken,
    unreadable_encoding,
)
from reference_server.model.events import Answering, Completed, ModelEvent, read_event
from reference_server.model.limits import AnswerLimits
from reference_server.model.pool import BadSetting, ConnectionPool
from reference_server.model.secrets import Secrets
from reference_server.model.sse import EventTooLong, SseParser

if TYPE_CHECKING:
    from reference_server.model.pool import MakeTransport

Receive = Callable[[list[ModelEvent]], Awaitable[None]]

BEGINNING_BYTES = 1 << 10
"""Bytes kept from the beginning of an answer, for the error if it has no events."""
DRAIN_TIME = 1.0
"""Seconds to wait for the end of a stream after its last event before it is closed."""
ERROR_BODY_LIMIT = 1 << 16
"""Maximum bytes read of an error's body."""
ERROR_BODY_TIME = 2.0
"""Seconds to wait for an error's body; its status is enough."""
ANSWERING_MODEL = "openai-model"
"""Response header with the name of the model that answers."""


class ModelClient:
    """Client of all models; a server has one, so that all threads share its connections."""

    def __init__(
        self,
        tasks: TaskGroup,
        transport: "MakeTransport | None" = None,
        read_failure: ReadFailure | None = None,
    ) -> None:
        self._tasks = tasks
        self._read_failure = read_failure
        self._connections = ConnectionPool(transport)
        self._clock = anyio.current_time

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()

    def idle_connections(self, address: str) -> int:
        """Return the number of connections to an address that the next call could use."""
        return self._connections.idle(address)

    async def call(self, provider: Provider, body: dict[str, Any], receive: Receive) -> None:
        """Make one call and pass its events to `receive`, in order, until the answer is complete.

        Raises ModelError, without secrets. Cancelling the call closes the stream at once.
        """
        try:
            await self._call(provider, body, receive)
        except ModelError as failure:
            if self._read_failure is not None:
                failure = self._read_failure(failure)
            raise failure.for_clients(Secrets.of(provider)) from None
        except Exception as error:
            text = describe(error)
            if (clean := Secrets.of(provider).redact(text)) != text:
                raise RuntimeError(clean) from None
            raise

    async def _call(self, provider: Provider, body: dict[str, Any], receive: Receive) -> None:
        idle = provider.stream_idle_timeout_ms / 1000
        address = provider.base_url
        if provider.mistake:
            raise cannot_connect(provider.mistake)
        if not address:
            raise no_address(provider.id)
        if (key := provider.api_key) and not (key.isascii() and key.isprintable()):
            raise bad_key(provider.id)
        connection = self._connection(address)
        draining = False
        try:
            with anyio.CancelScope(deadline=self._clock() + idle) as limit:
                answer = await _send(connection, provider, body, self._connections.route)
                chunks = answer.chunks()
                try:
                    if answering := answer.headers.get(ANSWERING_MODEL):
                        await receive([Answering(_clean(answering, provider))])
                    plain = _decoded_chunks(answer, chunks)
                    async with nullcontext() if plain is chunks else aclosing(plain):
                        await self._read(answer, plain, receive, limit, idle)
                except BaseException:
                    await _close(answer, chunks)
                    raise
                self._tasks.start_soon(self._drain, address, connection, answer, chunks)
                draining = True
        finally:
            if not draining:
                await self._connections.give_back(address, connection)
        if limit.cancelled_caught:
            # Name the proxy, which may accept connections though it is dead.
            route = self._connections.route(address)
            through = f" ({route})" if " through " in route else ""
            raise stream_broken(f"nothing was received for {idle:g} s{through}")

    def _connection(self, address: str) -> ModelConnection:
        try:
            return self._connections.take(address)
        except BadSetting as error:
            raise cannot_connect(str(error)) from error

    async def _drain(
        self,
        address: str,
        connection: ModelConnection,
        answer: Answer,
        chunks: AsyncGenerator[bytes],
    ) -> None:
        """Read to the end of the answer, after which the connection can be used again."""
        try:
            with anyio.move_on_after(DRAIN_TIME), contextlib.suppress(TransportError):
                async for _ in chunks:
                    pass
        finally:
            await _close(answer, chunks)
            await self._connections.give_back(address, connection)

    async def _read(
        self,
        answer: Answer,
        chunks: AsyncGenerator[bytes],
        receive: Receive,
        limit: anyio.CancelScope,
        idle: float,
    ) -> None:
        parser, bounds = SseParser(), AnswerLimits()
        beginning = b""
        while (chunk := await _next_chunk(chunks)) is not None:
            # The time of handling events is not the model's silence.
            limit.deadline = math.inf
            if not parser.began and len(beginning) < BEGINNING_BYTES:
                beginning += chunk[:BEGINNING_BYTES]
            bounds.take_bytes(len(chunk))
            events, failure = _read_events(_feed(parser, chunk), bounds)
            if events:
                await receive(events)
            if failure is not None:
                raise failure
            if events and isinstance(events[-1], Completed):
                return
            limit.deadline = self._clock() + idle
        content_type = answer.headers.get("content-type", "")
        if not parser.began and not content_type.startswith("text/event-stream"):
            raise not_a_stream(
                content_type, beginning, is_complete=len(beginning) < BEGINNING_BYTES
            )
        raise stream_broken("the stream ended before response.completed")


async def _send(
    connection: ModelConnection,
    provider: Provider,
    body: dict[str, Any],
    route: Callable[[str], str],
) -> Answer:
    base = (provider.base_url or "").rstrip("/")
    content = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    try:
        answer = await connection.post(f"{base}/responses", _headers(provider), content)
    except TransportError as error:
        if not error.retryable and "@" in base:
            # The cause may quote a part of the password, which could not be redacted.
            raise cannot_connect(
                f"base_url of {brief(provider.id)} is no valid URL; "
                "special characters of a user name and a password in it must be percent-encoded"
            ) from None
        words = f"{error} ({route(base)})"
        raise connection_failed(words, retryable=error.retryable) from error
    if 200 <= answer.status < 300:
        return answer
    text = bytearray()
    is_complete = False
    chunks = answer.chunks()
    try:
        with anyio.move_on_after(ERROR_BODY_TIME), contextlib.suppress(TransportError):
            is_complete = await _read_error_body(answer, chunks, text)
    finally:
        await _close(answer, chunks)
    raise http_failed(answer.status, answer.headers, bytes(text), is_complete=is_complete)


def _decoded_chunks(answer: Answer, chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Return the chunks, decoded if they are encoded, though no encoding was requested.

    Raises ModelError for an unsupported encoding.
    """
    encoding = answer.headers.get("content-encoding", "")
    if is_plain(encoding):
        return chunks
    if is_readable(encoding):
        return decode(chunks, encoding)
    raise unreadable_encoding(encoding)


def _headers(provider: Provider) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    headers["User-Agent"] = f"agent/{VERSION}"
    if provider.originator:
        headers["Originator"] = provider.originator
        headers["User-Agent"] = f"{provider.originator} agent/{VERSION}"
    # Events are read as they arrive: a decoder could hold them back.
    headers["Accept-Encoding"] = "identity"
    if provider.api_key:
        headers["Authorization"] = f"Bearer {provider.api_key}"
    elif login := _login(provider.base_url or ""):
        headers["Authorization"] = f"Basic {b64encode(login).decode()}"
    return headers


def _login(address: str) -> bytes:
    """Return the decoded user name and password of an address, b"" if it has none."""
    try:
        before, at, _ = urlsplit(address).netloc.rpartition("@")
    except ValueError:
        return b""
    return unquote_to_bytes(before) if at else b""


def _clean(name: str, provider: Provider) -> str:
    """Return a name from the provider without the key, which a provider may echo."""
    key = provider.api_key
    return Secrets.of(provider).redact(name) if key and key in name else name


async def _next_chunk(chunks: AsyncGenerator[bytes]) -> bytes | None:
    """Return the next bytes; None at the end. Raises ModelError."""
    try:
        return await anext(chunks, None)
    except Undecodable as error:
        raise stream_broken(str(error)) from error
    except TransportError as error:
        raise stream_broken(str(error)) from error


def _feed(parser: SseParser, chunk: bytes) -> list[bytes]:
    try:
        return parser.feed(chunk)
    except EventTooLong as error:
        raise stream_broken(str(error)) from error


def _read_events(
    data: list[bytes], bounds: AnswerLimits
) -> tuple[list[ModelEvent], ModelError | None]:
    """Return the events of one chunk up to the end of the answer, and the failure that ends it."""
    events: list[ModelEvent] = []
    for event_data in data:
        try:
            event = read_event(event_data)
            if event is not None:
                bounds.take(event, len(event_data))
        except ModelError as failure:
            return events, failure
        if event is not None:
            events.append(event)
            if isinstance(event, Completed):
                break
    return events, None


async def _read_error_body(answer: Answer, chunks: AsyncGenerator[bytes], into: bytearray) -> bool:
    """Read about ERROR_BODY_LIMIT bytes into `into`; return whether that was the whole body.

    If it is cancelled or raises TransportError, `into` has the bytes that were read.
    """
    try:
        async for chunk in _decoded_chunks(answer, chunks):
            into += chunk
            if len(into) >= ERROR_BODY_LIMIT:
                return False
    except ModelError as unreadable:
        into += unreadable.details.encode()
    except Undecodable as error:
        into += f" ({error})".encode()
    return True


async def _close(answer: Answer, chunks: AsyncGenerator[bytes]) -> None:
    with anyio.CancelScope(shield=True):
        await chunks.aclose()
        await answer.aclose()
