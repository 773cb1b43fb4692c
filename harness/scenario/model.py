"""Pydantic models of a scenario file.

Those of the model's side are in `harness.model.script`, of the client's in `client_steps`; the
loader adds line and column to errors.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from harness.model.mcp_script import McpServer, McpSide
from harness.model.parts import Delta, Part
from harness.model.script import ModelStep, Script
from harness.model.strict import Alias, Strict
from harness.protocol.values import arr, obj
from harness.scenario.answers import Answers, GivenAnswer, answers_of
from harness.scenario.client_steps import (
    ClientStep,
    ConnectStep,
    OpenStep,
    Statuses,
    WaitStep,
    protocol_word,
    thread_alias_of,
    turn_alias_of,
)
from harness.scenario.faults import FaultEntry
from harness.scenario.process_reuse import spoils_process
from harness.scenario.workspace import ExpectedContent, FileMode, Workspace, WorkspacePath


class Settings(Strict):
    """Parameters of every `thread/start` of the scenario, by the protocol's names."""

    approvalPolicy: str = "never"
    sandbox: str = "danger-full-access"
    model: str | None = None


# The lexicon checks item types; `extensions` may name a server's own.
ItemType = Annotated[str, protocol_word("item type")]


def _pattern_tag(value: object) -> str:
    return "members" if isinstance(value, dict) else "type"


ItemPattern = Annotated[
    Annotated[ItemType, Tag("type")] | Annotated[dict[ItemType, dict[str, Any]], Tag("members")],
    Discriminator(_pattern_tag),
]


def contained_text(value: object) -> str | None:
    """Return the text of `{contains: TEXT}`, None if the value is anything else."""
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, Any]", value)
    piece = members.get("contains")
    return piece if len(members) == 1 and isinstance(piece, str) and piece else None


class DiffText(Strict):
    """Texts that the last diff of a turn must contain, and texts that it must lack."""

    contains: list[str] = Field(default_factory=list[str])
    lacks: list[str] = Field(default_factory=list[str])


def _count_tag(value: object) -> str:
    return "several" if isinstance(value, list) else "one"


_Count = Annotated[int, Field(ge=0)]
Counts = Annotated[
    Annotated[_Count, Tag("one")] | Annotated[list[_Count], Field(min_length=1), Tag("several")],
    Discriminator(_count_tag),
]


def accepted_values(value: Any) -> list[Any]:
    """Return the accepted values of an item's member: the list of `{any_of: […]}`, or the value."""
    members = obj(value)
    return arr(members["any_of"]) if members.keys() == {"any_of"} else [value]


class Outcome(Strict):
    """One accepted outcome.

    `items`: item types in the order of their first appearance, each alone or with member values
    (`{contains: TEXT}` for part of a text, `{any_of: [...]}` for alternative values, `absent` among
    them for no such member); other items may come between. `turns`: alias -> accepted status or
    statuses. `workspace`: path -> content to the byte (a text, `{base64: …}` or `{link: TARGET}`),
    or `absent`. `modes`: path -> mode of the file, in octal digits. `diffs`: turn alias -> texts of
    its diff. `model_calls`: the number of model calls, or a list of accepted numbers.
    """

    items: list[ItemPattern] | None = None
    turns: dict[Alias, Statuses] = Field(default_factory=dict[str, str | list[str]])
    workspace: dict[WorkspacePath, ExpectedContent] = Field(
        default_factory=dict[str, ExpectedContent]
    )
    modes: dict[WorkspacePath, FileMode] = Field(default_factory=dict[str, str])
    diffs: dict[Alias, DiffText] = Field(default_factory=dict[str, DiffText])
    model_calls: Counts | None = None


class Expectations(Outcome):
    """Demands of the scenario itself; with `any_of`, one of several outcomes as well.

    `violations`: the rules that must be broken while the scenario's faults are at work.
    """

    violations: list[str] = Field(default_factory=list[str])
    any_of: list[Outcome] = Field(default_factory=list[Outcome])


def _model_tag(value: object) -> str:
    return "threads" if isinstance(value, dict) else "list"


Action = Literal[
    "interrupt",
    "steer",
    "answer",
    "second-turn",
    "attach",
    "disconnect",
    "kill",
    "slices",
    "reset",
    "reconnect",
]
ACTIONS: tuple[Action, ...] = get_args(Action)


def _races_tag(value: object) -> str:
    return "list" if isinstance(value, list) else "all"


def _check_all(value: object) -> object:
    if value != "all":
        example = value if value in ACTIONS else ACTIONS[0]
        raise ValueError(
            f"found {value!r}; expected 'all' or a list, such as [{example}], of: "
            f"{', '.join(ACTIONS)}"
        )
    return value


Races = Annotated[
    Annotated[list[Action], Tag("list")]
    | Annotated[Literal["all"], BeforeValidator(_check_all), Tag("all")],
    Discriminator(_races_tag),
]

ModelSide = Annotated[
    Annotated[list[ModelStep], Tag("list")]
    | Annotated[dict[Alias, list[ModelStep]], Tag("threads")],
    Discriminator(_model_tag),
]


def _check_no_null(value: dict[str, Any]) -> dict[str, Any]:
    if _holds_null(value):
        raise ValueError("found null within config; TOML has none: leave the key out")
    return value


def _holds_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_null, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    if isinstance(value, list):
        return any(map(_holds_null, value))  # pyright: ignore[reportUnknownArgumentType]
    return value is None


Surface = Literal["session", "exec", "command", "sdk"]


class Scenario(Strict):
    """A whole scenario file.

    `surfaces` are the ways to talk to an agent on which it can be played: the session protocol,
    `agent exec` with a process for each turn, the command `agent mcp`, and the calls of an SDK.
    Without `client` it is for a client under test: `agent app-server --listen` plays the model's
    side to it. With `default_script` the built-in `harness.model.default_script` is that side.
    """

    title: str = Field(min_length=1, max_length=200)
    covers: list[str] = Field(default_factory=list[str])
    needs: list[str] = Field(default_factory=list[str])
    tags: list[Alias] = Field(default_factory=list[str])
    extensions: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list[str])
    surfaces: list[Surface] = Field(
        default_factory=lambda: list[Surface](("session",)), min_length=1
    )
    settings: Settings = Field(default_factory=Settings)
    config: Annotated[dict[str, Any], AfterValidator(_check_no_null)] = Field(
        default_factory=dict[str, Any]
    )
    mcp: McpSide = Field(default_factory=dict[str, McpServer])
    workspace: Workspace = Field(default_factory=Workspace)
    server: Literal["shared", "fresh"] = "shared"
    client_name: str | None = Field(default=None, min_length=1, max_length=100)
    strict_model: bool = False
    default_script: bool = False
    races: Races = Field(default_factory=list[Action])
    faults: list[FaultEntry] = Field(default_factory=list[FaultEntry])
    answers: Answers = Field(default_factory=dict[str, GivenAnswer | list[GivenAnswer]])
    model: ModelSide = Field(default_factory=list[ModelStep])
    setup: list[ClientStep] = Field(default_factory=list[ClientStep])
    client: list[ClientStep] = Field(default_factory=list[ClientStep], min_length=1)
    expect: Expectations = Field(default_factory=Expectations)

    @property
    def is_clientless(self) -> bool:
        """Return whether it leaves the client's side to a client under test."""
        return not self.client

    def answers_by_method(self) -> dict[str, Sequence[GivenAnswer]]:
        """Return method -> given answers, in the order in which they are given."""
        return answers_of(self.answers)

    @property
    def steps(self) -> list[ClientStep]:
        """Return the steps of the setup and of the client."""
        return [*self.setup, *self.client]

    @property
    def race_actions(self) -> tuple[Action, ...]:
        """Return the actions to place at every position of its turn, in a fixed order."""
        return tuple(action for action in ACTIONS if self.races == "all" or action in self.races)

    @property
    def starts_turns(self) -> bool:
        """Return whether it starts a turn or a review, which calls the model."""
        return any(turn_alias_of(step) for step in self.steps)

    def scripts(self) -> dict[str, Script]:
        """Return thread alias -> script, in the order in which the threads are started.

        Without a client's side, in the order of the file.
        """
        started_threads = [alias for alias in map(thread_alias_of, self.steps) if alias]
        if isinstance(self.model, dict):
            aliases = list(self.model) if self.is_clientless else started_threads
            return {alias: self.model[alias] for alias in aliases if alias in self.model}
        return {started_threads[0] if started_threads else "t": list(self.model)}

    @property
    def needs_fresh_server(self) -> bool:
        """Return whether it needs a server process of its own.

        That is so if it asks for one, has faults, MCP servers or another client name, or if its
        steps leave a process that cannot be reused.
        """
        has_own_setup = bool(self.faults) or bool(self.mcp) or self.client_name is not None
        return self.server == "fresh" or has_own_setup or spoils_process(self.steps)

    @property
    def has_several_clients(self) -> bool:
        """Return whether a step opens a further connection."""
        return any(isinstance(step, ConnectStep) for step in self.steps)

    def model_entries(self) -> Iterator[tuple[tuple[str | int, ...], Delta | Part]]:
        """Yield every part of the model's side, and every entry of a part, with its path."""
        sides: list[tuple[tuple[str, ...], list[ModelStep]]]
        if isinstance(self.model, dict):
            sides = [(("model", alias), script) for alias, script in self.model.items()]
        else:
            sides = [(("model",), self.model)]
        for path, script in sides:
            for index, step in enumerate(script):
                for loc, entry in step.entries():
                    yield (*path, index, *loc), entry

    def expected_turns(self) -> list[str]:
        """Return the turn aliases in `expect`, in order, without duplicates."""
        outcomes = [self.expect, *self.expect.any_of]
        return list(
            dict.fromkeys(
                alias for outcome in outcomes for alias in (*outcome.turns, *outcome.diffs)
            )
        )

    def opened_gates(self) -> list[str]:
        """Return the gates that client steps open."""
        return [step.open for step in self.steps if isinstance(step, OpenStep)]

    def awaited_gates(self) -> list[str]:
        """Return the gates that client steps wait for."""
        waits = (step.wait for step in self.steps if isinstance(step, WaitStep))
        return [wait.gate for wait in waits if wait.gate is not None]

    def held_gates(self) -> list[str]:
        """Return the gates at which the model holds."""
        return [
            gate for script in self.scripts().values() for step in script for gate in step.gates()
        ]
