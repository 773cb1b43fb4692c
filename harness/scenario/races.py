"""A race: one action placed at one position of a scenario's turn, as a play of its own.

The expectations of the file (`expect`, `covers`, waits for certain ends) are left out: an action in
the middle changes them. The rules still judge every obligation of the server.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from harness.model.script import ModelStep, Script
from harness.model.strict import Strict
from harness.scenario.client_steps import (
    MAIN_CONNECTION,
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
    RACE_GATE,
    SENT,
    Position,
    answers_of,
    insert_gate,
    opened_pipes,
    positions,
    raced_turn,
    unroll_script,
)
from harness.scenario.race_id import RaceId

SPARE_MODEL_CALLS = 4
"""Replies beyond the script: for steered input, a second turn, and the last turn."""

LEAVING_ACTIONS: tuple[Action, ...] = ("disconnect", "kill", "reset", "reconnect")
"""Actions that end a connection, or the server."""
# The capability that an action needs, beside those of the scenario.
CAPABILITY_OF_ACTION: dict[Action, str] = {"steer": "steering", "attach": "history"}
NEXT_TURN, OTHER_THREAD = "race-next", "race-thread"


@dataclass(frozen=True, slots=True)
class Placement:
    """An action at a position."""

    action: Action
    position: Position

    @property
    def name(self) -> str:
        """Return action and position: `interrupt@item:1:started`."""
        return RaceId("", self.action, self.position.name).name


@dataclass(frozen=True, slots=True)
class RacedScenario(Loaded):
    """A scenario derived for one placement; `lines` has the file's line for each client step."""

    lines: tuple[int, ...] = ()

    def line_of(self, *loc: str | int) -> int:
        """Return the line of a part of the file."""
        match loc:
            case ("client", int(index)):
                return self.lines[index]
            case _:
                return Loaded.line_of(self, *loc)


class Begin(Strict):
    """Send the request that starts the turn, and continue without its answer."""

    turn: StartTurn


class BeginStep(Strict):
    """The start of the turn without waiting for its answer."""

    begin: Begin


class Reach(Strict):
    """Wait until the turn is at a position, or is over."""

    turn: str
    thread: str
    position: Any


class ReachStep(Strict):
    """Wait for the position."""

    reach: Reach


class Act(Strict):
    """Perform the action; `turn_is_running` and `turn_has_ended` are false if that is uncertain."""

    turn: str
    thread: str
    action: Action
    turn_is_running: bool
    turn_has_ended: bool


class ActStep(Strict):
    """The action."""

    act: Act


class AgainStep(Strict):
    """Start the killed server again over the same home."""

    again: Literal[True]


class Revive(Strict):
    """Continue a thread of the killed server, as far as the new server allows."""

    thread: str


class ReviveStep(Strict):
    """Read the thread, resume it, and run a turn on it."""

    revive: Revive


class SettleStep(Strict):
    """Wait for the ends of the turns, and check that accepted input arrived."""

    settle: Act


def placements(scenario: Scenario, action: Action) -> list[Placement]:
    """Return every placement of an action in a scenario, in the order of the positions.

    Interrupt and steer are placed from the position at which the turn's id is known, answers from
    the first approval request.
    """
    candidates = positions(scenario)
    if action in ("interrupt", "steer"):
        candidates = [candidate for candidate in candidates if candidate.knows_turn]
    elif action == "answer":
        names = [candidate.name for candidate in candidates]
        candidates = candidates[names.index(ASKED) :] if ASKED in names else []
    return [Placement(action, position) for position in candidates]


def derive_race(
    loaded: Loaded, placement: Placement, *, server_listens: bool = False
) -> RacedScenario:
    """Return the scenario of one placement. Raises `ValueError` if it cannot be raced.

    With `server_listens` the server survives a disconnect, and the client connects again.
    """
    scenario, position = loaded.scenario, placement.position
    turn = raced_turn(scenario)
    turn_index = scenario.client.index(turn)
    steps = [
        *scenario.client[:turn_index],
        *_race_steps(scenario, turn, placement, listens=server_listens),
    ]
    line = loaded.line_of("client", turn_index)
    lines = [loaded.line_of("client", index) for index in range(turn_index)]
    script = [*insert_gate(unroll_script(scenario), position.hold), *_spare_script()]
    fields: dict[str, Any] = {
        "model": script,
        "client": steps,
        "covers": [],
        "races": [],
        "server": "fresh"
        if _spoils_process(placement.action, listens=server_listens)
        else scenario.server,
        # The action may change the number of model calls; the script has enough of them.
        "expect": Expectations(
            any_of=[Outcome(model_calls=count) for count in range(len(script) + 1)]
        ),
    }
    return RacedScenario(
        id=str(RaceId(loaded.id, placement.action, position.name)),
        path=loaded.path,
        scenario=scenario.model_copy(update=fields),
        document=loaded.document,
        lines=(*lines, *[line] * (len(steps) - turn_index)),
    )


def _spoils_process(action: Action, *, listens: bool) -> bool:
    """Return whether the action ends or adds a connection, so the process cannot be reused."""
    leaves = action in LEAVING_ACTIONS and action != "kill"
    return leaves or (action == "attach" and listens)


def _spare_script() -> Script:
    reply = {"reply": [{"message": {"deltas": ["Very well."]}}]}
    return [ModelStep.model_validate(reply) for _ in range(SPARE_MODEL_CALLS)]


def _race_steps(
    scenario: Scenario, turn: StartTurnStep, placement: Placement, *, listens: bool
) -> list[Any]:
    """Return the steps from the turn's start on."""
    position, answers = placement.position, answers_of(scenario)
    body = turn.start_turn
    act = Act(
        turn=body.alias,
        thread=body.thread,
        action=placement.action,
        turn_is_running=position.is_within_turn,
        turn_has_ended=position.is_settled and not position.is_within_turn,
    )
    begin = BeginStep(begin=Begin(turn=body)) if position.name == SENT else turn
    pipes = opened_pipes(scenario)
    steps: list[Any] = [OpenStep(open=pipe) for pipe in pipes if pipe != position.pipe]
    steps += [begin, *answers[: position.answers]]
    steps += [ReachStep(reach=Reach(turn=body.alias, thread=body.thread, position=position))]
    # A command's write is recorded only if a step waits for it; this wait ends at once.
    steps += [
        WaitStep(wait=Wait(gate=sight.method)) for sight in position.sights if sight.kind == "pipe"
    ]
    steps += [ActStep(act=act)]
    leaves_for_good = placement.action in ("disconnect", "reset")
    if leaves_for_good and not listens:
        return steps
    if leaves_for_good:
        steps += [ConnectStep(connect=MAIN_CONNECTION)]
    if placement.action == "kill":
        steps += [AgainStep(again=True)]
    steps += _as_standing_answers(answers)
    gates = [*([position.pipe] if position.pipe else []), *([RACE_GATE] if position.hold else [])]
    steps += [OpenStep(open=gate) for gate in gates]
    if placement.action in ("kill", "reconnect"):
        return [*steps, *_new_thread_steps(scenario), ReviveStep(revive=Revive(thread=body.thread))]
    if leaves_for_good:
        return [*steps, *_new_thread_steps(scenario)]
    return [*steps, SettleStep(settle=act), *_last_turn_steps(body.thread)]


def _as_standing_answers(answers: Iterable[AnswerStep]) -> list[AnswerStep]:
    """Return standing answers: for each server request method, the first of the answers."""
    first: dict[str, AnswerStep] = {}
    for step in answers:
        first.setdefault(step.answer.to, step)
    return [
        AnswerStep(answer=step.answer.model_copy(update={"standing": True, "alias": None}))
        for step in first.values()
    ]


def _new_thread_steps(scenario: Scenario) -> list[Any]:
    """Return steps that start a new thread and a turn, after a new server or connection."""
    starts = [step.start_thread for step in scenario.steps if isinstance(step, StartThreadStep)]
    params = starts[0].params if starts else {}
    thread = StartThreadStep(
        start_thread=StartThread.model_validate({"as": OTHER_THREAD, "params": params})
    )
    return [thread, *_last_turn_steps(OTHER_THREAD)]


def _last_turn_steps(thread: str) -> list[Any]:
    """Return steps for another turn of the thread, which uses the rest of the script."""
    start = {"thread": thread, "as": NEXT_TURN, "text": "And now something else."}
    return [
        StartTurnStep(start_turn=StartTurn.model_validate(start)),
        WaitStep(wait=Wait(turn=NEXT_TURN)),
        ReadThreadStep(read_thread=ReadThread(thread=thread, include_turns=True)),
    ]
