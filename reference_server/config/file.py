"""What config.toml may say: one model for each of its tables.

Here live the keys, the values that each may have, and the words for a value that it may not have.
Defaults are `config.model`'s: a key that the file leaves out is None here. Imported only where
there is a file, since most homes have none.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Field
from pydantic_core import ErrorDetails

from harness.wire.settings import ApprovalPolicy, SandboxMode
from reference_server.config.mcp_tables import McpTable, ServerName
from reference_server.config.model import WebSearch
from reference_server.config.values import (
    Address,
    Count,
    KeyVariable,
    Size,
    Table,
    Text,
    VariableName,
    VariableValue,
    expect,
    one_of,
)

Names = Annotated[list[str], expect("an array of names of variables")]


class ProviderTable(Table):
    """`[model_providers.NAME]`; times in milliseconds."""

    name: Text | None = None
    base_url: Address | None = None
    env_key: KeyVariable | None = None
    request_max_retries: Count | None = None
    stream_max_retries: Count | None = None
    stream_idle_timeout_ms: Count | None = None
    retry_delay_ms: Count | None = None
    wire_api: Any = Field(default=None, exclude=True)
    """How the provider is spoken to. There is one way here, "responses", whatever this says."""


class CommandEnvironment(Table):
    """`[command_environment]`: the variables that commands get."""

    passed: Names = Field(default=[], alias="pass")
    added: dict[VariableName, VariableValue] = Field(default={}, alias="set")


class ConfigFile(Table):
    """The whole file; context sizes are in tokens."""

    model: Text | None = None
    model_provider: Text | None = None
    approval_policy: Annotated[ApprovalPolicy, one_of(ApprovalPolicy)] | None = None
    sandbox_mode: Annotated[SandboxMode, one_of(SandboxMode)] | None = None
    model_context_window: Size | None = None
    model_auto_compact_token_limit: Size | None = None
    web_search: Annotated[WebSearch, one_of(WebSearch)] | None = None
    model_providers: dict[str, ProviderTable] = Field(default_factory=dict[str, ProviderTable])
    mcp_servers: dict[ServerName, McpTable] = Field(default_factory=dict[str, McpTable])
    command_environment: CommandEnvironment = CommandEnvironment.model_construct()


def keys_of(table: type[BaseModel]) -> tuple[str, ...]:
    """Give the keys of a table, as they are written in the file."""
    return tuple(field.alias or name for name, field in table.model_fields.items())


def expected(error: ErrorDetails) -> str:
    """Say what a value should have been; all values but tables have words of their own."""
    return error.get("ctx", {}).get("words", "a table")


def valid_words(error: ErrorDetails) -> list[str]:
    """Give the words that a value could have been; none where it is not one of a few."""
    return error.get("ctx", {}).get("valid", [])


def may_be_secret(error: ErrorDetails) -> bool:
    """Tell whether the wrong value must not be quoted."""
    return error.get("ctx", {}).get("secret", False)
