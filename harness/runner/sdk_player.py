"""Plays a scenario on an SDK: each step is a run of the driver program, with scripted agents.

Here: the driver's request and answers, the agent's notes, the messages of the trace. Not here: the
agent's binary (scripted_agent), whether it was right (rules). The protocol of drivers is described
in docs/sdk-judging.md.
"""

import contextlib
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from harness.errors import TargetGone
from harness.runner import scripted_agent
from harness.scenario.client_steps import ClientStep
from harness.scenario.loader import Loaded
from harness.scenario.player import Unmet
from harness.scenario.sdk_steps import Sdk, SdkStep
from harness.scenario.steps.context import UnmetKind
from harness.target.family import MARK
from harness.target.process import ServerProcess, start
from harness.target.profile import Bounds, fill
from harness.trace.frame import Direction
from harness.trace.marks import StepBegins
from harness.trace.recorder import Recorder
from harness.trace.trace import End
from harness.trace.values import obj

CONNECTION: Final = "calls"
# Variables that an SDK may pass the key in.
KEYS: Final = ("PROVIDER_API_KEY",)


@dataclass(frozen=True, slots=True)
class Desk:
    """What drivers are run with. `places` stand for the placeholders of a scenario."""

    command: list[str]
    env: Mapping[str, str]
    cwd: Path
    scratch: Path
    places: Mapping[str, str]
    owner: str


@dataclass(slots=True)
class Driven:
    """What a driver told: its lines, by turn; what it wrote that is none; whether we ended it."""

    lines: dict[int, list[dict[str, Any]]] = field(default_factory=dict[int, list[dict[str, Any]]])
    other: list[str] = field(default_factory=list[str])
    cut: bool = False
    stderr: str = ""
    survivors: tuple[str, ...] = ()


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
        state = scratch / "state"
        state.mkdir(parents=True)
        agent = _binary(scratch, state)
        options = {"agentPathOverride": str(agent), **body.agent}
        env = dict(self._desk.env)
        if options["agentPathOverride"] is None:
            del options["agentPathOverride"]
            env["PATH"] = os.pathsep.join((str(scratch), env.get("PATH", os.defpath)))
        _script(state, body, options, env)
        driven = await self._driven(body, options, env, scratch, state)
        self.survivors += driven.survivors
        self.stderr = driven.stderr
        return self._told(body, options, driven, _starts(state))

    async def _driven(
        self,
        body: Sdk,
        options: dict[str, Any],
        env: Mapping[str, str],
        scratch: Path,
        state: Path,
    ) -> Driven:
        """Run the driver to its end, or to the bound."""
        desk = self._desk
        temporary = scratch / "tmp"
        temporary.mkdir()
        process = await start(
            desk.command,
            cwd=desk.cwd,
            env={**env, **body.process},
            stderr=scratch / "stderr",
            owner=desk.owner,
            home=desk.cwd,
            temporary=temporary,
        )
        turns = [
            {"call": one.call, "input": one.input, "options": one.options, "abort": one.abort}
            for one in body.turns
        ]
        request = {"agent": options, "thread": body.thread, "resume": body.resume, "turns": turns}
        driven = Driven()
        os.mkfifo(state / "hanging")
        hanging = os.open(state / "hanging", os.O_RDONLY | os.O_NONBLOCK)
        try:
            bound = self._bounds.start + self._bounds.scenario
            with anyio.move_on_after(bound) as within:
                await _conversed(process, request, hanging, driven)
            driven.cut = within.cancelled_caught
        finally:
            ended = await process.stop(self._bounds.stop)
            os.close(hanging)
        driven.survivors = ended.survivors
        told, _ = process.stderr_since(0, 4000)
        driven.stderr = told.decode("utf-8", "backslashreplace")
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
                why = "it was ended at the bound" if driven.cut else "it ended before"
                shown = f"; it wrote {driven.other[-1][:200]!r}" if driven.other else ""
                errors = f"; the end of its stderr: {driven.stderr[-400:]}" if driven.stderr else ""
                return f"the driver told no end of turn {number}: {why}{shown}{errors}"
        return ""

    def _note(self, *, from_target: bool, **message: Any) -> None:
        towards = Direction.FROM_TARGET if from_target else Direction.TO_TARGET
        raw = json.dumps({"id": self._number, **message}).encode()
        self._recorder.record(raw, towards, connection=CONNECTION)


def _binary(scratch: Path, state: Path) -> Path:
    """The program that an SDK starts. It needs no variable of its environment."""
    program = [sys.executable, "-I", "-S", str(Path(scripted_agent.__file__)), str(state)]
    path = scratch / "agent"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n', "utf-8")
    path.chmod(0o755)
    return path


def _script(state: Path, body: Sdk, options: dict[str, Any], env: Mapping[str, str]) -> None:
    """What the agent does at each start, and what it may note of its environment."""
    script = [
        {"writes": one.writes, "status": one.status, "stderr": one.stderr}
        | ({"hangs": True} if one.abort == "during" else {})
        for one in body.turns
        if one.abort != "before"
    ]
    names = {*body.process, *obj(options.get("env")), *KEYS}
    known = {name: _digest(value) for name, value in env.items()}
    # `start` sets the last two anew for each process.
    watched = {"names": sorted(names), "known": known, "unnoted": ["TMPDIR", MARK]}
    (state / "script.json").write_text(json.dumps(script), "utf-8")
    (state / "watch.json").write_text(json.dumps(watched), "utf-8")


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _starts(state: Path) -> list[dict[str, Any]]:
    found = sorted(state.glob("start-*.json"), key=lambda path: int(path.stem.partition("-")[2]))
    return [json.loads(path.read_text("utf-8")) for path in found]


async def _conversed(
    process: ServerProcess, request: dict[str, Any], hanging: int, driven: Driven
) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_abort_when_hanging, process, hanging)
        try:
            await process.transport.send_bytes(json.dumps(request).encode() + b"\n")
            while True:
                for line in await process.transport.receive():
                    _take(line.raw, driven)
        except TargetGone:
            pass
        await process.wait()
        tasks.cancel_scope.cancel()


async def _abort_when_hanging(process: ServerProcess, hanging: int) -> None:
    """Tell the driver to abort when the agent has written what it had to write."""
    await anyio.wait_readable(hanging)
    if os.read(hanging, 64):
        with contextlib.suppress(TargetGone):
            await process.transport.send_bytes(b'{"abort": true}\n')


def _take(raw: bytes, driven: Driven) -> None:
    try:
        line = json.loads(raw)
    except ValueError:
        line = None
    number = obj(line).get("turn")
    if isinstance(number, int) and ("event" in obj(line) or "over" in obj(line)):
        driven.lines.setdefault(number, []).append(obj(line))
    elif raw.strip():
        driven.other.append(raw.decode("utf-8", "backslashreplace"))
