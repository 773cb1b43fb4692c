"""Reading config.toml.

Here lives the way from the file to the settings, and the form of its errors: `path:line: what is
wrong`. What the file may say is in `config.file`; a key that is not known is told and ignored
(`config.keys`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from reference_server.brief import brief, brief_value
from reference_server.config.model import PROVIDER_KEY, Config, Provider
from reference_server.exec.environment import CommandVariables

if TYPE_CHECKING:
    from reference_server.config.file import CommandEnvironment, ConfigFile, ProviderTable

Table = dict[str, Any]
Steps = tuple[int | str, ...]
WARNINGS = 20
"""Keys without effect that are told one by one."""
WRONG_KEY = "[key]"
"""How pydantic marks, as the last step, that not the value of a key is wrong but the key."""


class ConfigError(Exception):
    """The file cannot be used; str() is one line that begins with `path:line:`."""


def load_config(
    path: Path, environment: Mapping[str, str], warn: Callable[[str], None] = lambda _line: None
) -> Config:
    """Read the file (a missing one is an empty one). Raises ConfigError.

    `warn` is given a line, `path:line: what`, for each key that has no effect.
    """
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path}:1: is not a file; remove it, or put a file in its place")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config(environment=environment)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{path}:1: cannot be read: {_why(error)}") from error
    # Most homes have no such file, and their server need not wait for its parser.
    import tomllib

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_error(path, str(error), text)) from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or brackets nested too deeply.
        raise ConfigError(f"{path}:1: cannot be read as TOML: {brief(str(error))}") from error
    reader = _Reader(path, text, table)
    config = reader.config(environment)
    for line in reader.warnings():
        warn(line)
    return config


def _why(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _syntax_error(path: Path, message: str, text: str) -> str:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if found:
        return f"{path}:{found[1]}: {message[: found.start()].strip()} (column {found[2]})"
    return f"{path}:{text.count(chr(10)) + 1}: {message}"


def _provider(name: str, table: "ProviderTable") -> Provider:
    given: Table = {"name": name, **table.model_dump(exclude_none=True)}
    return Provider(name, **given)


class _Reader:
    """Checks one parsed file; keeps its text to say on which line a key is."""

    def __init__(self, path: Path, text: str, table: Table) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._table = table

    def config(self, environment: Mapping[str, str]) -> Config:
        """Give the settings. Raises ConfigError."""
        file = self._validated()
        providers = {name: _provider(name, table) for name, table in file.model_providers.items()}
        return Config(
            **file.model_dump(
                exclude_none=True, exclude={"model_providers", "command_environment"}
            ),
            providers=providers,
            environment=environment,
            command_variables=self._variables(file.command_environment, providers),
        )

    def _validated(self) -> "ConfigFile":
        from pydantic import ValidationError

        from reference_server.config.file import ConfigFile, expected

        try:
            return ConfigFile.model_validate(self._table)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise self._wrong(first["loc"], expected(first)) from None

    def _variables(
        self, wanted: "CommandEnvironment", providers: Mapping[str, Provider]
    ) -> CommandVariables:
        keys = {PROVIDER_KEY, *(one.env_key for one in providers.values() if one.env_key)}
        if named := sorted(keys & set(wanted.passed)):
            words = f"without {named[0]}, a key that commands never get"
            raise self._wrong(("command_environment", "pass"), words)
        return CommandVariables(tuple(wanted.passed), wanted.added, frozenset(keys))

    def warnings(self) -> Iterator[str]:
        """Give a line for each key without effect, up to `WARNINGS`."""
        from reference_server.config.keys import unknown_keys

        found = unknown_keys(self._table)
        for key, value, words in islice(found, WARNINGS):
            yield f"{self._path}:{self._line_of(key, value)}: {words}"
        if next(found, None):
            yield f"{self._path}: there are more keys without effect"

    def _wrong(self, steps: Steps, expected: str) -> ConfigError:
        """Make the error of the value that these steps through the tables lead to."""
        key, values = "", [cast("object", self._table)]
        for step in map(str, steps):
            inner = values[-1]
            if not isinstance(inner, dict) or step not in inner:
                break
            key = step
            values.append(cast("Table", inner)[step])
        # The step after a value leads to a place within it; or it says that the key is wrong.
        wrong = key if steps[-1] == WRONG_KEY and steps[-2] == key else values[-1]
        return ConfigError(
            f"{self._path}:{self._line_of(key, values[-1])}: `{brief(key)}` must be {expected}, "
            f"not {brief_value(wrong)}"
        )

    def _line_of(self, key: str, value: object) -> int:
        from reference_server.config.lines import line_of

        return line_of(self._lines, key, value)
