"""The base of all tables in a profile, and the type of commands in them."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from harness.client.target.shell_syntax import split_command
from harness.errors import UsageError


class Table(BaseModel):
    """A table of a profile: no other keys, no other types, no changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _split_words(value: Any) -> Any:
    try:
        return split_command(value) if isinstance(value, str) else value
    except UsageError as error:
        raise ValueError(str(error)) from error


Words = Annotated[list[str], BeforeValidator(_split_words)]
"""A command: a list of words, or a text that is split like a POSIX shell command line."""
