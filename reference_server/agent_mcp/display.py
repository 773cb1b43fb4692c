"""A server as JSON, as lines, and as the cells of a table.

Source: mcp-cli-and-sdk "MCP server configuration" (columns, `name`, `auth_status`,
`transport.type`). The specification shows no other fields; the names are the shipping program's.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reference_server.agent_mcp.masking import HIDDEN, escape, mask_address, mask_words
from reference_server.config.mcp import McpServer

COLUMNS = ("Name", "Command", "Args", "Env", "Cwd", "Status", "Auth")
EMPTY_CELL = "-"


@dataclass(frozen=True, slots=True)
class ServerView:
    """A server and its authentication status (`oauth.status`)."""

    server: McpServer
    auth: str

    def without_secrets(self) -> "ServerView":
        """Return a copy with variables, and texts that look like secrets, masked."""
        server = self.server
        hidden = replace(
            server,
            args=tuple(mask_words(server.args)),
            env=dict.fromkeys(server.env, HIDDEN),
            url=mask_address(server.url),
        )
        return ServerView(hidden, self.auth)

    @property
    def status(self) -> str:
        """`enabled` or `disabled`."""
        return "enabled" if self.server.enabled else "disabled"

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the server's row, in the order of `COLUMNS`."""
        server = self.server
        cells = (
            server.name,
            server.command or server.url,
            _words(server.args),
            ", ".join(f"{name}={value}" for name, value in server.env.items()),
            server.cwd or "",
            self.status,
            self.auth,
        )
        return tuple(escape(cell) or EMPTY_CELL for cell in cells)

    def lines(self) -> list[str]:
        """Return the lines of `get`: the name, then a line for each field and for its removal."""
        server = self.server
        fields = {"enabled": "true" if server.enabled else "false"}
        if server.url:
            fields |= {
                "transport": "streamable_http",
                "url": server.url,
                "bearer_token_env_var": server.token_variable or "",
            }
        else:
            fields |= {
                "transport": "stdio",
                "command": server.command,
                "args": _words(server.args),
                "cwd": server.cwd or "",
                "env": ", ".join(f"{name}={value}" for name, value in server.env.items()),
            }
        fields |= {"auth": self.auth, "remove": f"agent mcp remove {_argument(server.name)}"}
        pairs = (f"  {key}: {escape(value) or EMPTY_CELL}" for key, value in fields.items())
        return [escape(server.name), *pairs]

    def fields(self) -> dict[str, Any]:
        """Return the server as a JSON object."""
        server = self.server
        return {
            "name": server.name,
            "enabled": server.enabled,
            "transport": _transport(server),
            "startup_timeout_sec": server.startup_timeout,
            "tool_timeout_sec": server.call_timeout,
            "enabled_tools": None if server.only is None else sorted(server.only),
            "disabled_tools": sorted(server.without),
            "auth_status": self.auth.replace(" ", "_"),
        }


def as_json(value: object) -> str:
    """Return indented JSON with all but printable ASCII characters escaped."""
    return json.dumps(value, indent=2, ensure_ascii=True).replace("\x7f", "\\u007f")


def _transport(server: McpServer) -> Mapping[str, Any]:
    if server.url:
        return {
            "type": "streamable_http",
            "url": server.url,
            "bearer_token_env_var": server.token_variable,
        }
    return {
        "type": "stdio",
        "command": server.command,
        "args": list(server.args),
        "env": dict(server.env),
        "cwd": server.cwd,
    }


def _words(words: Sequence[str]) -> str:
    """Return words as a line for a shell; masked words are not quoted."""
    return " ".join(word if HIDDEN in word else shlex.quote(word) for word in words)


def _argument(name: str) -> str:
    # A name can begin with a hyphen, as options do.
    return f"-- {name}" if name.startswith("-") else name
