"""`agent mcp list`, `get`, `add` and `remove`.

The work itself lives in `agent_mcp`. Source: mcp-cli-and-sdk "Command-line commands".
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from reference_server.agent_mcp.masking import escape, mask_address
from reference_server.brief import brief
from reference_server.cli.surroundings import UsageError, complain, find_home
from reference_server.config.arguments import add_settings_options
from reference_server.config.home import Home
from reference_server.config.load import load_mcp_servers, read_config
from reference_server.config.mcp import McpServer
from reference_server.config.mistakes import choices, suggestion

if TYPE_CHECKING:
    from reference_server.agent_mcp.display import ServerView

LOCK_SECONDS = 120.0
"""Seconds to wait for the lock of config.toml: a script may start a hundred writers at once."""


class CommandFailed(Exception):
    """The command cannot be carried out; str() is one line for stderr."""


def _list(words: Sequence[str]) -> int:
    from reference_server.agent_mcp.display import COLUMNS, as_json

    parser = _parser("list", "List the MCP servers of config.toml.")
    _add_json(parser)
    add_settings_options(parser)
    parsed = parser.parse_args(words)
    home = find_home(os.environ)
    servers = load_mcp_servers(home.config_file, warn, overrides=parsed.config)
    chosen = [servers[name] for name in sorted(servers)]
    views = _server_views(home, chosen, secrets=parsed.show_secrets)
    if parsed.json:
        print(as_json([one.fields() for one in views]))  # noqa: T201
    elif views:
        from reference_server.agent_mcp.table import print_table

        print_table(COLUMNS, [one.cells() for one in views])
    else:
        print("No MCP servers configured yet. Add one: agent mcp add NAME -- COMMAND")  # noqa: T201
    return 0


def _get(words: Sequence[str]) -> int:
    from reference_server.agent_mcp.display import as_json

    parser = _parser("get", "Show one MCP server of config.toml.")
    _add_name(parser)
    _add_json(parser)
    add_settings_options(parser)
    parsed = parser.parse_args(words)
    home = find_home(os.environ)
    servers = load_mcp_servers(home.config_file, warn, overrides=parsed.config)
    if parsed.name not in servers:
        raise CommandFailed(unknown_server(parsed.name, servers))
    [view] = _server_views(home, [servers[parsed.name]], secrets=parsed.show_secrets)
    print(as_json(view.fields()) if parsed.json else "\n".join(view.lines()))  # noqa: T201
    return 0


def warn(line: str) -> None:
    """Write a warning about config.toml to standard error, with the secrets in URLs masked."""
    complain(escape(mask_address(line)))


def unknown_server(name: str, servers: Iterable[str]) -> str:
    """Return the message for an unknown server; it suggests a similar name or lists the names."""
    names = list(servers)
    advice = suggestion(name, names) or choices(names)
    return f"No MCP server named '{brief(name)}' exists{advice}"


def _add(words: Sequence[str]) -> int:
    from reference_server.agent_mcp.edits import ServerExists, add_server
    from reference_server.agent_mcp.new_server import InvalidServer, parse_server
    from reference_server.config.editing import change_config

    parser = _parser(
        "add",
        "Add an MCP server to config.toml: a program, which is started with the words after `--` "
        "as they are, or an address.",
        usage="agent mcp add NAME [--env KEY=VALUE]... [--force] -- COMMAND [ARGS...]\n"
        "       agent mcp add NAME --url URL [--bearer-token-env-var VAR] [--force]",
    )
    _add_name(parser)
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a variable of the program; may be given more than once",
    )
    parser.add_argument("--url", metavar="URL", help="the address, http:// or https://")
    parser.add_argument(
        "--bearer-token-env-var",
        metavar="VAR",
        help="the name of the variable that holds the token for the address",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace a server that has the name already"
    )
    own_words, command = _split(words)
    parsed, rest = parser.parse_known_args(own_words)
    if rest:
        # The rest is not quoted: it can hold a key.
        first = brief(rest[0].partition("=")[0])
        parser.error(
            f"there is no option {first} here; what is for the command stands after `--`"
            if first.startswith("-")
            else f"put `--` before the command: agent mcp add {parsed.name} -- {first} …"
        )
    try:
        server = parse_server(
            parsed.name,
            command=command,
            env=parsed.env,
            url=parsed.url,
            token_variable=parsed.bearer_token_env_var,
        )
    except InvalidServer as error:
        raise UsageError(str(error)) from None
    file = find_home(os.environ).config_file

    def edit(text: str) -> str:
        return add_server(file, text, server, replace=parsed.force)

    try:
        # First without the lock: mistakes are found early, and imports delay no other process.
        edit(read_config(file))
        change_config(file, edit, patience=LOCK_SECONDS)
    except ServerExists as error:
        raise CommandFailed(
            f"{error}: an MCP server named '{server.name}' exists; --force replaces it"
        ) from None
    print(f"Added global MCP server '{server.name}'.")  # noqa: T201
    if server.shows_token:
        complain("agent mcp add: whoever is on the way can read the token: this is http://")
    return 0


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before the first `--`, and those after it."""
    index = list(words).index("--") if "--" in words else len(words)
    return list(words[:index]), list(words[index + 1 :])


def _remove(words: Sequence[str]) -> int:
    from reference_server.agent_mcp.edits import remove_server
    from reference_server.config.editing import change_config

    parser = _parser("remove", "Remove an MCP server from config.toml.")
    _add_name(parser)
    name: str = parser.parse_args(words).name
    file = find_home(os.environ).config_file
    was_there = False

    def edit(text: str) -> str:
        nonlocal was_there
        made = remove_server(file, text, name)
        was_there = made != text
        return made

    edit(read_config(file))
    if was_there:
        change_config(file, edit, patience=LOCK_SECONDS)
    quoted_name = escape(brief(name))
    print(  # noqa: T201
        f"Removed global MCP server '{quoted_name}'."
        if was_there
        else f"No MCP server named '{quoted_name}' exists."
    )
    if was_there and _remove_credentials(name):
        print(f"Removed OAuth credentials for '{quoted_name}'.")  # noqa: T201
    return 0 if was_there else 1


def _remove_credentials(name: str) -> bool:
    """Remove the credentials of a login and return whether there were any.

    Raises CommandFailed if some may remain.
    """
    from reference_server.oauth.failure import OAuthFailure
    from reference_server.oauth.store import Store

    try:
        removed, problem = Store(find_home(os.environ)).remove(name)
    except OAuthFailure as error:
        raise CommandFailed(
            f"the server is removed, its OAuth credentials are not: {error}"
        ) from None
    if problem:
        raise CommandFailed(f"the keyring may still hold OAuth credentials of '{name}': {problem}")
    return removed


def _server_views(home: Home, servers: Sequence[McpServer], *, secrets: bool) -> "list[ServerView]":
    from reference_server.agent_mcp.display import ServerView
    from reference_server.oauth.status import auth_statuses
    from reference_server.oauth.store import Store

    statuses = auth_statuses(servers, Store(home))
    views = [ServerView(*pair) for pair in zip(servers, statuses, strict=True)]
    return views if secrets else [view.without_secrets() for view in views]


def _parser(name: str, description: str, usage: str | None = None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"agent mcp {name}", description=description, usage=usage, allow_abbrev=False
    )


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the server, as in [mcp_servers.NAME]")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--show-secrets",
        action="store_true",
        help="print values of variables, and what else is hidden as it looks like a secret",
    )


COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "list": _list,
    "get": _get,
    "add": _add,
    "remove": _remove,
}
"""Functions by subcommand: they take its arguments and return an exit status.

They raise CommandFailed, UsageError, ConfigError, Unwritable or OSError.
"""
