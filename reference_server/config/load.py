"""Loading of the settings: config.toml, overridden by `--config key=value`.

`config.file` has the schema, `config.mistakes` the messages about mistakes; an unknown key is
reported and ignored (`config.keys`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from reference_server.brief import brief, brief_value
from reference_server.config.mcp import McpServer
from reference_server.config.mistakes import ConfigError, Source, Steps, choices, suggestion
from reference_server.config.model import PROVIDER_KEY, Config, Provider
from reference_server.config.text import ConfigTextError, read_text
from reference_server.sandbox.environment import CommandVariables

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from reference_server.config.file import CommandEnvironment, ConfigFile, ProviderTable

__all__ = [
    "ConfigError",
    "load_config",
    "load_mcp_servers",
    "mcp_servers_of",
    "parse_toml",
    "read_config",
]

Table = dict[str, Any]
DEFAULTS = Config()
WARNINGS = 20
"""Maximum warnings about unknown keys, and about tables left out."""
ELEMENTS: dict[Steps, str] = {
    ("mcp_servers",): "this MCP server is left out",
    ("model_providers",): "this provider cannot be used",
    ("skills", "config"): "this switch is left out",
}
"""Tables and arrays of which only the element with a mistake is left out, and the note on it."""
WRONG_KEY = "[key]"
"""Last step in pydantic's location if the key is wrong, not its value."""


def load_config(
    path: Path,
    environment: Mapping[str, str],
    warn: Callable[[str], None] = lambda _line: None,
    *,
    overrides: Sequence[str] = (),
    defaults: Config = DEFAULTS,
) -> Config:
    """Return the settings of the file, which may be missing, and of the overrides.

    `overrides` are `key=value` arguments of `--config`, which take precedence over the file. `warn`
    gets a line, `path:line:column: words`, for each unknown key, and for each table of the file
    that is left out because of a mistake in it (`ELEMENTS`). `defaults`: values of keys that both
    lack. Raises ConfigError for any other mistake.
    """
    text = read_config(path)
    if not text and not overrides:
        return replace(defaults, environment=environment)
    table = parse_toml(path, text)
    argument_of = _apply_overrides(table, overrides)
    reader = _Reader(Source(path, text, argument_of), table)
    config = reader.config(environment, defaults)
    for line in reader.warnings():
        warn(line)
    return config


def load_mcp_servers(
    path: Path,
    warn: Callable[[str], None] = lambda _line: None,
    *,
    overrides: Sequence[str] = (),
) -> dict[str, McpServer]:
    """Return the MCP servers, also those that are not enabled. Raises ConfigError.

    Mistakes in other tables are ignored. The parameters are as for `load_config`.
    """
    text = read_config(path)
    table = parse_toml(path, text)
    argument_of = _apply_overrides(table, overrides)
    return mcp_servers_of(path, text, table, warn, argument_of)


def mcp_servers_of(
    path: Path,
    text: str,
    table: Mapping[str, Any],
    warn: Callable[[str], None] = lambda _line: None,
    argument_of: Mapping[Steps, str] = MappingProxyType({}),
) -> dict[str, McpServer]:
    """Return the MCP servers of a parsed text, as `load_mcp_servers` does."""
    alone = {key: value for key, value in table.items() if key == "mcp_servers"}
    reader = _Reader(Source(path, text, argument_of), alone)
    servers = reader.mcp_servers()
    for line in reader.warnings():
        warn(line)
    return servers


def _apply_overrides(table: Table, overrides: Sequence[str]) -> dict[Steps, str]:
    if not overrides:
        return {}
    from reference_server.config.overrides import apply_overrides

    return apply_overrides(table, overrides)


def read_config(path: Path) -> str:
    """Return the text of the file, "" if it is missing. Raises ConfigError if it is unreadable."""
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""
    except ConfigTextError as error:
        raise ConfigError(f"{path}:1:1: {error}") from None
    except OSError as error:
        words = f"cannot be read: {error.strerror or error}"
        raise ConfigError(f"{path}:1:1: {words}") from error


def parse_toml(path: Path, text: str) -> Table:
    """Parse the text of this file as TOML. Raises ConfigError if it is not TOML."""
    # Imported late: most homes have no such file, and their server does not wait for the parser.
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_error(path, str(error), text)) from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or brackets nested too deeply.
        raise ConfigError(f"{path}:1:1: cannot be read as TOML: {brief(str(error))}") from error


def _syntax_error(path: Path, message: str, text: str) -> str:
    match = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if match:
        return f"{path}:{match[1]}:{match[2]}: {message[: match.start()].strip()}"
    from reference_server.config.places import line_and_column

    line, column = line_and_column(text, len(text))
    return f"{path}:{line}:{column}: {message.removesuffix(' (at end of document)')}"


def check_mcp_server(path: Path, text: str, table: Mapping[str, Any], name: str) -> None:
    """Raise ConfigError for a mistake in the table of the named MCP server, if there is one."""
    servers = table.get("mcp_servers")
    one: Table = cast("Table", servers) if isinstance(servers, dict) else {}
    alone = {key: value for key, value in one.items() if key == name}
    reader = _Reader(Source(path, text, {}), {"mcp_servers": alone})
    reader.mcp_servers()
    if reader.left_out:
        raise next(iter(reader.left_out.values()))


def _element_of(location: Steps) -> Steps | None:
    """Return the steps to the element of `ELEMENTS` that has the mistake; None if none has."""
    for steps in ELEMENTS:
        if location[: len(steps)] == steps and len(location) > len(steps):
            return location[: len(steps) + 1]
    return None


def _without(table: Any, steps: Steps) -> Any:
    """Return a copy of a table or array without the element at `steps`."""
    copy: Any = table.copy()
    if len(steps) == 1:
        del copy[steps[0]]
    else:
        copy[steps[0]] = _without(copy[steps[0]], steps[1:])
    return copy


def _in_mcp_server(steps: Steps) -> bool:
    return len(steps) > 2 and steps[0] == "mcp_servers"


def _provider(name: str, table: "ProviderTable") -> Provider:
    fields: Table = {"name": name, **table.model_dump(exclude_none=True)}
    return Provider(name, **fields)


def _servers(file: "ConfigFile", *, enabled: bool) -> dict[str, McpServer]:
    return {
        name: table.settings(name)
        for name, table in file.mcp_servers.items()
        if table.enabled is enabled
    }


class _Reader:
    """Validator of one parsed file with its overrides; `left_out`: the mistake by element."""

    def __init__(self, source: Source, table: Table) -> None:
        self._source = source
        self._table = table
        self.left_out: dict[Steps, ConfigError] = {}

    def config(self, environment: Mapping[str, str], defaults: Config) -> Config:
        """Return the settings. Raises ConfigError for a mistake that is not only one element's."""
        file = self._validate()
        providers = {name: _provider(name, table) for name, table in file.model_providers.items()}
        providers |= {
            str(steps[1]): self._unusable_provider(str(steps[1]), str(error))
            for steps, error in self.left_out.items()
            if steps[0] == "model_providers"
        }
        config = replace(
            defaults,
            **file.model_dump(
                exclude_none=True,
                exclude={
                    "model_providers",
                    "mcp_servers",
                    "command_environment",
                    "sandbox_workspace_write",
                    "skills",
                    "features",
                },
            ),
            network_access=bool(file.sandbox_workspace_write.network_access),
            writable_roots=tuple(file.sandbox_workspace_write.writable_roots or ()),
            remote_skills=file.features.remote_skills,
            skill_catalogue=file.skills.catalogue,
            providers=providers,
            mcp_servers=_servers(file, enabled=True),
            disabled_mcp_servers=_servers(file, enabled=False),
            environment=environment,
            command_variables=self._variables(file.command_environment, providers),
        )
        self._check_provider(config)
        if error := self.left_out.get(("model_providers", config.model_provider)):
            raise error
        return config

    def _unusable_provider(self, name: str, mistake: str) -> Provider:
        """Return a provider that fails each call, but whose key is still withheld from commands.

        It keeps the name: a thread that names it must not reach another address.
        """
        table = self._table["model_providers"][name]
        key = cast("Table", table).get("env_key") if isinstance(table, dict) else None
        # A client is not sent the value: an address can hold a password.
        words = mistake.partition(", not ")[0]
        return Provider(name, mistake=words, env_key=key if isinstance(key, str) else None)

    def mcp_servers(self) -> dict[str, McpServer]:
        """Return the MCP servers, also those that are not enabled. Raises ConfigError."""
        tables = self._validate().mcp_servers
        return {name: table.settings(name) for name, table in tables.items()}

    def _validate(self) -> "ConfigFile":
        from pydantic import ValidationError

        from reference_server.config.file import ConfigFile

        table = self._table
        while True:
            try:
                return ConfigFile.model_validate(table)
            except ValidationError as error:
                found: dict[Steps, ConfigError] = {}
                for details in error.errors(include_url=False):
                    mistake = self._config_error(details)
                    element = _element_of(details["loc"])
                    # A mistake in the options of this run is always an error.
                    if element is None or str(mistake).startswith("--config "):
                        raise mistake from None
                    found.setdefault(element, mistake)
            # From the end, so that the other elements of an array keep their indices.
            for element in sorted(found, reverse=True):
                table = _without(table, element)
            self.left_out |= found

    def _check_provider(self, config: Config) -> None:
        """Raise ConfigError if `model_provider` names a provider that the file does not have.

        It need not be in the file if that has no providers or a setting or variable has an address.
        """
        name = config.model_provider
        may_be_meant = (
            not config.providers or name in config.providers or config.has_outside_address
        )
        if "model_provider" in self._table and not may_be_meant:
            words = suggestion(name, config.providers) or choices(config.providers)
            raise ConfigError(
                f"{self._source.place(('model_provider',))}: `model_provider` must be the name of "
                f"a table [model_providers.NAME], not {brief_value(name)}{words}"
            )

    def _variables(
        self, table: "CommandEnvironment", providers: Mapping[str, Provider]
    ) -> CommandVariables:
        keys = {PROVIDER_KEY, *(one.env_key for one in providers.values() if one.env_key)}
        for index, name in enumerate(table.passed_names):
            if name in keys:
                place = self._source.place(("command_environment", "pass", index))
                raise ConfigError(
                    f"{place}: `pass` must be without {brief(name)}, a key that commands never get"
                )
        return CommandVariables(tuple(table.passed_names), table.set_values, frozenset(keys))

    def warnings(self) -> Iterator[str]:
        """Yield a line for each element left out and each unknown key, up to `WARNINGS` of each."""
        from reference_server.config.keys import unknown_keys

        for steps, error in islice(self.left_out.items(), WARNINGS):
            yield f"{error}; {ELEMENTS[steps[:-1]]}"
        unknown = unknown_keys(self._table)
        for steps, words in islice(unknown, WARNINGS):
            yield f"{self._source.place(steps, of_key=True)}: {words}"
        if next(unknown, None):
            yield f"{self._source.place(())}: there are more keys without effect"

    def _config_error(self, error: "ErrorDetails") -> ConfigError:
        """Return the error for a wrong value or key, with its place and the allowed values."""
        from reference_server.config.file import expected_words, may_be_secret, valid_words

        steps, key, value = self._follow(error["loc"])
        is_key = error["loc"][-1] == WRONG_KEY
        wrong = key if is_key else value
        owner = f" of the MCP server `{brief(str(steps[1]))}`" if _in_mcp_server(steps) else ""
        place = self._source.place(steps, of_key=is_key)
        words = f"{place}: `{brief(key)}`{owner} must be {expected_words(error)}"
        # Tables and arrays can hold passwords and keys.
        if may_be_secret(error) or isinstance(wrong, dict | list):
            return ConfigError(words)
        advice = suggestion(wrong, valid_words(error)) if isinstance(wrong, str) else ""
        return ConfigError(f"{words}, not {brief_value(wrong)}{advice}")

    def _follow(self, loc: Steps) -> tuple[Steps, str, object]:
        """Follow pydantic's location in the table as far as it leads to values.

        Return the steps followed, the last key among them ("" if none) and the value there.
        """
        path: list[int | str] = []
        value = cast("Any", self._table)
        for step in loc:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                break
            path.append(step)
        keys = [step for step in path if isinstance(step, str)]
        return tuple(path), keys[-1] if keys else "", value
