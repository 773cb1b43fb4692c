"""Schema of config.toml: one model for each of its tables.

A missing key is None here; `config.model` has the defaults. Imported only if there is a file or an
override, since most homes have none.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Field
from pydantic_core import ErrorDetails

from harness.protocol.wire.settings import ApprovalPolicy, SandboxMode
from reference_server.config.mcp_tables import McpTable, Seconds, ServerName
from reference_server.config.model import CredentialsStore, ReasoningEffort, WebSearch
from reference_server.config.skills import FeaturesTable, SkillsTable
from reference_server.config.values import (
    Address,
    Count,
    Flag,
    KeyVariable,
    Port,
    Size,
    Table,
    Text,
    VariableName,
    VariableValue,
    expect,
    one_of,
)

AbsolutePath = Annotated[str, Field(pattern=r"^/[^\x00]*$"), expect("an absolute path")]
Names = Annotated[list[str], expect("an array of names of variables")]


class ProviderTable(Table):
    """A provider of models. `NAME` is its name in `model_provider` and in `thread/start`."""

    name: Text | None = None
    """Name of the provider in messages."""
    base_url: Address | None = None
    """Its address, to which `/responses` is appended."""
    env_key: KeyVariable | None = None
    """The environment variable with its key; `PROVIDER_API_KEY` if absent."""
    request_max_retries: Count | None = None
    """Maximum number of retries of a request that failed with a temporary error."""
    stream_max_retries: Count | None = None
    """Maximum number of retries after a stream that broke off."""
    stream_idle_timeout_ms: Count | None = None
    """Milliseconds without data after which a stream counts as broken."""
    retry_delay_ms: Count | None = None
    """Milliseconds before the first retry; the delay doubles with each one."""
    wire_api: Any = Field(default=None, exclude=True)
    """Protocol of the provider. Only `"responses"` is supported; any other value is ignored."""


class CommandEnvironment(Table):
    """Environment variables that commands get in addition to a few that all programs need."""

    passed_names: Names = Field(default_factory=list[str], alias="pass")
    """Names of the server's variables that commands get too; keys of providers are not allowed."""
    set_values: dict[VariableName, VariableValue] = Field(
        default_factory=dict[str, str], alias="set"
    )
    """Variables and their values."""


class WorkspaceWriteTable(Table):
    """Rights of the sandbox mode workspace-write besides writing in the working directory."""

    network_access: Flag | None = None
    """Allows commands to reach the network."""
    writable_roots: (
        Annotated[
            list[AbsolutePath],
            Field(max_length=100),
            expect("an array of at most 100 absolute paths"),
        ]
        | None
    ) = None
    """Absolute paths of further writable folders."""


class ConfigFile(Table):
    """Defaults for threads, which clients can override, and limits of the model."""

    model: Text | None = None
    """The model of a thread whose client names none."""
    model_provider: Text | None = None
    """The provider of a thread whose client names none: the name of a table below."""
    approval_policy: Annotated[ApprovalPolicy, one_of(ApprovalPolicy)] | None = None
    """Policy that decides when the client is asked for an approval."""
    sandbox_mode: Annotated[SandboxMode, one_of(SandboxMode)] | None = None
    """Rights that commands have without an approval."""
    model_reasoning_effort: Annotated[ReasoningEffort, one_of(ReasoningEffort)] | None = None
    """Reasoning effort of the model in a thread whose client does not set it."""
    show_raw_agent_reasoning: Flag | None = None
    """Makes `agent exec` show raw reasoning blocks in addition to the summary."""
    openai_base_url: Address | None = None
    """The address of a provider whose own table has no `base_url`."""
    model_context_window: Size | None = None
    """Number of tokens that the model accepts, for `thread/tokenUsage/updated`."""
    model_auto_compact_token_limit: Size | None = None
    """Tokens from which the history is compacted automatically; if absent, 90 % of
    `model_context_window`, and never without that."""
    web_search: Annotated[WebSearch, one_of(WebSearch)] | None = None
    """Availability of the provider's own web search to the model."""
    mcp_oauth_credentials_store: Annotated[CredentialsStore, one_of(CredentialsStore)] | None = None
    """Store of the credentials of `agent mcp login`: the keyring of the system, a file of the home,
    or (auto) the keyring if one works, else the file."""
    mcp_oauth_callback_port: Port | None = None
    """The port of 127.0.0.1 at which `agent mcp login` waits for the browser; 0 is any free one."""
    mcp_oauth_login_timeout_sec: Seconds | None = None
    """Seconds that `agent mcp login` waits for the browser."""
    model_providers: dict[str, ProviderTable] = Field(default_factory=dict[str, ProviderTable])
    mcp_servers: dict[ServerName, McpTable] = Field(default_factory=dict[str, McpTable])
    sandbox_workspace_write: WorkspaceWriteTable = WorkspaceWriteTable.model_construct()
    command_environment: CommandEnvironment = CommandEnvironment.model_construct()
    skills: SkillsTable = SkillsTable.model_construct()
    features: FeaturesTable = FeaturesTable.model_construct()


def keys_of(table: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys of a table, as the file spells them."""
    return tuple(field.alias or name for name, field in table.model_fields.items())


def expected_words(error: ErrorDetails) -> str:
    """Return the description of a valid value for a wrong one, such as "a string"."""
    otherwise = "an array of tables" if error["type"] == "list_type" else "a table"
    return error.get("ctx", {}).get("words", otherwise)


def valid_words(error: ErrorDetails) -> list[str]:
    """Return the allowed values of an enumeration; [] for other types."""
    return error.get("ctx", {}).get("valid", [])


def may_be_secret(error: ErrorDetails) -> bool:
    """Return whether the wrong value must not be quoted."""
    return error.get("ctx", {}).get("secret", False)
