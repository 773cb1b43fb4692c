"""`agent mcp login` and `agent mcp logout`.

Exit statuses: 0, 1 after a failure, 2 for wrong usage, 130 after Ctrl-C. Source:
mcp-cli-and-sdk "Command-line commands".
"""

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence

from reference_server.agent_mcp.masking import escape, mask_address
from reference_server.brief import brief
from reference_server.cli.mcp_servers import unknown_server, warn
from reference_server.cli.surroundings import (
    UsageError,
    check_streams,
    complain,
    find_home,
    speak_utf8,
)
from reference_server.config.arguments import add_settings_options
from reference_server.config.load import ConfigError, load_config, load_mcp_servers
from reference_server.config.mcp import McpServer
from reference_server.config.mcp_tables import SCOPE
from reference_server.config.model import Config
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.store import Store

INTERRUPTED = 128 + signal.SIGINT


def login(arguments: Sequence[str]) -> int:
    """Run `agent mcp login` and return the exit status."""
    parser = _parser("login", "Log in to a streamable HTTP MCP server with OAuth.")
    parser.add_argument(
        "--scopes",
        metavar="SCOPE,SCOPE",
        type=_scopes,
        default=[],
        help="the scopes to ask for; without, those of config.toml, else those that the server "
        "names",
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="open no browser; without, one is opened if this runs in a terminal on a desktop",
    )
    add_settings_options(parser)
    parsed = parser.parse_args(arguments)

    def work() -> int:
        home = find_home(os.environ)
        config = load_config(home.config_file, dict(os.environ), warn, overrides=parsed.config)
        server = _server(parsed.name, config)
        store = Store(home, config.mcp_oauth_credentials_store)
        store.check()
        _log_in(server, config, store, parsed.scopes, browser=not parsed.no_browser)
        print(f"Successfully logged in to MCP server '{server.name}'.", flush=True)  # noqa: T201
        return 0

    return _run_work("login", work)


def logout(arguments: Sequence[str]) -> int:
    """Run `agent mcp logout` and return the exit status.

    0 if credentials were removed or the server is configured, 1 for an unknown name or a failure.
    """
    parser = _parser("logout", "Remove the OAuth credentials of an MCP server.")
    name: str = parser.parse_args(arguments).name

    def work() -> int:
        # Found by name alone: config.toml may no longer have the server, or another address of it.
        removed, left = Store(find_home(os.environ)).remove(name)
        if left:
            complain(f"agent mcp logout: the keyring may still hold them: {left}")
        words = "Removed OAuth credentials for" if removed else "No OAuth credentials stored for"
        print(f"{words} '{escape(brief(name))}'.", flush=True)  # noqa: T201
        return 0 if removed else _status_of_none_stored(name)

    return _run_work("logout", work)


def _status_of_none_stored(name: str) -> int:
    """Return 1 and print a line if no server has the name, else 0.

    0 also if config.toml cannot be read.
    """
    try:
        servers = load_mcp_servers(find_home(os.environ).config_file, warn)
    except ConfigError:
        return 0
    if name in servers:
        return 0
    return _complain("logout", OAuthFailure(unknown_server(name, servers)), 1)


def _run_work(command: str, work: Callable[[], int]) -> int:
    """Return the exit status of `work`, or print its error in one line and return that status."""
    speak_utf8()
    try:
        check_streams(uses_streams=False)
        return work()
    except UsageError as error:
        return _complain(command, error, 2)
    except (ConfigError, OAuthFailure) as error:
        return _complain(command, error, 1)
    except BrokenPipeError:
        # The reader of the output has left. The interpreter would try to flush the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        complain(f"agent mcp {command}: interrupted")
        return INTERRUPTED


def _complain(command: str, error: Exception, status: int) -> int:
    complain(f"agent mcp {command}: {escape(mask_address(str(error)))}")
    return status


def _server(name: str, config: Config) -> McpServer:
    """Return the named HTTP server; warn if a token variable takes precedence over a login.

    Raises OAuthFailure if the server is unknown or a stdio server.
    """
    servers = {**config.mcp_servers, **config.disabled_mcp_servers}
    if (server := servers.get(name)) is None:
        raise OAuthFailure(unknown_server(name, servers))
    if not server.url:
        raise OAuthFailure(
            f"OAuth login is unsupported for '{server.name}': it is a stdio server, and only "
            "streamable HTTP servers have one"
        )
    if server.token_variable is not None:
        complain(
            f"agent mcp login: the variable {server.token_variable} holds the token of "
            f"'{server.name}', as config.toml says; it counts before this login"
        )
    return server


def _parser(command: str, words: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"agent mcp {command}", description=words, allow_abbrev=False
    )
    parser.add_argument("name", metavar="NAME", help="the server, as config.toml names it")
    return parser


def _scopes(text: str) -> list[str]:
    scopes = [one.strip() for one in text.split(",")]
    scopes = list(dict.fromkeys(one for one in scopes if one))
    if wrong := [one for one in scopes if not re.fullmatch(SCOPE, one)]:
        raise argparse.ArgumentTypeError(
            f"{brief(wrong[0])!r} is no scope; separate them by commas"
        )
    if not scopes:
        raise argparse.ArgumentTypeError("there is no scope in it")
    return scopes


def _log_in(
    server: McpServer, config: Config, store: Store, scopes: Sequence[str], *, browser: bool
) -> None:
    import anyio

    from reference_server.oauth.credentials import Credentials
    from reference_server.oauth.login import login as log_in

    def show(address: str) -> None:
        print(  # noqa: T201
            f"Authorize '{server.name}' by opening this URL in your browser:\n{address}\n",
            flush=True,
        )
        if browser and _on_a_desktop():
            _open(address)

    def keep(credentials: Credentials) -> None:
        if words := store.save(credentials):
            complain(f"agent mcp login: {words}; the credentials are in a file of the home")

    async def run() -> None:
        await log_in(
            server,
            scopes,
            port=config.mcp_oauth_callback_port,
            patience=config.mcp_oauth_login_timeout_sec,
            show=show,
            keep=keep,
        )

    anyio.run(run)


def _on_a_desktop() -> bool:
    """Return whether the user would see a browser that opens: not over ssh, nor in a script."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform == "darwin" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def _open(address: str) -> None:
    """Open the address in the browser, in the background; failures are ignored: it was printed."""
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
