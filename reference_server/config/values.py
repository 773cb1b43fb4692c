"""The kinds of values in config.toml, each with its words for a value that it may not have.

The tables are in `config.file` and `config.mcp_tables`.
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
"""The largest number of retries or milliseconds."""


def mistake(words: str, *, valid: Sequence[str] = (), secret: bool = False) -> PydanticCustomError:
    """Return the error of a value that should have been what these words say.

    `valid` are the words that it may be, for a suggestion; a value that may be a `secret` that got
    into the wrong place is not quoted.
    """
    context = {"words": words, "valid": list(valid), "secret": secret}
    return PydanticCustomError("unexpected", "{words}", context)


class Expectation(NamedTuple):
    """A check that gives one error, with these words, for whatever is wrong with a value."""

    words: str
    valid: tuple[str, ...] = ()
    secret: bool = False

    def __call__(self, value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        """Return the value. Raises PydanticCustomError."""
        try:
            return validate(value)
        except ValidationError:
            raise mistake(self.words, valid=self.valid, secret=self.secret) from None


def expect(words: str, *, valid: Sequence[str] = (), secret: bool = False) -> WrapValidator:
    """Check a value, see `mistake`."""
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
    # It may be a key, though of the wrong type.
    expect("a string without NUL", secret=True),
]


class Table(BaseModel):
    """Keys that are not known are no mistake (`config.keys`)."""

    model_config = ConfigDict(
        strict=True, extra="ignore", defer_build=True, protected_namespaces=()
    )
