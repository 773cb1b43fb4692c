"""Steps of a scenario on the surface `command`, as pydantic models.

Such a scenario has only these steps and those that write and remove files.
"""

from typing import Literal

from pydantic import Field

from harness.model.strict import Strict


class Mcp(Strict):
    """A run of `agent mcp` with these words, [] for the command alone.

    `env` are further variables, whose values must not appear in files. `visit` is the user's
    reaction to a printed address: consents, denies, or does not open it (nobody). {mcp_url} is an
    MCP server that requires OAuth, {nobody_url} an unreachable one.
    """

    words: list[str]
    env: dict[str, str] = Field(default_factory=dict[str, str])
    visit: Literal["consents", "denies", "nobody"] = "consents"


class McpStep(Strict):
    """`mcp: {words: [add, docs, --, npx, -y, server]}`"""

    mcp: Mcp


class McpAtOnceStep(Strict):
    """`mcp_at_once: [{words: [add, one, --, x]}, {words: [add, two, --, x]}]`"""

    mcp_at_once: list[Mcp] = Field(min_length=2)
