"""What config.toml may say: one model for each of its tables.

Here live the keys, the values that each may have, and the words for a value that it may not have.
Defaults are `config.model`'s: a key that the file leaves out is None here. Imported only where
there is a file, since most homes have none.
"""

from collections.abc import Sequence
from typing import Annotated, Any, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from harness.wire.settings import ApprovalPolicy, SandboxMode
from reference_server.config.model import WebSearch

MOST = 10**9
"""The largest number of retries or milliseconds."""


def _expect(words: str, *, valid: Sequence[str] = (), secret: bool = False) -> WrapValidator:
    """Give one error, with these words, for whatever is wrong with a value.

    `valid` are the words that it may be, for a suggestion; a value that may be a `secret` that got
    into the wrong place is not quoted.
    """

    def check(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError:
            context = {"words": words, "valid": list(valid), "secret": secret}
            raise PydanticCustomError("unexpected", "{words}", context) from None

    return WrapValidator(check)


def _one_of(words: Any) -> WrapValidator:
    return _expect("one of " + ", ".join(get_args(words)), valid=get_args(words))


Text = Annotated[str, _expect("a string")]
Address = Annotated[
    str,
    Field(pattern=r"^https?://[^/\s]+[^\s]*$"),
    _expect("an address that begins with http:// or https://"),
]
KeyVariable = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"),
    _expect("the name of an environment variable that holds the key, not the key", secret=True),
]
Count = Annotated[int, Field(ge=0, le=MOST), _expect(f"a number from 0 to {MOST}")]
Size = Annotated[int, Field(ge=1), _expect("a number from 1")]
Names = Annotated[list[str], _expect("an array of names of variables")]
VariableName = Annotated[
    str, Field(pattern=r"^[^=\x00]+$"), _expect("the name of a variable, without `=` and NUL")
]
VariableValue = Annotated[str, Field(pattern=r"^[^\x00]*$"), _expect("a string without NUL")]


class _Table(BaseModel):
    """Keys that are not known are no mistake (`config.keys`)."""

    model_config = ConfigDict(
        strict=True, extra="ignore", defer_build=True, protected_namespaces=()
    )


class ProviderTable(_Table):
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


class CommandEnvironment(_Table):
    """`[command_environment]`: the variables that commands get."""

    passed: Names = Field(default=[], alias="pass")
    added: dict[VariableName, VariableValue] = Field(default={}, alias="set")


class ConfigFile(_Table):
    """The whole file; context sizes are in tokens."""

    model: Text | None = None
    model_provider: Text | None = None
    approval_policy: Annotated[ApprovalPolicy, _one_of(ApprovalPolicy)] | None = None
    sandbox_mode: Annotated[SandboxMode, _one_of(SandboxMode)] | None = None
    model_context_window: Size | None = None
    model_auto_compact_token_limit: Size | None = None
    web_search: Annotated[WebSearch, _one_of(WebSearch)] | None = None
    model_providers: dict[str, ProviderTable] = {}
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
