"""MCP servers that the harness plays, as a scenario writes them.

Here: the pydantic models of `mcp:`, and the tables of `mcp_servers` that the agent gets for them.
Not here: what is answered (mcp_server), how it is reached (mcp_desk).
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from harness.backend.strict import Strict

ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


def _no_zero(value: str) -> str:
    if "\0" in value:
        raise ValueError("a program's words cannot hold the character U+0000; leave it out")
    return value


Word = Annotated[str, AfterValidator(_no_zero)]


class McpTool(Strict):
    """A tool: what its result `says`, its `structured` content, whether it `fails`.

    `description` is what the model is told of it, `takes` the properties of its arguments as JSON
    Schema has them.
    """

    says: str = ""
    structured: dict[str, Any] | None = None
    fails: bool = False
    description: str = "A tool of the play"
    takes: dict[str, Any] = Field(default_factory=dict[str, Any])


class McpServer(Strict):
    """A server: its tools, each with a text or what McpTool has, and what its table holds."""

    tools: dict[ServerName, str | McpTool] = Field(min_length=1)
    transport: Literal["stdio", "http"] = "stdio"
    args: list[Word] = Field(default_factory=list[str])
    env: dict[VariableName, Word] = Field(default_factory=dict[str, str])
    bearer_token_env_var: VariableName | None = None
    enabled: bool = True

    @model_validator(mode="after")
    def _of_its_kind(self) -> "McpServer":
        if self.transport == "http" and (self.args or self.env):
            raise ValueError("args and env are for a program; leave them out, or transport: http")
        if self.transport == "stdio" and self.bearer_token_env_var is not None:
            raise ValueError("bearer_token_env_var goes with transport: http")
        return self

    def tool(self, name: str) -> McpTool | None:
        """A tool by its name."""
        found = self.tools.get(name)
        return McpTool(says=found) if isinstance(found, str) else found

    def table(self, transport: dict[str, Any]) -> dict[str, Any]:
        """Its table in the configuration; only what the scenario says is written."""
        more: dict[str, Any] = {}
        if self.env:
            more["env"] = dict(self.env)
        if self.bearer_token_env_var is not None:
            more["bearer_token_env_var"] = self.bearer_token_env_var
        if "enabled" in self.model_fields_set:
            more["enabled"] = self.enabled
        return {"transport": transport, **more}


McpSide = dict[ServerName, McpServer]
