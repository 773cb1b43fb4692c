"""Reading config.toml.

Here live the checks of the file and the words of its errors: `path:line: what is wrong`. Which keys
there are says `config.keys`; one that is unknown is told and let through.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from harness.wire.settings import ApprovalPolicy, SandboxMode
from reference_server.brief import brief, brief_value
from reference_server.config.keys import unknown_keys
from reference_server.config.model import PROVIDER_KEY, Config, Provider, WebSearch
from reference_server.exec.environment import CommandVariables

Table = dict[str, Any]
MOST = 10**9
"""Of a number of retries or milliseconds."""
WARNINGS = 20
"""Keys without effect that are told one by one."""
D = TypeVar("D")


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
            raise ConfigError(f"{path}:1: is no file; remove it, or write one in its place")
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
        # A number of thousands of digits, brackets within brackets without end.
        raise ConfigError(f"{path}:1: cannot be read as TOML: {brief(str(error))}") from error
    reader = _Reader(path, text)
    config = reader.config(table, environment)
    for line in reader.warnings(table):
        warn(line)
    return config


def _why(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _syntax_error(path: Path, message: str, text: str) -> str:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if found:
        return f"{path}:{found[1]}: {message[: found.start()].strip()} (column {found[2]})"
    return f"{path}:{text.count(chr(10)) + 1}: {message}"


class _Reader:
    """Checks one parsed file; keeps its text to say where a key stands."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()

    def config(self, table: Table, environment: Mapping[str, str]) -> Config:
        default = Config()
        return Config(
            model=self._text(table, "model", default.model),
            model_provider=self._text(table, "model_provider", default.model_provider),
            approval_policy=self._word(
                table, "approval_policy", get_args(ApprovalPolicy), default.approval_policy
            ),
            sandbox_mode=self._word(
                table, "sandbox_mode", get_args(SandboxMode), default.sandbox_mode
            ),
            model_context_window=self._size(table, "model_context_window"),
            model_auto_compact_token_limit=self._size(table, "model_auto_compact_token_limit"),
            web_search=self._word(table, "web_search", get_args(WebSearch), default.web_search),
            providers=(providers := self._providers(table)),
            environment=environment,
            command_variables=self._command_variables(table, providers.values()),
        )

    def _command_variables(self, table: Table, providers: Iterable[Provider]) -> CommandVariables:
        section = self._table(table, "command_environment")
        keys = {PROVIDER_KEY, *(one.env_key for one in providers if one.env_key)}
        passed: list[Any] = section.get("pass", [])
        if not isinstance(passed, list) or not all(isinstance(one, str) for one in passed):  # type: ignore[redundant-expr]
            raise self._wrong("pass", "an array of names of variables", passed)
        if named := sorted(keys & set(passed)):
            raise self._wrong("pass", f"without {named[0]}, a key that commands never get", passed)
        added = self._table(section, "set")
        for name, value in added.items():
            if not isinstance(value, str) or "\0" in name + value or "=" in name or not name:
                raise self._wrong(name, "a variable whose value is a string", value)
        return CommandVariables(tuple(passed), cast("dict[str, str]", added), frozenset(keys))

    def warnings(self, table: Table) -> Iterator[str]:
        found = unknown_keys(table)
        for key, value, words in islice(found, WARNINGS):
            yield f"{self._path}:{self._line_of(key, value)}: {words}"
        if next(found, None):
            yield f"{self._path}: there are more keys without effect"

    def _providers(self, table: Table) -> dict[str, Provider]:
        tables = self._table(table, "model_providers")
        return {name: self._provider(name, self._table(tables, name)) for name in tables}

    def _provider(self, name: str, table: Table) -> Provider:
        default = Provider(name)
        return Provider(
            id=name,
            name=self._text(table, "name", name),
            base_url=self._text(table, "base_url", None),
            env_key=self._text(table, "env_key", None),
            request_max_retries=self._count(
                table, "request_max_retries", default.request_max_retries
            ),
            stream_max_retries=self._count(table, "stream_max_retries", default.stream_max_retries),
            stream_idle_timeout_ms=self._count(
                table, "stream_idle_timeout_ms", default.stream_idle_timeout_ms
            ),
            retry_delay_ms=self._count(table, "retry_delay_ms", default.retry_delay_ms),
        )

    def _text(self, table: Table, key: str, default: D) -> str | D:
        value = table.get(key, default)
        if value is not default and not isinstance(value, str):
            raise self._wrong(key, "a string", value)
        return cast("str | D", value)

    def _word(self, table: Table, key: str, words: tuple[str, ...], default: str) -> Any:
        value = table.get(key, default)
        if value not in words:
            raise self._wrong(key, "one of " + ", ".join(words), value)
        return value

    def _count(self, table: Table, key: str, default: int) -> int:
        value = table.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
            raise self._wrong(key, f"a number from 0 to {MOST}", value)
        return value

    def _size(self, table: Table, key: str) -> int | None:
        if key not in table:
            return None
        value = table[key]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._wrong(key, "a number from 1", value)
        return value

    def _table(self, table: Table, key: str) -> Table:
        value = table.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, "a table", value)
        return cast("Table", value)

    def _wrong(self, key: str, expected: str, value: object) -> ConfigError:
        return ConfigError(
            f"{self._path}:{self._line_of(key, value)}: `{key}` must be {expected}, "
            f"not {brief_value(value)}"
        )

    def _line_of(self, key: str, value: object) -> int:
        """Find the line of a key, of several of that name the one that has this value."""
        pattern = re.compile(rf"""^\s*(?:[\w."'-]+\.)?["']?{re.escape(key)}["']?\s*=\s*(.*)$""")
        lines = [
            (number, found[1])
            for number, line in enumerate(self._lines, start=1)
            if (found := pattern.match(line))
        ]
        for number, rest in lines:
            if _reads_as(rest, value):
                return number
        return lines[0][0] if lines else self._line_of_table(key)

    def _line_of_table(self, key: str) -> int:
        """Find the line of a table's heading, `[key]`, or of a key within it, `key.other = 1`."""
        name = rf"""["']?{re.escape(key)}["']?"""
        pattern = re.compile(rf"^\s*(?:\[\[?\s*(?:.*\.\s*)?)?{name}\s*[.\]]")
        found = (number for number, line in enumerate(self._lines, 1) if pattern.match(line))
        return next(found, 1)


def _reads_as(text: str, value: object) -> bool:
    import tomllib

    try:
        return tomllib.loads(f"it = {text}")["it"] == value
    except tomllib.TOMLDecodeError:
        return False
