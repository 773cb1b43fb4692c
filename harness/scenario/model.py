"""The pydantic models of a scenario in YAML.

The model's side is `harness.model.script`, the client's `client_steps`; errors with line and
column are the loader's.
"""

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from harness.model.mcp_script import McpServer, McpSide
from harness.model.parts import Delta, Part
from harness.model.script import ModelStep, Script
from harness.model.strict import Alias, Strict, key_of
from harness.protocol.values import arr, obj
from harness.scenario.client_steps import (
    ClientStep,
    ConnectStep,
    OpenStep,
    Statuses,
    WaitStep,
    thread_named_by,
    turn_named_by,
    word,
)
from harness.scenario.faults import FaultEntry
from harness.scenario.spoiling import spoils_process


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


def _decoded(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"found what is no base64: {error}") from None
    return value


class EncodedFile(Strict):
    """`{base64: "iVBORw0K…"}`: the bytes of a file that is no text."""

    base64: Annotated[str, AfterValidator(_decoded)]


class CopiedFile(Strict):
    """`{from: tiny_mcp.py}`: a copy of a file beside the scenario's own."""

    source: Inside = Field(alias="from")


Content = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[EncodedFile, Tag("base64")]
    | Annotated[CopiedFile, Tag("from")],
    Discriminator(key_of),
]


class Workspace(Strict):
    """Files of the private workspace before the first step: relative path -> content.

    `pipes`: named pipes, each a gate for commands. One that the client's side waits for is written
    by a command; from any other a command reads a line, which comes when the gate is opened.
    """

    files: dict[Inside, Content] = Field(default_factory=dict[str, Content])
    pipes: list[Inside] = Field(default_factory=list[str])

    def contents(self, beside: Path) -> dict[str, bytes]:
        """The bytes of each file; what is copied lies in the folder `beside`. Raises `OSError`."""
        return {name: _bytes_of(content, beside) for name, content in self.files.items()}


def _bytes_of(content: str | EncodedFile | CopiedFile, beside: Path) -> bytes:
    match content:
        case str():
            return content.encode()
        case EncodedFile():
            return base64.b64decode(content.base64)
        case CopiedFile():
            return (beside / content.source).read_bytes()


# Which ones the protocol has is the lexicon's to say; a server may have others of its own.
ItemType = Annotated[str, word("item type")]


def _pattern(value: object) -> str:
    return "members" if isinstance(value, dict) else "type"


ItemPattern = Annotated[
    Annotated[ItemType, Tag("type")] | Annotated[dict[ItemType, dict[str, Any]], Tag("members")],
    Discriminator(_pattern),
]


def piece_of(value: object) -> str | None:
    """The text that a member of an item must have somewhere (`{contains: TEXT}`), if it is that."""
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, Any]", value)
    piece = members.get("contains")
    return piece if len(members) == 1 and isinstance(piece, str) and piece else None


class DiffText(Strict):
    """Texts that stand in the last diff that was told of a turn, and texts that do not."""

    contains: list[str] = Field(default_factory=list[str])
    lacks: list[str] = Field(default_factory=list[str])


def _count(value: object) -> str:
    return "several" if isinstance(value, list) else "one"


_Count = Annotated[int, Field(ge=0)]
Counts = Annotated[
    Annotated[_Count, Tag("one")] | Annotated[list[_Count], Field(min_length=1), Tag("several")],
    Discriminator(_count),
]


def accepted(value: Any) -> list[Any]:
    """The values that are right for a member of an item: of `{any_of: […]}` each in its list."""
    members = obj(value)
    return arr(members["any_of"]) if members.keys() == {"any_of"} else [value]


class Outcome(Strict):
    """One accepted outcome.

    `items`: item types in the order of their first appearance, each alone or with member values
    (`{contains: TEXT}` for a text that has this one in it, `{any_of: [...]}` for values of which
    one is right, `absent` among them for no such member); other items may stand between. `turns`:
    alias -> accepted status or statuses. `workspace`: path -> content, or `absent`. `diffs`: turn
    alias -> what its diff says. `model_calls`: how often the model was called, or a list of what is
    right.
    """

    items: list[ItemPattern] | None = None
    turns: dict[Alias, Statuses] = Field(default_factory=dict[str, str | list[str]])
    workspace: dict[Inside, str] = Field(default_factory=dict[str, str])
    diffs: dict[Alias, DiffText] = Field(default_factory=dict[str, DiffText])
    model_calls: Counts | None = None


class Expectations(Outcome):
    """Demands of the scenario itself; with `any_of`, one of several outcomes as well.

    `violations`: the rules that must be broken while the scenario's faults are at work.
    """

    violations: list[str] = Field(default_factory=list[str])
    any_of: list[Outcome] = Field(default_factory=list[Outcome])


def _sides(value: object) -> str:
    return "threads" if isinstance(value, dict) else "list"


Action = Literal["interrupt", "steer", "answer", "second-turn", "attach", "disconnect", "kill"]
ACTIONS: tuple[Action, ...] = get_args(Action)


def _races(value: object) -> str:
    return "list" if isinstance(value, list) else "all"


def _all(value: object) -> object:
    if value != "all":
        such = value if value in ACTIONS else ACTIONS[0]
        raise ValueError(
            f"found {value!r}; expected 'all' or a list, such as [{such}], of: {', '.join(ACTIONS)}"
        )
    return value


Races = Annotated[
    Annotated[list[Action], Tag("list")]
    | Annotated[Literal["all"], BeforeValidator(_all), Tag("all")],
    Discriminator(_races),
]

ModelSide = Annotated[
    Annotated[list[ModelStep], Tag("list")]
    | Annotated[dict[Alias, list[ModelStep]], Tag("threads")],
    Discriminator(_sides),
]


def _no_null(value: dict[str, Any]) -> dict[str, Any]:
    if _holds_null(value):
        raise ValueError("found null within config; TOML has none: leave the key out")
    return value


def _holds_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_null, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    if isinstance(value, list):
        return any(map(_holds_null, value))  # pyright: ignore[reportUnknownArgumentType]
    return value is None


Played = Literal["session", "exec", "command", "sdk"]


class Scenario(Strict):
    """A whole scenario file.

    `surfaces` are the ways to talk to an agent by which it can be played: the session protocol, and
    `agent exec`, of which each turn is a process, the command `agent mcp`, and
    the calls of an SDK. Without `client` it is for a client of somebody else, which is not played
    here: `agent app-server --listen` plays the model's side to it.
    """

    title: str = Field(min_length=1, max_length=200)
    covers: list[str] = Field(default_factory=list[str])
    needs: list[str] = Field(default_factory=list[str])
    tags: list[Alias] = Field(default_factory=list[str])
    extensions: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list[str])
    surfaces: list[Played] = Field(default_factory=lambda: list[Played](("session",)), min_length=1)
    settings: Settings = Field(default_factory=Settings)
    config: Annotated[dict[str, Any], AfterValidator(_no_null)] = Field(
        default_factory=dict[str, Any]
    )
    mcp: McpSide = Field(default_factory=dict[str, McpServer])
    workspace: Workspace = Field(default_factory=Workspace)
    server: Literal["shared", "fresh"] = "shared"
    client_name: str | None = Field(default=None, min_length=1, max_length=100)
    strict_model: bool = False
    races: Races = Field(default_factory=list[Action])
    faults: list[FaultEntry] = Field(default_factory=list[FaultEntry])
    model: ModelSide = Field(default_factory=list[ModelStep])
    setup: list[ClientStep] = Field(default_factory=list[ClientStep])
    client: list[ClientStep] = Field(default_factory=list[ClientStep], min_length=1)
    expect: Expectations = Field(default_factory=Expectations)

    @property
    def is_clientless(self) -> bool:
        """Return whether it leaves the client's side to somebody's own client."""
        return not self.client

    @property
    def steps(self) -> list[ClientStep]:
        """Both parts of the client's side."""
        return [*self.setup, *self.client]

    @property
    def raced(self) -> tuple[Action, ...]:
        """The actions that are placed at every position of its turn, in an order of their own."""
        return tuple(one for one in ACTIONS if self.races == "all" or one in self.races)

    @property
    def starts_turns(self) -> bool:
        """Return whether the model is to be called: a turn, or what is like one, is started."""
        return any(turn_named_by(step) for step in self.steps)

    def scripts(self) -> dict[str, Script]:
        """Thread alias -> script, in the order in which the threads are started.

        Without a client's side that is the order in which the file has them.
        """
        started = [alias for alias in map(thread_named_by, self.steps) if alias]
        if isinstance(self.model, dict):
            named = list(self.model) if self.is_clientless else started
            return {alias: self.model[alias] for alias in named if alias in self.model}
        return {started[0] if started else "t": list(self.model)}

    @property
    def fresh(self) -> bool:
        """Return whether it needs a server process that no other scenario uses before it or after
        it.

        It says so, it has faults, MCP servers of its own or another name for the client, or its
        steps leave no process that can be used.
        """
        own = bool(self.faults) or bool(self.mcp) or self.client_name is not None
        return self.server == "fresh" or own or spoils_process(self.steps)

    @property
    def several_clients(self) -> bool:
        """Return whether it opens further connections."""
        return any(isinstance(step, ConnectStep) for step in self.steps)

    def entries(self) -> Iterator[tuple[tuple[str | int, ...], Delta | Part]]:
        """Every part of the model's side, and every entry within one, with its path in the file."""
        sides: list[tuple[tuple[str, ...], list[ModelStep]]]
        if isinstance(self.model, dict):
            sides = [(("model", alias), script) for alias, script in self.model.items()]
        else:
            sides = [(("model",), self.model)]
        for at, script in sides:
            for index, step in enumerate(script):
                for loc, entry in step.entries():
                    yield (*at, index, *loc), entry

    def turns_named_by_expect(self) -> list[str]:
        """The names of turns in `expect`, in their order there."""
        outcomes = [self.expect, *self.expect.any_of]
        return list(dict.fromkeys(alias for one in outcomes for alias in (*one.turns, *one.diffs)))

    def opened_gates(self) -> list[str]:
        """The gates that the client's side opens."""
        return [step.open for step in self.steps if isinstance(step, OpenStep)]

    def awaited_gates(self) -> list[str]:
        """The gates that the client's side waits for."""
        waits = (step.wait for step in self.steps if isinstance(step, WaitStep))
        return [wait.gate for wait in waits if wait.gate is not None]

    def held_gates(self) -> list[str]:
        """The gates at which the model's side holds."""
        return [
            gate for script in self.scripts().values() for step in script for gate in step.gates()
        ]
