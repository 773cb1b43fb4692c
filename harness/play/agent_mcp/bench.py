"""Plays scenarios on `agent mcp`: a home for each, and the servers that are logged in to."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from harness.client.target.overrides import placeholder_values, with_overrides
from harness.client.target.place import RunFolder, write_home_files
from harness.client.target.process import environment
from harness.client.target.profile import Bounds, Profile, fill
from harness.client.target.program import NotStarted, find_program, with_absolute_paths
from harness.model.oauth import oauth_server
from harness.play.agent_mcp.player import CommandPlayer, Shop
from harness.play.agent_mcp.prober import CommandProber
from harness.play.agent_mcp.run import Finished, Invocation, run_command
from harness.play.hygiene import Hygiene
from harness.play.program_plays import PlayResult, header_of, run_of
from harness.play.run import Run
from harness.play.session.servers import SetupFailed
from harness.protocol.spec.book import Book
from harness.report.results.outcome import Finding
from harness.scenario.loader import Loaded
from harness.scenario.player import Unmet
from harness.scenario.surfaces import COMMAND
from harness.trace.recorder import Recorder, TraceFull
from harness.trace.surface.known import classify_of
from harness.trace.trace import Header, Trace

# Where nobody listens: the address of an MCP server that need not be reached.
NOBODY = "http://127.0.0.1:9/mcp"


class CommandBench:
    """Plays one scenario after the other. `blocked` is why no more need be tried.

    `prober` says which commands the agent does not know.
    """

    def __init__(
        self, profile: Profile, bounds: Bounds, book: Book, folder: RunFolder, hygiene: Hygiene
    ) -> None:
        self.blocked: Finding | None = None
        self.prober = CommandProber(profile, self.ask)
        self._profile = profile
        self._bounds = bounds
        self._book = book
        self._folder = folder
        self._hygiene = hygiene

    async def run(self, loaded: Loaded) -> Run:
        """Play one scenario. Raises `SetupFailed` where the program cannot be started."""
        if self.blocked is not None:
            raise SetupFailed(self.blocked, Trace(self._header(loaded)))
        began = time.monotonic()
        recorder = Recorder(self._header(loaded), classify=classify_of(COMMAND))
        cwd, home = self._folder.new_folder("work"), self._folder.new_folder("home")
        shop = self._shop(loaded.scenario.config, cwd, home)
        player = CommandPlayer(loaded, recorder, shop, self._bounds)
        unmet: Unmet | None = None
        overflow = ""
        try:
            async with oauth_server(player.told) as server:
                player.server = server
                player.places["mcp_url"] = server.mcp_url
                unmet = await player.play()
        except NotStarted as error:
            self.blocked = Finding("setup.not-started", str(error), kind=COMMAND)
            raise SetupFailed(self.blocked, recorder.trace, ran=False) from error
        except TraceFull as full:
            overflow = str(full)
        made = PlayResult(unmet, player.survivors, "", overflow, cwd)
        run = run_of(made, recorder, bound=self._bounds.scenario, hygiene=self._hygiene)
        run.seconds = time.monotonic() - began
        return run

    async def ask(self, words: Sequence[str]) -> Finished:
        """Run the agent with these words, for the bound of a step. Raises `NotStarted`."""
        cwd, home = self._folder.new_folder("work"), self._folder.new_folder("home")
        shop = self._shop({}, cwd, home)
        argv = [*shop.command, *words]
        invocation = Invocation(argv, cwd, shop.env, shop.scratch, self._bounds.stop, shop.owner)
        bound = self._bounds.start + self._bounds.step
        within = anyio.CancelScope(deadline=anyio.current_time() + bound)
        return await run_command(invocation, within, _unnoticed)

    def _shop(self, config: Mapping[str, Any], cwd: Path, home: Path) -> Shop:
        stands_for = {**placeholder_values(self._profile, cwd, home), "nobody_url": NOBODY}
        profile = with_overrides(self._profile, config=config, placeholders=stands_for, several=False)
        # No command of agent mcp asks a model for anything.
        values = {"model_url": NOBODY, "home": str(home), "cwd": str(cwd)}
        write_home_files(home, profile, values)
        # The text knows the home by the user's own folder alone: both are one.
        (home / profile.agent_folder).symlink_to(".")
        env: dict[str, Any] = dict(fill(profile.env, values))
        return Shop(
            command=with_absolute_paths(find_program(fill(profile.exec.command, values), "--agent-cmd")),
            env=environment(env, home, profile.home_env),
            cwd=cwd,
            home=home,
            scratch=self._folder.new_folder("mcp"),
            places=stands_for,
            owner=self._folder.path.name,
        )

    def _header(self, loaded: Loaded) -> Header:
        return header_of(loaded, self._profile.exec.command, self._profile, self._book)


async def _unnoticed(printed: str) -> None:
    """Nobody waits for anything that is printed."""
