"""On which surfaces a scenario can be played.

The session plays every step. `agent exec` is a process for each turn: it can begin a thread or go
on with one, and nobody can speak to it while it runs, but it can be told to end. An SDK runs the
turns of a thread one after the other, and nothing else can be done between them.
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

# The capabilities that are commands of an agent: what is played by one needs it.
EXEC_COMMAND, MCP_COMMAND, LOGIN_COMMAND = "exec", "mcp-command", "mcp-login"
COMMANDS = (EXEC_COMMAND, MCP_COMMAND, LOGIN_COMMAND)

_Problem = tuple[tuple[str | int, ...], str]

# What `agent exec` and an SDK can be told of a thread and of a turn, by the protocol's names.
THREAD_PARAMS = ("approvalPolicy", "cwd", "model", "sandbox")
TURN_PARAMS = ("outputSchema",)
INPUTS = ("text", "localImage")
# Item types that its events have and the session has not: a scenario of this surface names them so.
ITEMS = ("todo_list", "error")


def needs_agent(scenario: Scenario) -> bool:
    """Return whether an SDK can play it only on an agent's program.

    Its steps are those of a session.
    """
    return SDK in scenario.surfaces and not any(isinstance(one, SdkStep) for one in scenario.steps)


def commands_needed(scenario: Scenario, surface: str) -> list[str]:
    """The commands that an agent must have for a scenario to be played on a surface."""
    if surface == COMMAND:
        return [MCP_COMMAND]
    through_agent = surface == EXEC or (surface == SDK and needs_agent(scenario))
    return [EXEC_COMMAND] if through_agent else []


def unplayable(scenario: Scenario) -> _Problem | None:
    """Return why a scenario cannot be played on a surface that it names, and where; or None."""
    problem = _of_programs(scenario)
    without_agent = COMMAND in scenario.surfaces or (
        SDK in scenario.surfaces and not needs_agent(scenario)
    )
    if scenario.mcp and without_agent:
        return ("mcp",), "nobody calls MCP servers here: they are for turns of an agent"
    if scenario.client_name is not None and scenario.surfaces != [SESSION]:
        return ("client_name",), f"only {SESSION} has a handshake that names the client"
    programs = [one for one in (EXEC, SDK) if one in scenario.surfaces]
    if problem is not None or not programs or (SDK in programs and not needs_agent(scenario)):
        return problem
    running: dict[str, str] = {}
    for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
        for index, step in enumerate(steps):
            problem = _of_step(step, running, programs)
            if problem is not None:
                key = next(iter(type(step).model_fields))
                return (side, index, key, *problem[0]), problem[1]
    return _between_turns(scenario) if SDK in programs else None


def _between_turns(scenario: Scenario) -> _Problem | None:
    """A step that an SDK cannot have: it would be done before the next turn of a thread begins."""
    threads = [
        step.start_turn.thread if isinstance(step, StartTurnStep) else None
        for step in scenario.steps
    ]
    for place, step in enumerate(scenario.steps):
        before, after = {*threads[:place]} - {None}, {*threads[place:]} - {None}
        if isinstance(step, SearchHomeStep) and before & after:
            on_setup = place < len(scenario.setup)
            side = "setup" if on_setup else "client"
            index = place if on_setup else place - len(scenario.setup)
            message = f"{SDK} has nothing between the turns of a thread: put it after the last one"
            return (side, index, "search_home"), message
    return None


# What plays of `agent mcp`, and of SDKs on a scripted agent, are made of: these steps and no other.
_STEPS: dict[str, tuple[type, ...]] = {
    COMMAND: (McpStep, McpAtOnceStep, WriteFileStep, RemoveFileStep),
    SDK: (SdkStep,),
}
_OWN: dict[type, str] = {McpStep: COMMAND, McpAtOnceStep: COMMAND, SdkStep: SDK}


def _of_programs(scenario: Scenario) -> _Problem | None:
    """Return the problem of steps of such a surface beside others, or None."""
    session_like = {SDK} if needs_agent(scenario) else set[str]()
    own = [one for one in scenario.surfaces if one in _STEPS and one not in session_like]
    alone = own[0] if own else None
    if alone is not None and len(scenario.surfaces) > 1:
        return ("surfaces",), f"{alone} has steps of its own: it stands alone"
    if alone is not None and scenario.setup and alone == SDK:
        return ("setup",), f"{alone} has no setup"
    for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
        for index, step in enumerate(steps):
            key = next(iter(type(step).model_fields))
            needed = _OWN.get(type(step), alone)
            if needed != alone:
                return (side, index, key), f"{key} needs surfaces: [{needed}]"
            if alone is not None and not isinstance(step, _STEPS[alone]):
                return (side, index, key), f"{alone} cannot play this step: it is of a session"
    return None


def _of_step(step: ClientStep, running: dict[str, str], programs: list[str]) -> _Problem | None:
    """`running` are the turns that no step has waited for, by their threads."""
    surface = programs[0]
    match step:
        case StartThreadStep(start_thread=body):
            return _params(body, THREAD_PARAMS, surface)
        case StartTurnStep(start_turn=body):
            if body.thread in running:
                turn = running[body.thread]
                return (), f"on {surface} the turn {turn} must end first: add a wait for it before"
            running[body.thread] = body.alias
            return _inputs(body, surface) or _params(body, TURN_PARAMS, surface)
        case WaitStep(wait=body) if body.what == ["turn"]:
            for thread, turn in list(running.items()):
                if turn == body.turn:
                    del running[thread]
            return None
        case WaitStep(wait=body) if body.what in (["gate"], ["model"]):
            return None
        case InterruptStep():
            problem = (), f"{SDK} cannot play this step: nobody speaks to a call that runs"
            return problem if SDK in programs else None
        case OpenStep() | ReadThreadStep() | SearchHomeStep():
            return None
        case _:
            return (), f"{surface} cannot play this step: nobody speaks to a process that runs"


def _params(body: StartThread | StartTurn, known: tuple[str, ...], surface: str) -> _Problem | None:
    for name in body.params:
        if name not in known:
            return ("params", name), f"{surface} takes no {name}; it takes {', '.join(known)}"
    return None


def _inputs(body: StartTurn, surface: str) -> _Problem | None:
    for index, entry in enumerate(body.input or ()):
        if obj(entry).get("type") not in INPUTS:
            return ("input", index), f"{surface} takes inputs of the types {' and '.join(INPUTS)}"
    return None
