"""Player of a session's scenario through an SDK, on the agent's own program.

Each thread is a run of the driver program, which gets all of the thread's turns at once and runs
them one after the other: a step that starts a later turn finds it begun.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import anyio

from harness.client.target.profile import Bounds, fill
from harness.model.model import ScriptedModel
from harness.play.sdk.agent_notes import AgentNotes
from harness.play.sdk.driver import (
    DriverEnd,
    DriverSetup,
    deadline_scope,
    describe_missing_end,
    drive,
    line_of,
)
from harness.play.turns_player import PlayedThread, PlayedTurn, Stage, TurnsPlayer
from harness.protocol.values import arr, obj, text
from harness.scenario.client_steps import StartTurn, StartTurnStep, Wait
from harness.scenario.exec_results import ExecResult
from harness.scenario.loader import Loaded
from harness.scenario.player import StepFailure
from harness.scenario.sdk_results import sdk_result_of, turn_key
from harness.scenario.steps.context import FailureKind, StepFailed
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder, TraceFull

CONNECTION: Final = "calls"
# Parameters of a thread -> the SDK's options.
SDK_OPTIONS: Final = {
    "approvalPolicy": "approvalPolicy",
    "cwd": "workingDirectory",
    "model": "model",
    "sandbox": "sandboxMode",
}
# Default options of a thread: there is no user to approve anything, and the workspace is not a
# repository.
DEFAULT_OPTIONS: Final = {
    "approvalPolicy": "never",
    "sandboxMode": "danger-full-access",
    "skipGitRepoCheck": True,
}


@dataclass(slots=True)
class _Driver:
    """A run of the driver, with its turns keyed by alias."""

    number: int
    line: int
    scope: anyio.CancelScope
    turns: dict[str, PlayedTurn] = field(default_factory=dict[str, PlayedTurn])
    other: list[str] = field(default_factory=list[str])
    end: DriverEnd | None = None
    end_event: anyio.Event = field(default_factory=anyio.Event)


class SdkTurnsPlayer(TurnsPlayer):
    """Player of one scenario; `turns` maps aliases to keys from `turn_key`.

    `stderr` is the end of standard error of the last driver that wrote some.
    """

    def __init__(
        self,
        loaded: Loaded,
        recorder: Recorder,
        model: ScriptedModel,
        stage: Stage,
        bounds: Bounds,
        driver_setup: DriverSetup,
    ) -> None:
        super().__init__(loaded, recorder, model, stage, bounds)
        self.stderr = ""
        self.survivors: list[str] = []
        self._driver_setup = driver_setup
        self._drivers: dict[str, _Driver] = {}

    async def play(self) -> StepFailure | None:
        """Play every step; return the failure, if any: a step's, or a missing end of a turn."""
        unmet = await super().play()
        if unmet is not None:
            return unmet
        for driver in self._drivers.values():
            for alias in driver.turns:
                problem = self._missing_end(driver, alias)
                if problem:
                    return StepFailure(FailureKind.OTHER_END, "start_turn", driver.line, problem)
        return None

    def _start_turn(self, body: StartTurn) -> None:
        driver = self._drivers.get(body.thread)
        if driver is None:
            driver = self._drivers[body.thread] = self._start_driver(body.thread)
        turn = self._running[body.alias] = driver.turns[body.alias]
        self.turns[body.alias] = turn.key

    def _start_driver(self, alias: str) -> _Driver:
        """Start the driver of a thread with all of the thread's turns."""
        thread, number = self._threads[alias], len(self._drivers) + 1
        turn_steps = [
            step.start_turn
            for step in self._loaded.scenario.steps
            if isinstance(step, StartTurnStep) and step.start_turn.thread == alias
        ]
        bound = self._bounds.start + self._bounds.scenario * len(turn_steps)
        driver = _Driver(number, self._line, deadline_scope(bound))
        scratch = self._stage.scratch / f"driver{number}"
        scratch.mkdir()
        notes = AgentNotes(scratch, self._stage.env, program_name=self._driver_setup.agent_name)
        notes.run_real_agent(self._stage.command)
        agent = {"agentPathOverride": str(notes.program)}
        options = {**DEFAULT_OPTIONS, **_options(thread)}
        cwd = str(self._stage.cwd.resolve())
        request = {"agent": agent, "thread": options, "resume": None}
        self._note(number, from_target=False, name=alias, **request, process={}, cwd=cwd)
        turns: list[dict[str, Any]] = []
        for place, body in enumerate(turn_steps, start=1):
            marker = self._markers.get(alias, "") if place == 1 else ""
            turn = {
                "call": "run",
                "input": self._call_input(body, marker),
                "options": _turn_options(body),
                "abort": "",
            }
            turns.append(turn)
            self._note(number, from_target=False, turn=place, name=body.alias, **turn)
            key = turn_key(number, place)
            driver.turns[body.alias] = PlayedTurn(thread, key, driver.scope)
        self._start_task(self._run, driver, {**request, "turns": turns}, scratch, notes)
        return driver

    def _call_input(self, body: StartTurn, marker: str) -> Any:
        """Return the input of a call, with the model's `marker` before its first text."""
        if body.text is not None:
            return f"{marker} {body.text}" if marker else body.text
        entries: list[dict[str, Any]] = []
        for entry in map(obj, arr(fill(body.input, self._stage.places))):
            if entry.get("type") == "text":
                words = text(entry.get("text"))
                entries.append({"type": "text", "text": f"{marker} {words}" if marker else words})
                marker = ""
            else:
                entries.append({"type": "local_image", "path": text(entry.get("path"))})
        return [*([{"type": "text", "text": marker}] if marker else []), *entries]

    async def _run(
        self, driver: _Driver, request: dict[str, Any], scratch: Path, notes: AgentNotes
    ) -> None:
        turns: list[PlayedTurn] = list(driver.turns.values())

        def take(raw: bytes) -> None:
            line = line_of(raw)
            if line is None or not 0 < line["turn"] <= len(turns):
                driver.other += [raw.decode("utf-8", "backslashreplace")] if raw.strip() else []
                return
            if "over" in line:
                for message in notes.take_new_notes():
                    self._note(driver.number, from_target=True, turn=line["turn"], **message)
            self._note(driver.number, from_target=True, **line)
            if "over" in line:
                turns[int(line["turn"]) - 1].end_event.set()

        try:
            driver.end = await drive(
                replace(self._driver_setup, env=self._stage.env, cwd=self._stage.cwd),
                request,
                scratch=scratch,
                scope=driver.scope,
                grace=self._bounds.stop,
                take=take,
            )
            self.survivors += driver.end.survivors
            self.stderr = driver.end.stderr or self.stderr
        except TraceFull as full:
            self.overflow = str(full)
        except Exception as error:
            self._error = error  # Raised by play(), since a task group would wrap it.
        finally:
            for turn in turns:
                turn.thread.id = turn.thread.id or self._turn_record(turn).thread
                turn.end_event.set()
            driver.end_event.set()

    async def _wait_for_all(self) -> None:
        for driver in self._drivers.values():
            await driver.end_event.wait()

    async def _wait(self, body: Wait) -> None:
        driver = next(
            (running for running in self._drivers.values() if body.turn in running.turns), None
        )
        if driver is not None:
            await self._running[body.turn or ""].end_event.wait()
            problem = self._missing_end(driver, body.turn or "")
            if problem:
                raise StepFailed(FailureKind.OTHER_END, problem)
        await super()._wait(body)

    def _missing_end(self, driver: _Driver, alias: str) -> str:
        """Return a message if a driver exited without the turn's end, else ""."""
        turn = driver.turns[alias]
        if driver.end is None or self._turn_record(turn).end is not None:
            return ""
        return describe_missing_end(list(driver.turns).index(alias) + 1, driver.end, driver.other)

    def _turn_record(self, turn: PlayedTurn) -> ExecResult:
        return sdk_result_of(self._recorder.trace, turn.key)

    def _note(self, driver: int, *, from_target: bool, **message: Any) -> None:
        towards = Direction.FROM_TARGET if from_target else Direction.TO_TARGET
        raw = json.dumps({**message, "id": driver}).encode()
        self._recorder.record(raw, towards, connection=CONNECTION)


def _options(thread: PlayedThread) -> dict[str, Any]:
    options = {
        SDK_OPTIONS[name]: value for name, value in thread.params.items() if name in SDK_OPTIONS
    }
    return {name: value for name, value in options.items() if value}


def _turn_options(body: StartTurn) -> dict[str, Any]:
    schema = body.params.get("outputSchema")
    return {} if schema is None else {"outputSchema": schema}
