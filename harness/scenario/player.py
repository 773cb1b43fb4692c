"""Plays a scenario's client side against a connected server. It never judges.

Here: the order of steps, their bounds, and what becomes of a step that cannot be done. Not here:
how a step is played (steps), the model's side (backend), the end of the trace (ending), whether
what came was right (rules, expect).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from harness.backend.model import ScriptedModel
from harness.backend.play import Unfit
from harness.backend.tools import CAPABILITIES, lines_to_add
from harness.client.inbox import TargetGone
from harness.client.peer import Peer
from harness.scenario.client_steps import ClientStep, RestartStep
from harness.scenario.loader import Loaded
from harness.scenario.races import AgainStep
from harness.scenario.steps import plays_by_step
from harness.scenario.steps.context import Cast, OneConnection, Reach, StepContext, StepFailed
from harness.target.profile import Bounds

__all__ = ["Cast", "Player", "Unmet"]


@dataclass(frozen=True, slots=True)
class Unmet:
    """A step that could not be done.

    `kind` is `timeout`, `refused`, `crash`, `other-end`, or `not-offered` where the target lacks
    `capability`. `awaited` is what a step that timed out waited for.
    """

    kind: str
    step: str
    line: int
    message: str
    capability: str = ""
    awaited: str = ""


class Player:
    """Plays one scenario. `thread_params` go into every `thread/start`, `turn_params` into every
    `turn/start`; `places` are what the placeholders `{name}` in what is sent stand for.

    `markers` maps a thread's alias to a nonce that is put before its first input, so that the
    model's side can tell whose call it is. `reach` gives the connections; without it there is one.
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
        reach: Reach | None = None,
    ) -> None:
        self.cast = cast or Cast()
        self._loaded = loaded
        self._recorder = peer.recorder
        self._bounds = bounds
        settings = loaded.scenario.settings.model_dump(exclude_none=True)
        self._plays = plays_by_step()
        self._current = anyio.CancelScope()
        self._scene = StepContext(
            reach=reach or OneConnection(peer),
            model=model,
            cast=self.cast,
            cwd=cwd,
            bounds=bounds,
            thread_params={**settings, **thread_params},
            turn_params=dict(turn_params or {}),
            places=dict(places or {}),
            markers=dict(markers or {}),
        )

    async def play(self) -> Unmet | None:
        """Play every step; the first that cannot be done ends the script and is returned."""
        scenario, mark = self._loaded.scenario, self._recorder.mark
        if scenario.setup:
            mark("setup", {"active": True})
        unmet: Unmet | None = None
        async with anyio.create_task_group() as tasks:
            self._scene.tasks = tasks
            tasks.start_soon(self._watch)
            unmet = await self._steps("setup", scenario.setup)
            if scenario.setup:
                mark("setup", {"active": False})
            unmet = unmet or await self._steps("client", scenario.client)
            tasks.cancel_scope.cancel()
        return unmet

    async def _steps(self, side: str, steps: list[ClientStep]) -> Unmet | None:
        for index, step in enumerate(steps):
            name = next(iter(type(step).model_fields))
            line = self._loaded.line(side, index)
            self._recorder.mark("step", {"name": name, "line": line})
            bound = self._bound_of(step)
            try:
                with anyio.fail_after(bound):
                    await self._play(step)
            except TimeoutError:
                awaited, came = self._scene.awaited, self._scene.came()
                message = f"waited {bound:g} s for {awaited}; {came or 'it did not come'}"
                return Unmet("timeout", name, line, message, awaited=awaited)
            except TargetGone as gone:
                return Unmet("crash", name, line, str(gone))
            except StepFailed as failed:
                return Unmet(failed.kind, name, line, str(failed), failed.capability)
        return None

    async def _play(self, step: ClientStep) -> None:
        """Play one step, and no longer once the model's side cannot go on as the script says."""
        scene, failure = self._scene, None
        with anyio.CancelScope() as self._current:
            if scene.model.stuck.is_set():
                self._current.cancel()
            try:
                await self._plays[type(step)](scene, step)
            except (StepFailed, TargetGone) as error:
                failure = error
        if scene.model.unfit:
            raise _not_offered(scene.model.unfit[0])
        if failure is not None:
            raise failure

    async def _watch(self) -> None:
        """End the step that is being played when the model's side cannot go on."""
        await self._scene.model.stuck.wait()
        self._current.cancel()

    def _bound_of(self, step: ClientStep) -> float:
        """In seconds; a restart is an end, which may need three pushes, and a start."""
        if isinstance(step, RestartStep | AgainStep):
            return self._bounds.start + 3 * self._bounds.stop
        return self._bounds.step


def _not_offered(unfit: Unfit) -> StepFailed:
    names = ", ".join(map(str, unfit.offered)) or "none"
    if unfit.lacks:
        message = f"the model's side wanted a {unfit.lacks} for a command; no tool takes that wish"
        return StepFailed("not-offered", f"{message}; offered: {names}", capability=unfit.lacks)
    return StepFailed(
        "not-offered",
        f"the model's side wanted to {unfit.intent} and no offered tool fits; offered: {names}; "
        f"the profile can say which it is: {lines_to_add(unfit.intent)}",
        capability=CAPABILITIES[unfit.intent],
    )
