"""A race: one action placed at one position of a scenario's turn, as a play of its own.

What the file demands of its own play (`expect`, `covers`, waits for certain ends) is left out: an
action in the middle changes it. What every server owes whatever comes in between is the rules'
business.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from harness.model.script import ModelStep, Script
from harness.model.strict import Strict
from harness.scenario.client_steps import (
    MAIN,
    AnswerStep,
    ConnectStep,
    OpenStep,
    ReadThread,
    ReadThreadStep,
    StartThread,
    StartThreadStep,
    StartTurn,
    StartTurnStep,
    Wait,
    WaitStep,
)
from harness.scenario.loader import Loaded
from harness.scenario.model import Action, Expectations, Outcome, Scenario
from harness.scenario.positions import (
    ASKED,
    GATE,
    SENT,
    Position,
    answers_of,
    opened_pipes,
    positions,
    raced_turn,
    spelled_out,
    with_gate,
)
from harness.scenario.race_id import RaceId

SPARE = 4
"""Model calls beyond the script: for input that was added, a second turn, the turn afterwards."""

# What a server must offer, beside what the scenario needs.
NEEDS: dict[Action, str] = {"steer": "steering", "attach": "history"}
NEXT, OTHER = "race-next", "race-thread"


@dataclass(frozen=True, slots=True)
class Placement:
    """An action at a position."""

    action: Action
    position: Position

    @property
    def name(self) -> str:
        """`interrupt@item:1:started`"""
        return RaceId("", self.action, self.position.name).name


@dataclass(frozen=True, slots=True)
class Raced(Loaded):
    """A derived scenario; its steps stand at the lines of those that they came from."""

    lines: tuple[int, ...] = ()

    def line(self, *loc: str | int) -> int:
        """The line of a part of the file."""
        match loc:
            case ("client", int(index)):
                return self.lines[index]
            case _:
                return Loaded.line(self, *loc)


class Begin(Strict):
    """Send the request that starts the turn, and go on."""

    turn: StartTurn


class BeginStep(Strict):
    """The turn's start, where the action does not wait for its answer."""

    begin: Begin


class Reach(Strict):
    """Wait until the turn is at a position, or is over."""

    turn: str
    thread: str
    position: Any


class ReachStep(Strict):
    """Come to the position."""

    reach: Reach


class Act(Strict):
    """Do what is raced; where `certain`, the turn runs for sure."""

    turn: str
    thread: str
    action: Action
    certain: bool
    ended: bool


class ActStep(Strict):
    """The action."""

    act: Act


class AgainStep(Strict):
    """Start the killed server again over the same home; later plays may go on with it."""

    again: Literal[True]


class Revive(Strict):
    """Go on with a thread of the server that was killed, as far as the new one takes part."""

    thread: str


class ReviveStep(Strict):
    """Read the thread, resume it, and let it take a turn."""

    revive: Revive


class SettleStep(Strict):
    """Wait for the end of what was started, and look for what was accepted."""

    settle: Act


def placements(scenario: Scenario, action: Action) -> list[Placement]:
    """Every placement of an action in a scenario, in the order of the positions.

    Actions that name the turn begin where its id is known; an answer, where something was asked.
    """
    found = positions(scenario)
    if action in ("interrupt", "steer"):
        found = [one for one in found if one.knows_turn]
    elif action == "answer":
        names = [one.name for one in found]
        found = found[names.index(ASKED) :] if ASKED in names else []
    return [Placement(action, position) for position in found]


def derived(loaded: Loaded, placement: Placement, *, listens: bool = False) -> Raced:
    """The play of one placement. Raises `ValueError` where the scenario cannot be raced.

    A server that `listens` outlives its client, which comes back.
    """
    scenario, position = loaded.scenario, placement.position
    turn = raced_turn(scenario)
    at = scenario.client.index(turn)
    steps = [*scenario.client[:at], *_race(scenario, turn, placement, listens=listens)]
    line = loaded.line("client", at)
    lines = [loaded.line("client", index) for index in range(at)]
    script = [*with_gate(spelled_out(scenario), position.hold), *_spare()]
    fields: dict[str, Any] = {
        "model": script,
        "client": steps,
        "covers": [],
        "races": [],
        "server": "fresh" if _spoils(placement.action, listens=listens) else scenario.server,
        # However many calls the action leads to, up to the last that the script has.
        "expect": Expectations(
            any_of=[Outcome(model_calls=count) for count in range(len(script) + 1)]
        ),
    }
    return Raced(
        id=str(RaceId(loaded.id, placement.action, position.name)),
        path=loaded.path,
        scenario=scenario.model_copy(update=fields),
        document=loaded.document,
        lines=(*lines, *[line] * (len(steps) - at)),
    )


def _spoils(action: Action, *, listens: bool) -> bool:
    """Return whether the process is of no use to the next scenario.

    It is of none if a connection ended or was added.
    """
    return action == "disconnect" or (action == "attach" and listens)


def _spare() -> Script:
    reply = {"reply": [{"message": {"deltas": ["Very well."]}}]}
    return [ModelStep.model_validate(reply) for _ in range(SPARE)]


def _race(
    scenario: Scenario, turn: StartTurnStep, placement: Placement, *, listens: bool
) -> list[Any]:
    """The steps from the turn's start on."""
    position, answers = placement.position, answers_of(scenario)
    body = turn.start_turn
    act = Act(
        turn=body.alias,
        thread=body.thread,
        action=placement.action,
        certain=position.within_turn,
        ended=position.settled and not position.within_turn,
    )
    begin = BeginStep(begin=Begin(turn=body)) if position.name == SENT else turn
    pipes = opened_pipes(scenario)
    steps: list[Any] = [OpenStep(open=pipe) for pipe in pipes if pipe != position.pipe]
    steps += [begin, *answers[: position.answers]]
    steps += [ReachStep(reach=Reach(turn=body.alias, thread=body.thread, position=position))]
    # What commands write is heard only where a step waits for it; here it has come already.
    steps += [WaitStep(wait=Wait(gate=one.method)) for one in position.sights if one.what == "pipe"]
    steps += [ActStep(act=act)]
    if placement.action == "disconnect" and not listens:
        return steps
    if placement.action == "disconnect":
        steps += [ConnectStep(connect=MAIN)]
    if placement.action == "kill":
        steps += [AgainStep(again=True)]
    steps += _standing(answers)
    held = [*([position.pipe] if position.pipe else []), *([GATE] if position.hold else [])]
    steps += [OpenStep(open=gate) for gate in held]
    if placement.action == "kill":
        return [*steps, *_anew(scenario), ReviveStep(revive=Revive(thread=body.thread))]
    if placement.action == "disconnect":
        return [*steps, *_anew(scenario)]
    return [*steps, SettleStep(settle=act), *_afterwards(body.thread)]


def _standing(answers: Iterable[AnswerStep]) -> list[AnswerStep]:
    """Return the answers as standing ones, the first for each kind of question."""
    first: dict[str, AnswerStep] = {}
    for step in answers:
        first.setdefault(step.answer.to, step)
    return [
        AnswerStep(answer=step.answer.model_copy(update={"standing": True, "alias": None}))
        for step in first.values()
    ]


def _anew(scenario: Scenario) -> list[Any]:
    """After a restart, or for a client that comes back, a new thread takes a turn."""
    starts = [one.start_thread for one in scenario.steps if isinstance(one, StartThreadStep)]
    params = starts[0].params if starts else {}
    thread = StartThreadStep(
        start_thread=StartThread.model_validate({"as": OTHER, "params": params})
    )
    return [thread, *_afterwards(OTHER)]


def _afterwards(thread: str) -> list[Any]:
    """The thread takes another turn, which ends; what is left of the script is played in it."""
    start = {"thread": thread, "as": NEXT, "text": "And now something else."}
    return [
        StartTurnStep(start_turn=StartTurn.model_validate(start)),
        WaitStep(wait=Wait(turn=NEXT)),
        ReadThreadStep(read_thread=ReadThread(thread=thread, include_turns=True)),
    ]
