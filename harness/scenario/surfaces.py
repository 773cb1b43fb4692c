"""On which surfaces a scenario can be played.

The session plays every step. `agent exec` is a process for each turn: it can begin a thread or go
on with one, and nobody can speak to it while it runs. Here: which steps and parameters such a
run has. Not here: playing (runner), what it is called there (trace.surfaces).
"""

from harness.scenario.client_steps import (
    ClientStep,
    OpenStep,
    ReadThreadStep,
    RemoveFileStep,
    SearchHomeStep,
    StartThread,
    StartThreadStep,
    StartTurn,
    StartTurnStep,
    WaitStep,
    WriteFileStep,
)
from harness.scenario.command_steps import McpAtOnceStep, McpStep
from harness.scenario.model import Scenario
from harness.trace.surfaces import COMMAND, EXEC
from harness.trace.values import obj

_Problem = tuple[tuple[str | int, ...], str]

# What `agent exec` can be told of a thread and of a turn, by the protocol's names.
THREAD_PARAMS = ("approvalPolicy", "cwd", "model", "sandbox")
TURN_PARAMS = ("outputSchema",)
INPUTS = ("text", "localImage")
# Item types that its events have and the session has not: a scenario of this surface names them so.
ITEMS = ("todo_list", "error")


def unplayable(scenario: Scenario) -> _Problem | None:
    """What keeps a scenario from being played on a surface that it names: the place, and why."""
    problem = _of_commands(scenario)
    if problem is not None or EXEC not in scenario.surfaces:
        return problem
    running: dict[str, str] = {}
    for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
        for index, step in enumerate(steps):
            problem = _of_step(step, running)
            if problem is not None:
                key = next(iter(type(step).model_fields))
                return (side, index, key, *problem[0]), problem[1]
    return None


# What a play of `agent mcp` is made of, and no other: it has neither threads nor a model.
_COMMANDS = (McpStep, McpAtOnceStep)
_FILES = (WriteFileStep, RemoveFileStep)


def _of_commands(scenario: Scenario) -> _Problem | None:
    """What is wrong where some steps are of `agent mcp` and others are not."""
    runs = COMMAND in scenario.surfaces
    if runs and len(scenario.surfaces) > 1:
        return ("surfaces",), f"{COMMAND} has steps of its own: it stands alone"
    for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
        for index, step in enumerate(steps):
            key = next(iter(type(step).model_fields))
            if isinstance(step, _COMMANDS) and not runs:
                return (side, index, key), f"{key} needs surfaces: [{COMMAND}]"
            if runs and not isinstance(step, (*_COMMANDS, *_FILES)):
                return (side, index, key), f"{COMMAND} cannot play this step: it is of a session"
    return None


def _of_step(step: ClientStep, running: dict[str, str]) -> _Problem | None:
    """`running` are the turns that no step has waited for, by their threads."""
    match step:
        case StartThreadStep(start_thread=body):
            return _params(body, THREAD_PARAMS)
        case StartTurnStep(start_turn=body):
            if body.thread in running:
                turn = running[body.thread]
                return (), f"on {EXEC} the turn {turn} must end first: add a wait for it before"
            running[body.thread] = body.alias
            return _inputs(body) or _params(body, TURN_PARAMS)
        case WaitStep(wait=body) if body.what == ["turn"]:
            for thread, turn in list(running.items()):
                if turn == body.turn:
                    del running[thread]
            return None
        case WaitStep(wait=body) if body.what in (["gate"], ["model"]):
            return None
        case OpenStep() | ReadThreadStep() | SearchHomeStep():
            return None
        case _:
            return (), f"{EXEC} cannot play this step: nobody speaks to a process that runs"


def _params(body: StartThread | StartTurn, known: tuple[str, ...]) -> _Problem | None:
    for name in body.params:
        if name not in known:
            return ("params", name), f"{EXEC} takes no {name}; it takes {', '.join(known)}"
    return None


def _inputs(body: StartTurn) -> _Problem | None:
    for index, entry in enumerate(body.input or ()):
        if obj(entry).get("type") not in INPUTS:
            return ("input", index), f"{EXEC} takes inputs of the types {' and '.join(INPUTS)}"
    return None
