"""Settings with their defaults; `config.load` makes them from the file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from harness.protocol.wire.settings import ApprovalPolicy, SandboxMode
from reference_server.config.mcp import McpServer
from reference_server.sandbox.environment import CommandVariables

WebSearch = Literal["disabled", "cached", "live"]
"""Access to the provider's own web search; `cached`: from its cache only."""
ReasoningEffort = Literal["minimal", "low", "medium", "high", "xhigh"]
"""Reasoning effort of the model. The protocol's requests accept three of these, the SDK all."""
CredentialsStore = Literal["auto", "file", "keyring"]
"""Store of the OAuth credentials of MCP servers."""
DEFAULT_PROVIDER = "default"
PROVIDER_KEY = "PROVIDER_API_KEY"
"""Environment variable with the key of a provider that has no `env_key`."""
ORIGINATORS = ("AGENT_ORIGINATOR", "CODEX_INTERNAL_ORIGINATOR_OVERRIDE")
"""Environment variables with the name of the calling program; the second is the SDK's."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A model provider: `/responses` is appended to `base_url`; times in milliseconds.

    `originator`: name of the program that runs the agent. `mistake`: why its table is wrong, so
    that it cannot be called; else "".
    """

    id: str
    name: str = ""
    base_url: str | None = None
    env_key: str | None = None
    request_max_retries: int = 4
    stream_max_retries: int = 5
    stream_idle_timeout_ms: int = 300_000
    retry_delay_ms: int = 200
    originator: str | None = None
    mistake: str = ""
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of config.toml and the environment; context sizes are in tokens.

    `network_access` and `writable_roots` (absolute paths) are those of the mode workspace-write.
    `folder` (absolute), if set, replaces the server's working directory: each server of a stage has
    its own.
    """

    model: str = "default-model"
    model_provider: str = DEFAULT_PROVIDER
    approval_policy: ApprovalPolicy = "on-request"
    sandbox_mode: SandboxMode = "read-only"
    model_reasoning_effort: ReasoningEffort | None = None
    show_raw_agent_reasoning: bool = False
    openai_base_url: str | None = None
    network_access: bool = False
    writable_roots: tuple[str, ...] = ()
    model_context_window: int | None = None
    model_auto_compact_token_limit: int | None = None
    web_search: WebSearch = "disabled"
    remote_skills: bool = False
    skill_catalogue: str | None = None
    providers: Mapping[str, Provider] = field(default_factory=dict[str, Provider])
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    disabled_mcp_servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    mcp_oauth_credentials_store: CredentialsStore = "auto"
    mcp_oauth_callback_port: int = 0
    mcp_oauth_login_timeout_sec: float = 300.0
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: str | None = None
    command_variables: CommandVariables = field(
        default_factory=lambda: CommandVariables(withheld_names=frozenset({PROVIDER_KEY}))
    )

    @property
    def has_outside_address(self) -> bool:
        """Return whether a provider that the file lacks would have an address."""
        addresses = (
            self.environment.get(name) for name in ("PROVIDER_BASE_URL", "OPENAI_BASE_URL")
        )
        return any((self.openai_base_url, *addresses))

    def provider(self, provider_id: str) -> Provider | None:
        """Return the provider of that id with its address and key; None if it is unknown.

        PROVIDER_BASE_URL takes precedence over the file, so that any configuration can be used with
        another address; `openai_base_url` of the file, and after it OPENAI_BASE_URL, are used only
        if the provider's own table has no address. With one of these three, providers need not be
        in the file. The key is the value of the variable that `env_key` names, else of
        PROVIDER_API_KEY.
        """
        env = self.environment
        configured = self.providers.get(provider_id)
        forced = env.get("PROVIDER_BASE_URL")
        fallback = self.openai_base_url or env.get("OPENAI_BASE_URL")
        if configured is None and not (forced or fallback) and provider_id != self.model_provider:
            return None
        base = configured or Provider(provider_id)
        key = (env.get(base.env_key) if base.env_key else None) or env.get(PROVIDER_KEY)
        address = forced or base.base_url or fallback
        return replace(base, base_url=address, api_key=key, originator=_originator(env))


def _originator(environment: Mapping[str, str]) -> str | None:
    """Return the name of the calling program; None without one that fits a header."""
    originator = next(filter(None, map(environment.get, ORIGINATORS)), None)
    return (
        originator
        if originator and originator.isascii() and originator.isprintable() and originator.strip()
        else None
    )
