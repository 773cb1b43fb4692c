"""What a scenario is: the pydantic models of the YAML format.

Here: names, types, defaults of everything a scenario file may hold, and nothing that plays it.
The model's side is `harness.backend.script`; errors with line and column are the loader's.
"""

from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from harness.backend.script import ModelStep, Script, Strict, key_of

Alias = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
Statuses = Literal["completed", "interrupted", "failed"]


class StartThread(Strict):
    """Start a thread; `params` are added to the settings."""

    alias: Alias = Field(alias="as")
    params: dict[str, Any] = Field(default_factory=dict[str, Any])


class StartTurn(Strict):
    """Start a turn with a text or with whole input items; `params` are further parameters."""

    thread: Alias
    alias: Alias = Field(alias="as")
    text: str | None = None
    input: list[dict[str, Any]] | None = None
    params: dict[str, Any] = Field(default_factory=dict[str, Any])


class Interrupt(Strict):
    """Interrupt a turn."""

    turn: Alias


class ReadThread(Strict):
    """Read a thread."""

    thread: Alias
    include_turns: bool = False


class Wait(Strict):
    """Wait for one of: the end of a turn, a notification, a gate that the model's stream reached.

    `status` lists the ends that are right for the script to go on; `where` maps dotted paths in
    the notification's params to values.
    """

    turn: Alias | None = None
    status: Statuses | list[Statuses] | None = None
    notification: str | None = None
    where: dict[str, Any] = Field(default_factory=dict[str, Any])
    gate: str | None = None

    @property
    def statuses(self) -> tuple[str, ...]:
        """The accepted ends of the turn; empty for any."""
        if self.status is None:
            return ()
        return (self.status,) if isinstance(self.status, str) else tuple(self.status)


class StartThreadStep(Strict):
    """`start_thread: {as: t}`"""

    start_thread: StartThread


class StartTurnStep(Strict):
    """`start_turn: {thread: t, text: "…", as: u}`"""

    start_turn: StartTurn


class InterruptStep(Strict):
    """`interrupt: {turn: u}`"""

    interrupt: Interrupt


class ReadThreadStep(Strict):
    """`read_thread: {thread: t, include_turns: true}`"""

    read_thread: ReadThread


class WaitStep(Strict):
    """`wait: {turn: u, status: completed}`"""

    wait: Wait


class OpenStep(Strict):
    """`open: GATE`"""

    open: str = Field(min_length=1)


ClientStep = Annotated[
    Annotated[StartThreadStep, Tag("start_thread")]
    | Annotated[StartTurnStep, Tag("start_turn")]
    | Annotated[InterruptStep, Tag("interrupt")]
    | Annotated[ReadThreadStep, Tag("read_thread")]
    | Annotated[WaitStep, Tag("wait")]
    | Annotated[OpenStep, Tag("open")],
    Discriminator(key_of),
]


class Settings(Strict):
    """Parameters of every `thread/start` of the scenario, by the protocol's names."""

    approvalPolicy: str = "never"
    sandbox: str = "danger-full-access"
    model: str | None = None


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError(f"the path {path!r} is not inside the workspace; expected a relative one")
    return path


Inside = Annotated[str, AfterValidator(_inside)]


class Workspace(Strict):
    """Files of the private workspace before the first step: relative path -> content."""

    files: dict[Inside, str] = Field(default_factory=dict[str, str])


ItemType = Literal[
    "userMessage",
    "agentMessage",
    "plan",
    "reasoning",
    "commandExecution",
    "fileChange",
    "mcpToolCall",
    "dynamicToolCall",
    "webSearch",
    "imageView",
    "enteredReviewMode",
    "exitedReviewMode",
    "contextCompaction",
]


def _pattern(value: object) -> str:
    return "members" if isinstance(value, dict) else "type"


ItemPattern = Annotated[
    Annotated[ItemType, Tag("type")] | Annotated[dict[ItemType, dict[str, Any]], Tag("members")],
    Discriminator(_pattern),
]


class Outcome(Strict):
    """One accepted outcome.

    `items`: item types in the order of their first appearance, each alone or with member values;
    other items may stand between. `turns`: alias -> accepted status or statuses. `workspace`:
    path -> content, or `absent`. `model_calls`: how often the model was called.
    """

    items: list[ItemPattern] | None = None
    turns: dict[Alias, Statuses | list[Statuses]] = Field(
        default_factory=dict[str, Statuses | list[Statuses]]
    )
    workspace: dict[Inside, str] = Field(default_factory=dict[str, str])
    model_calls: Annotated[int, Field(ge=0)] | None = None


class Expectations(Outcome):
    """What the scenario itself demands; with `any_of`, one of several outcomes as well."""

    any_of: list[Outcome] = Field(default_factory=list[Outcome])


def _sides(value: object) -> str:
    return "threads" if isinstance(value, dict) else "list"


ModelSide = Annotated[
    Annotated[list[ModelStep], Tag("list")]
    | Annotated[dict[Alias, list[ModelStep]], Tag("threads")],
    Discriminator(_sides),
]


class Scenario(Strict):
    """A whole scenario file."""

    title: str = Field(min_length=1, max_length=200)
    covers: list[str] = Field(default_factory=list[str])
    needs: list[str] = Field(default_factory=list[str])
    settings: Settings = Field(default_factory=Settings)
    workspace: Workspace = Field(default_factory=Workspace)
    server: Literal["shared", "fresh"] = "shared"
    strict_model: bool = False
    model: ModelSide = Field(default_factory=list[ModelStep])
    setup: list[ClientStep] = Field(default_factory=list[ClientStep])
    client: list[ClientStep] = Field(min_length=1)
    expect: Expectations = Field(default_factory=Expectations)

    def scripts(self) -> dict[str, Script]:
        """Thread alias -> script, in the order in which the threads are started."""
        started = [
            step.start_thread.alias
            for step in (*self.setup, *self.client)
            if isinstance(step, StartThreadStep)
        ]
        if isinstance(self.model, dict):
            return {alias: self.model[alias] for alias in started if alias in self.model}
        return {started[0] if started else "t": list(self.model)}

    def opened_gates(self) -> list[str]:
        """The gates that the client's side opens."""
        return [step.open for step in (*self.setup, *self.client) if isinstance(step, OpenStep)]

    def held_gates(self) -> list[str]:
        """The gates at which the model's side holds."""
        return [
            gate for script in self.scripts().values() for step in script for gate in step.gates()
        ]
