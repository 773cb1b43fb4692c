"""Player of SDK calls: each step is a run of the driver program, with scripted agents."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.client.target.profile import Bounds, fill
from harness.play.sdk.agent_notes import AgentNotes
from harness.play.sdk.driver import (
    DriverEnd,
    DriverSetup,
    deadline_scope,
    describe_missing_end,
    drive,
    line_of,
)
from harness.protocol.values import obj
from harness.scenario.client_steps import ClientStep
from harness.scenario.loader import Loaded
from harness.scenario.player import StepFailure
from harness.scenario.sdk_steps import Sdk, SdkStep
from harness.scenario.steps.context import FailureKind
from harness.trace.frame import Direction
from harness.trace.marks import StepBegins
from harness.trace.recorder import Recorder
from harness.trace.trace import End

CONNECTION: Final = "calls"


@dataclass(slots=True)
class DriverOutput:
    """Output of a driver: its lines by turn, other lines, and its exit."""

    lines: dict[int, list[dict[str, Any]]] = field(default_factory=dict[int, list[dict[str, Any]]])
    other: list[str] = field(default_factory=list[str])
    end: DriverEnd = field(default_factory=DriverEnd)


class SdkPlayer:
    """Player of one scenario of SDK calls."""

    def __init__(
        self, loaded: Loaded, recorder: Recorder, driver_setup: DriverSetup, bounds: Bounds
    ) -> None:
        self.survivors: list[str] = []
        self.stderr = ""
        self._loaded = loaded
        self._recorder = recorder
        self._driver_setup = driver_setup
        self._bounds = bounds
        self._number = 0

    async def play(self) -> StepFailure | None:
        """Play every step; return the failure, if any. Raises `NotStarted` for a missing driver."""
        for index, step in enumerate(self._loaded.scenario.client):
            name, line = next(iter(type(step).model_fields)), self._loaded.line_of("client", index)
            self._recorder.mark(StepBegins(name, line))
            problem = await self._step(step)
            if problem:
                return StepFailure(FailureKind.OTHER_END, name, line, problem)
        self._recorder.trace.end = End.QUIESCENT
        return None

    async def _step(self, step: ClientStep) -> str:
        if not isinstance(step, SdkStep):
            raise RuntimeError(f"the loader lets no {type(step).__name__} through")
        self._number += 1
        scratch = self._driver_setup.scratch / f"driver{self._number}"
        body = Sdk.model_validate(fill(step.sdk.model_dump(), self._driver_setup.places))
        env = dict(self._driver_setup.env)
        names = {*body.process, *obj(body.agent.get("env"))}
        notes = AgentNotes(scratch, env, names, program_name=self._driver_setup.agent_name)
        notes.follow_script(_script(body))
        options = {"agentPathOverride": str(notes.program), **body.agent}
        if options["agentPathOverride"] is None:
            del options["agentPathOverride"]
            env["PATH"] = os.pathsep.join((str(notes.program.parent), env.get("PATH", os.defpath)))
        output = await self._drive(body, options, env, scratch, notes.state)
        self.survivors += output.end.survivors
        self.stderr = output.end.stderr
        return self._record_output(body, options, output, notes.starts())

    async def _drive(
        self,
        body: Sdk,
        options: dict[str, Any],
        env: Mapping[str, str],
        scratch: Path,
        state: Path,
    ) -> DriverOutput:
        """Run the driver to its end, or to the bound, and return its output."""
        turns = [
            {"call": turn.call, "input": turn.input, "options": turn.options, "abort": turn.abort}
            for turn in body.turns
        ]
        request = {"agent": options, "thread": body.thread, "resume": body.resume, "turns": turns}
        output = DriverOutput()
        os.mkfifo(state / "hanging")
        hanging = os.open(state / "hanging", os.O_RDONLY | os.O_NONBLOCK)
        try:
            output.end = await drive(
                replace(self._driver_setup, env={**env, **body.process}),
                request,
                scratch=scratch,
                scope=deadline_scope(self._bounds.start + self._bounds.scenario),
                grace=self._bounds.stop,
                take=lambda raw: _take_line(raw, output),
                hang_fd=hanging,
            )
        finally:
            os.close(hanging)
        return output

    def _record_output(
        self, body: Sdk, options: dict[str, Any], output: DriverOutput, starts: list[dict[str, Any]]
    ) -> str:
        """Record the calls and the driver's output; return the problem if a turn has no end."""
        request = {"agent": options, "thread": body.thread, "resume": body.resume}
        setup = self._driver_setup
        own = {"process": body.process, "cwd": str(setup.cwd.resolve())}
        own |= {"agentName": setup.agent_name}
        self._note(from_target=False, **request, **own)
        runs = [at for at, turn in enumerate(body.turns, start=1) if turn.abort != "before"]
        for number, turn in enumerate(body.turns, start=1):
            call = {"call": turn.call, "input": turn.input, "options": turn.options}
            more = {"abort": turn.abort, "writes": turn.writes}
            self._note(from_target=False, turn=number, **call, **more)
            place = runs.index(number) if number in runs else -1
            turn_starts = starts[place : place + 1] if place >= 0 else starts[len(runs) :]
            if number == len(body.turns) and place >= 0:
                turn_starts = starts[place:]
            for started in turn_starts:
                self._note(from_target=True, turn=number, started=started)
            lines = output.lines.get(number, [])
            for line in lines:
                self._note(from_target=True, **{**line, "turn": number})
            if not any("over" in line for line in lines):
                return describe_missing_end(number, output.end, output.other)
        return ""

    def _note(self, *, from_target: bool, **message: Any) -> None:
        towards = Direction.FROM_TARGET if from_target else Direction.TO_TARGET
        raw = json.dumps({"id": self._number, **message}).encode()
        self._recorder.record(raw, towards, connection=CONNECTION)


def _script(body: Sdk) -> list[dict[str, Any]]:
    """Return the scripted agent's script: an entry for each turn in which it is started."""
    return [
        {"writes": turn.writes, "status": turn.status, "stderr": turn.stderr}
        | ({"hangs": True} if turn.abort == "during" else {})
        for turn in body.turns
        if turn.abort != "before"
    ]


def _take_line(raw: bytes, output: DriverOutput) -> None:
    line = line_of(raw)
    if line is not None:
        output.lines.setdefault(line["turn"], []).append(line)
    elif raw.strip():
        output.other.append(raw.decode("utf-8", "backslashreplace"))
