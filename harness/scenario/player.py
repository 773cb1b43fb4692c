"""Player of a scenario's client side, step by step, on a connected server. It never judges."""

from collections.abc import Callable, Mapping
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
from harness.model.performance import MissingTool
from harness.model.tools import CAPABILITY_OF_INTENT, profile_lines
from harness.scenario.client_steps import ClientStep, RestartStep, WaitStep
from harness.scenario.loader import Loaded
from harness.scenario.patience import MAX_BOUNDS_PER_WAIT, Patience
from harness.scenario.races import AgainStep
from harness.scenario.steps import plays_by_step
from harness.scenario.steps.context import (
    Cast,
    Connections,
    FailureKind,
    OneConnection,
    StepContext,
    StepFailed,
)
from harness.scenario.steps.wait_targets import NO_TARGET, WaitTarget
from harness.trace.frame import Direction
from harness.trace.marks import Setup, StepBegins
from harness.trace.time_limits import TimeLimit, Times

__all__ = ["STEP_ERRORS", "Cast", "FailureKind", "Player", "StepFailure"]

STEP_ERRORS = (StepFailed, TargetGone, TimeoutError)
"""Errors that end a client's side early. Any other exception is a defect of the harness."""


@dataclass(frozen=True, slots=True)
class StepFailure:
    """A step that failed.

    `capability` is the one that the target lacks, "" for none; `wait_target` is the target of a
    step that timed out.
    """

    kind: FailureKind
    step: str
    line: int
    message: str
    capability: str = ""
    wait_target: WaitTarget = NO_TARGET

    @classmethod
    def from_exception(cls, error: Exception, step: str, line: int = 1) -> "StepFailure":
        """Return the failure for an exception that is one of `STEP_ERRORS`."""
        match error:
            case StepFailed():
                return cls(error.kind, step, line, str(error), error.capability)
            case TargetGone():
                return cls(FailureKind.CRASH, step, line, str(error))
            case _:
                return cls(FailureKind.TIMEOUT, step, line, str(error) or "a bound was hit")


class Player:
    """Player of one scenario: `play` plays all of it, `step` one step at a time.

    Single steps are played within `async with player:`, since a step may start a task that runs
    beside later ones (a standing answer). The block is entered and left in one task; the steps may
    be played from any task, one after the other. `next_step` is None after the last step, and after
    one that failed, which `failure` then holds.

    `thread_params` go into every `thread/start`, `turn_params` into every `turn/start`;
    `placeholders` maps `{name}` in sent values to texts. `markers` maps a thread's alias to a
    unique text before its first input, which identifies its model calls. Without `connections` the
    scenario has only that of `peer`. `on_wait` is called with what a step waits for, in words, and
    the seconds until its deadline, when the wait begins and when the deadline moves.
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
        placeholders: Mapping[str, str] | None = None,
        markers: Mapping[str, str] | None = None,
        connections: Connections | None = None,
        on_wait: Callable[[str, float], None] | None = None,
    ) -> None:
        self.cast = cast or Cast()
        self.failure: StepFailure | None = None
        self._on_wait = on_wait
        self._loaded = loaded
        self._recorder = peer.recorder
        self._bounds = bounds
        scenario = loaded.scenario
        self._remaining_steps = [
            (side, index, step)
            for side, steps in (("setup", scenario.setup), ("client", scenario.client))
            for index, step in enumerate(steps)
        ]
        self._in_setup = False
        # Words and time of the message of the step before, or of the step itself.
        self._before = ("the beginning", 0.0)
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
            placeholders=dict(placeholders or {}),
            markers=dict(markers or {}),
        )

    async def __aenter__(self) -> Self:
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._tasks = self._context.tasks = tasks
        tasks.start_soon(self._watch_model)
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
            self._end_setup()
        if error is not None and not isinstance(error, Exception):
            return await tasks.__aexit__(kind, error, traceback)
        # Otherwise the task group would wrap the exception in an exception group.
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(None, None, None)
        return None

    @property
    def next_step(self) -> ClientStep | None:
        """Return the step that `step` plays next, None at the end of the script."""
        return self._remaining_steps[0][2] if self._remaining_steps else None

    async def play(self) -> StepFailure | None:
        """Play every step within the scenario's bound; return the failure, None if all succeeded.

        The first failed step ends the script.
        """
        bound = Patience(self._recorder, self._bounds.scenario)
        with bound.wait():
            async with self:
                while self._remaining_steps:
                    await self.step()
            return self.failure
        message = f"the scenario took longer than its bound of {bound.seconds:g} s"
        self.failure = StepFailure(FailureKind.TIMEOUT, "scenario", 1, message)
        return self.failure

    async def step(self) -> StepFailure | None:
        """Play the next step within its bound; return its failure, None if it succeeded.

        Raises RuntimeError outside of `async with player:`, and if no step is left.
        """
        if self._tasks is None:
            raise RuntimeError("steps are played within `async with player:`")
        if not self._remaining_steps:
            raise RuntimeError("no step is left to be played")
        side, index, step = self._remaining_steps.pop(0)
        if side == "setup" and not self._in_setup:
            self._in_setup = True
            self._recorder.mark(Setup(active=True))
        self.failure = await self._play_within_bound(step, self._loaded.line_of(side, index))
        if self.failure is not None:
            self._remaining_steps.clear()
        if not self._remaining_steps or self._remaining_steps[0][0] != "setup":
            self._end_setup()
        return self.failure

    def _end_setup(self) -> None:
        if self._in_setup:
            self._in_setup = False
            self._recorder.mark(Setup(active=False))

    async def _play_within_bound(self, step: ClientStep, line: int) -> StepFailure | None:
        name = next(iter(type(step).model_fields))
        began = self._recorder.mark(StepBegins(name, line))
        self._context.awaited = None
        longest = MAX_BOUNDS_PER_WAIT * self._bounds.scenario
        seconds = self._bound_of(step)

        waits_for = ""

        def report_wait(words: str = "") -> None:
            nonlocal waits_for
            waits_for = words or waits_for
            if self._on_wait is not None and waits_for:
                self._on_wait(waits_for, seconds)

        self._context.on_target = report_wait
        bound = Patience(self._recorder, seconds, longest, report_wait)
        try:
            with bound.wait():
                await self._play(step)
                self._note_time(step, line, (f"the step {name}", began.at), began.after)
                return None
        except (StepFailed, TargetGone, TimeoutError) as error:
            return StepFailure.from_exception(error, name, line)
        awaited, nearest = self._context.target, self._context.describe_nearest()
        message = f"waited {bound.seconds:g} s for {awaited.words}; {nearest or 'it did not come'}"
        return StepFailure(FailureKind.TIMEOUT, name, line, message, wait_target=awaited)

    def _note_time(
        self, step: ClientStep, line: int, beginning: tuple[str, float], last_before: int
    ) -> None:
        """Note the time from the message of the step before to that of this one, if it has a limit.

        The message of a step is the one that it waited for, else the first that the client sent;
        without one its beginning counts.
        """
        sent = (
            frame
            for frame in self._recorder.trace.frames[last_before + 1 :]
            if frame.direction is Direction.TO_TARGET
        )
        message = self._context.awaited or next(sent, None)
        words, at = (message.method or "an answer", message.at) if message else beginning
        if isinstance(step, WaitStep) and step.wait.within is not None:
            start, since = self._before
            place = f"{self._loaded.id}:{line}"
            limit = TimeLimit(start, words, step.wait.within, step=place)
            self.cast.times.append(Times(limit, (max(0.0, at - since),)))
        self._before = words, at

    async def _play(self, step: ClientStep) -> None:
        """Play one step, cancelled if the model cannot continue its script.

        Raises `StepFailed` or `TargetGone` if it fails, or if the target offered no tool for the
        script.
        """
        context, failure = self._context, None
        with anyio.CancelScope() as self._current:
            if context.model.is_stuck.is_set():
                self._current.cancel()
            try:
                await self._plays[type(step)](context, step)
            except (StepFailed, TargetGone) as error:
                failure = error
        if context.model.missing_tools:
            raise tool_not_offered(context.model.missing_tools[0])
        if failure is not None:
            raise failure

    async def _watch_model(self) -> None:
        """Cancel the current step when the model cannot continue its script."""
        await self._context.model.is_stuck.wait()
        self._current.cancel()

    def _bound_of(self, step: ClientStep) -> float:
        """Return a step's bound in seconds; a restart may need three stop signals and a start."""
        if isinstance(step, RestartStep | AgainStep):
            return self._bounds.start + 3 * self._bounds.stop
        return self._bounds.step


def tool_not_offered(unfit: MissingTool) -> StepFailed:
    """Return the error for a script that needs a tool, or an API of the model, which is missing."""
    if unfit.reason:
        return StepFailed(FailureKind.NOT_SAYABLE, unfit.reason, capability=unfit.lacks)
    names = ", ".join(map(str, unfit.offered_tools)) or "none"
    if unfit.lacks:
        message = f"the model's side wanted a {unfit.lacks} for a command; no tool takes that wish"
        return StepFailed(
            FailureKind.NOT_OFFERED, f"{message}; offered: {names}", capability=unfit.lacks
        )
    return StepFailed(
        FailureKind.NOT_OFFERED,
        f"the model's side wanted to {unfit.intent} and no offered tool fits; offered: {names}; "
        f"the profile can say which it is: {profile_lines(unfit.intent)}",
        capability=CAPABILITY_OF_INTENT[unfit.intent],
    )
