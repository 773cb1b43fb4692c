"""Addition of an MCP server to the text of config.toml, and removal.

Servers are written in the specification's form: mcp-cli-and-sdk "MCP server configuration".
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from reference_server.agent_mcp.new_server import NewServer
from reference_server.config.editing import Unwritable
from reference_server.config.load import ConfigError, check_mcp_server, parse_toml
from reference_server.config.mistakes import Source
from reference_server.config.text_edits import (
    add_inline,
    add_lines,
    append_block,
    format_key,
    format_value,
    remove_values,
    same_values,
)

SERVERS = "mcp_servers"
_WRITTEN_KEYS = (
    *("enabled", "transport", "type", "command", "args", "url", "env"),
    "bearer_token_env_var",
)
"""Keys that `add` replaces: those that it writes, and other forms of the same settings."""


class ServerExists(Exception):
    """There is a server of that name; str() is its place."""


def add_server(file: Path, text: str, server: NewServer, *, replace: bool) -> str:
    """Return the text with the server added; with `replace`, one of that name is replaced.

    Other keys of a replaced server's table stay. Raises ConfigError for a mistake in the text,
    ServerExists, Unwritable if the text cannot be edited.
    """
    table = parse_toml(file, text)
    servers = _servers_of(file, text, table)
    if not replace:
        check_mcp_server(file, text, table, server.name)
    old = servers.get(server.name)
    if old is not None and not replace:
        raise ServerExists(Source(file, text, {}).place((SERVERS, server.name), of_key=True))
    other_keys = {key: value for key, value in _table(old).items() if key not in _WRITTEN_KEYS}
    server_table = {**_server_table(server), **other_keys}
    expected = {**table, SERVERS: {**servers, server.name: server_table}}
    if _parses_as(text, expected):
        return text
    try:
        for candidate in _candidates(
            text, server.name, server_table, other_keys, is_there=old is not None
        ):
            if _parses_as(candidate, expected):
                check_mcp_server(file, candidate, tomllib.loads(candidate), server.name)
                return candidate
    except RecursionError:
        pass  # nested more deeply than anything that has an effect
    raise Unwritable(f"{file}: is written so that no server can be added; write it by hand")


def remove_server(file: Path, text: str, name: str) -> str:
    """Return the text without a server; the same text if there is none.

    The tables of servers may be invalid, so that an invalid one can be removed. Raises ConfigError,
    Unwritable.
    """
    table = parse_toml(file, text)
    servers = _servers_of(file, text, table)
    if name not in servers:
        return text
    remaining = {key: value for key, value in servers.items() if key != name}
    try:
        new_text = remove_values(text, (SERVERS, name))
    except RecursionError:
        new_text = text
    if not _parses_as(new_text, {**table, SERVERS: remaining}):
        place = Source(file, text, {}).place((SERVERS, name), of_key=True)
        raise Unwritable(f"{place}: is written so that it cannot be taken out; do so by hand")
    return new_text


def _candidates(
    text: str,
    name: str,
    server_table: Mapping[str, Any],
    other_keys: Mapping[str, Any],
    *,
    is_there: bool,
) -> Iterator[str]:
    """Yield candidates for the new text, the best one first."""
    path = (SERVERS, name)
    if is_there:
        # First within the existing table, whose other lines stay.
        bare = remove_values(text, *((*path, key) for key in _WRITTEN_KEYS))
        fresh = {key: value for key, value in server_table.items() if key not in other_keys}
        yield from _candidate(add_lines(bare, path, _lines(fresh)))
        text = remove_values(text, path)
    yield from _candidate(
        add_inline(text, (SERVERS,), f"{format_key(name)} = {format_value(server_table)}")
    )
    yield append_block(text, [f"[{SERVERS}.{format_key(name)}]", *_lines(server_table)])


def _candidate(text: str | None) -> Iterator[str]:
    if text is not None:
        yield text


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{format_key(key)} = {format_value(value)}" for key, value in table.items()]


def _server_table(server: NewServer) -> dict[str, Any]:
    """Return the table to write for the server."""
    table: dict[str, Any] = {"enabled": True, "transport": _transport(server)}
    if server.env:
        table["env"] = dict(server.env)
    if server.token_variable is not None:
        table["bearer_token_env_var"] = server.token_variable
    return table


def _transport(server: NewServer) -> dict[str, str | list[str]]:
    if server.url is not None:
        return {"type": "streamable_http", "url": server.url}
    command, *args = server.command
    return {"type": "stdio", "command": command, "args": args}


def _servers_of(file: Path, text: str, table: Mapping[str, Any]) -> dict[str, Any]:
    servers = table.get(SERVERS, {})
    if not isinstance(servers, dict):
        place = Source(file, text, {}).place((SERVERS,))
        raise ConfigError(f"{place}: `{SERVERS}` must be a table")
    return cast("dict[str, Any]", servers)


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _parses_as(text: str, expected: Mapping[str, Any]) -> bool:
    """Return whether a text parses as this table; an empty table of servers is ignored."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return same_values(_without_empty(table), _without_empty(expected))


def _without_empty(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != SERVERS or value != {}}
