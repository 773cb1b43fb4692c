"""Types of values in config.toml, each with its description for error messages.

`config.file` and `config.mcp_tables` have the tables.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

MAX_COUNT = 10**9
"""Maximum number of retries or milliseconds."""


def mistake(words: str, *, valid: Sequence[str] = (), secret: bool = False) -> PydanticCustomError:
    """Return the error for a wrong value; `words` describe a valid one, such as "a string".

    `valid`: allowed values, for a suggestion. `secret`: the wrong value may be a secret in the
    wrong place, so messages do not quote it.
    """
    context = {"words": words, "valid": list(valid), "secret": secret}
    return PydanticCustomError("unexpected", "{words}", context)


class Expectation(NamedTuple):
    """Validator that raises a single error, with `words`, for any mistake in a value."""

    words: str
    valid: tuple[str, ...] = ()
    secret: bool = False

    def __call__(self, value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        """Return the validated value. Raises PydanticCustomError if it is wrong."""
        try:
            return validate(value)
        except ValidationError:
            raise mistake(self.words, valid=self.valid, secret=self.secret) from None


def expect(words: str, *, valid: Sequence[str] = (), secret: bool = False) -> WrapValidator:
    """Return a validator whose error is `mistake` of these arguments."""
    return WrapValidator(Expectation(words, tuple(valid), secret))


def one_of(words: Any) -> WrapValidator:
    """Return a validator that allows only the values of a Literal."""
    return expect("one of " + ", ".join(get_args(words)), valid=get_args(words))


Text = Annotated[str, expect("a string")]
Address = Annotated[
    str,
    Field(pattern=r"^https?://[^\s/?#]+[^\s]*$"),
    expect("an address that begins with http:// or https://"),
]
KeyVariable = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"),
    expect("the name of an environment variable that holds the key, not the key", secret=True),
]
Flag = Annotated[bool, expect("true or false")]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT), expect(f"a number from 0 to {MAX_COUNT}")]
Port = Annotated[int, Field(ge=0, le=65535), expect("a port, from 0 to 65535")]
Size = Annotated[int, Field(ge=1), expect("a number from 1")]
VariableName = Annotated[
    str, Field(pattern=r"^[^=\x00]+$"), expect("the name of a variable, without `=` and NUL")
]
VariableValue = Annotated[
    str,
    Field(pattern=r"^[^\x00]*$"),
    # A wrong value may be a key of the wrong type.
    expect("a string without NUL", secret=True),
]


class Table(BaseModel):
    """Base of all tables. It ignores unknown keys, which `config.keys` reports."""

    model_config = ConfigDict(
        strict=True, extra="ignore", defer_build=True, protected_namespaces=()
    )
