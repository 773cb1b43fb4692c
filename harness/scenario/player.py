"""Plays a scenario's client side against a connected server. It never judges.

Here: one method per step, aliases, bounds of steps. Not here: the model's side (backend), the end
of the trace (ending), whether what came was right (rules, expect).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from harness.backend.model import ScriptedModel
from harness.client.inbox import TargetGone
from harness.client.peer import Peer
from harness.scenario.loader import Loaded
from harness.scenario.model import (
    ClientStep,
    InterruptStep,
    OpenStep,
    ReadThreadStep,
    StartThreadStep,
    StartTurnStep,
    WaitStep,
)
from harness.target.profile import Bounds
from harness.trace.frame import Frame, Kind
from harness.trace.values import MISSING, dig, obj, text


@dataclass(frozen=True, slots=True)
class Unmet:
    """A step that could not be done: `kind` is `timeout`, `refused`, `crash` or `other-end`."""

    kind: str
    step: str
    line: int
    message: str


@dataclass(slots=True)
class Cast:
    """What the scenario's aliases stand for in this run."""

    threads: dict[str, str] = field(default_factory=dict[str, str])
    turns: dict[str, str] = field(default_factory=dict[str, str])
    thread_of: dict[str, str] = field(default_factory=dict[str, str])


class _StepFailed(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Player:
    """Plays one scenario on one connection. `thread_params` go into every `thread/start`.

    `markers` maps a thread's alias to a nonce that is put before its first input, so that the
    model's side can tell whose call it is.
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
        markers: Mapping[str, str] | None = None,
    ) -> None:
        self.cast = cast or Cast()
        self._loaded = loaded
        self._peer = peer
        self._model = model
        self._cwd = cwd
        self._bounds = bounds
        self._markers = dict(markers or {})
        settings = loaded.scenario.settings.model_dump(exclude_none=True)
        self._thread_params = {**settings, **thread_params}

    async def play(self) -> Unmet | None:
        """Play every step; the first that cannot be done ends the script and is returned."""
        scenario, mark = self._loaded.scenario, self._peer.recorder.mark
        if scenario.setup:
            mark("setup", {"active": True})
        unmet = await self._steps("setup", scenario.setup)
        if scenario.setup:
            mark("setup", {"active": False})
        return unmet or await self._steps("client", scenario.client)

    async def _steps(self, side: str, steps: list[ClientStep]) -> Unmet | None:
        for index, step in enumerate(steps):
            name = next(iter(type(step).model_fields))
            line = self._loaded.line(side, index)
            self._peer.recorder.mark("step", {"name": name, "line": line})
            try:
                with anyio.fail_after(self._bounds.step):
                    await self._step(step)
            except TimeoutError:
                return Unmet("timeout", name, line, self._waited_in_vain(step))
            except TargetGone as gone:
                return Unmet("crash", name, line, str(gone))
            except _StepFailed as failed:
                return Unmet(failed.kind, name, line, str(failed))
        return None

    async def _step(self, step: ClientStep) -> None:
        match step:
            case StartThreadStep():
                await self._start_thread(step)
            case StartTurnStep():
                await self._start_turn(step)
            case InterruptStep():
                await self._interrupt(step)
            case ReadThreadStep():
                await self._read_thread(step)
            case OpenStep():
                self._model.gates.open(step.open)
                self._peer.recorder.mark("gate", {"open": step.open})
            case WaitStep():
                await self._wait(step)

    async def _start_thread(self, step: StartThreadStep) -> None:
        params = {"cwd": str(self._cwd), **self._thread_params, **step.start_thread.params}
        answer = await self._ask("thread/start", params)
        thread_id = text(dig(answer.result, "thread", "id"))
        if not thread_id:
            raise _StepFailed("refused", "the answer to thread/start has no thread.id")
        self.cast.threads[step.start_thread.alias] = thread_id

    async def _start_turn(self, step: StartTurnStep) -> None:
        body = step.start_turn
        thread_id = self.cast.threads[body.thread]
        given = body.input if body.input is not None else [{"type": "text", "text": body.text}]
        marker = self._markers.pop(body.thread, "")
        if marker:
            given = [{"type": "text", "text": marker}, *given]
        params = {"threadId": thread_id, "input": given, **body.params}
        answer = await self._ask("turn/start", params)
        turn_id = text(dig(answer.result, "turn", "id"))
        if not turn_id:
            raise _StepFailed("refused", "the answer to turn/start has no turn.id")
        self.cast.turns[body.alias] = turn_id
        self.cast.thread_of[body.alias] = thread_id

    async def _interrupt(self, step: InterruptStep) -> None:
        alias = step.interrupt.turn
        params = {"threadId": self.cast.thread_of[alias], "turnId": self.cast.turns[alias]}
        await self._ask("turn/interrupt", params)

    async def _read_thread(self, step: ReadThreadStep) -> None:
        params: dict[str, Any] = {"threadId": self.cast.threads[step.read_thread.thread]}
        if step.read_thread.include_turns:
            params["includeTurns"] = True
        await self._ask("thread/read", params)

    async def _wait(self, step: WaitStep) -> None:
        wait = step.wait
        if wait.gate is not None:
            await self._or_gone(self._model.gates.reached, wait.gate)
        elif wait.turn is not None:
            turn_id = self.cast.turns[wait.turn]
            frame = await self._peer.inbox.wait(lambda frame: _ends(frame, turn_id))
            status = text(dig(frame.params, "turn", "status"))
            if wait.statuses and status not in wait.statuses:
                cause = text(dig(frame.params, "turn", "error", "message"))
                raise _StepFailed(
                    "other-end",
                    f"turn {wait.turn} ended as {status or 'nothing'}"
                    f"{f' ({cause})' if cause else ''}; expected {' or '.join(wait.statuses)}",
                )
        else:
            method, where = wait.notification or "", wait.where
            await self._peer.inbox.wait(lambda frame: _matches(frame, method, where))

    async def _or_gone(self, wait: Callable[[str], Awaitable[None]], name: str) -> None:
        """Wait for something outside the connection, but not beyond its end."""
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await self._peer.ended.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            await wait(name)
            tasks.cancel_scope.cancel()
            return
        raise TargetGone("the server closed the connection")

    async def _ask(self, method: str, params: dict[str, Any]) -> Frame:
        answer = await self._peer.request(method, params)
        if answer.kind is Kind.ERROR:
            message = text(obj(answer.error).get("message")) or "no message"
            raise _StepFailed("refused", f"{method} was answered by an error: {message}")
        return answer

    def _waited_in_vain(self, step: ClientStep) -> str:
        match step:
            case WaitStep():
                wait = step.wait
                what = (
                    f"the end of turn {wait.turn}"
                    if wait.turn
                    else f"the model's stream at gate {wait.gate}"
                    if wait.gate
                    else f"{wait.notification}" + (f" where {wait.where}" if wait.where else "")
                )
            case _:
                what = "an answer"
        return f"waited {self._bounds.step:g} s for {what}; it did not come"


def _ends(frame: Frame, turn_id: str) -> bool:
    return frame.method == "turn/completed" and dig(frame.params, "turn", "id") == turn_id


def _matches(frame: Frame, method: str, where: dict[str, Any]) -> bool:
    if frame.method != method:
        return False
    for path, wanted in where.items():
        found = dig(frame.params, *path.split("."))
        if found is MISSING or found != wanted:
            return False
    return True
