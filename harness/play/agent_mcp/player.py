"""Player of a scenario on `agent mcp`: each step is a run of the command, or several at once."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from harness.client.target.confine.command import Confinement
from harness.client.target.profile import Bounds, fill
from harness.model.oauth import OAuthServer
from harness.play.agent_mcp.run import CommandResult, Invocation, files_of, message_of, run_command
from harness.scenario.client_steps import ClientStep, RemoveFileStep, WriteFileStep
from harness.scenario.command_steps import Mcp, McpAtOnceStep, McpStep
from harness.scenario.loader import Loaded
from harness.scenario.player import StepFailure
from harness.scenario.steps.context import FailureKind, StepFailed
from harness.trace.frame import Direction
from harness.trace.marks import Setup, StepBegins
from harness.trace.recorder import Recorder
from harness.trace.trace import End

CONNECTION: Final = "commands"
_ADDRESS: Final = re.compile(r"https?://[^\s\x1b\"'<>`]+")


@dataclass(frozen=True, slots=True)
class CommandSetup:
    """Environment of commands: the agent's command line, variables and folders.

    `places` are the values of a scenario's placeholders; `scratch` is for temporary files.
    """

    command: list[str]
    env: Mapping[str, str]
    cwd: Path
    home: Path
    scratch: Path
    places: Mapping[str, str]
    owner: str
    confinement: Confinement | None = None


class CommandPlayer:
    """Player of one scenario. After `play`, `is_busy` is whether a command did not end."""

    def __init__(
        self, loaded: Loaded, recorder: Recorder, setup: CommandSetup, bounds: Bounds
    ) -> None:
        self.survivors: list[str] = []
        self.server: OAuthServer | None = None
        self.is_busy = False
        self.places = dict(setup.places)
        self._loaded = loaded
        self._recorder = recorder
        self._setup = setup
        self._bounds = bounds
        self._number = 0
        self._current = 0
        self._error: Exception | None = None

    def note_oauth_message(self, message: dict[str, Any], is_request: bool) -> None:
        """Record a request of the current command to an OAuth server, or the answer to it."""
        self._note(self._current, message, from_target=is_request)

    async def play(self) -> StepFailure | None:
        """Play every step; return the failure, if any. Raises `NotStarted` if one cannot start."""
        scenario = self._loaded.scenario
        for side, steps in (("setup", scenario.setup), ("client", scenario.client)):
            if side == "setup" and steps:
                self._recorder.mark(Setup(active=True))
            for index, step in enumerate(steps):
                name, line = next(iter(type(step).model_fields)), self._loaded.line_of(side, index)
                self._recorder.mark(StepBegins(name, line))
                try:
                    await self._step(step)
                except StepFailed as failed:
                    return StepFailure.from_exception(failed, name, line)
                if self._error is not None:
                    raise self._error
                if self.is_busy:
                    bound = self._bounds.start + self._bounds.scenario
                    message = f"the command had not ended by itself after {bound:g} s"
                    return StepFailure(FailureKind.TIMEOUT, name, line, message)
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
                        tasks.start_soon(self._run_guarded, body)
            case WriteFileStep(write_file=body):
                self._write(body.path, body.content)
            case RemoveFileStep(remove_file=body):
                self._write(body.path, None)
            case _:
                raise RuntimeError(f"the loader lets no {type(step).__name__} through")

    def _write(self, name: str, content: bytes | None) -> None:
        """Write a file, or remove it if `content` is None. Raises `StepFailed` if impossible."""
        setup = self._setup
        path = Path(os.path.normpath(setup.cwd / str(fill(name, self.places))))
        if not any(
            path.is_relative_to(folder) and path != folder for folder in (setup.cwd, setup.home)
        ):
            message = f"{path} is neither below the workspace nor below the home"
            raise StepFailed(FailureKind.REFUSED, message)
        try:
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        except OSError as error:
            raise StepFailed(FailureKind.REFUSED, str(error)) from error

    async def _run_guarded(self, body: Mcp) -> None:
        try:
            await self._run(body)
        except Exception as error:
            self._error = error  # Raised by play(), since a task group would wrap it.

    async def _run(self, body: Mcp) -> None:
        self._number += 1
        number = self._current = self._number
        words = [str(fill(word, self.places)) for word in body.words]
        secrets = dict(body.env)
        request: dict[str, Any] = {"argv": ["mcp", *words], "env": dict(body.env)}
        request["files"] = files_of(self._setup.home, {**secrets, **self._tokens()})
        if self.server is not None and body.visit != "nobody":
            request["offers"] = self.server.authorize_url
        self._note(number, request, from_target=False)
        finished = await self._run_command(number, body, words)
        self.survivors += finished.survivors
        self.is_busy = self.is_busy or (finished.cut and body.visit == "consents")
        files = files_of(self._setup.home, {**secrets, **self._tokens()})
        self._note(number, message_of(finished, files), from_target=True)

    async def _run_command(self, number: int, body: Mcp, words: list[str]) -> CommandResult:
        setup = self._setup
        scratch = setup.scratch / f"run{number}"
        scratch.mkdir()
        invocation = Invocation(
            [*setup.command, "mcp", *words],
            setup.cwd,
            {**setup.env, **body.env},
            scratch,
            self._bounds.stop,
            setup.owner,
            setup.confinement,
        )
        bound = self._bounds.step if body.visit == "denies" else self._bounds.scenario
        scope = anyio.CancelScope(deadline=anyio.current_time() + self._bounds.start + bound)
        visited: list[str] = []

        async def on_output(printed: str) -> None:
            server = self.server
            if server is None or visited or body.visit == "nobody":
                return
            # A character after an address shows that it is complete.
            for match in _ADDRESS.finditer(printed):
                if match.end() < len(printed) and match[0].startswith(server.authorize_url):
                    visited.append(match[0])
                    status = await server.visit(match[0], consents=body.visit == "consents")
                    visit = {"visits": match[0], "status": status}
                    self._note(number, visit, from_target=False)
                    return

        return await run_command(invocation, scope, on_output)

    def _tokens(self) -> dict[str, str]:
        return self.server.tokens if self.server is not None else {}

    def _note(self, number: int, message: dict[str, Any], *, from_target: bool) -> None:
        towards = Direction.FROM_TARGET if from_target else Direction.TO_TARGET
        raw = json.dumps({"id": number, **message}).encode()
        self._recorder.record(raw, towards, connection=CONNECTION)
