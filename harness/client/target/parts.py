"""Parts of a profile: the programs that it names, and its bounds."""

from pydantic import Field

from harness.client.target.naming import ProgramName
from harness.client.target.tables import Table, Words


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
