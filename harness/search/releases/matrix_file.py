"""The file of a matrix: targets by rows of TOML, each for several versions, profiles, surfaces."""

from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.client.target.mistakes import first_mistake
from harness.client.target.tomltext import Toml, read_toml
from harness.errors import UsageError
from harness.report.results.rerun_command import Programs
from harness.search.releases.target import Target
from harness.search.releases.versions import parse_versions


def _to_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Words = Annotated[list[str], BeforeValidator(_to_list)]


class TargetRow(BaseModel):
    """A `[[target]]`: a server, an agent or an SDK, or several of them.

    Several versions, profiles (`target`) or surfaces make a column for each combination.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1)
    versions: _Words = []
    npm: str = ""
    target: _Words = Field(default=["spec"], min_length=1)
    surfaces: list[Literal["session", "exec", "sdk"]] = []
    server_cmd: str = Field(default="", alias="server-cmd")
    agent_cmd: str = Field(default="", alias="agent-cmd")
    sdk_cmd: str = Field(default="", alias="sdk-cmd")
    install: str = ""

    def targets(self) -> list[tuple[Target, str, str]]:
        """Return each column: its target, its version, "" for none, and how it is installed."""
        versions = [one for words in self.versions for one in parse_versions(words, npm=self.npm)]
        columns: list[tuple[Target, str, str]] = []
        for profile, surface in product(self.target, self.surfaces or [""]):
            name = [self.name, *([profile] if len(self.target) > 1 else ())]
            name += [surface] if surface else []
            target = Target("-".join(name), self._programs(profile, surface))
            columns += [(target, version, self.install) for version in versions or [""]]
        return columns

    def _programs(self, profile: str, surface: str) -> Programs:
        """Return the commands of one surface, of all for ""; an SDK is played on the agent."""
        return Programs(
            profile,
            server=self.server_cmd if surface in ("", "session") else "",
            agent=self.agent_cmd if surface in ("", "exec", "sdk") else "",
            sdk=self.sdk_cmd if surface in ("", "sdk") else "",
        )


class MatrixFile(BaseModel):
    """A file of a matrix; without `scenarios` the bundled ones are played."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scenarios: list[str] = []
    target: list[TargetRow] = Field(min_length=1)


def read_matrix_file(path: Path) -> MatrixFile:
    """Read a file. Raises `OSError`, or `UsageError` with the place of the first mistake."""
    try:
        return parse_matrix(path.read_text("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8: {error}") from error


def parse_matrix(text: str, file: str) -> MatrixFile:
    """Return the matrix of a TOML text; `file` names it. Raises `UsageError` for a mistake."""
    toml = read_toml(text, file)
    try:
        matrix = MatrixFile.model_validate(toml.value)
    except ValidationError as error:
        raise UsageError(first_mistake(error, MatrixFile, toml)) from error
    _check_rows(matrix, toml)
    return matrix


def _check_rows(matrix: MatrixFile, toml: Toml) -> None:
    """Raise `UsageError` for a row without a command, and for two columns with one name."""
    names: set[str] = set()
    for number, row in enumerate(matrix.target):
        place = toml.place(("target", number, "name"))
        if not (row.server_cmd or row.agent_cmd or row.sdk_cmd):
            raise UsageError(
                f"{place}: the target {row.name!r} has no command; give it server-cmd, agent-cmd "
                "or sdk-cmd"
            )
        try:
            columns = row.targets()
        except UsageError as problem:
            raise UsageError(f"{place}: {problem}") from problem
        for target, version, _ in columns:
            if not any((target.programs.server, target.programs.agent, target.programs.sdk)):
                raise UsageError(f"{place}: {target.name!r} has no command for its surface")
            label = target.label(version)
            if label in names:
                raise UsageError(f"{place}: there are two targets {label!r}; rename one")
            names.add(label)
