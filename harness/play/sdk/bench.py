"""Plays scenarios on an SDK, by its driver program."""

import time

from harness.client.target.place import RunFolder
from harness.client.target.process import environment
from harness.client.target.profile import Bounds, Profile
from harness.client.target.program import NotStarted, find_program, with_absolute_paths
from harness.model.server import ModelServer
from harness.play.hygiene import Hygiene
from harness.play.program_plays import PlayResult, header_of, run_of
from harness.play.run import Run
from harness.play.sdk.agent_home import AgentStages
from harness.play.sdk.agent_notes import KEYS
from harness.play.sdk.driver import Desk
from harness.play.sdk.player import SdkPlayer
from harness.play.sdk.turns_player import SdkTurnsPlayer
from harness.play.session.conversation import MAX_FRAMES
from harness.play.session.servers import SetupFailed
from harness.protocol.spec.book import Book
from harness.report.results.outcome import Finding
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast, Unmet
from harness.scenario.surfaces import needs_agent
from harness.trace.marks import ToldBySession
from harness.trace.recorder import Recorder, TraceFull
from harness.trace.surface.known import classify_of
from harness.trace.surfaces import SDK
from harness.trace.trace import End, Header, Trace


class SdkBench:
    """Plays one scenario after the other. `blocked` is why no more need be tried.

    `told` is what a session told of a scenario, by its id.
    """

    def __init__(
        self,
        profile: Profile,
        bounds: Bounds,
        book: Book,
        folder: RunFolder,
        models: ModelServer,
        hygiene: Hygiene,
    ) -> None:
        self.blocked: Finding | None = None
        self.told: dict[str, list[ToldBySession]] = {}
        self._stages = AgentStages(profile, folder, models)
        self._profile = profile
        self._bounds = bounds
        self._book = book
        self._folder = folder
        self._hygiene = hygiene

    async def run(self, loaded: Loaded) -> Run:
        """Play one scenario. Raises `SetupFailed` where the driver cannot be started."""
        if self.blocked is not None:
            raise SetupFailed(self.blocked, Trace(self._header(loaded)))
        recorder = Recorder(self._header(loaded), classify=classify_of(SDK), max_frames=MAX_FRAMES)
        play = self._on_agent if needs_agent(loaded.scenario) else self._scripted
        began = time.monotonic()
        try:
            run = await play(loaded, recorder)
        except NotStarted as error:
            self.blocked = Finding("setup.not-started", str(error), kind=SDK)
            raise SetupFailed(self.blocked, recorder.trace, ran=False) from error
        run.seconds = time.monotonic() - began
        return run

    async def _on_agent(self, loaded: Loaded, recorder: Recorder) -> Run:
        """Play a session's scenario: the driver is given the agent's program, and our model."""
        told = self.told.get(loaded.id, ())
        async with self._stages.served(loaded, recorder, told) as staged:
            args = loaded, recorder, staged.model, staged.stage, self._bounds
            player = SdkTurnsPlayer(*args, self._desk())
            unmet = await player.play()
        recorder.trace.end = End.QUIESCENT
        made = PlayResult(unmet, player.survivors, player.stderr, player.overflow, staged.stage.cwd)
        return run_of(
            made,
            recorder,
            bound=self._bounds.scenario,
            hygiene=self._hygiene,
            model=staged.model,
            cast=Cast(turns=player.turns),
        )

    async def _scripted(self, loaded: Loaded, recorder: Recorder) -> Run:
        """Play a scenario of calls, with the agent that the harness plays."""
        desk = self._desk()
        player = SdkPlayer(loaded, recorder, desk, self._bounds)
        unmet: Unmet | None = None
        overflow = ""
        try:
            unmet = await player.play()
        except TraceFull as full:
            overflow = str(full)
        made = PlayResult(unmet, player.survivors, player.stderr, overflow, desk.cwd)
        return run_of(made, recorder, bound=self._bounds.scenario, hygiene=self._hygiene)

    def _desk(self) -> Desk:
        cwd, home = self._folder.new_folder("work"), self._folder.new_folder("home")
        # Whatever of the agent's the user has set must not look like an option that was given.
        env = {
            name: value
            for name, value in environment({}, home, self._profile.home_env).items()
            if name not in KEYS
        }
        return Desk(
            command=with_absolute_paths(find_program(self._profile.sdk.command, "--sdk-cmd")),
            env=env,
            cwd=cwd,
            scratch=self._folder.new_folder("sdk"),
            places={"cwd": str(cwd), "home": str(home)},
            owner=self._folder.path.name,
        )

    def _header(self, loaded: Loaded) -> Header:
        return header_of(loaded, self._profile.sdk.command, self._profile, self._book)
