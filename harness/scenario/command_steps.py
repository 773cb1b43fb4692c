"""Steps of a scenario on the surface `command`, as pydantic models.

Such a scenario has no other steps but those that write and remove files.
"""

from typing import Literal

from pydantic import Field

from harness.model.strict import Strict


class Mcp(Strict):
    """Run `agent mcp` with these words, [] for the command alone; `env` are further variables,
    with which it is watched that their values stay out of files.

    `visit` says what the user does who is shown an address to visit: consents, denies, or nobody
    comes. {mcp_url} stands for an MCP server that asks for OAuth, {nobody_url} for one that nobody
    can reach.
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
