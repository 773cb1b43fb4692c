"""Positions of an action in a turn, by their meaning, read off the scenario file alone.

A position is `settled` where the server cannot go on by itself: the model's stream is held right
there, or the server waits for an answer of ours. At any other the server is on its way to the next
gate, and nobody can say where it is when the action arrives.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.model.asks import Run
from harness.model.parts import Delta, Disconnect, Malformed, Message, PlanItem, Reasoning
from harness.model.script import ModelStep, Script, deltas_of
from harness.model.strict import Times
from harness.scenario.client_steps import AnswerStep, ClientStep, StartTurnStep
from harness.scenario.model import Scenario

GATE = "race"
SENT, ANSWERED, STARTED = "turn-start:sent", "turn-start:answered", "turn:started"
ASKED, DONE, COMPLETED = "approval:asked", "model:done", "turn:completed"

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """One thing to be seen, the `nth` of its kind in the turn.

    `gate`: the model's stream at the gate. `pipe`: a command that has written into the pipe of that
    name (in `method`). `message`: a notification or request of that `method`.
    `started`, `completed`: an item of that `method` (its type here). `model-end`: the end of the
    model's nth answer. `turn-end`: the turn's own.
    """

    what: Literal["gate", "pipe", "message", "started", "completed", "model-end", "turn-end"]
    method: str = ""
    nth: int = 1


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a turn.

    `hold` is the path in the script before whose element the model's stream is held, None where
    it is not; `pipe` is the pipe at which a command is held; `answers` is how many questions of the
    server are answered before.
    """

    name: str
    sights: tuple[Sight, ...] = ()
    settled: bool = False
    hold: Path | None = None
    pipe: str = ""
    answers: int = 0

    @property
    def knows_turn(self) -> bool:
        """Return whether the turn's id is known here."""
        return self.name != SENT

    @property
    def before_end(self) -> bool:
        """Return whether a turn that is over has passed it without coming to it."""
        return self.name not in (DONE, COMPLETED)

    @property
    def within_turn(self) -> bool:
        """Return whether the turn certainly runs while the server is held here."""
        return self.settled and self.name != COMPLETED


_GATE = Sight("gate")

# What the model's reply asks for -> the item that comes of it, the question that it may raise.
_TOOLS = {
    "run": ("commandExecution", "item/commandExecution/requestApproval"),
    "patch": ("fileChange", "item/fileChange/requestApproval"),
    "dynamic_call": ("dynamicToolCall", "item/tool/call"),
    "mcp_call": ("mcpToolCall", ""),
    "view_image": ("imageView", ""),
}


def raced_turn(scenario: Scenario) -> StartTurnStep:
    """The step that starts the turn. Raises `ValueError` for a scenario that cannot be raced."""
    turns = [step for step in scenario.client if isinstance(step, StartTurnStep)]
    before = any(isinstance(step, StartTurnStep) for step in scenario.setup)
    if before or len(turns) != 1:
        raise ValueError("races need exactly one start_turn step, in client")
    if isinstance(scenario.model, dict):
        raise ValueError("races need the model's side of one thread, a list")
    if any(step.times == "until-turn-ends" for step in scenario.model):
        raise ValueError(
            "races need a model's side of known length; times: until-turn-ends has none"
        )
    return turns[0]


def answers_of(scenario: Scenario) -> list[AnswerStep]:
    """The client's answers to questions of the server, in order."""
    steps: list[ClientStep] = scenario.client
    return [one for one in steps if isinstance(one, AnswerStep) and not one.answer.standing]


def positions(scenario: Scenario) -> list[Position]:
    """Every position of a scenario's turn. Raises `ValueError` as `raced_turn` does."""
    raced_turn(scenario)
    script = spelled_out(scenario)
    pipes = opened_pipes(scenario), told_pipes(scenario)
    return list(_Walk(script, answers_of(scenario), *pipes).positions())


def opened_pipes(scenario: Scenario) -> list[str]:
    """The pipes from which commands read what the client's side opens."""
    return [one for one in scenario.workspace.pipes if one in scenario.opened_gates()]


def told_pipes(scenario: Scenario) -> list[str]:
    """The pipes into which commands write, and for which the client's side waits."""
    return [one for one in scenario.workspace.pipes if one in scenario.awaited_gates()]


def spelled_out(scenario: Scenario) -> Script:
    """The model's side as a race plays it.

    One step per call (`times` written out), every block a list of deltas, no gate and no
    expectation of the file's own: both belong to the play that the file describes.
    """
    if isinstance(scenario.model, dict):
        raise ValueError("races need the model's side of one thread, a list")
    return [one for step in scenario.model for one in _each(step)]


def with_gate(script: Script, path: Path | None) -> Script:
    """The script with the race's gate before the element at the path."""
    if path is None:
        return script
    step, *rest = path
    plain = _plain(script[int(step)])
    place: Any = plain
    for key in rest[:-1]:
        place = place[key]
    place.insert(rest[-1], {"hold": GATE})
    return [ModelStep.model_validate(plain) if at == step else one for at, one in enumerate(script)]


def _each(step: ModelStep) -> Iterator[ModelStep]:
    plain = _plain(step)
    plain.pop("expect", None)
    times: Times = step.times
    if "fail" in plain:
        plain["fail"].pop("times", None)
    else:
        plain["reply"] = [_part(part) for part in plain["reply"] if "hold" not in part]
    for _ in range(times if isinstance(times, int) else 1):
        yield ModelStep.model_validate(plain)


def _plain(step: ModelStep) -> dict[str, Any]:
    return step.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A part, as plain data, whose blocks are lists without gates, played once."""
    key = next(iter(part))
    match key:
        case "message" | "plan_item":
            body = part[key]
            return {key: {**body, "deltas": _block(body.get("deltas", []))}}
        case "reasoning":
            return {key: {name: [_block(one) for one in part[key][name]] for name in part[key]}}
        case "disconnect" | "malformed":
            return _once(part)
        case _:
            return part


def _block(block: Any) -> list[Any]:
    entries: list[Any] = [block] if isinstance(block, str) else block
    kept = [one for one in entries if isinstance(one, str) or "hold" not in one]
    return [one if isinstance(one, str) else _once(one) for one in kept]


def _once(entry: dict[str, Any]) -> dict[str, Any]:
    key = next(iter(entry))
    if not isinstance(entry[key], dict):
        return entry
    return {key: {name: value for name, value in entry[key].items() if name != "times"}}


class _Walk:
    """Walks over the script, call by call, and counts what has been seen."""

    def __init__(
        self, script: Script, given: list[AnswerStep], opened: list[str], told: list[str]
    ) -> None:
        self._script = script
        self._opened = opened
        self._told = told
        self._asked = [one.answer.to for one in given]
        self._decisions = [one.answer.decision for one in given]
        self._answers = 0
        self._cancelled = False
        self._seen: Counter[str] = Counter()

    def positions(self) -> Iterator[Position]:
        """All positions, in order.

        With cancel as an answer the turn is over: whether its model is still told of that is the
        server's affair, and nothing of it is waited for.
        """
        first = self._next_hold(0)
        yield Position(SENT, hold=first)
        yield Position(ANSWERED, hold=first)
        yield Position(STARTED, (Sight("message", "turn/started"),), hold=first)
        for number, step in enumerate(self._script):
            yield from self._failed(number) if step.reply is None else self._reply(number, step)
            if self._cancelled:
                break
        else:
            last = Sight("model-end", nth=len(self._script))
            yield Position(DONE, (last,), answers=self._answers)
        yield Position(COMPLETED, (Sight("turn-end"),), settled=True, answers=self._answers)

    def _next_hold(self, number: int) -> Path | None:
        """The beginning of the next answer that can be held: one that fails cannot."""
        for at in range(number, len(self._script)):
            if self._script[at].reply is not None:
                return (at, "reply", 0)
        return None

    def _nth(self, what: str) -> int:
        self._seen[what] += 1
        return self._seen[what]

    def _at(self, name: str, path: Path, *sights: Sight) -> Position:
        """A position at which the stream itself is held."""
        return Position(name, (_GATE, *sights), settled=True, hold=path, answers=self._answers)

    def _failed(self, number: int) -> Iterator[Position]:
        """The model's answer failed; where another follows, a retry is announced."""
        if number + 1 < len(self._script):
            nth = self._nth("retry")
            sight = Sight("message", "error", nth)
            hold = self._next_hold(number + 1)
            yield Position(f"retry:{nth}", (sight,), hold=hold, answers=self._answers)

    def _reply(self, number: int, step: ModelStep) -> Iterator[Position]:
        yield self._at(f"model:{number + 1}:called", (number, "reply", 0))
        entries = [entry for _, entry in step.entries()]
        cut = any(isinstance(one, Disconnect | Malformed) for one in entries)
        if not any(isinstance(one, Malformed) or _by_event(one) for one in entries):
            yield from self._streamed(number, step)
        if cut:
            yield from self._failed(number)
            return
        for part in step.reply or []:
            kind = next(iter(type(part).model_fields))
            if kind in _TOOLS and not self._cancelled:
                command = part.run.command if isinstance(part, Run) else ""
                yield from self._tool(number, *_TOOLS[kind], command)

    def _streamed(self, number: int, step: ModelStep) -> Iterator[Position]:
        """The items that stand in the stream itself, up to where it is cut."""
        for at, part in enumerate(step.reply or []):
            path: Path = (number, "reply", at)
            match part:
                case Message():
                    texts = [((*path, "message", "deltas"), part.message.deltas)]
                    blocks = [("item/agentMessage/delta", *one) for one in texts]
                    whole = yield from self._item("agentMessage", path, blocks)
                case PlanItem():
                    # A server may keep the plan's own marks to itself: no delta is counted.
                    blocks = [("", (*path, "plan_item", "deltas"), part.plan_item.deltas)]
                    whole = yield from self._item("plan", path, blocks)
                case Reasoning():
                    whole = yield from self._item("reasoning", path, _reasoning(path, part))
                case Disconnect():
                    return
                case _:
                    whole = True
            if not whole:
                return

    def _item(
        self, kind: str, path: Path, blocks: list[tuple[str, Path, list[Delta]]]
    ) -> Generator[Position, None, bool]:
        """An item in the stream; gives whether it came to its end there."""
        number, nth = self._nth("item"), self._nth(kind)
        begun = blocks[0][1] if blocks else None
        after: Path = (*path[:-1], int(path[-1]) + 1)
        hold: Path = (*begun, 0) if begun is not None else after
        yield self._at(f"item:{number}:started", hold, Sight("started", kind, nth))
        for method, where, deltas in blocks:
            for index, delta in enumerate(deltas):
                if isinstance(delta, Disconnect):
                    return False
                if isinstance(delta, str) and method:
                    sight = Sight("message", method, self._nth(method))
                    yield self._at(f"delta:{self._nth('delta')}", (*where, index + 1), sight)
        yield self._at(f"item:{number}:completed", after, Sight("completed", kind, nth))
        return True

    def _tool(self, number: int, kind: str, question: str, command: str) -> Iterator[Position]:
        """An item that the server works on after the answer, before it asks the model again."""
        item, nth, hold = self._nth("item"), self._nth(kind), self._next_hold(number + 1)

        def on_its_way(name: str, *sights: Sight) -> Position:
            return Position(name, sights, hold=hold, answers=self._answers)

        yield on_its_way(f"item:{item}:started", Sight("started", kind, nth))
        if question and question in self._asked[self._answers : self._answers + 1]:
            count = self._nth("approval")
            name = "approval" if count == 1 else f"approval:{count}"
            sight = Sight("message", question, self._nth(question))
            yield Position(
                f"{name}:asked", (sight,), settled=True, hold=hold, answers=self._answers
            )
            self._cancelled = self._decisions[self._answers] == "cancel"
            self._answers += 1
            yield on_its_way(f"{name}:answered")
        words = command.replace(";", " ").split()
        pipe = next((one for one in self._opened if one in words), "")
        if pipe:
            begun = [Sight("pipe", one) for one in self._told if one in words]
            running = on_its_way(f"item:{item}:running", Sight("started", kind, nth), *begun)
            yield replace(running, settled=True, pipe=pipe)
        yield on_its_way(f"item:{item}:completed", Sight("completed", kind, nth))


def _by_event(entry: Any) -> bool:
    return isinstance(entry, Disconnect) and not entry.here


def _reasoning(path: Path, part: Reasoning) -> list[tuple[str, Path, list[Delta]]]:
    both = (
        ("item/reasoning/summaryTextDelta", "summary", part.reasoning.summary),
        ("item/reasoning/textDelta", "raw", part.reasoning.raw),
    )
    return [
        (method, (*path, "reasoning", name, index), deltas_of(block))
        for method, name, blocks in both
        for index, block in enumerate(blocks)
    ]
