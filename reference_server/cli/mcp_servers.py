"""`agent mcp list`, `get`, `add` and `remove`.

What is done lives in `mcp_command`. Source: mcp-cli-and-sdk "Command-line commands".
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from reference_server.agent_mcp.masking import escaped
from reference_server.brief import brief
from reference_server.cli.surroundings import UsageError, complain, find_home
from reference_server.config.home import Home
from reference_server.config.load import load_mcp_servers, read_config
from reference_server.config.mcp import McpServer
from reference_server.config.mistakes import choices, suggestion

if TYPE_CHECKING:
    from reference_server.agent_mcp.shown import Shown

PATIENCE = 120.0
"""Seconds to wait for other writers of config.toml: a script may start a hundred of them."""


class Failed(Exception):
    """It cannot be done; str() is one line for stderr."""


def _list(words: Sequence[str]) -> int:
    from reference_server.agent_mcp.shown import COLUMNS, as_json

    parser = _parser("list", "List the MCP servers of config.toml.")
    _add_json(parser)
    found = parser.parse_args(words)
    home = find_home(os.environ)
    servers = sorted(load_mcp_servers(home.config_file, complain).items())
    shown = [_shown(home, one, secrets=found.show_secrets) for _, one in servers]
    if found.json:
        print(as_json([one.fields() for one in shown]))  # noqa: T201
    elif shown:
        from reference_server.agent_mcp.table import print_table

        print_table(COLUMNS, [one.cells() for one in shown])
    else:
        print("No MCP servers configured yet. Add one: agent mcp add NAME -- COMMAND")  # noqa: T201
    return 0


def _get(words: Sequence[str]) -> int:
    from reference_server.agent_mcp.shown import as_json

    parser = _parser("get", "Show one MCP server of config.toml.")
    _add_name(parser)
    _add_json(parser)
    found = parser.parse_args(words)
    home = find_home(os.environ)
    servers = load_mcp_servers(home.config_file, complain)
    if found.name not in servers:
        raise Failed(_none(found.name, servers))
    shown = _shown(home, servers[found.name], secrets=found.show_secrets)
    print(as_json(shown.fields()) if found.json else "\n".join(shown.lines()))  # noqa: T201
    return 0


def _none(name: str, servers: Iterable[str]) -> str:
    known = list(servers)
    near = suggestion(name, known) or choices(known)
    return f"No MCP server named '{brief(name)}' exists{near}"


def _add(words: Sequence[str]) -> int:
    from reference_server.agent_mcp.edits import AlreadyThere, added
    from reference_server.agent_mcp.given import Wrong, checked
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
    own, command = _split(words)
    found, rest = parser.parse_known_args(own)
    if rest:
        # The rest is not quoted: it can hold a key.
        first = brief(rest[0].partition("=")[0])
        parser.error(
            f"there is no option {first} here; what is for the command stands after `--`"
            if first.startswith("-")
            else f"put `--` before the command: agent mcp add {found.name} -- {first} …"
        )
    try:
        server = checked(
            found.name,
            command=command,
            env=found.env,
            url=found.url,
            token_variable=found.bearer_token_env_var,
        )
    except Wrong as error:
        raise UsageError(str(error)) from None
    file = find_home(os.environ).config_file

    def edit(text: str) -> str:
        return added(file, text, server, replace=found.force)

    try:
        # Once without the lock: what is wrong is told before anything is made, and what is imported
        # for it holds nobody up.
        edit(read_config(file))
        change_config(file, edit, patience=PATIENCE)
    except AlreadyThere as error:
        raise Failed(
            f"{error}: an MCP server named '{server.name}' exists; --force replaces it"
        ) from None
    print(f"Added global MCP server '{server.name}'.")  # noqa: T201
    if server.shows_token:
        complain("agent mcp add: whoever is on the way can read the token: this is http://")
    return 0


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what stands before the first `--`, and what stands behind it."""
    at = list(words).index("--") if "--" in words else len(words)
    return list(words[:at]), list(words[at + 1 :])


def _remove(words: Sequence[str]) -> int:
    from reference_server.agent_mcp.edits import removed
    from reference_server.config.editing import change_config

    parser = _parser("remove", "Remove an MCP server from config.toml.")
    _add_name(parser)
    name: str = parser.parse_args(words).name
    file = find_home(os.environ).config_file
    was_there = False

    def edit(text: str) -> str:
        nonlocal was_there
        made = removed(file, text, name)
        was_there = made != text
        return made

    edit(read_config(file))
    if was_there:
        change_config(file, edit, patience=PATIENCE)
    shown = escaped(brief(name))
    print(  # noqa: T201
        f"Removed global MCP server '{shown}'."
        if was_there
        else f"No MCP server named '{shown}' exists."
    )
    if was_there and _forgotten(name):
        print(f"Removed OAuth credentials for '{shown}'.")  # noqa: T201
    return 0


def _forgotten(name: str) -> bool:
    """Remove what a login to the server has left and return whether there was any. Raises Failed."""
    from reference_server.oauth.failure import OAuthFailure
    from reference_server.oauth.store import Store

    try:
        removed, left = Store(find_home(os.environ)).remove(name)
    except OAuthFailure as error:
        raise Failed(f"the server is removed, its OAuth credentials are not: {error}") from None
    if left:
        raise Failed(f"the keyring may still hold OAuth credentials of '{name}': {left}")
    return removed


def _shown(home: Home, server: McpServer, *, secrets: bool) -> "Shown":
    from reference_server.agent_mcp.shown import Shown

    shown = Shown(server, _auth(home, server))
    return shown if secrets else shown.masked()


def _auth(home: Home, server: McpServer) -> str:
    from reference_server.oauth.status import auth_status
    from reference_server.oauth.store import Store

    return auth_status(server, Store(home))


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
"""Each gives an exit status. Raises Failed, UsageError, ConfigError, Unwritable, OSError."""
