"""Environment for plays on `agent mcp`: each has its own home and servers to log in to."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from harness.client.target.overrides import placeholder_values, with_overrides
from harness.client.target.process import environment
from harness.client.target.profile import Bounds, Profile, fill
from harness.client.target.program import NotStarted, find_program, with_absolute_paths
from harness.client.target.run_folders import RunFolder, write_home_files
from harness.model.oauth import oauth_server
from harness.play.agent_mcp.player import CommandPlayer, CommandSetup
from harness.play.agent_mcp.prober import CommandProber
from harness.play.agent_mcp.run import CommandResult, Invocation, run_command
from harness.play.hygiene import Hygiene
from harness.play.program_plays import PlayResult, header_of, run_of
from harness.play.run import Run
from harness.play.session.servers import SetupFailed
from harness.protocol.spec.book import Book
from harness.report.results.outcome import Finding
from harness.scenario.loader import Loaded
from harness.scenario.player import StepFailure
from harness.scenario.surfaces import COMMAND
from harness.trace.recorder import Recorder, TraceFull
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Header, Trace

# Nothing listens at this address.
UNREACHABLE_URL = "http://127.0.0.1:9/mcp"


class CommandBench:
    """Environment that plays scenarios on `agent mcp`, one after the other.

    `blocker` makes further plays pointless. `prober` finds commands that the agent does not know.
    """

    def __init__(
        self, profile: Profile, bounds: Bounds, book: Book, folder: RunFolder, hygiene: Hygiene
    ) -> None:
        self.blocker: Finding | None = None
        self.prober = CommandProber(profile, self.run_agent)
        self._profile = profile
        self._bounds = bounds
        self._book = book
        self._folder = folder
        self._hygiene = hygiene

    async def run(self, loaded: Loaded) -> Run:
        """Play one scenario. Raises `SetupFailed` if the program cannot be started."""
        if self.blocker is not None:
            raise SetupFailed(self.blocker, Trace(self._header(loaded)))
        began = time.monotonic()
        recorder = Recorder(self._header(loaded), classify=classify_of(COMMAND))
        cwd, home = self._folder.new_folder("work"), self._folder.new_folder("home")
        setup = self._make_setup(loaded.scenario.config, cwd, home)
        player = CommandPlayer(loaded, recorder, setup, self._bounds)
        unmet: StepFailure | None = None
        overflow = ""
        try:
            async with oauth_server(player.note_oauth_message) as server:
                player.server = server
                player.places["mcp_url"] = server.mcp_url
                unmet = await player.play()
        except NotStarted as error:
            self.blocker = Finding("setup.not-started", str(error), kind=COMMAND)
            raise SetupFailed(self.blocker, recorder.trace, ran=False) from error
        except TraceFull as full:
            overflow = str(full)
        result = PlayResult(unmet, player.survivors, "", overflow, cwd)
        run = run_of(result, recorder, bound=self._bounds.scenario, hygiene=self._hygiene)
        run.seconds = time.monotonic() - began
        return run

    async def run_agent(self, words: Sequence[str]) -> CommandResult:
        """Run the agent with these words. Raises `NotStarted` if it cannot be started."""
        cwd, home = self._folder.new_folder("work"), self._folder.new_folder("home")
        setup = self._make_setup({}, cwd, home)
        argv = [*setup.command, *words]
        invocation = Invocation(
            argv,
            cwd,
            setup.env,
            setup.scratch,
            self._bounds.stop,
            setup.owner,
            setup.confinement,
        )
        bound = self._bounds.start + self._bounds.step
        scope = anyio.CancelScope(deadline=anyio.current_time() + bound)
        return await run_command(invocation, scope, _ignore_output)

    def _make_setup(self, config: Mapping[str, Any], cwd: Path, home: Path) -> CommandSetup:
        stands_for = {**placeholder_values(self._profile, cwd, home), "nobody_url": UNREACHABLE_URL}
        profile = with_overrides(
            self._profile, config=config, placeholders=stands_for, several=False
        )
        # No command of agent mcp calls the model.
        values = {"model_url": UNREACHABLE_URL, "home": str(home), "cwd": str(cwd)}
        write_home_files(home, profile, values)
        # The specification puts the agent's home below the user's; here both are one folder.
        (home / profile.agent_folder).symlink_to(".")
        env: dict[str, Any] = dict(fill(profile.env, values))
        return CommandSetup(
            command=with_absolute_paths(
                find_program(fill(profile.exec.command, values), "--agent-cmd")
            ),
            env=environment(env, home, profile.home_env, confined=profile.is_confined),
            cwd=cwd,
            home=home,
            scratch=self._folder.new_folder("mcp"),
            places=stands_for,
            owner=self._folder.path.name,
            confinement=profile.confinement(self._folder.path),
        )

    def _header(self, loaded: Loaded) -> Header:
        return header_of(loaded, self._profile.exec.command, self._profile, self._book)


async def _ignore_output(printed: str) -> None:
    """Ignore the output of a command."""
