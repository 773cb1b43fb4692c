"""Bugs about the tools of MCP servers."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import anyio

from tests.conformance.bugs.planting import Message, sent, swap, untold
from tests.conformance.bugs.registry import bug

TOOL = "reference_server.engine.tools.mcp"
SERVERS = "reference_server.mcp.servers:McpServers"
TABLE = "reference_server.config.mcp_tables:McpTable"


def shows_model(change: Any) -> None:
    """Change the part of a result that the model gets: its content and its structured content."""

    def for_model(original: Any) -> Any:
        def changed(content: list[Message], structured: Any, budget: Any) -> Any:
            return original(*change(content, structured), budget)

        return changed

    swap(f"{TOOL}:_model_output", for_model)


@bug(reds={"tools/mcp/picture": "scenario.expectation: does not contain 'four pixels'"})
def a_result_with_a_picture_is_a_picture() -> None:
    """The model gets only the pictures of a result that has one, without its text."""

    def pictures(content: list[Message], structured: Any) -> Any:
        return [one for one in content if one["type"] == "image"] or content, structured

    shows_model(pictures)


@bug(reds={"tools/mcp/structured": "scenario.expectation: does not contain 'overcast'"})
def structured_content_is_for_the_client() -> None:
    """The model gets nothing of a result with structured content."""

    def nothing(content: list[Message], structured: Any) -> Any:
        return (content, None) if structured is None else ([], None)

    shows_model(nothing)


@bug(reds={"tools/mcp/steps": "scenario.expectation: does not contain 'both steps are done'"})
def the_first_progress_ends_the_call() -> None:
    """A call ends as soon as its tool reports progress."""
    from reference_server.mcp.failure import McpFailure

    def call(original: Any) -> Any:
        async def ended(servers: Any, server: str, tool: str, given: Any, on_progress: Any) -> Any:
            progressed: list[str] = []

            async def progress(*of: Any) -> None:
                progressed.append(tool)
                await on_progress(*of)

            result = await original(servers, server, tool, given, progress)
            if progressed:
                raise McpFailure("it has told of its progress")
            return result

        return ended

    swap(f"{SERVERS}.call", call)


@bug(reds={"tools/mcp/progress": "scenario.timeout: item/mcpToolCall/progress"})
def progress_of_mcp_tools_is_not_told() -> None:
    """The progress of an MCP tool is not reported."""
    untold("item/mcpToolCall/progress")


@bug(reds={"tools/mcp/environment": "scenario.expectation: SKY_COLOUR is vermilion"})
def the_environment_of_a_server_is_not_heeded() -> None:
    """A server has no variables of its configuration."""

    def settings(original: Any) -> Any:
        def without(table: Any, name: str) -> Any:
            return original(table.model_copy(update={"env": {}}), name)

        return without

    swap(f"{TABLE}.settings", settings)


@bug(reds={"tools/mcp/two-servers": "scenario.expectation: this is the server west"})
def a_tool_is_known_by_its_name_alone() -> None:
    """A call of one of two tools with the same name goes to the first server."""

    def call(original: Any) -> Any:
        async def of_the_first(servers: Any, server: str, tool: str, *given: Any) -> Any:
            named = [pair[0] for pair in servers._names.values() if pair[1] == tool]
            return await original(servers, named[0] if named else server, tool, *given)

        return of_the_first

    swap(f"{SERVERS}.call", call)


@bug(reds={"tools/mcp/two-calls": "scenario.expectation: the sum is 45"})
def what_a_tool_gave_once_it_gives_again() -> None:
    """A second call of a tool returns the result of the first."""
    given: dict[tuple[str, str], Any] = {}

    def call(original: Any) -> Any:
        async def remembered(servers: Any, server: str, tool: str, *how: Any) -> Any:
            if (server, tool) not in given:
                given[server, tool] = await original(servers, server, tool, *how)
            return given[server, tool]

        return remembered

    swap(f"{SERVERS}.call", call)


@bug(reds={"tools/mcp/next-turn": "scenario.expectation: wanted to mcp_call"})
def tools_of_servers_are_for_one_turn() -> None:
    """The tools of MCP servers are offered until one of them was called."""
    called: list[str] = []

    def call(original: Any) -> Any:
        async def noted(servers: Any, server: str, *given: Any) -> Any:
            called.append(server)
            return await original(servers, server, *given)

        return noted

    def offers(original: Any) -> Any:
        return lambda servers: [] if called else original(servers)

    swap(f"{SERVERS}.call", call)
    swap(f"{SERVERS}.offers", offers)


@bug(reds={"tools/mcp/dies": "scenario.timeout: end of turn u"})
def a_call_outlives_its_server() -> None:
    """A call of a server that ended is waited for until its turn is interrupted."""
    from reference_server.mcp.failure import McpFailure

    def call(original: Any) -> Any:
        async def patient(*given: Any) -> Any:
            try:
                return await original(*given)
            except McpFailure:
                await anyio.sleep_forever()

        return patient

    swap(f"{SERVERS}.call", call)


@bug(reds={"tools/mcp/interrupted": "scenario.timeout: end of turn u"})
def an_interrupt_waits_for_the_tool_of_a_server() -> None:
    """A turn whose interrupt is granted goes on until the server has answered."""

    def call(original: Any) -> Any:
        async def shielded(*given: Any) -> Any:
            with anyio.CancelScope(shield=True):
                return await original(*given)

        return shielded

    swap(f"{SERVERS}.call", call)


@bug(
    reds={
        "tools/mcp/resumed": "resume.reopens",
        "tools/dynamic/resumed": "resume.reopens",
    }
)
def a_thread_with_a_tool_call_does_not_come_back() -> None:
    """A thread whose history has a tool call is not resumed."""

    def edit(method: str, message: Message) -> list[Message]:
        if method == "reply:thread/resume" and "ToolCall" in str(message):
            return [{"id": message["id"], "error": {"code": -32603, "message": "cannot read"}}]
        return [message]

    sent(edit)


@bug(reds={"tools/mcp-servers/program": "mcp-server.arguments"})
def the_arguments_of_a_program_are_split_again() -> None:
    """An argument of a server's program that has a space in it becomes two."""

    def settings(original: Any) -> Any:
        def split(table: Any, name: str) -> Any:
            found = original(table, name)
            words = tuple(word for one in found.args for word in one.split(" "))
            return dataclasses.replace(found, args=words)

        return split

    swap(f"{TABLE}.settings", settings)


@bug(reds={"tools/mcp-servers/address": "mcp-server.bearer-token"})
def the_name_of_the_variable_is_sent_as_the_token() -> None:
    """An address gets the name of the variable for its bearer token instead of its value."""

    def over_http(original: Any) -> Any:
        def by_name(server: Any, environment: Any, bearer: Any) -> Any:
            name = server.token_variable
            return original(server, {**environment, name: name} if name else environment, bearer)

        return by_name

    swap("reference_server.mcp.session:over_http", over_http)


@bug(reds={"tools/mcp-servers/program-beside-address": "mcp-server.no-credentials"})
def a_program_inherits_the_environment() -> None:
    """The program of a server has all variables of the agent, the tokens of others among them."""

    def settings(original: Any) -> Any:
        def with_all(table: Any, name: str) -> Any:
            found = original(table, name)
            return dataclasses.replace(found, env={**os.environ, **found.env})

        return with_all

    swap(f"{TABLE}.settings", settings)


@bug(reds={"tools/mcp-servers/not-enabled": "mcp-server.enabled-only"})
def enabled_is_not_heeded() -> None:
    """A server that is not enabled is started, and its tools are offered."""

    def servers(original: Any) -> Any:
        def all_of_them(file: Any, *, enabled: bool) -> Any:
            others = original(file, enabled=False) if enabled else {}
            return {**others, **original(file, enabled=enabled)}

        return all_of_them

    swap("reference_server.config.load:_servers", servers)


@bug(reds={"tools/mcp-servers/whatever-it-says": "mcp-server.result-shown"})
def what_a_tool_says_is_one_line() -> None:
    """Only the first line of a result's text is kept."""

    def bounded(original: Any) -> Any:
        def cut(content: list[Message], structured: Any) -> Any:
            lines = [{**one, "text": one["text"].split("\n")[0]} for one in content]
            return original(lines, structured)

        return cut

    swap(f"{TOOL}:limit_result", bounded)


@bug(reds={"tools/mcp-servers/arguments": "mcp-server.call-arguments"})
def arguments_are_texts() -> None:
    """A tool gets each argument that is not a string as its JSON text."""

    def call(original: Any) -> Any:
        async def in_texts(servers: Any, server: str, tool: str, given: Any, *how: Any) -> Any:
            as_text = {
                name: value if isinstance(value, str) else json.dumps(value)
                for name, value in given.items()
            }
            return await original(servers, server, tool, as_text, *how)

        return in_texts

    swap(f"{SERVERS}.call", call)
