"""Profiles: how to reach and set up one kind of server, and what is known of it.

Here: the TOML format of a profile, its errors in one line, and the placeholders. Not here:
starting anything.
"""

import re
import shlex
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.target.shell import operator_of, through_a_shell

PLACEHOLDERS = ("model_url", "home", "cwd", "listen")

# What a server listens on that does not speak over its standard streams.
Listening = Literal["ws", "unix", "ws-unix"]


class ProfileError(Exception):
    """A profile or a command that cannot be used; the text says what to do."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Deviation(_Table):
    """One known contradiction of the specification, or one entry of a baseline.

    `rule` is a rule id, `scenario` a glob over scenario ids, `pinned` a text that the violation
    must contain, `flaky` whether it may also be absent.
    """

    rule: str
    reason: str = Field(min_length=1)
    scenario: str = "*"
    pinned: str = ""
    flaky: bool = False


class Tool(_Table):
    """How the scripted model's intent becomes a call of a tool that this server offers.

    `name`, `namespace` and the texts of `arguments` may hold the intent's values in braces.
    """

    intent: Literal["run", "patch", "update_plan", "mcp_call", "dynamic_call", "view_image"]
    name: str = Field(min_length=1)
    namespace: str = ""
    arguments: dict[str, Any] | str = Field(default_factory=dict[str, Any])


def _each_a_pattern(value: list[str]) -> list[str]:
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    return value


def _patterns(value: dict[str, list[str]]) -> dict[str, list[str]]:
    for patterns in value.values():
        _each_a_pattern(patterns)
    return value


Outcome = Literal["ok", "failed", "declined", "refused"]


class Bounds(_Table):
    """Bounds in seconds; `settle` is the silence after which nothing more is expected."""

    start: float = Field(default=10.0, gt=0)
    step: float = Field(default=5.0, gt=0)
    scenario: float = Field(default=20.0, gt=0)
    settle: float = Field(default=1.0, gt=0)
    stop: float = Field(default=2.0, gt=0)

    def scaled(self, factor: float) -> "Bounds":
        """The same bounds, all of them `factor` times as long."""
        return Bounds(**{name: value * factor for name, value in self.model_dump().items()})


def _words(value: Any) -> Any:
    return split_command(value) if isinstance(value, str) else value


class Profile(_Table):
    """One kind of server. See docs/profiles.md."""

    name: str
    title: str = ""
    command: Annotated[list[str], BeforeValidator(_words)] = Field(default_factory=list[str])
    listen: Literal["stdio", "ws", "unix", "ws-unix"] = "stdio"
    listen_arguments: Annotated[list[str], BeforeValidator(_words)] = Field(
        default_factory=list[str]
    )
    handshake: Literal["initialize", "none"] = "initialize"
    initialize: dict[str, Any] = Field(default_factory=dict[str, Any])
    home_env: str = "AGENT_HOME"
    env: dict[str, str] = Field(default_factory=dict[str, str])
    capabilities: Literal["probe"] | list[str] = "probe"
    thread: dict[str, Any] = Field(default_factory=dict[str, Any])
    turn: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    agent_folder: str = ".agent"
    names: dict[str, str] = Field(default_factory=dict[str, str])
    home: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    bounds: Bounds = Field(default_factory=Bounds)
    barrier: str = "thread/read"
    hygiene: Literal["INFO", "MUST"] = "INFO"
    panics: Annotated[list[str], AfterValidator(_each_a_pattern)] = Field(default_factory=list[str])
    tools: list[Tool] = Field(default_factory=list[Tool])
    outcomes: Annotated[dict[Outcome, list[str]], AfterValidator(_patterns)] = Field(
        default_factory=dict[Outcome, list[str]]
    )
    deviations: list[Deviation] = Field(default_factory=list[Deviation])

    def listening(self) -> Listening | None:
        """What the server listens on, None where it speaks over its standard streams.

        A command that asks for an address listens, on a WebSocket where the profile does not say.
        Raises `ProfileError` where the server is not told the address.
        """
        told = "{listen}" in repr((self.command, self.env, self.home))
        if self.listen == "stdio":
            return "ws" if told else None
        if not told:
            raise ProfileError(
                f'the profile {self.name!r} says listen = "{self.listen}", and nothing tells the '
                "server its address; put {listen} into the command"
            )
        return self.listen


def builtin_names() -> list[str]:
    """The names of the profiles that ship with the harness."""
    folder = resources.files("harness.target") / "profiles"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())


def load_profile(name: str) -> Profile:
    """A built-in profile by name, or a file by path. Raises `ProfileError`."""
    if name in builtin_names():
        source = resources.files("harness.target") / "profiles" / f"{name}.toml"
        return parse_profile(source.read_text("utf-8"), f"profile {name}")
    path = Path(name)
    if name and path.is_dir():
        raise ProfileError(f"--target {name} is a folder; expected a profile's name or TOML file")
    if not path.is_file():
        raise ProfileError(
            f"no profile {name!r}: not a file, and the built-in ones are "
            f"{', '.join(builtin_names())}"
        )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path}: cannot be read: {_cause(error)}") from error
    return parse_profile(text, str(path))


def parse_profile(text: str, where: str) -> Profile:
    """A profile from TOML text. Raises `ProfileError` with the place and what to do."""
    try:
        return Profile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{where}: not TOML: {error}") from error
    except ValidationError as error:
        raise ProfileError(f"{where}: {mistake(error, Profile)}") from error


def mistake(error: ValidationError, model: type[BaseModel]) -> str:
    """The first mistake of a TOML file in one line: the key, what is wrong, what is expected."""
    details = error.errors(include_url=False)
    # A misspelt key is also a missing one: the misspelling is the mistake.
    details.sort(key=lambda detail: detail["type"] != "extra_forbidden")
    first = details[0]
    key = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        fields = _fields_at(model, first["loc"][:-1])
        return f"unknown key {key!r}; expected one of: {', '.join(fields)}"
    if first["type"] == "missing":
        return f"the key {key!r} is missing"
    message = first["msg"].replace("Input should", "it should")
    return f"{key}: {message.replace('a valid dictionary', 'a table')}"


def _fields_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys of the table at a place in a file: tables of tables, and lists of tables."""
    for step in loc:
        if isinstance(step, int) or step not in model.model_fields:
            continue
        annotation = model.model_fields[step].annotation
        for inner in (annotation, *get_args(annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                model = inner
    return list(model.model_fields)


def _cause(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def split_command(command: str) -> list[str]:
    """A command as a POSIX shell would split it; it is run without a shell."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ProfileError(
            f"the command {command!r} cannot be split as by a shell: {error}; mend its quotes"
        ) from error
    if not words:
        raise ProfileError("the command is empty; give --server-cmd 'program arguments'")
    operator = operator_of(command)
    if operator:
        raise ProfileError(
            f"the command holds {operator!r}, and no shell runs it; write "
            f"{through_a_shell(command)}, or quote what is a word"
        )
    return words


def fill(template: Any, values: Mapping[str, str]) -> Any:
    """Replace the placeholders `{name}` of `values` in every text; other braces stay."""
    if isinstance(template, str):
        for name, value in values.items():
            template = template.replace("{" + name + "}", value)
        return template
    if isinstance(template, list):
        return [fill(item, values) for item in template]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(template, dict):
        return {key: fill(item, values) for key, item in template.items()}  # pyright: ignore[reportUnknownVariableType]
    return template
