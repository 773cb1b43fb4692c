"""Plays a scenario whose turns are runs of programs: the steps that such a play has."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

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
from harness.scenario.exec_told import Told
from harness.scenario.home_files import search
from harness.scenario.loader import Loaded
from harness.scenario.player import Unmet, not_offered
from harness.scenario.steps.context import StepFailed, UnmetKind
from harness.trace.marks import GateOpened, Setup, StepBegins
from harness.trace.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Stage:
    """The surroundings of a program: its words, its environment, its folders.

    `variables` are the names of what the harness set in `env`. `params` are those of every thread,
    `places` what the placeholders of a scenario stand for.
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


@dataclass(slots=True)
class PlayedThread:
    """A thread of a play: its parameters, its id once that is told, the prompts of its turns."""

    params: dict[str, Any]
    id: str = ""
    prompts: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class PlayedTurn:
    """A turn of a play: `key` is what its trace calls it, `within` ends it early.

    `told_to_end`: its process is to get the signal by which whoever started it aborts a turn.
    """

    thread: PlayedThread
    key: str
    scope: anyio.CancelScope
    stop_requested: anyio.Event = field(default_factory=anyio.Event)
    end_event: anyio.Event = field(default_factory=anyio.Event)


class TurnsPlayer(ABC):
    """Plays one scenario. `turns` are its turns by their aliases, as the trace calls them."""

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
        self._markers = loaded.markers()
        self._line = 1

    async def play(self) -> Unmet | None:
        """Play every step; gives the one that could not be done, if any.

        When it returns all processes have ended: what still ran after the last step was waited for,
        and what ran after a step that could not be done was ended. Raises `NotStarted`.
        """
        unmet: Unmet | None = None
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
        """Start a turn. Raises `StepFailed` where that cannot be done."""

    @abstractmethod
    def _turn_record(self, turn: PlayedTurn) -> Told:
        """Return what a turn told so far."""

    def _start_task(self, call: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> None:
        """Run something beside the steps; `play` ends when it has ended."""
        if self._tasks is None:
            raise RuntimeError("steps are played within play()")
        self._tasks.start_soon(call, *arguments)

    async def _wait_for_all(self) -> None:
        """Wait until no program runs any more."""
        for turn in self._running.values():
            await turn.end_event.wait()

    async def _watch(self) -> None:
        """End what runs when the model's side cannot go on."""
        await self._model.stuck.wait()
        self._end_all()

    def _end_all(self) -> None:
        self.ended_by_us |= not all(turn.end_event.is_set() for turn in self._running.values())
        for turn in self._running.values():
            turn.scope.cancel()

    async def _play_steps(self) -> Unmet | None:
        scenario = self._loaded.scenario
        for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
            if side == "setup" and steps:
                self._recorder.mark(Setup(active=True))
            for index, step in enumerate(steps):
                unmet = await self._play_bounded(step, self._loaded.line(side, index))
                if unmet is not None:
                    return unmet
            if side == "setup" and steps:
                self._recorder.mark(Setup(active=False))
        return None

    async def _play_bounded(self, step: ClientStep, line: int) -> Unmet | None:
        name = next(iter(type(step).model_fields))
        self._line = line
        self._recorder.mark(StepBegins(name, line))
        bound = self._bounds.start + self._bounds.step
        try:
            with anyio.fail_after(bound):
                await self._play(step)
        except (TimeoutError, StepFailed) as error:
            return self._unmet(error, name, line, bound)
        if self._model.unfit:
            return self._unmet(not_offered(self._model.unfit[0]), name, line, bound)
        return None

    def _unmet(self, error: Exception, name: str, line: int, bound: float) -> Unmet:
        """Return why a step failed; that the script cannot go on says more than what came."""
        if self._model.unfit:
            error = not_offered(self._model.unfit[0])
        if isinstance(error, TimeoutError):
            running = [name for name, turn in self._running.items() if not turn.end_event.is_set()]
            what = f"for the end of turn {running[-1]}, whose process still runs" if running else ""
            message = f"waited {bound:g} s {what or 'in vain'}"
            return Unmet(UnmetKind.TIMEOUT, name, line, message)
        return Unmet.because_of(error, name, line)

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
                texts = [self._resolve(one) for one in body.texts]
                self._recorder.mark(search(self._stage.home, tuple(one for one in texts if one)))
            case _:
                pass  # read_thread: nothing is read of a process that has ended.

    def _resolve(self, value: str) -> str:
        """A text, or the id of a thread for `$t.thread.id`."""
        for alias, thread in self._threads.items():
            if value == f"${alias}.thread.id":
                return thread.id
        return value

    def _start_thread(self, body: StartThread) -> None:
        params = fill({**self._stage.params, **body.params}, self._stage.places)
        self._threads[body.alias] = PlayedThread(params)

    async def _wait(self, body: Wait) -> None:
        match body.what:
            case ["gate"]:
                await self._model.gates.reached(body.gate or "")
            case ["model"] if body.model is not None:
                await self._model.called(body.model.call, ended=body.model.ended)
            case _:
                turn = self._running[body.turn or ""]
                await turn.end_event.wait()
                told = self._turn_record(turn)
                if body.statuses and told.status not in body.statuses:
                    why = f" ({told.error})" if told.error else ""
                    wanted = " or ".join(body.statuses)
                    message = f"turn {body.turn} ended as {told.words}{why}; expected {wanted}"
                    raise StepFailed(UnmetKind.OTHER_END, message)
