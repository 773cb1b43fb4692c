"""Plays a scenario on an SDK: each step is a run of the driver program, with scripted agents."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.client.target.profile import Bounds, fill
from harness.play.sdk.agent_notes import AgentNotes
from harness.play.sdk.driver import Desk, DriverEnd, drive, line_of, no_end, within_seconds
from harness.protocol.values import obj
from harness.scenario.client_steps import ClientStep
from harness.scenario.loader import Loaded
from harness.scenario.player import Unmet
from harness.scenario.sdk_steps import Sdk, SdkStep
from harness.scenario.steps.context import UnmetKind
from harness.trace.frame import Direction
from harness.trace.marks import StepBegins
from harness.trace.recorder import Recorder
from harness.trace.trace import End

CONNECTION: Final = "calls"


@dataclass(slots=True)
class Driven:
    """The output of a driver: its lines, by turn; other lines; its end."""

    lines: dict[int, list[dict[str, Any]]] = field(default_factory=dict[int, list[dict[str, Any]]])
    other: list[str] = field(default_factory=list[str])
    end: DriverEnd = field(default_factory=DriverEnd)


class SdkPlayer:
    """Plays one scenario."""

    def __init__(self, loaded: Loaded, recorder: Recorder, desk: Desk, bounds: Bounds) -> None:
        self.survivors: list[str] = []
        self.stderr = ""
        self._loaded = loaded
        self._recorder = recorder
        self._desk = desk
        self._bounds = bounds
        self._number = 0

    async def play(self) -> Unmet | None:
        """Play every step; gives the one that the driver did not do. Raises `NotStarted`."""
        for index, step in enumerate(self._loaded.scenario.client):
            name, line = next(iter(type(step).model_fields)), self._loaded.line("client", index)
            self._recorder.mark(StepBegins(name, line))
            problem = await self._step(step)
            if problem:
                return Unmet(UnmetKind.OTHER_END, name, line, problem)
        self._recorder.trace.end = End.QUIESCENT
        return None

    async def _step(self, step: ClientStep) -> str:
        if not isinstance(step, SdkStep):
            raise RuntimeError(f"the loader lets no {type(step).__name__} through")
        self._number += 1
        scratch = self._desk.scratch / f"driver{self._number}"
        body = Sdk.model_validate(fill(step.sdk.model_dump(), self._desk.places))
        env = dict(self._desk.env)
        notes = AgentNotes(scratch, env, {*body.process, *obj(body.agent.get("env"))})
        notes.follow(_script(body))
        options = {"agentPathOverride": str(notes.program), **body.agent}
        if options["agentPathOverride"] is None:
            del options["agentPathOverride"]
            env["PATH"] = os.pathsep.join((str(scratch), env.get("PATH", os.defpath)))
        driven = await self._driven(body, options, env, scratch, notes.state)
        self.survivors += driven.end.survivors
        self.stderr = driven.end.stderr
        return self._told(body, options, driven, notes.starts())

    async def _driven(
        self,
        body: Sdk,
        options: dict[str, Any],
        env: Mapping[str, str],
        scratch: Path,
        state: Path,
    ) -> Driven:
        """Run the driver to its end, or to the bound."""
        turns = [
            {"call": one.call, "input": one.input, "options": one.options, "abort": one.abort}
            for one in body.turns
        ]
        request = {"agent": options, "thread": body.thread, "resume": body.resume, "turns": turns}
        driven = Driven()
        os.mkfifo(state / "hanging")
        hanging = os.open(state / "hanging", os.O_RDONLY | os.O_NONBLOCK)
        try:
            driven.end = await drive(
                replace(self._desk, env={**env, **body.process}),
                request,
                scratch=scratch,
                within=within_seconds(self._bounds.start + self._bounds.scenario),
                grace=self._bounds.stop,
                take=lambda raw: _take(raw, driven),
                hanging=hanging,
            )
        finally:
            os.close(hanging)
        return driven

    def _told(
        self, body: Sdk, options: dict[str, Any], driven: Driven, starts: list[dict[str, Any]]
    ) -> str:
        """Write down what came; gives what the driver did not do, "" for nothing."""
        said = {"agent": options, "thread": body.thread, "resume": body.resume}
        own = {"process": body.process, "cwd": str(self._desk.cwd.resolve())}
        self._note(from_target=False, **said, **own)
        runs = [at for at, one in enumerate(body.turns, start=1) if one.abort != "before"]
        for number, turn in enumerate(body.turns, start=1):
            call = {"call": turn.call, "input": turn.input, "options": turn.options}
            more = {"abort": turn.abort, "writes": turn.writes}
            self._note(from_target=False, turn=number, **call, **more)
            place = runs.index(number) if number in runs else -1
            mine = starts[place : place + 1] if place >= 0 else starts[len(runs) :]
            if number == len(body.turns) and place >= 0:
                mine = starts[place:]
            for started in mine:
                self._note(from_target=True, turn=number, started=started)
            lines = driven.lines.get(number, [])
            for line in lines:
                self._note(from_target=True, **{**line, "turn": number})
            if not any("over" in line for line in lines):
                return no_end(number, driven.end, driven.other)
        return ""

    def _note(self, *, from_target: bool, **message: Any) -> None:
        towards = Direction.FROM_TARGET if from_target else Direction.TO_TARGET
        raw = json.dumps({"id": self._number, **message}).encode()
        self._recorder.record(raw, towards, connection=CONNECTION)


def _script(body: Sdk) -> list[dict[str, Any]]:
    """Return the agent's script for each start."""
    return [
        {"writes": one.writes, "status": one.status, "stderr": one.stderr}
        | ({"hangs": True} if one.abort == "during" else {})
        for one in body.turns
        if one.abort != "before"
    ]


def _take(raw: bytes, driven: Driven) -> None:
    line = line_of(raw)
    if line is not None:
        driven.lines.setdefault(line["turn"], []).append(line)
    elif raw.strip():
        driven.other.append(raw.decode("utf-8", "backslashreplace"))
