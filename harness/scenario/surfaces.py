"""Checks that a scenario can be played on the surfaces that it lists.

The session plays every step. `agent exec` is a process for each turn: it can begin or resume a
thread, and can only be ended while it runs. An SDK runs the turns of a thread one after the other,
with nothing between them.
"""

from harness.protocol.values import obj
from harness.scenario.client_steps import (
    ClientStep,
    InterruptStep,
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
from harness.scenario.sdk_steps import SdkStep
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION

# Capabilities that are commands of an agent.
EXEC_COMMAND, MCP_COMMAND, LOGIN_COMMAND = "exec", "mcp-command", "mcp-login"
COMMANDS = (EXEC_COMMAND, MCP_COMMAND, LOGIN_COMMAND)

_Problem = tuple[tuple[str | int, ...], str]

# Parameters of threads and turns that `agent exec` and an SDK accept, by the protocol's names.
THREAD_PARAMS = ("approvalPolicy", "cwd", "model", "sandbox")
TURN_PARAMS = ("outputSchema",)
# `agent exec` also accepts the sandbox of one turn; null keeps that of the resumed thread.
EXEC_TURN_PARAMS = (*TURN_PARAMS, "sandbox")
INPUT_TYPES = ("text", "localImage")
# Item types of its events that the session does not have.
EXEC_ONLY_ITEMS = ("todo_list", "error")


def needs_agent(scenario: Scenario) -> bool:
    """Return whether a scenario for an SDK has the steps of a session, and so needs an agent."""
    return SDK in scenario.surfaces and not any(
        isinstance(step, SdkStep) for step in scenario.steps
    )


def commands_needed(scenario: Scenario, surface: str) -> list[str]:
    """Return the capabilities for the agent's commands that a play on this surface uses."""
    if surface == COMMAND:
        return [MCP_COMMAND]
    through_agent = surface == EXEC or (surface == SDK and needs_agent(scenario))
    return [EXEC_COMMAND] if through_agent else []


def find_unplayable(scenario: Scenario) -> _Problem | None:
    """Return the place and reason why a listed surface cannot play a scenario, or None."""
    problem = _program_problem(scenario)
    without_agent = COMMAND in scenario.surfaces or (
        SDK in scenario.surfaces and not needs_agent(scenario)
    )
    if scenario.mcp and without_agent:
        return ("mcp",), "nobody calls MCP servers here: they are for turns of an agent"
    if scenario.client_name is not None and scenario.surfaces != [SESSION]:
        return ("client_name",), f"only {SESSION} has a handshake that names the client"
    programs = [surface for surface in (EXEC, SDK) if surface in scenario.surfaces]
    if problem is not None or not programs or (SDK in programs and not needs_agent(scenario)):
        return problem
    running: dict[str, str] = {}
    for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
        for index, step in enumerate(steps):
            problem = _step_problem(step, running, programs)
            if problem is not None:
                key = next(iter(type(step).model_fields))
                return (side, index, key, *problem[0]), problem[1]
    return _search_problem(scenario) if SDK in programs else None


def _search_problem(scenario: Scenario) -> _Problem | None:
    """Return the problem of a `search_home` between two turns of a thread, or None."""
    threads = [
        step.start_turn.thread if isinstance(step, StartTurnStep) else None
        for step in scenario.steps
    ]
    for position, step in enumerate(scenario.steps):
        before, after = {*threads[:position]} - {None}, {*threads[position:]} - {None}
        if isinstance(step, SearchHomeStep) and before & after:
            on_setup = position < len(scenario.setup)
            side = "setup" if on_setup else "client"
            index = position if on_setup else position - len(scenario.setup)
            message = f"{SDK} has nothing between the turns of a thread: put it after the last one"
            return (side, index, "search_home"), message
    return None


# The only steps on `agent mcp`, and on SDKs with a scripted agent.
_STEPS_OF_SURFACE: dict[str, tuple[type, ...]] = {
    COMMAND: (McpStep, McpAtOnceStep, WriteFileStep, RemoveFileStep),
    SDK: (SdkStep,),
}
_SURFACE_OF_STEP: dict[type, str] = {McpStep: COMMAND, McpAtOnceStep: COMMAND, SdkStep: SDK}


def _program_problem(scenario: Scenario) -> _Problem | None:
    """Return the problem of a surface's own steps mixed with others, or None."""
    session_like = {SDK} if needs_agent(scenario) else set[str]()
    own_surfaces = [
        listed
        for listed in scenario.surfaces
        if listed in _STEPS_OF_SURFACE and listed not in session_like
    ]
    surface = own_surfaces[0] if own_surfaces else None
    if surface is not None and len(scenario.surfaces) > 1:
        return ("surfaces",), f"{surface} has steps of its own: it stands alone"
    if surface is not None and scenario.setup and surface == SDK:
        return ("setup",), f"{surface} has no setup"
    for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
        for index, step in enumerate(steps):
            key = next(iter(type(step).model_fields))
            required = _SURFACE_OF_STEP.get(type(step), surface)
            if required != surface:
                return (side, index, key), f"{key} needs surfaces: [{required}]"
            if surface is not None and not isinstance(step, _STEPS_OF_SURFACE[surface]):
                return (side, index, key), f"{surface} cannot play this step: it is of a session"
    return None


def _step_problem(
    step: ClientStep, running: dict[str, str], programs: list[str]
) -> _Problem | None:
    """Return a step's problem or None; updates `running`, thread -> turn not waited for."""
    surface = programs[0]
    match step:
        case StartThreadStep(start_thread=body):
            return _params_problem(body, THREAD_PARAMS, surface)
        case StartTurnStep(start_turn=body):
            if body.thread in running:
                turn = running[body.thread]
                return (), f"on {surface} the turn {turn} must end first: add a wait for it before"
            running[body.thread] = body.alias
            params = EXEC_TURN_PARAMS if programs == [EXEC] else TURN_PARAMS
            return _inputs_problem(body, surface) or _params_problem(body, params, surface)
        case WaitStep(wait=body) if body.awaited_kinds == ["turn"]:
            for thread, turn in list(running.items()):
                if turn == body.turn:
                    del running[thread]
            return None
        case WaitStep(wait=body) if body.awaited_kinds in (["gate"], ["model"]):
            return None
        case InterruptStep():
            problem = (), f"{SDK} cannot play this step: nobody speaks to a call that runs"
            return problem if SDK in programs else None
        case OpenStep() | ReadThreadStep() | SearchHomeStep():
            return None
        case _:
            return (), f"{surface} cannot play this step: nobody speaks to a process that runs"


def _params_problem(
    body: StartThread | StartTurn, accepted: tuple[str, ...], surface: str
) -> _Problem | None:
    for name in body.params:
        if name not in accepted:
            return ("params", name), f"{surface} takes no {name}; it takes {', '.join(accepted)}"
    return None


def _inputs_problem(body: StartTurn, surface: str) -> _Problem | None:
    for index, entry in enumerate(body.input or ()):
        if obj(entry).get("type") not in INPUT_TYPES:
            return (
                "input",
                index,
            ), f"{surface} takes inputs of the types {' and '.join(INPUT_TYPES)}"
    return None
