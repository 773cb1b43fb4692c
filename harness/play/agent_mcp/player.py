"""Plays a scenario on `agent mcp`: each step is a run of the command, or several at once."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from harness.client.target.profile import Bounds, fill
from harness.model.oauth import OAuthServer
from harness.play.agent_mcp.run import Finished, Invocation, files_of, message_of, run_command
from harness.scenario.client_steps import ClientStep, RemoveFileStep, WriteFileStep
from harness.scenario.command_steps import Mcp, McpAtOnceStep, McpStep
from harness.scenario.loader import Loaded
from harness.scenario.player import Unmet
from harness.scenario.steps.context import StepFailed, UnmetKind
from harness.trace.frame import Direction
from harness.trace.marks import Setup, StepBegins
from harness.trace.recorder import Recorder
from harness.trace.trace import End

CONNECTION: Final = "commands"
_ADDRESS: Final = re.compile(r"https?://[^\s\x1b\"'<>`]+")


@dataclass(frozen=True, slots=True)
class Shop:
    """The surroundings of commands: the agent's words, its environment, its folders.

    `places` stand for the placeholders of a scenario; `scratch` is a folder for what runs need.
    """

    command: list[str]
    env: Mapping[str, str]
    cwd: Path
    home: Path
    scratch: Path
    places: Mapping[str, str]
    owner: str


class CommandPlayer:
    """Plays one scenario. `told` takes what the OAuth servers are asked and answer."""

    def __init__(self, loaded: Loaded, recorder: Recorder, shop: Shop, bounds: Bounds) -> None:
        self.survivors: list[str] = []
        self.server: OAuthServer | None = None
        self.busy = False
        self.places = dict(shop.places)
        self._loaded = loaded
        self._recorder = recorder
        self._shop = shop
        self._bounds = bounds
        self._number = 0
        self._current = 0
        self._broken: Exception | None = None

    def told(self, message: dict[str, Any], asked: bool) -> None:
        """Note a request of the run that is under way, or what it was answered."""
        self._note(self._current, message, from_target=asked)

    async def play(self) -> Unmet | None:
        """Play every step; gives the one that did not end, if any. Raises `NotStarted`."""
        scenario = self._loaded.scenario
        for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
            if side == "setup" and steps:
                self._recorder.mark(Setup(active=True))
            for index, step in enumerate(steps):
                name, line = next(iter(type(step).model_fields)), self._loaded.line(side, index)
                self._recorder.mark(StepBegins(name, line))
                try:
                    await self._step(step)
                except StepFailed as failed:
                    return Unmet.because_of(failed, name, line)
                if self._broken is not None:
                    raise self._broken
                if self.busy:
                    bound = self._bounds.start + self._bounds.scenario
                    message = f"the command had not ended by itself after {bound:g} s"
                    return Unmet(UnmetKind.TIMEOUT, name, line, message)
            if side == "setup" and steps:
                self._recorder.mark(Setup(active=False))
        self._recorder.trace.end = End.QUIESCENT
        return None

    async def _step(self, step: ClientStep) -> None:
        match step:
            case McpStep(mcp=body):
                await self._run(body)
            case McpAtOnceStep(mcp_at_once=runs):
                async with anyio.create_task_group() as tasks:
                    for body in runs:
                        tasks.start_soon(self._guarded, body)
            case WriteFileStep(write_file=body):
                self._write(body.path, body.content)
            case RemoveFileStep(remove_file=body):
                self._write(body.path, None)
            case _:
                raise RuntimeError(f"the loader lets no {type(step).__name__} through")

    def _write(self, named: str, content: bytes | None) -> None:
        """Write or remove a file below the workspace or the home. Raises `StepFailed`."""
        shop = self._shop
        path = Path(os.path.normpath(shop.cwd / str(fill(named, self.places))))
        if not any(path.is_relative_to(one) and path != one for one in (shop.cwd, shop.home)):
            message = f"{path} is neither below the workspace nor below the home"
            raise StepFailed(UnmetKind.REFUSED, message)
        try:
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        except OSError as error:
            raise StepFailed(UnmetKind.REFUSED, str(error)) from error

    async def _guarded(self, body: Mcp) -> None:
        try:
            await self._run(body)
        except Exception as error:
            self._broken = error  # Raised by play(), since a task group would wrap it.

    async def _run(self, body: Mcp) -> None:
        self._number += 1
        number = self._current = self._number
        words = [str(fill(word, self.places)) for word in body.words]
        watched = dict(body.env)
        asked: dict[str, Any] = {"argv": ["mcp", *words], "env": dict(body.env)}
        asked["files"] = files_of(self._shop.home, {**watched, **self._tokens()})
        if self.server is not None and body.visit != "nobody":
            asked["offers"] = self.server.authorize_url
        self._note(number, asked, from_target=False)
        finished = await self._finished(number, body, words)
        self.survivors += finished.survivors
        self.busy = self.busy or (finished.cut and body.visit == "consents")
        files = files_of(self._shop.home, {**watched, **self._tokens()})
        self._note(number, message_of(finished, files), from_target=True)

    async def _finished(self, number: int, body: Mcp, words: list[str]) -> Finished:
        shop = self._shop
        scratch = shop.scratch / f"run{number}"
        scratch.mkdir()
        invocation = Invocation(
            [*shop.command, "mcp", *words],
            shop.cwd,
            {**shop.env, **body.env},
            scratch,
            self._bounds.stop,
            shop.owner,
        )
        bound = self._bounds.step if body.visit == "denies" else self._bounds.scenario
        within = anyio.CancelScope(deadline=anyio.current_time() + self._bounds.start + bound)
        visited: list[str] = []

        async def noticed(printed: str) -> None:
            server = self.server
            if server is None or visited or body.visit == "nobody":
                return
            # What follows an address shows that it is whole.
            for found in _ADDRESS.finditer(printed):
                if found.end() < len(printed) and found[0].startswith(server.authorize_url):
                    visited.append(found[0])
                    status = await server.visit(found[0], consents=body.visit == "consents")
                    said = {"visits": found[0], "status": status}
                    self._note(number, said, from_target=False)
                    return

        return await run_command(invocation, within, noticed)

    def _tokens(self) -> dict[str, str]:
        return self.server.tokens if self.server is not None else {}

    def _note(self, number: int, message: dict[str, Any], *, from_target: bool) -> None:
        towards = Direction.FROM_TARGET if from_target else Direction.TO_TARGET
        raw = json.dumps({"id": number, **message}).encode()
        self._recorder.record(raw, towards, connection=CONNECTION)
