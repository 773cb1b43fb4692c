"""MCP servers that the harness plays, in the form that scenarios have."""

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from harness.model.strict import Strict

# Placeholders of configurations and profiles. Values under `mcp` must not contain them: a program's
# values are compared with the scenario's text.
PLACEHOLDERS: Final = ("agent", "cwd", "home", "listen", "model_url", "python")
_RESERVED_VARIABLES: Final = ("HOME", "NO_PROXY", "PATH")


def _check_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value):
        raise ValueError(f"found {value!r}; expected letters, digits, - and _, 64 at most")
    return value


def _check_variable_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", value):
        raise ValueError(f"found {value!r}; expected the name of a variable, such as SKY_COLOUR")
    return value


def _check_token_variable(value: str) -> str:
    if value in _RESERVED_VARIABLES:
        raise ValueError(f"the agent needs {value}; name another variable for the token")
    return _check_variable_name(value)


def _check_word(value: str) -> str:
    if "\0" in value:
        raise ValueError("a program's words cannot hold the character U+0000; leave it out")
    placeholder = next((name for name in PLACEHOLDERS if f"{{{name}}}" in value), None)
    if placeholder is not None:
        raise ValueError(
            f"{{{placeholder}}} stands for nothing here; write the words that are wanted"
        )
    return value


def _tool_from_text(value: object) -> object:
    if isinstance(value, str):
        return {"says": value}
    if not isinstance(value, dict | McpTool):
        raise ValueError(f"found {value!r}; expected a text, or a mapping such as {{says: TEXT}}")
    return value  # pyright: ignore[reportUnknownVariableType]


Name = Annotated[str, AfterValidator(_check_name)]
Variable = Annotated[str, AfterValidator(_check_variable_name)]
Word = Annotated[str, AfterValidator(_check_word)]


class McpTool(Strict):
    """A tool: what its result `says`, its `structured` content, whether it `fails`.

    `description` is its description for the model, `takes` the properties of its arguments in JSON
    Schema.
    """

    says: str = ""
    structured: dict[str, Any] | None = None
    fails: bool = False
    description: str = "A tool of the play"
    takes: dict[str, Any] = Field(default_factory=dict[str, Any])


Tool = Annotated[McpTool, BeforeValidator(_tool_from_text, json_schema_input_type=str | McpTool)]


class McpServer(Strict):
    """A server: its tools, each a text or a mapping as in McpTool, and its configuration."""

    tools: dict[Name, Tool]
    transport: Literal["stdio", "http"] = "stdio"
    args: list[Word] = Field(default_factory=list[str])
    env: dict[Variable, Word] = Field(default_factory=dict[str, str])
    bearer_token_env_var: Annotated[str, AfterValidator(_check_token_variable)] | None = None
    enabled: bool = True

    @model_validator(mode="after")
    def _check_transport_keys(self) -> "McpServer":
        if self.transport == "http" and (self.args or self.env):
            raise ValueError(
                "args and env are for a program; leave them out, or write transport: stdio"
            )
        if self.transport == "stdio" and self.bearer_token_env_var is not None:
            raise ValueError("bearer_token_env_var goes with transport: http")
        return self

    def table(self, transport: dict[str, Any]) -> dict[str, Any]:
        """Return its table in the agent's configuration, with the members set by the scenario."""
        members: dict[str, Any] = {}
        if self.env:
            members["env"] = dict(self.env)
        if self.bearer_token_env_var is not None:
            members["bearer_token_env_var"] = self.bearer_token_env_var
        if "enabled" in self.model_fields_set:
            members["enabled"] = self.enabled
        return {"transport": transport, **members}


McpSide = dict[Name, McpServer]
