"""Plays a scenario's client side against a connected server, step by step. It never judges."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from harness.client.peer import Peer
from harness.client.target.profile import Bounds
from harness.errors import TargetGone
from harness.model.model import ScriptedModel
from harness.model.play import Unfit
from harness.model.tools import CAPABILITIES, lines_to_add
from harness.scenario.client_steps import ClientStep, RestartStep
from harness.scenario.loader import Loaded
from harness.scenario.patience import Patience
from harness.scenario.races import AgainStep
from harness.scenario.steps import plays_by_step
from harness.scenario.steps.awaited import NOTHING, Awaited
from harness.scenario.steps.context import (
    Cast,
    Connections,
    OneConnection,
    StepContext,
    StepFailed,
    UnmetKind,
)
from harness.trace.marks import Setup, StepBegins

__all__ = ["CANNOT_GO_ON", "Cast", "Player", "Unmet", "UnmetKind"]

CANNOT_GO_ON = (StepFailed, TargetGone, TimeoutError)
"""What ends a client's side before its end. Any other exception is a defect of the harness."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """A step that could not be done.

    `capability` is what the target lacks, "" for none; `awaited` what a step that timed out waited
    for.
    """

    kind: UnmetKind
    step: str
    line: int
    message: str
    capability: str = ""
    awaited: Awaited = NOTHING

    @classmethod
    def because_of(cls, error: Exception, step: str, line: int = 1) -> "Unmet":
        """The same, of an exception in `CANNOT_GO_ON`."""
        match error:
            case StepFailed():
                return cls(error.kind, step, line, str(error), error.capability)
            case TargetGone():
                return cls(UnmetKind.CRASH, step, line, str(error))
            case _:
                return cls(UnmetKind.TIMEOUT, step, line, str(error) or "a bound was hit")


class Player:
    """Plays one scenario: `play` plays all of it, `step` one step at a time.

    Who steps does so within `async with player:`, since a step may begin something that goes on
    beside the following ones (a standing answer). The block is entered and left in one task; the
    steps may be played from any, one after the other. `next_step` is None after the last step, and
    after one that could not be done, which `unmet` then tells.

    `thread_params` go into every `thread/start`, `turn_params` into every `turn/start`; `places`
    are what the placeholders `{name}` in what is sent stand for. `markers` maps a thread's alias to
    a nonce that is put before its first input, so that the model's side can tell whose call it is.
    `connections` are the scenario's, without them there is one.
    """

    def __init__(
        self,
        loaded: Loaded,
        peer: Peer,
        model: ScriptedModel,
        *,
        cast: Cast | None = None,
        cwd: Path,
        bounds: Bounds,
        thread_params: dict[str, Any],
        turn_params: Mapping[str, Any] | None = None,
        places: Mapping[str, str] | None = None,
        markers: Mapping[str, str] | None = None,
        connections: Connections | None = None,
    ) -> None:
        self.cast = cast or Cast()
        self.unmet: Unmet | None = None
        self._loaded = loaded
        self._recorder = peer.recorder
        self._bounds = bounds
        scenario = loaded.scenario
        self._to_come = [
            (side, index, step)
            for side, steps in (("setup", scenario.setup), ("client", scenario.client))
            for index, step in enumerate(steps)
        ]
        self._in_setup = False
        self._plays = plays_by_step()
        self._current = anyio.CancelScope()
        self._tasks: TaskGroup | None = None
        settings = scenario.settings.model_dump(exclude_none=True)
        self._context = StepContext(
            connections=connections or OneConnection(peer),
            model=model,
            cast=self.cast,
            cwd=cwd,
            bounds=bounds,
            thread_params={**settings, **thread_params},
            turn_params=dict(turn_params or {}),
            places=dict(places or {}),
            markers=dict(markers or {}),
        )

    async def __aenter__(self) -> Self:
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._tasks = self._context.tasks = tasks
        tasks.start_soon(self._watch)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if self._tasks is None:
            raise RuntimeError("the player was not entered")
        tasks, self._tasks, self._context.tasks = self._tasks, None, None
        if error is None:
            self._setup_is_over()
        if error is not None and not isinstance(error, Exception):
            return await tasks.__aexit__(kind, error, traceback)
        # Passed through the task group the exception would come out as one of a group.
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(None, None, None)
        return None

    @property
    def next_step(self) -> ClientStep | None:
        """The step that `step` plays next, None where the script is over."""
        return self._to_come[0][2] if self._to_come else None

    async def play(self) -> Unmet | None:
        """Play every step within the scenario's bound; gives what could not be done, if anything.

        The first step that cannot be done ends the script.
        """
        bound = Patience(self._recorder, self._bounds.scenario)
        with bound.wait():
            async with self:
                while self._to_come:
                    await self.step()
            return self.unmet
        message = f"the scenario took longer than its bound of {bound.seconds:g} s"
        self.unmet = Unmet(UnmetKind.TIMEOUT, "scenario", 1, message)
        return self.unmet

    async def step(self) -> Unmet | None:
        """Play the next step, within its bound; gives why it could not be done, None if it could.

        Raises RuntimeError outside of `async with player:`, and where no step is left.
        """
        if self._tasks is None:
            raise RuntimeError("steps are played within `async with player:`")
        if not self._to_come:
            raise RuntimeError("no step is left to be played")
        side, index, step = self._to_come.pop(0)
        if side == "setup" and not self._in_setup:
            self._in_setup = True
            self._recorder.mark(Setup(active=True))
        self.unmet = await self._bounded(step, self._loaded.line(side, index))
        if self.unmet is not None:
            self._to_come.clear()
        if not self._to_come or self._to_come[0][0] != "setup":
            self._setup_is_over()
        return self.unmet

    def _setup_is_over(self) -> None:
        if self._in_setup:
            self._in_setup = False
            self._recorder.mark(Setup(active=False))

    async def _bounded(self, step: ClientStep, line: int) -> Unmet | None:
        name = next(iter(type(step).model_fields))
        self._recorder.mark(StepBegins(name, line))
        bound = Patience(self._recorder, self._bound_of(step))
        try:
            with bound.wait():
                await self._play(step)
                return None
        except (StepFailed, TargetGone, TimeoutError) as error:
            return Unmet.because_of(error, name, line)
        awaited, came = self._context.awaited, self._context.came()
        message = f"waited {bound.seconds:g} s for {awaited.words}; {came or 'it did not come'}"
        return Unmet(UnmetKind.TIMEOUT, name, line, message, awaited=awaited)

    async def _play(self, step: ClientStep) -> None:
        """Play one step, and no longer once the model's side cannot go on as the script says."""
        context, failure = self._context, None
        with anyio.CancelScope() as self._current:
            if context.model.stuck.is_set():
                self._current.cancel()
            try:
                await self._plays[type(step)](context, step)
            except (StepFailed, TargetGone) as error:
                failure = error
        if context.model.unfit:
            raise not_offered(context.model.unfit[0])
        if failure is not None:
            raise failure

    async def _watch(self) -> None:
        """End the step that is being played when the model's side cannot go on."""
        await self._context.model.stuck.wait()
        self._current.cancel()

    def _bound_of(self, step: ClientStep) -> float:
        """In seconds; a restart is an end, which may need three pushes, and a start."""
        if isinstance(step, RestartStep | AgainStep):
            return self._bounds.start + 3 * self._bounds.stop
        return self._bounds.step


def not_offered(unfit: Unfit) -> StepFailed:
    """Return why a script cannot go on that wants a tool which the target did not offer."""
    names = ", ".join(map(str, unfit.offered)) or "none"
    if unfit.lacks:
        message = f"the model's side wanted a {unfit.lacks} for a command; no tool takes that wish"
        return StepFailed(
            UnmetKind.NOT_OFFERED, f"{message}; offered: {names}", capability=unfit.lacks
        )
    return StepFailed(
        UnmetKind.NOT_OFFERED,
        f"the model's side wanted to {unfit.intent} and no offered tool fits; offered: {names}; "
        f"the profile can say which it is: {lines_to_add(unfit.intent)}",
        capability=CAPABILITIES[unfit.intent],
    )
