"""Plays a session's scenario through an SDK, on the agent's own program.

Each thread is a run of the driver program, which is asked for all of the thread's turns at once and
runs them one after the other: a step that starts a later turn finds it begun.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import anyio

from harness.client.target.profile import Bounds, fill
from harness.model.model import ScriptedModel
from harness.play.sdk.agent_notes import AgentNotes
from harness.play.sdk.driver import Desk, DriverEnd, drive, line_of, no_end, within_seconds
from harness.play.turns_player import PlayedThread, PlayedTurn, Stage, TurnsPlayer
from harness.protocol.values import arr, obj, text
from harness.scenario.client_steps import StartTurn, StartTurnStep, Wait
from harness.scenario.exec_told import Told
from harness.scenario.loader import Loaded
from harness.scenario.player import Unmet
from harness.scenario.sdk_told import key_of, told_by_call
from harness.scenario.steps.context import StepFailed, UnmetKind
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder, TraceFull

CONNECTION: Final = "calls"
# Parameters of a thread -> the SDK's options.
OPTIONS: Final = {
    "approvalPolicy": "approvalPolicy",
    "cwd": "workingDirectory",
    "model": "model",
    "sandbox": "sandboxMode",
}
# What every thread has unless its scenario says otherwise: nobody can be asked, and the workspace
# is no repository.
USUAL: Final = {
    "approvalPolicy": "never",
    "sandboxMode": "danger-full-access",
    "skipGitRepoCheck": True,
}


@dataclass(slots=True)
class _Driver:
    """A run of the driver: the turns that it was asked for, by their aliases in the scenario."""

    number: int
    line: int
    within: anyio.CancelScope
    turns: dict[str, PlayedTurn] = field(default_factory=dict[str, PlayedTurn])
    other: list[str] = field(default_factory=list[str])
    end: DriverEnd | None = None
    over: anyio.Event = field(default_factory=anyio.Event)


class SdkTurnsPlayer(TurnsPlayer):
    """Plays one scenario. `turns` name runs of the driver, and turns in them (`sdk_told.key_of`).

    `stderr` are the last words of the last driver that said some.
    """

    def __init__(
        self,
        loaded: Loaded,
        recorder: Recorder,
        model: ScriptedModel,
        stage: Stage,
        bounds: Bounds,
        desk: Desk,
    ) -> None:
        super().__init__(loaded, recorder, model, stage, bounds)
        self.stderr = ""
        self.survivors: list[str] = []
        self._desk = desk
        self._drivers: dict[str, _Driver] = {}

    async def play(self) -> Unmet | None:
        """Play every step, as any play; a driver that told no end of a turn fails it too."""
        unmet = await super().play()
        if unmet is not None:
            return unmet
        for driver in self._drivers.values():
            for alias in driver.turns:
                problem = self._unended(driver, alias)
                if problem:
                    return Unmet(UnmetKind.OTHER_END, "start_turn", driver.line, problem)
        return None

    def _turn(self, body: StartTurn) -> None:
        driver = self._drivers.get(body.thread)
        if driver is None:
            driver = self._drivers[body.thread] = self._driver(body.thread)
        turn = self._running[body.alias] = driver.turns[body.alias]
        self.turns[body.alias] = turn.key

    def _driver(self, alias: str) -> _Driver:
        """Start the driver of a thread, with all of the thread's turns."""
        thread, number = self._threads[alias], len(self._drivers) + 1
        asked = [
            step.start_turn
            for step in self._loaded.scenario.steps
            if isinstance(step, StartTurnStep) and step.start_turn.thread == alias
        ]
        bound = self._bounds.start + self._bounds.scenario * len(asked)
        driver = _Driver(number, self._line, within_seconds(bound))
        scratch = self._stage.scratch / f"driver{number}"
        scratch.mkdir()
        notes = AgentNotes(scratch, self._stage.env)
        notes.stand_for(self._stage.command)
        agent = {"agentPathOverride": str(notes.program)}
        options = {**USUAL, **_options(thread)}
        cwd = str(self._stage.cwd.resolve())
        said = {"agent": agent, "thread": options, "resume": None}
        self._note(number, from_target=False, name=alias, **said, process={}, cwd=cwd)
        turns: list[dict[str, Any]] = []
        for place, body in enumerate(asked, start=1):
            marker = self._markers.get(alias, "") if place == 1 else ""
            turn = {
                "call": "run",
                "input": self._input(body, marker),
                "options": _turn_options(body),
                "abort": "",
            }
            turns.append(turn)
            self._note(number, from_target=False, turn=place, name=body.alias, **turn)
            key = key_of(number, place)
            driver.turns[body.alias] = PlayedTurn(thread, key, driver.within)
        self._start_task(self._run, driver, {**said, "turns": turns}, scratch, notes)
        return driver

    def _input(self, body: StartTurn, marker: str) -> Any:
        """The input of a call; its first text begins with `marker`, which the model looks for."""
        if body.text is not None:
            return f"{marker} {body.text}" if marker else body.text
        entries: list[dict[str, Any]] = []
        for one in map(obj, arr(fill(body.input, self._stage.places))):
            if one.get("type") == "text":
                said = text(one.get("text"))
                entries.append({"type": "text", "text": f"{marker} {said}" if marker else said})
                marker = ""
            else:
                entries.append({"type": "local_image", "path": text(one.get("path"))})
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
                for noted in notes.since():
                    self._note(driver.number, from_target=True, turn=line["turn"], **noted)
            self._note(driver.number, from_target=True, **line)
            if "over" in line:
                turns[int(line["turn"]) - 1].end_event.set()

        try:
            driver.end = await drive(
                replace(self._desk, env=self._stage.env, cwd=self._stage.cwd),
                request,
                scratch=scratch,
                within=driver.within,
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
                turn.thread.id = turn.thread.id or self._told(turn).thread
                turn.end_event.set()
            driver.over.set()

    async def _all_over(self) -> None:
        for driver in self._drivers.values():
            await driver.over.wait()

    async def _wait(self, body: Wait) -> None:
        driver = next((one for one in self._drivers.values() if body.turn in one.turns), None)
        if driver is not None:
            await self._running[body.turn or ""].end_event.wait()
            problem = self._unended(driver, body.turn or "")
            if problem:
                raise StepFailed(UnmetKind.OTHER_END, problem)
        await super()._wait(body)

    def _unended(self, driver: _Driver, alias: str) -> str:
        """That the driver told no end of a turn, "" where it did, or where we ended it."""
        turn = driver.turns[alias]
        if driver.end is None or self._told(turn).end is not None:
            return ""
        return no_end(list(driver.turns).index(alias) + 1, driver.end, driver.other)

    def _told(self, turn: PlayedTurn) -> Told:
        return told_by_call(self._recorder.trace, turn.key)

    def _note(self, driver: int, *, from_target: bool, **message: Any) -> None:
        towards = Direction.FROM_TARGET if from_target else Direction.TO_TARGET
        raw = json.dumps({**message, "id": driver}).encode()
        self._recorder.record(raw, towards, connection=CONNECTION)


def _options(thread: PlayedThread) -> dict[str, Any]:
    given = {OPTIONS[name]: value for name, value in thread.params.items() if name in OPTIONS}
    return {name: value for name, value in given.items() if value}


def _turn_options(body: StartTurn) -> dict[str, Any]:
    schema = body.params.get("outputSchema")
    return {} if schema is None else {"outputSchema": schema}
