"""Adding an MCP server to the text of config.toml, and removing one.

What is written is the document's form, source: mcp-cli-and-sdk "MCP server configuration".
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from reference_server.agent_mcp.given import Given
from reference_server.config.editing import Unwritable
from reference_server.config.load import ConfigError, mcp_servers_of, parse_toml
from reference_server.config.mistakes import Source
from reference_server.config.text_edits import (
    key_of,
    says_the_same,
    with_block,
    with_inline,
    with_lines,
    without,
    written,
)

SERVERS = "mcp_servers"
_REPLACED = (
    *("enabled", "transport", "type", "command", "args", "url", "env"),
    "bearer_token_env_var",
)
"""The keys that `add` writes, or other ways to say the same; the others say how it is used."""


class AlreadyThere(Exception):
    """There is a server of that name; str() says where."""


def added(file: Path, text: str, server: Given, *, replace: bool) -> str:
    """Return the text with the server. Raises ConfigError, AlreadyThere, Unwritable.

    With `replace` one of that name is replaced; what its table says of other things stays.
    """
    table = parse_toml(file, text)
    servers = _servers_of(file, text, table)
    if not replace:
        mcp_servers_of(file, text, table)
    old = servers.get(server.name)
    if old is not None and not replace:
        raise AlreadyThere(Source(file, text, {}).place((SERVERS, server.name), of_key=True))
    kept = {key: value for key, value in _table(old).items() if key not in _REPLACED}
    said = {**_says(server), **kept}
    wanted = {**table, SERVERS: {**servers, server.name: said}}
    if _is(text, wanted):
        return text
    try:
        for made in _attempts(text, server.name, said, kept, is_there=old is not None):
            if _is(made, wanted):
                # Another one of the servers can be wrong.
                mcp_servers_of(file, made, tomllib.loads(made))
                return made
    except RecursionError:
        pass  # nested more deeply than anything that has an effect
    raise Unwritable(f"{file}: is written so that no server can be added; write it by hand")


def removed(file: Path, text: str, name: str) -> str:
    """Return the text without a server; the same text if there is none.

    What is said of servers may be wrong: this is a way to mend it. Raises ConfigError, Unwritable.
    """
    table = parse_toml(file, text)
    servers = _servers_of(file, text, table)
    if name not in servers:
        return text
    left = {key: value for key, value in servers.items() if key != name}
    try:
        made = without(text, (SERVERS, name))
    except RecursionError:
        made = text
    if not _is(made, {**table, SERVERS: left}):
        place = Source(file, text, {}).place((SERVERS, name), of_key=True)
        raise Unwritable(f"{place}: is written so that it cannot be taken out; do so by hand")
    return made


def _attempts(
    text: str, name: str, said: Mapping[str, Any], kept: Mapping[str, Any], *, is_there: bool
) -> Iterator[str]:
    """Yield the texts that may say what is wanted, the best one first."""
    way = (SERVERS, name)
    if is_there:
        # Into the table that is there, whose other lines stay.
        bare = without(text, *((*way, key) for key in _REPLACED))
        fresh = {key: value for key, value in said.items() if key not in kept}
        yield from _made(with_lines(bare, way, _lines(fresh)))
        text = without(text, way)
    yield from _made(with_inline(text, (SERVERS,), f"{key_of(name)} = {written(said)}"))
    yield with_block(text, [f"[{SERVERS}.{key_of(name)}]", *_lines(said)])


def _made(text: str | None) -> Iterator[str]:
    if text is not None:
        yield text


def _lines(said: Mapping[str, Any]) -> list[str]:
    return [f"{key_of(key)} = {written(value)}" for key, value in said.items()]


def _says(server: Given) -> dict[str, Any]:
    """Return what the table of the server says."""
    said: dict[str, Any] = {"enabled": True, "transport": _transport(server)}
    if server.env:
        said["env"] = dict(server.env)
    if server.token_variable is not None:
        said["bearer_token_env_var"] = server.token_variable
    return said


def _transport(server: Given) -> dict[str, str | list[str]]:
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


def _is(text: str, wanted: Mapping[str, Any]) -> bool:
    """Return whether a text is TOML and says this; an empty table of servers says nothing."""
    try:
        says = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return says_the_same(_without_empty(says), _without_empty(wanted))


def _without_empty(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != SERVERS or value != {}}
