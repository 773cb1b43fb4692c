"""Positions of an action in a turn, derived from the scenario file alone.

A position is settled if the server cannot continue by itself: the model's stream is held right
there, or the server waits for our answer. At any other position the server is running towards the
next gate, and its state when the action arrives is unknown.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.model.parts import Delta, Disconnect, Malformed, Message, PlanItem, Reasoning
from harness.model.script import ModelStep, Script, deltas_of
from harness.model.strict import Times
from harness.model.tool_parts import Run
from harness.scenario.client_steps import AnswerStep, ClientStep, StartTurnStep
from harness.scenario.model import Scenario

RACE_GATE = "race"
SENT, ANSWERED, STARTED = "turn-start:sent", "turn-start:answered", "turn:started"
ASKED, DONE, COMPLETED = "approval:asked", "model:done", "turn:completed"

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """One observable event of a turn, the `nth` of its kind.

    `gate`: the model's stream at the gate. `pipe`: a command that has written into the pipe of that
    name (in `method`). `message`: a notification or request of that `method`. `started`,
    `completed`: an item whose type is in `method`. `model-end`: the end of the model's nth reply.
    `turn-end`: the turn's own.
    """

    kind: Literal["gate", "pipe", "message", "started", "completed", "model-end", "turn-end"]
    method: str = ""
    nth: int = 1


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a turn.

    `hold` is the path of the script's element before which the model's stream is held, None if it
    is not; `pipe` is the pipe at which a command is held; `answers` is the number of server
    requests answered before.
    """

    name: str
    sights: tuple[Sight, ...] = ()
    is_settled: bool = False
    hold: Path | None = None
    pipe: str = ""
    answers: int = 0

    @property
    def knows_turn(self) -> bool:
        """Return whether the turn's id is known here."""
        return self.name != SENT

    @property
    def is_before_end(self) -> bool:
        """Return whether the position can no longer be reached once the turn has ended."""
        return self.name not in (DONE, COMPLETED)

    @property
    def is_within_turn(self) -> bool:
        """Return whether the turn certainly runs while the server is held here."""
        return self.is_settled and self.name != COMPLETED


_GATE = Sight("gate")

# Part of the model's reply -> type of its item, and the server request that it may cause.
_TOOLS = {
    "run": ("commandExecution", "item/commandExecution/requestApproval"),
    "patch": ("fileChange", "item/fileChange/requestApproval"),
    "dynamic_call": ("dynamicToolCall", "item/tool/call"),
    "mcp_call": ("mcpToolCall", ""),
    "view_image": ("imageView", ""),
}


def raced_turn(scenario: Scenario) -> StartTurnStep:
    """Return the step that starts the turn. Raises `ValueError` if the scenario cannot be raced."""
    turns = [step for step in scenario.client if isinstance(step, StartTurnStep)]
    starts_in_setup = any(isinstance(step, StartTurnStep) for step in scenario.setup)
    if starts_in_setup or len(turns) != 1:
        raise ValueError("races need exactly one start_turn step, in client")
    if isinstance(scenario.model, dict):
        raise ValueError("races need the model's side of one thread, a list")
    if any(step.times == "until-turn-ends" for step in scenario.model):
        raise ValueError(
            "races need a model's side of known length; times: until-turn-ends has none"
        )
    return turns[0]


def answers_of(scenario: Scenario) -> list[AnswerStep]:
    """Return the client's answers to single server requests, in order; no standing ones."""
    steps: list[ClientStep] = scenario.client
    return [step for step in steps if isinstance(step, AnswerStep) and not step.answer.standing]


def positions(scenario: Scenario) -> list[Position]:
    """Return every position of a scenario's turn, in order. Raises like `raced_turn`."""
    raced_turn(scenario)
    script = unroll_script(scenario)
    pipes = opened_pipes(scenario), awaited_pipes(scenario)
    return list(_PositionWalk(script, answers_of(scenario), *pipes).positions())


def opened_pipes(scenario: Scenario) -> list[str]:
    """Return the pipes that commands read from and the client's side opens."""
    return [pipe for pipe in scenario.workspace.pipes if pipe in scenario.opened_gates()]


def awaited_pipes(scenario: Scenario) -> list[str]:
    """Return the pipes that commands write to and the client's side waits for."""
    return [pipe for pipe in scenario.workspace.pipes if pipe in scenario.awaited_gates()]


def unroll_script(scenario: Scenario) -> Script:
    """Return the model's side as a race plays it.

    It has one step per call (`times` written out), every block as a list of deltas, and none of the
    file's gates and expectations. Raises `ValueError` if several threads have scripts.
    """
    if isinstance(scenario.model, dict):
        raise ValueError("races need the model's side of one thread, a list")
    return [single_call for step in scenario.model for single_call in _unroll_step(step)]


def insert_gate(script: Script, path: Path | None) -> Script:
    """Return the script with the race's gate before the element at `path`; unchanged if None."""
    if path is None:
        return script
    step, *rest = path
    plain = _as_plain_data(script[int(step)])
    holder: Any = plain
    for key in rest[:-1]:
        holder = holder[key]
    holder.insert(rest[-1], {"hold": RACE_GATE})
    return [
        ModelStep.model_validate(plain) if index == step else model_step
        for index, model_step in enumerate(script)
    ]


def _unroll_step(step: ModelStep) -> Iterator[ModelStep]:
    plain = _as_plain_data(step)
    plain.pop("expect", None)
    times: Times = step.times
    if "fail" in plain:
        plain["fail"].pop("times", None)
    else:
        plain["reply"] = [_plain_part(part) for part in plain["reply"] if "hold" not in part]
    for _ in range(times if isinstance(times, int) else 1):
        yield ModelStep.model_validate(plain)


def _as_plain_data(step: ModelStep) -> dict[str, Any]:
    return step.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _plain_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part, as plain data, with blocks as lists, without gates and repetitions."""
    key = next(iter(part))
    match key:
        case "message" | "plan_item":
            body = part[key]
            return {key: {**body, "deltas": _plain_block(body.get("deltas", []))}}
        case "reasoning":
            return {
                key: {
                    name: [_plain_block(block) for block in part[key][name]] for name in part[key]
                }
            }
        case "disconnect" | "malformed":
            return _without_times(part)
        case _:
            return part


def _plain_block(block: Any) -> list[Any]:
    entries: list[Any] = [block] if isinstance(block, str) else block
    without_gates = [entry for entry in entries if isinstance(entry, str) or "hold" not in entry]
    return [entry if isinstance(entry, str) else _without_times(entry) for entry in without_gates]


def _without_times(entry: dict[str, Any]) -> dict[str, Any]:
    key = next(iter(entry))
    if not isinstance(entry[key], dict):
        return entry
    return {key: {name: value for name, value in entry[key].items() if name != "times"}}


class _PositionWalk:
    """Walk over the script, call by call, that counts items and messages."""

    def __init__(
        self,
        script: Script,
        answers: list[AnswerStep],
        opened_pipes: list[str],
        awaited_pipes: list[str],
    ) -> None:
        self._script = script
        self._opened_pipes = opened_pipes
        self._awaited_pipes = awaited_pipes
        self._questions = [step.answer.to for step in answers]
        self._decisions = [step.answer.decision for step in answers]
        self._answers = 0
        self._cancelled = False
        self._counts: Counter[str] = Counter()

    def positions(self) -> Iterator[Position]:
        """Yield all positions, in order.

        After the decision `cancel` servers may or may not call the model again, so no position of
        the model follows it.
        """
        first = self._next_hold(0)
        yield Position(SENT, hold=first)
        yield Position(ANSWERED, hold=first)
        yield Position(STARTED, (Sight("message", "turn/started"),), hold=first)
        for number, step in enumerate(self._script):
            yield from (
                self._retry_positions(number)
                if step.reply is None
                else self._reply_positions(number, step)
            )
            if self._cancelled:
                break
        else:
            last = Sight("model-end", nth=len(self._script))
            yield Position(DONE, (last,), answers=self._answers)
        yield Position(COMPLETED, (Sight("turn-end"),), is_settled=True, answers=self._answers)

    def _next_hold(self, number: int) -> Path | None:
        """Return the path of the next reply, None without one: a failing call cannot be held."""
        for index in range(number, len(self._script)):
            if self._script[index].reply is not None:
                return (index, "reply", 0)
        return None

    def _count(self, kind: str) -> int:
        self._counts[kind] += 1
        return self._counts[kind]

    def _held_position(self, name: str, path: Path, *sights: Sight) -> Position:
        """Return a settled position at which the model's stream is held."""
        return Position(name, (_GATE, *sights), is_settled=True, hold=path, answers=self._answers)

    def _retry_positions(self, number: int) -> Iterator[Position]:
        """Yield the position of the retry that a server announces after a failed call, if any."""
        if number + 1 < len(self._script):
            nth = self._count("retry")
            sight = Sight("message", "error", nth)
            hold = self._next_hold(number + 1)
            yield Position(f"retry:{nth}", (sight,), hold=hold, answers=self._answers)

    def _reply_positions(self, number: int, step: ModelStep) -> Iterator[Position]:
        yield self._held_position(f"model:{number + 1}:called", (number, "reply", 0))
        entries = [entry for _, entry in step.entries()]
        cut = any(isinstance(entry, Disconnect | Malformed) for entry in entries)
        if not any(isinstance(entry, Malformed) or _cuts_at_event(entry) for entry in entries):
            yield from self._stream_positions(number, step)
        if cut:
            yield from self._retry_positions(number)
            return
        for part in step.reply or []:
            kind = next(iter(type(part).model_fields))
            if kind in _TOOLS and not self._cancelled:
                command = part.run.command if isinstance(part, Run) else ""
                yield from self._tool_positions(number, *_TOOLS[kind], command)

    def _stream_positions(self, number: int, step: ModelStep) -> Iterator[Position]:
        """Yield the positions of items in the model's stream, up to its cut."""
        for index, part in enumerate(step.reply or []):
            path: Path = (number, "reply", index)
            match part:
                case Message():
                    texts = [((*path, "message", "deltas"), part.message.deltas)]
                    blocks = [("item/agentMessage/delta", *block) for block in texts]
                    is_complete = yield from self._item_positions("agentMessage", path, blocks)
                case PlanItem():
                    # Servers may strip a plan's markup from its deltas, so these are not counted.
                    blocks = [("", (*path, "plan_item", "deltas"), part.plan_item.deltas)]
                    is_complete = yield from self._item_positions("plan", path, blocks)
                case Reasoning():
                    is_complete = yield from self._item_positions(
                        "reasoning", path, _reasoning_blocks(path, part)
                    )
                case Disconnect():
                    return
                case _:
                    is_complete = True
            if not is_complete:
                return

    def _item_positions(
        self, kind: str, path: Path, blocks: list[tuple[str, Path, list[Delta]]]
    ) -> Generator[Position, None, bool]:
        """Yield the positions of an item in the stream; return whether the stream completes it."""
        number, nth = self._count("item"), self._count(kind)
        start = blocks[0][1] if blocks else None
        after: Path = (*path[:-1], int(path[-1]) + 1)
        hold: Path = (*start, 0) if start is not None else after
        yield self._held_position(f"item:{number}:started", hold, Sight("started", kind, nth))
        for method, block_path, deltas in blocks:
            for index, delta in enumerate(deltas):
                if isinstance(delta, Disconnect):
                    return False
                if isinstance(delta, str) and method:
                    sight = Sight("message", method, self._count(method))
                    yield self._held_position(
                        f"delta:{self._count('delta')}", (*block_path, index + 1), sight
                    )
        yield self._held_position(f"item:{number}:completed", after, Sight("completed", kind, nth))
        return True

    def _tool_positions(
        self, number: int, kind: str, question: str, command: str
    ) -> Iterator[Position]:
        """Yield the positions of an item for a tool that the server runs after the reply."""
        item, nth, hold = self._count("item"), self._count(kind), self._next_hold(number + 1)

        def unheld_position(name: str, *sights: Sight) -> Position:
            return Position(name, sights, hold=hold, answers=self._answers)

        yield unheld_position(f"item:{item}:started", Sight("started", kind, nth))
        if question and question in self._questions[self._answers : self._answers + 1]:
            count = self._count("approval")
            name = "approval" if count == 1 else f"approval:{count}"
            sight = Sight("message", question, self._count(question))
            yield Position(
                f"{name}:asked", (sight,), is_settled=True, hold=hold, answers=self._answers
            )
            self._cancelled = self._decisions[self._answers] == "cancel"
            self._answers += 1
            yield unheld_position(f"{name}:answered")
        words = command.replace(";", " ").split()
        pipe = next((pipe_name for pipe_name in self._opened_pipes if pipe_name in words), "")
        if pipe:
            pipe_sights = [
                Sight("pipe", pipe_name) for pipe_name in self._awaited_pipes if pipe_name in words
            ]
            running = unheld_position(
                f"item:{item}:running", Sight("started", kind, nth), *pipe_sights
            )
            yield replace(running, is_settled=True, pipe=pipe)
        yield unheld_position(f"item:{item}:completed", Sight("completed", kind, nth))


def _cuts_at_event(entry: Any) -> bool:
    return isinstance(entry, Disconnect) and not entry.is_here


def _reasoning_blocks(path: Path, part: Reasoning) -> list[tuple[str, Path, list[Delta]]]:
    kinds = (
        ("item/reasoning/summaryTextDelta", "summary", part.reasoning.summary),
        ("item/reasoning/textDelta", "raw", part.reasoning.raw),
    )
    return [
        (method, (*path, "reasoning", name, index), deltas_of(block))
        for method, name, blocks in kinds
        for index, block in enumerate(blocks)
    ]
