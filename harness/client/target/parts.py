"""Parts of a profile: the programs that it names, and its bounds."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from harness.client.target.naming import ProgramName
from harness.client.target.tables import Table, Words
from harness.trace.time_limits import TimeLimit, parse_duration


class Bounds(Table):
    """Bounds in seconds; `settle` is the silence after which nothing more is expected."""

    start: float = Field(default=10.0, gt=0)
    step: float = Field(default=5.0, gt=0)
    scenario: float = Field(default=20.0, gt=0)
    settle: float = Field(default=1.0, gt=0)
    stop: float = Field(default=2.0, gt=0)

    def scale(self, factor: float) -> "Bounds":
        """Return the same bounds, all of them `factor` times as long."""
        return Bounds(**{name: value * factor for name, value in self.model_dump().items()})


class TimeRow(Table):
    """A limit of time over a run: from a message to the first `to` after it on the same thread.

    Without `to` it is the answer to the request `from`. `percentile` of the times of a run may take
    at most `within`; the level MUST makes that a promise of the server.
    """

    start: str = Field(alias="from", min_length=1)
    to: str = Field(default="", min_length=1)
    within: Annotated[float, BeforeValidator(parse_duration)]
    percentile: float = Field(default=95.0, gt=0, le=100)
    level: Literal["MUST", "SHOULD"] = "SHOULD"

    @property
    def limit(self) -> TimeLimit:
        """The row as a limit that a trace can be measured by."""
        promised = self.level == "MUST"
        return TimeLimit(self.start, self.to, self.within, self.percentile, promised)


class Program(Table):
    """A program without which the server cannot provide a capability.

    `command` is harmless and shows whether it works; it is looked for in `places`, then on PATH.
    `install` says what to install, `otherwise` what to do if the program exists and fails.
    """

    command: Words = Field(min_length=1)
    install: str = Field(min_length=1)
    otherwise: str = ""
    places: list[str] = Field(default_factory=list[str])


class ExecProgram(Table):
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


class SdkProgram(Table):
    """The driver program of an SDK: see docs/sdk-judging.md.

    `agent_name` is the program that the SDK looks for on PATH without agentPathOverride.
    """

    command: Words = Field(default_factory=list[str])
    agent_name: ProgramName = "agent"
