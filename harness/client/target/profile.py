"""Profiles: how to start and reach one kind of server, and its known deviations."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from harness.client.target.confine.command import Confinement
from harness.client.target.confine.table import Confine
from harness.client.target.editions import (
    Edition,
    Ranged,
    RangedCapability,
    ReleaseBlock,
    Version,
    edition_of,
)
from harness.client.target.inheritance import merge_profiles
from harness.client.target.mistakes import first_mistake
from harness.client.target.naming import (
    FolderInProject,
    HomeFiles,
    ProfileName,
    Variable,
    VariableValue,
)
from harness.client.target.parts import Bounds, ExecProgram, Program, SdkProgram, TimeRow
from harness.client.target.release_rows import block_of, first_range, select_release
from harness.client.target.settings_files import Format, Settings, file_text
from harness.client.target.tables import Table, Words
from harness.client.target.tomltext import Place, Toml, read_toml, steps_of
from harness.errors import UsageError
from harness.protocol.dialects.table import DialectError, load_dialect
from harness.protocol.releases import numbers_of, short_release
from harness.trace.nearest import did_you_mean, unknown_name

PLACEHOLDERS = ("model_url", "home", "cwd", "listen")

# The prefix of places in a built-in profile: "profile spec:3:1".
BUILT_IN_PREFIX = "profile "
# The placeholder of `title` and `dialect` for the release.
RELEASE = "{release}"
# Words for it in `title` if the server did not say it.
NOT_KNOWN = "(release not known)"
# Values of `extends` for a profile that extends nothing.
NOTHING = ("", "none")

# The kind of address that a server listens on, if it does not use its standard streams.
Listening = Literal["ws", "unix", "ws-unix"]


class Deviation(Ranged):
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


class Tool(Ranged):
    """A tool of this server, to which an intent of the scripted model becomes a call.

    `name`, `namespace` and the texts of `arguments` may hold the intent's values in braces.
    """

    intent: Literal["run", "patch", "update_plan", "mcp_call", "dynamic_call", "view_image"]
    name: str = Field(min_length=1)
    namespace: str = ""
    arguments: dict[str, Any] | str = Field(default_factory=dict[str, Any])

    def row(self) -> dict[str, Any]:
        """Return what the scripted model needs of it, without the releases."""
        return self.model_dump(exclude={"since", "until"})


def _check_patterns(value: list[str]) -> list[str]:
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a valid regular expression: {error}") from error
    return value


def _check_pattern_lists(value: dict[str, list[str]]) -> dict[str, list[str]]:
    for patterns in value.values():
        _check_patterns(patterns)
    return value


Outcome = Literal["ok", "failed", "declined", "refused"]


def _check_keys(value: list[str]) -> list[str]:
    for key in value:
        steps_of(key)
    return value


def _check_dialect(value: str) -> str:
    if RELEASE in value:
        return value  # It is checked again with the release.
    try:
        return load_dialect(value).name if value else ""
    except DialectError as error:
        raise ValueError(str(error)) from error


def _name_capabilities(value: Any) -> Any:
    """Return a list of capabilities with the names of those that some releases alone offer."""
    if not isinstance(value, list):
        return value
    try:
        return [
            RangedCapability.model_validate(one).name if isinstance(one, dict) else one
            for one in cast("list[Any]", value)
        ]
    except ValidationError as error:
        raise ValueError(
            "expected names of capabilities, or tables with name, since and until: "
            f"{error.errors()[0]['msg'].removeprefix('Value error, ')}"
        ) from error


class Profile(Table):
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
    capabilities: Annotated[Literal["probe"] | list[str], BeforeValidator(_name_capabilities)] = (
        "probe"
    )
    thread: dict[str, Any] = Field(default_factory=dict[str, Any])
    turn: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    agent_folder: FolderInProject = ".agent"
    names: dict[str, str] = Field(default_factory=dict[str, str])
    lifted: Annotated[list[str], AfterValidator(_check_keys)] = Field(default_factory=list[str])
    home: HomeFiles = Field(default_factory=dict[str, dict[str, Any] | str])
    formats: dict[str, Format] = Field(default_factory=dict[str, Format])
    settings: Settings = Field(default_factory=Settings)
    host: dict[str, Program] = Field(default_factory=dict[str, Program])
    exec: ExecProgram = Field(default_factory=ExecProgram)
    sdk: SdkProgram = Field(default_factory=SdkProgram)
    bounds: Bounds = Field(default_factory=Bounds)
    confine: Confine = Field(default_factory=Confine)
    lanes: int = Field(default=0, ge=0)
    barrier: str = "thread/read"
    hygiene: Literal["INFO", "MUST"] = "INFO"
    within: Literal["SHOULD", "MUST"] = "SHOULD"
    times: list[TimeRow] = Field(default_factory=list[TimeRow])
    panics: Annotated[list[str], AfterValidator(_check_patterns)] = Field(default_factory=list[str])
    tools: list[Tool] = Field(default_factory=list[Tool])
    outcomes: Annotated[dict[Outcome, list[str]], AfterValidator(_check_pattern_lists)] = Field(
        default_factory=dict[Outcome, list[str]]
    )
    deviations: list[Deviation] = Field(default_factory=list[Deviation])
    dialect: Annotated[str, AfterValidator(_check_dialect)] = ""
    version: Version = Field(default_factory=Version)
    releases: list[ReleaseBlock] = Field(default_factory=list[ReleaseBlock])
    _toml: Toml | None = PrivateAttr(default=None)
    _edition: Edition | None = PrivateAttr(default=None)
    _is_confined: bool = PrivateAttr(default=False)

    @model_validator(mode="before")
    @classmethod
    def _read_dialect(cls, value: Any) -> Any:
        """Take names, home and folder from the dialect's table where the file gives none."""
        if not isinstance(value, dict):
            return value
        members = cast("dict[str, Any]", value)
        name = members.get("dialect")
        if not isinstance(name, str) or not name or RELEASE in name:
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

    def remember(self, toml: Toml, edition: Edition | None) -> None:
        """Keep the place of each key for later checks, and the release that it was read for."""
        self._toml, self._edition = toml, edition

    @property
    def edition(self) -> Edition | None:
        """The release that it was read for, None if it knows of no releases."""
        return self._edition

    @property
    def is_confined(self) -> bool:
        """Return whether its programs run confined in this run."""
        return self._is_confined

    def as_confined(self) -> "Profile":
        """Return the profile for a run in which its programs are confined."""
        profile = self.model_copy()
        profile._is_confined = True
        return profile

    def confinement(self, folder: Path) -> Confinement | None:
        """Return the confinement of a run with this folder of its own, None if it has none."""
        return Confinement(self.confine, folder) if self._is_confined else None

    def place(self, *loc: str | int, key: bool = False) -> Place:
        """Return the place of a value, or a key, in the profile's file or one that it extends."""
        if self._toml is None:
            return Place(f"profile {self.name}", 1, 1)
        return self._toml.place(loc, key=key)

    def has_place(self, *loc: str | int) -> bool:
        """Return whether a value stands in a file, rather than in the dialect's table."""
        return self._toml is not None and loc in self._toml.values

    def range_at(self, *loc: str | int) -> str:
        """Return words on the releases for which a value holds, "" for all."""
        return self._toml.ranges.get(self.place(*loc), "") if self._toml is not None else ""

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
    """Return the names of the profiles that ship with the harness.

    Of a family of releases these are the name of all, and those of its oldest and newest one.
    """
    return sorted(name for family, ends in _built_in_files().items() for name in (family, *ends))


@cache
def _built_in_files() -> dict[str, tuple[str, ...]]:
    """Return the built-in files, and the names of their oldest and newest releases, if any."""
    files: dict[str, tuple[str, ...]] = {}
    for entry in (resources.files("harness.client.target") / "profiles").iterdir():
        name = entry.name.removesuffix(".toml")
        version = tomllib.loads(entry.read_text("utf-8")).get("version", {})
        ends = (version[end] for end in ("oldest", "newest") if end in version)
        files[name] = tuple(f"{name}-{short_release(end)}" for end in ends)
    return files


def built_in_release(name: str) -> tuple[str, str] | None:
    """Return the built-in file and the release of a name: (`codex`, `0.118`) or (`spec`, "").

    None if it is not a built-in profile.
    """
    files = _built_in_files()
    family, _, release = name.partition("-")
    if name in files:
        return name, ""
    return (family, release) if files.get(family) and numbers_of(release) else None


class _Source(NamedTuple):
    """A file, the folder in which its own paths begin, and the release in its name, if any."""

    toml: Toml
    folder: Path
    release: str = ""


def load_profile(name: str, release: str = "") -> Profile:
    """Load a profile, built-in or a file, with all that it inherits; `UsageError` if not valid.

    `release` is what the server says, "" if unknown: the newest that the profile knows. A name with
    a release, such as `codex-0.118`, has that one.
    """
    is_built_in = built_in_release(name) is not None
    if name and not is_built_in and Path(name).is_dir():
        raise UsageError(f"--target {name} is a folder; expected a profile's name or TOML file")
    if not is_built_in and not Path(name).is_file():
        near = did_you_mean(name, builtin_names())
        raise UsageError(
            f"no profile {name!r}: not a file, and the built-in ones are "
            f"{', '.join(builtin_names())}{near}"
        )
    return _make_profile(read_profile(name, Path()), release)


def parse_profile(text: str, file: str, *, folder: Path = Path(), release: str = "") -> Profile:
    """Return a profile from TOML text, with what it inherits; paths begin in `folder`.

    `release` is as in `load_profile`. Raises `UsageError`, with place and advice, if not valid.
    """
    return _make_profile(_Source(read_toml(text, file), folder), release)


def _make_profile(source: _Source, release: str) -> Profile:
    chain = read_chain(source)
    edition = _edition([source.toml for source in chain], chain, release)
    toml = _merge_chain([source.toml for source in chain], edition and edition.rows_of)
    if edition is not None:
        _fill_release(toml.value, edition)
    profile = _validate_profile(toml)
    profile.remember(toml, edition)
    for name, content in profile.home.items():
        try:
            file_text(name, content, profile.formats)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{profile.place('home', name)}: home: {name}: {error}") from error
    return profile


def _edition(files: Sequence[Toml], chain: Sequence[_Source], release: str) -> Edition | None:
    """Return the release to read the files for, None if they know of no releases."""
    version = _validate_profile(_merge_chain(files, None)).version
    named = next((source.release for source in chain if source.release), "")
    if version.oldest is None or version.newest is None:
        for toml in files:
            if (place := first_range(toml)) is not None:
                raise UsageError(
                    f"{place}: nothing says of which releases the profile is; add [version] with "
                    "oldest and newest"
                )
        return None
    return edition_of(version, named or release, is_named=bool(named))


def _fill_release(value: dict[str, Any], edition: Edition) -> None:
    """Put the release into the name, the title and the dialect."""
    if edition.release:
        value["name"] = f"{value['name']}-{short_release(edition.release)}"
    told = edition.release or NOT_KNOWN
    for key, release in (("title", told), ("dialect", edition.judged_as)):
        if isinstance(value.get(key), str):
            value[key] = value[key].replace(RELEASE, release)


def read_profile(name: str, folder: Path) -> _Source:
    """Return a built-in profile, or a file."""
    if (built_in := built_in_release(name)) is not None:
        file, release = built_in
        source = resources.files("harness.client.target") / "profiles" / f"{file}.toml"
        toml = read_toml(source.read_text("utf-8"), BUILT_IN_PREFIX + file)
        return _Source(toml, Path(), release)
    path = folder / name
    try:
        return _Source(read_toml(path.read_text("utf-8"), str(path)), path.parent)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {_cause(error)}") from error


def read_chain(source: _Source) -> list[_Source]:
    """Return a file and those that it extends, itself first, each validated on its own."""
    chain = [source]
    while True:
        toml = source.toml
        extended = _validate_file(toml).extends
        if extended in NOTHING:
            return chain
        prefix = f"{toml.place(('extends',))}: extends:"
        if built_in_release(extended) is None and not (source.folder / extended).is_file():
            raise UsageError(
                f"{prefix} {unknown_name('profile', extended, (*builtin_names(), 'none'))} "
                f"(and there is no file {source.folder / extended})"
            )
        source = read_profile(extended, source.folder)
        if _identity(source.toml.file) in {_identity(one.toml.file) for one in chain}:
            raise UsageError(f"{prefix} {extended!r} extends this file itself; extend another one")
        chain.append(source)


def _validate_file(toml: Toml) -> Profile:
    """Return a file on its own, with its blocks checked; `UsageError` if it is not valid."""
    profile = _validate_profile(toml)
    for index in range(len(profile.releases)):
        block = block_of(toml, index)
        _validate_profile(Toml(block.file, {"name": "x"} | block.value, block.keys, block.values))
    return profile


def _merge_chain(files: Sequence[Toml], release: str | None) -> Toml:
    """Return a file with everything that it inherits, for one release; None: for any."""
    *own_files, base = files
    result = select_release(base, release)
    for index in reversed(range(len(own_files))):
        every = partial(_merge_chain, files[index + 1 :], None)
        own = select_release(own_files[index], release)
        result = merge_profiles(result, own, None if release is None else every)
    return result


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
