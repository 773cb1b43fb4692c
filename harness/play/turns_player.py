"""Base of the players of scenarios whose turns are runs of programs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from harness.client.target.confine.command import Confinement
from harness.client.target.process import ProcessExit
from harness.client.target.profile import Bounds, ExecProgram, fill
from harness.model.model import ScriptedModel
from harness.scenario.client_steps import (
    ClientStep,
    InterruptStep,
    OpenStep,
    SearchHomeStep,
    StartThread,
    StartThreadStep,
    StartTurn,
    StartTurnStep,
    Wait,
    WaitStep,
)
from harness.scenario.exec_results import ExecResult
from harness.scenario.home_files import search_home
from harness.scenario.loader import Loaded
from harness.scenario.player import StepFailure, tool_not_offered
from harness.scenario.steps.context import FailureKind, StepFailed
from harness.trace.marks import GateOpened, Setup, StepBegins
from harness.trace.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Stage:
    """Environment of a program: its command line, its variables, its folders.

    `variables` are the names of the variables that the harness set in `env`. `params` are those of
    every thread, `places` the values of a scenario's placeholders.
    """

    command: list[str]
    program: ExecProgram
    env: Mapping[str, str]
    variables: tuple[str, ...]
    cwd: Path
    home: Path
    scratch: Path
    params: Mapping[str, Any]
    places: Mapping[str, str]
    confinement: Confinement | None = None


@dataclass(slots=True)
class PlayedThread:
    """A thread of a play: its parameters, its id once it is known, the prompts of its turns."""

    params: dict[str, Any]
    id: str = ""
    prompts: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class PlayedTurn:
    """A turn of a play: `key` is its name in the trace, cancelling `scope` ends it early.

    `stop_requested`: send its process the signal with which a caller aborts a turn.
    """

    thread: PlayedThread
    key: str
    scope: anyio.CancelScope
    stop_requested: anyio.Event = field(default_factory=anyio.Event)
    end_event: anyio.Event = field(default_factory=anyio.Event)


class TurnsPlayer(ABC):
    """Player of one scenario; `turns` maps the aliases of its turns to their names in the trace."""

    def __init__(
        self, loaded: Loaded, recorder: Recorder, model: ScriptedModel, stage: Stage, bounds: Bounds
    ) -> None:
        self.turns: dict[str, str] = {}
        self.exits: list[ProcessExit] = []
        self.overflow = ""
        self.ended_by_us = False
        self._loaded = loaded
        self._recorder = recorder
        self._model = model
        self._stage = stage
        self._bounds = bounds
        self._threads: dict[str, PlayedThread] = {}
        self._running: dict[str, PlayedTurn] = {}
        self._tasks: TaskGroup | None = None
        self._error: Exception | None = None
        self._markers = loaded.thread_markers()
        self._line = 1

    async def play(self) -> StepFailure | None:
        """Play every step; return the failure of the step that failed, if any.

        When it returns all processes have ended: it waits for those that run after the last step,
        and ends those that run after a failed step. Raises `NotStarted`.
        """
        unmet: StepFailure | None = None
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._watch)
            unmet = await self._play_steps()
            self._model.gates.open_all()
            if unmet is not None:
                self._end_all()
            await self._wait_for_all()
            self._tasks.cancel_scope.cancel()
        if self._error is not None:
            raise self._error
        return unmet

    @abstractmethod
    def _start_turn(self, body: StartTurn) -> None:
        """Start a turn. Raises `StepFailed` if that is impossible."""

    @abstractmethod
    def _turn_record(self, turn: PlayedTurn) -> ExecResult:
        """Return the result that a turn has reported so far."""

    def _start_task(
        self, call: Callable[..., Coroutine[Any, Any, None]], *arguments: object
    ) -> None:
        """Run a task beside the steps; `play` returns after it has ended."""
        if self._tasks is None:
            raise RuntimeError("steps are played within play()")
        self._tasks.start_soon(call, *arguments)

    async def _wait_for_all(self) -> None:
        """Wait until all programs have ended."""
        for turn in self._running.values():
            await turn.end_event.wait()

    async def _watch(self) -> None:
        """End the running programs when the model cannot continue its script."""
        await self._model.is_stuck.wait()
        self._end_all()

    def _end_all(self) -> None:
        self.ended_by_us |= not all(turn.end_event.is_set() for turn in self._running.values())
        for turn in self._running.values():
            turn.scope.cancel()

    async def _play_steps(self) -> StepFailure | None:
        scenario = self._loaded.scenario
        for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
            if side == "setup" and steps:
                self._recorder.mark(Setup(active=True))
            for index, step in enumerate(steps):
                unmet = await self._play_bounded(step, self._loaded.line_of(side, index))
                if unmet is not None:
                    return unmet
            if side == "setup" and steps:
                self._recorder.mark(Setup(active=False))
        return None

    async def _play_bounded(self, step: ClientStep, line: int) -> StepFailure | None:
        name = next(iter(type(step).model_fields))
        self._line = line
        self._recorder.mark(StepBegins(name, line))
        bound = self._bounds.start + self._bounds.step
        try:
            with anyio.fail_after(bound):
                await self._play(step)
        except (TimeoutError, StepFailed) as error:
            return self._unmet(error, name, line, bound)
        if self._model.missing_tools:
            return self._unmet(tool_not_offered(self._model.missing_tools[0]), name, line, bound)
        return None

    def _unmet(self, error: Exception, name: str, line: int, bound: float) -> StepFailure:
        """Return the failure of a step; a model that cannot continue is the better reason."""
        if self._model.missing_tools:
            error = tool_not_offered(self._model.missing_tools[0])
        if isinstance(error, TimeoutError):
            running = [name for name, turn in self._running.items() if not turn.end_event.is_set()]
            awaited = (
                f"for the end of turn {running[-1]}, whose process still runs" if running else ""
            )
            message = f"waited {bound:g} s {awaited or 'without result'}"
            return StepFailure(FailureKind.TIMEOUT, name, line, message)
        return StepFailure.from_exception(error, name, line)

    async def _play(self, step: ClientStep) -> None:
        match step:
            case StartThreadStep(start_thread=body):
                self._start_thread(body)
            case StartTurnStep(start_turn=body):
                self._start_turn(body)
            case WaitStep(wait=body):
                await self._wait(body)
            case InterruptStep(interrupt=body):
                self._running[body.turn].stop_requested.set()
            case OpenStep(open=gate):
                self._model.gates.open(gate)
                self._recorder.mark(GateOpened(gate))
            case SearchHomeStep(search_home=body):
                texts = [self._resolve(value) for value in body.texts]
                self._recorder.mark(
                    search_home(self._stage.home, tuple(value for value in texts if value))
                )
            case _:
                pass  # read_thread: a process that has ended cannot be read from.

    def _resolve(self, value: str) -> str:
        """Return the id of a thread for `$t.thread.id`, any other text unchanged."""
        for alias, thread in self._threads.items():
            if value == f"${alias}.thread.id":
                return thread.id
        return value

    def _start_thread(self, body: StartThread) -> None:
        params = fill({**self._stage.params, **body.params}, self._stage.places)
        self._threads[body.alias] = PlayedThread(params)

    async def _wait(self, body: Wait) -> None:
        match body.awaited_kinds:
            case ["gate"]:
                await self._model.gates.wait_until_reached(body.gate or "")
            case ["model"] if body.model is not None:
                await self._model.wait_for_call(body.model.call, until_ended=body.model.ended)
            case _:
                turn = self._running[body.turn or ""]
                await turn.end_event.wait()
                record = self._turn_record(turn)
                if body.statuses and record.status not in body.statuses:
                    error = f" ({record.error})" if record.error else ""
                    statuses = " or ".join(body.statuses)
                    message = (
                        f"turn {body.turn} ended as {record.end_words}{error}; expected {statuses}"
                    )
                    raise StepFailed(FailureKind.OTHER_END, message)
