"""A session with one MCP server, from the handshake to its end.

`stdio` and `http` make the connection, when `link` needs one.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from mcp.client.session import ClientSession, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    Implementation,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reference_server import VERSION
from reference_server.brief import brief
from reference_server.config.mcp import McpServer
from reference_server.mcp.failure import McpFailure, NotTaken
from reference_server.mcp.http import over_http
from reference_server.mcp.stdio import over_stdio
from reference_server.mcp.tools import MAX_PAGES, McpTool, OnProgress
from reference_server.mcp.watched import Incoming, Outgoing, Watch
from reference_server.mcp.wire import Wire
from reference_server.oauth.bearer import Bearer

Fields = dict[str, Any]
MAX_ERROR_CHARACTERS = 2_000
"""Maximum characters of an error message of the server."""
CLIENT = Implementation(name="agent", version=VERSION)

# Errors of these libraries are logged here, once and without tracebacks.
for _name in ("mcp", "client", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class Result(BaseModel):
    """Result of a call, with its content as the server sent it."""

    model_config = ConfigDict(extra="ignore")
    content: list[Any] = []
    structured_content: Any = Field(default=None, alias="structuredContent")
    is_error: bool = Field(default=False, alias="isError")
    kind: str = Field(default="complete", alias="resultType")


class Session:
    """An open session.

    `changes` counts the server's notifications of changed tools; each sets `changed`.
    """

    def __init__(self, server: McpServer, wire: Wire) -> None:
        self.changed = anyio.Event()
        self.changes = 0
        self._watch = Watch()
        self._server = server
        self._wire = wire
        self._client = ClientSession(
            Incoming(wire.read_stream, self._watch),
            Outgoing(wire.write_stream, self._watch),
            message_handler=self._note,
            client_info=CLIENT,
        )

    @property
    def client(self) -> ClientSession:
        """The SDK's session, which the caller enters as a context."""
        return self._client

    @property
    def end_event(self) -> anyio.Event:
        """Set when the connection has ended."""
        return self._watch.finished

    @property
    def end_reason(self) -> str:
        """Return why the connection has ended."""
        return self._watch.fault or self._wire.reason() or "it closed the connection"

    async def greet(self) -> None:
        """Agree with the server on a protocol version. Raises McpFailure.

        The handshake is tried first: nearly all servers know it, and some end at a request that
        comes before it. If a server rejects it, the version is discovered without one.
        """
        try:
            await self._client.initialize()
        except MCPError as error:
            if error.code not in (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND):
                raise self._failure(error) from None
            try:
                await self._client.discover()
            except (MCPError, RuntimeError, ValidationError) as second:
                raise self._failure(second) from None
        except (RuntimeError, ValidationError) as error:
            raise self._failure(error) from None

    async def list_tools(self) -> tuple[list[McpTool], list[str]]:
        """Return the tools, and a message for each invalid one. Raises McpFailure.

        Both are empty for a server without tools.
        """
        tools: list[McpTool] = []
        left_out: list[str] = []
        cursor = None
        self.changed = anyio.Event()
        for _ in range(MAX_PAGES):
            params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
            self._watch.left_out = []
            try:
                page = await self._client.list_tools(params=params)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND and not tools:
                    return [], left_out
                raise self._failure(error) from None
            except ValidationError as error:
                raise self._failure(error) from None
            tools += [
                McpTool(tool.name, tool.description or "", tool.input_schema) for tool in page.tools
            ]
            left_out += map(self._wire.hide, self._watch.left_out)
            cursor = page.next_cursor
            if cursor is None:
                return tools, left_out
        raise McpFailure(f"its list of tools has more than {MAX_PAGES} pages")

    async def call(self, tool: str, arguments: Fields, on_progress: OnProgress) -> Result:
        """Call a tool and return its result. Raises McpFailure, NotTaken if it was not begun."""
        params = CallToolRequestParams(name=tool, arguments=arguments)
        try:
            result = await self._client.send_request(
                CallToolRequest(params=params),
                Result,
                request_read_timeout_seconds=self._server.call_timeout,
                progress_callback=on_progress,
            )
        except MCPError as error:
            raise self._failure(error, self._server.call_timeout) from None
        except (ValidationError, RuntimeError, OSError) as error:
            raise self._failure(error) from None
        result.content = _hide_in(result.content, self._wire.hide)
        result.structured_content = _hide_in(result.structured_content, self._wire.hide)
        if result.kind == "input_required":
            raise McpFailure("the tool asks for input of the user, which is not offered here")
        return result

    async def _note(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.changes += 1
            self.changed.set()

    def _failure(self, error: Exception, bound: float | None = None) -> McpFailure:
        failure = self._failure_of(error, bound)
        return type(failure)(self._wire.hide(str(failure)))

    def _failure_of(self, error: Exception, bound: float | None) -> McpFailure:
        reason = self._wire.reason()
        match error:
            case MCPError(code=code) if code == CONNECTION_CLOSED:
                return McpFailure(self.end_reason)
            case MCPError(message="Session terminated"):
                return NotTaken(reason)
            # The same error with another message.
            case MCPError(code=code) if self._wire.session_unknown() and code != METHOD_NOT_FOUND:
                return NotTaken(reason)
            case MCPError(code=code) if code == PARSE_ERROR and not reason:
                return McpFailure("its answer is no message that can be read")
            case MCPError(code=code) if code == REQUEST_TIMEOUT and bound is not None:
                return McpFailure(f"it gave no answer within {bound:g} seconds")
            case MCPError() if not reason:
                return McpFailure(
                    brief(f"it answered with an error: {error.message}", MAX_ERROR_CHARACTERS)
                )
            case ValidationError() if not reason:
                return McpFailure("its answer is not what MCP asks for")
            case _:
                return McpFailure(reason or brief(str(error), MAX_ERROR_CHARACTERS))


@asynccontextmanager
async def open_session(
    server: McpServer, environment: Mapping[str, str], bearer: Bearer | None
) -> AsyncGenerator[Session]:
    """Connect to a server for the length of the block; the caller makes the handshake (`greet`).

    Raises McpFailure in place of any error, also of the block.
    """
    connection = (
        over_stdio(server, environment)
        if server.command
        else over_http(server, environment, bearer)
    )
    reason: Callable[[], str] = str
    hide: Callable[[str], str] = str
    try:
        async with connection as wire:
            reason, hide = wire.reason, wire.hide
            session = Session(server, wire)
            async with session.client:
                yield session
    except Exception as error:
        # Errors raised in tasks are in exception groups.
        leaves = list(_leaves(error))
        failure = next((leaf for leaf in leaves if isinstance(leaf, McpFailure)), None)
        raise failure or McpFailure(
            hide(reason() or brief(repr(leaves[0]), MAX_ERROR_CHARACTERS))
        ) from error


def _hide_in(value: Any, hide: Callable[[str], str]) -> Any:
    """Return a JSON value with `hide` applied to all its strings and names."""
    if hide is str:
        return value
    match value:
        case str():
            return hide(value)
        case list():
            return [_hide_in(one, hide) for one in cast("list[Any]", value)]
        case dict():
            members = cast("dict[str, Any]", value)
            return {hide(name): _hide_in(one, hide) for name, one in members.items()}
        case _:
            return value


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error
