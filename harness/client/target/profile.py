"""Profiles: how to start and reach one kind of server, and its known deviations."""

import re
import shlex
from collections.abc import Mapping
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from harness.client.target.inheritance import merge_profiles
from harness.client.target.mistakes import first_mistake
from harness.client.target.naming import (
    FolderInProject,
    HomeFiles,
    ProfileName,
    ProgramName,
    Variable,
    VariableValue,
)
from harness.client.target.shell_syntax import as_shell_command, operator_of
from harness.client.target.tomltext import Place, Toml, read_toml, steps_of
from harness.errors import UsageError
from harness.protocol.dialects.table import DialectError, load_dialect
from harness.trace.nearest import did_you_mean, unknown_name

PLACEHOLDERS = ("model_url", "home", "cwd", "listen")

# The prefix of places in a built-in profile: "profile spec:3:1".
BUILT_IN_PREFIX = "profile "
# Values of `extends` for a profile that extends nothing.
NOTHING = ("", "none")

# The kind of address that a server listens on, if it does not use its standard streams.
Listening = Literal["ws", "unix", "ws-unix"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Deviation(_Table):
    """One known contradiction of the specification, or one entry of a baseline.

    `rule` is a rule id, `scenario` a glob over scenario ids, `pinned` a text that the violation
    must contain, `flaky` whether it may also be absent, `expires` the last day on which it counts.
    """

    rule: str
    reason: str = Field(min_length=1)
    scenario: str = "*"
    pinned: str = ""
    flaky: bool = False
    expires: date | None = None


class Tool(_Table):
    """A tool of this server, to which an intent of the scripted model becomes a call.

    `name`, `namespace` and the texts of `arguments` may hold the intent's values in braces.
    """

    intent: Literal["run", "patch", "update_plan", "mcp_call", "dynamic_call", "view_image"]
    name: str = Field(min_length=1)
    namespace: str = ""
    arguments: dict[str, Any] | str = Field(default_factory=dict[str, Any])


def _check_patterns(value: list[str]) -> list[str]:
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    return value


def _check_pattern_lists(value: dict[str, list[str]]) -> dict[str, list[str]]:
    for patterns in value.values():
        _check_patterns(patterns)
    return value


Outcome = Literal["ok", "failed", "declined", "refused"]


class Bounds(_Table):
    """Bounds in seconds; `settle` is the silence after which nothing more is expected."""

    start: float = Field(default=10.0, gt=0)
    step: float = Field(default=5.0, gt=0)
    scenario: float = Field(default=20.0, gt=0)
    settle: float = Field(default=1.0, gt=0)
    stop: float = Field(default=2.0, gt=0)

    def scale(self, factor: float) -> "Bounds":
        """Return the same bounds, all of them `factor` times as long."""
        return Bounds(**{name: value * factor for name, value in self.model_dump().items()})


def _check_keys(value: list[str]) -> list[str]:
    for key in value:
        steps_of(key)
    return value


def _check_dialect(value: str) -> str:
    try:
        return load_dialect(value).name if value else ""
    except DialectError as error:
        raise ValueError(str(error)) from error


def _split_words(value: Any) -> Any:
    try:
        return split_command(value) if isinstance(value, str) else value
    except UsageError as error:
        raise ValueError(str(error)) from error


Words = Annotated[list[str], BeforeValidator(_split_words)]


class Program(_Table):
    """A program without which the server cannot provide a capability.

    `command` is harmless and shows whether it works; it is looked for in `places`, then on PATH.
    `install` says what to install, `otherwise` what to do if the program exists and fails.
    """

    command: Words = Field(min_length=1)
    install: str = Field(min_length=1)
    otherwise: str = ""
    places: list[str] = Field(default_factory=list[str])


class ExecProgram(_Table):
    """The program of `agent exec`, and the words of its command line, in this order.

    Each but the first two is added if it is needed, with its placeholder filled in; an empty one
    means that the program lacks the option. The defaults are those of the shipping agent's SDK.
    """

    command: Words = Field(default_factory=list[str])
    arguments: Words = Field(
        default_factory=lambda: ["exec", "--experimental-json", "--skip-git-repo-check"]
    )
    model: Words = Field(default_factory=lambda: ["--model", "{value}"])
    sandbox: Words = Field(default_factory=lambda: ["--sandbox", "{value}"])
    cwd: Words = Field(default_factory=lambda: ["--cd", "{value}"])
    schema_file: Words = Field(default_factory=lambda: ["--output-schema", "{value}"])
    setting: Words = Field(default_factory=lambda: ["--config", "{value}"])
    resume: Words = Field(default_factory=lambda: ["resume", "{value}"])
    image: Words = Field(default_factory=lambda: ["--image", "{value}"])


class SdkProgram(_Table):
    """The driver program of an SDK: see docs/sdk-judging.md.

    `agent_name` is the program that the SDK looks for on PATH without agentPathOverride.
    """

    command: Words = Field(default_factory=list[str])
    agent_name: ProgramName = "agent"


class Profile(_Table):
    """One kind of server. See docs/profiles.md."""

    name: ProfileName
    title: str = ""
    extends: str = "spec"
    without: Annotated[list[str], AfterValidator(_check_keys)] = Field(default_factory=list[str])
    command: Words = Field(default_factory=list[str])
    listen: Literal["stdio", "ws", "unix", "ws-unix"] = "stdio"
    listen_arguments: Words = Field(default_factory=list[str])
    handshake: Literal["initialize", "none"] = "initialize"
    initialize: dict[str, Any] = Field(default_factory=dict[str, Any])
    home_env: Variable = "AGENT_HOME"
    env: dict[Variable, VariableValue] = Field(default_factory=dict[str, str])
    capabilities: Literal["probe"] | list[str] = "probe"
    thread: dict[str, Any] = Field(default_factory=dict[str, Any])
    turn: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    agent_folder: FolderInProject = ".agent"
    names: dict[str, str] = Field(default_factory=dict[str, str])
    lifted: Annotated[list[str], AfterValidator(_check_keys)] = Field(default_factory=list[str])
    home: HomeFiles = Field(default_factory=dict[str, dict[str, Any]])
    host: dict[str, Program] = Field(default_factory=dict[str, Program])
    exec: ExecProgram = Field(default_factory=ExecProgram)
    sdk: SdkProgram = Field(default_factory=SdkProgram)
    bounds: Bounds = Field(default_factory=Bounds)
    lanes: int = Field(default=0, ge=0)
    barrier: str = "thread/read"
    hygiene: Literal["INFO", "MUST"] = "INFO"
    panics: Annotated[list[str], AfterValidator(_check_patterns)] = Field(default_factory=list[str])
    tools: list[Tool] = Field(default_factory=list[Tool])
    outcomes: Annotated[dict[Outcome, list[str]], AfterValidator(_check_pattern_lists)] = Field(
        default_factory=dict[Outcome, list[str]]
    )
    deviations: list[Deviation] = Field(default_factory=list[Deviation])
    dialect: Annotated[str, AfterValidator(_check_dialect)] = ""
    _toml: Toml | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _read_dialect(cls, value: Any) -> Any:
        """Take names, home and folder from the dialect's table where the file gives none."""
        if not isinstance(value, dict):
            return value
        members = cast("dict[str, Any]", value)
        name = members.get("dialect")
        if not isinstance(name, str) or not name:
            return members
        try:
            dialect = load_dialect(name)
        except DialectError:
            # The check of the member itself has the place.
            return members
        renamed = {f"{row.type}.{row.name}": row.wire for row in dialect.renames}
        given = members.get("names")
        return {
            "home_env": dialect.environment["AGENT_HOME"],
            "agent_folder": dialect.folder,
            **members,
            "names": renamed | (cast("dict[str, Any]", given) if isinstance(given, dict) else {}),
        }

    def remember_places(self, toml: Toml) -> None:
        """Keep the place of each key for later checks."""
        self._toml = toml

    def place(self, *loc: str | int, key: bool = False) -> Place:
        """Return the place of a value, or a key, in the profile's file or one that it extends."""
        if self._toml is None:
            return Place(f"profile {self.name}", 1, 1)
        return self._toml.place(loc, key=key)

    def is_built_in(self, *loc: str | int) -> bool:
        """Return whether a value comes from a profile that ships with the harness."""
        return self.place(*loc).file.startswith(BUILT_IN_PREFIX)

    def listening_kind(self) -> Listening | None:
        """Return the kind of address to listen on, None if the server uses its standard streams.

        A server whose command has `{listen}` listens, on a WebSocket unless the profile says
        otherwise. Raises `UsageError` if the server does not get the address.
        """
        has_address = "{listen}" in repr((self.command, self.env, self.home))
        if self.listen == "stdio":
            return "ws" if has_address else None
        if not has_address:
            raise UsageError(
                f'the profile {self.name!r} says listen = "{self.listen}", and nothing tells the '
                "server its address; put {listen} into the command"
            )
        return self.listen


def builtin_names() -> list[str]:
    """Return the names of the profiles that ship with the harness."""
    folder = resources.files("harness.client.target") / "profiles"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())


def load_profile(name: str) -> Profile:
    """Load a profile, built-in or a file, with all that it inherits; `UsageError` if not valid."""
    if name and name not in builtin_names() and Path(name).is_dir():
        raise UsageError(f"--target {name} is a folder; expected a profile's name or TOML file")
    if name not in builtin_names() and not Path(name).is_file():
        near = did_you_mean(name, builtin_names())
        raise UsageError(
            f"no profile {name!r}: not a file, and the built-in ones are "
            f"{', '.join(builtin_names())}{near}"
        )
    return _make_profile(_resolve_inheritance(*_read_profile(name, Path()), ()))


def parse_profile(text: str, file: str, *, folder: Path = Path()) -> Profile:
    """Return a profile from TOML text, with what it inherits; paths begin in `folder`.

    Raises `UsageError`, with the place and advice, if it is not valid.
    """
    return _make_profile(_resolve_inheritance(read_toml(text, file), folder, ()))


def _make_profile(toml: Toml) -> Profile:
    profile = _validate_profile(toml)
    profile.remember_places(toml)
    return profile


def _read_profile(name: str, folder: Path) -> tuple[Toml, Path]:
    """Return a built-in profile, or a file, and the folder in which its own paths begin."""
    if name in builtin_names():
        source = resources.files("harness.client.target") / "profiles" / f"{name}.toml"
        return read_toml(source.read_text("utf-8"), BUILT_IN_PREFIX + name), Path()
    path = folder / name
    try:
        return read_toml(path.read_text("utf-8"), str(path)), path.parent
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {_cause(error)}") from error


def _resolve_inheritance(toml: Toml, folder: Path, chain: tuple[str, ...]) -> Toml:
    """Return a file with everything that it inherits; `chain` are the files that extend it."""
    chain = (*chain, _identity(toml.file))
    extended = _validate_profile(toml).extends
    if extended in NOTHING:
        return toml
    prefix = f"{toml.place(('extends',))}: extends:"
    names = builtin_names()
    if extended not in names and not (folder / extended).is_file():
        raise UsageError(
            f"{prefix} {unknown_name('profile', extended, (*names, 'none'))} "
            f"(and there is no file {folder / extended})"
        )
    base, base_folder = _read_profile(extended, folder)
    if _identity(base.file) in chain:
        raise UsageError(f"{prefix} {extended!r} extends this file itself; extend another one")
    return merge_profiles(_resolve_inheritance(base, base_folder, chain), toml)


def _identity(file: str) -> str:
    """Return the same name for the same file, whatever path led to it."""
    return file if file.startswith(BUILT_IN_PREFIX) else str(Path(file).resolve())


def _validate_profile(toml: Toml) -> Profile:
    try:
        return Profile.model_validate(toml.value)
    except ValidationError as error:
        raise UsageError(first_mistake(error, Profile, toml)) from error


def _cause(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def split_command(command: str) -> list[str]:
    """Split a command as a POSIX shell would; `UsageError` if it is empty or needs a shell."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(
            f"the command {command!r} cannot be split as by a shell: {error}; fix its quotes"
        ) from error
    if not words:
        raise UsageError("the command is empty; give --server-cmd 'program arguments'")
    operator = operator_of(command)
    if operator:
        raise UsageError(
            f"the command holds {operator!r}, and no shell runs it; write "
            f"{as_shell_command(command)}, or quote what is a word"
        )
    return words


def fill(template: Any, values: Mapping[str, str]) -> Any:
    """Return `template` with the placeholders `{name}` of `values` replaced in every text."""
    if isinstance(template, str):
        for name, value in values.items():
            template = template.replace("{" + name + "}", value)
        return template
    if isinstance(template, list):
        return [fill(item, values) for item in template]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(template, dict):
        return {key: fill(item, values) for key, item in template.items()}  # pyright: ignore[reportUnknownVariableType]
    return template
