"""The settings as values, with their defaults.

Here lives also how a provider is chosen. Reading the file lives in `config.load`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from harness.wire.settings import ApprovalPolicy, SandboxMode
from reference_server.config.mcp import McpServer
from reference_server.exec.environment import CommandVariables

WebSearch = Literal["disabled", "live"]
"""Whether the provider's own search is offered to the model."""
CredentialsStore = Literal["auto", "file", "keyring"]
"""Where the OAuth credentials of MCP servers are kept."""
DEFAULT_PROVIDER = "default"
PROVIDER_KEY = "PROVIDER_API_KEY"
"""The environment variable with the key of a provider that has no `env_key`."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One model provider: `base_url` is what `/responses` is appended to; times in milliseconds."""

    id: str
    name: str = ""
    base_url: str | None = None
    env_key: str | None = None
    request_max_retries: int = 4
    stream_max_retries: int = 5
    stream_idle_timeout_ms: int = 300_000
    retry_delay_ms: int = 200
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Config:
    """What config.toml and the environment say together; context sizes are in tokens."""

    model: str = "default-model"
    model_provider: str = DEFAULT_PROVIDER
    approval_policy: ApprovalPolicy = "on-request"
    sandbox_mode: SandboxMode = "read-only"
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
    command_variables: CommandVariables = field(
        default_factory=lambda: CommandVariables(withheld=frozenset({PROVIDER_KEY}))
    )

    @property
    def address_elsewhere(self) -> bool:
        """Whether the environment gives an address for a provider that the file does not have."""
        return any(self.environment.get(name) for name in ("PROVIDER_BASE_URL", "OPENAI_BASE_URL"))

    def provider(self, provider_id: str) -> Provider | None:
        """Give the provider of that id with its address and key, or None if there is none.

        PROVIDER_BASE_URL takes precedence over the file, so that any configuration can be used with
        another address; OPENAI_BASE_URL is used only where the file gives no address. With an
        address from the environment, providers need not be in the file. The key is the value of
        the variable that `env_key` names, else of PROVIDER_API_KEY.
        """
        env = self.environment
        known = self.providers.get(provider_id)
        forced = env.get("PROVIDER_BASE_URL")
        fallback = env.get("OPENAI_BASE_URL")
        if known is None and not (forced or fallback) and provider_id != self.model_provider:
            return None
        base = known or Provider(provider_id)
        key = (env.get(base.env_key) if base.env_key else None) or env.get(PROVIDER_KEY)
        return replace(base, base_url=forced or base.base_url or fallback, api_key=key)
