"""Environment for plays of scenarios on an SDK, through its driver program."""

import time

from harness.client.target.process import environment
from harness.client.target.profile import Bounds, Profile
from harness.client.target.program import NotStarted, find_program, with_absolute_paths
from harness.client.target.run_folders import RunFolder
from harness.model.server import ModelServer
from harness.play.hygiene import Hygiene
from harness.play.program_plays import PlayResult, header_of, run_of
from harness.play.run import Run
from harness.play.sdk.agent_home import AgentStages
from harness.play.sdk.agent_notes import KEY_VARIABLES
from harness.play.sdk.driver import DriverSetup
from harness.play.sdk.player import SdkPlayer
from harness.play.sdk.turns_player import SdkTurnsPlayer
from harness.play.session.conversation import MAX_FRAMES
from harness.play.session.servers import SetupFailed
from harness.protocol.spec.book import Book
from harness.report.results.outcome import Finding
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast, StepFailure
from harness.scenario.surfaces import needs_agent
from harness.trace.marks import SessionReport
from harness.trace.recorder import Recorder, TraceFull
from harness.trace.surface.registry import classify_of
from harness.trace.surfaces import SDK
from harness.trace.trace import End, Header, Trace


class SdkBench:
    """Environment that plays scenarios on an SDK, one at a time.

    `blocker` is the finding after which no scenario is played, such as a driver that does not
    start. `session_turns` maps a scenario's id to its turns on the session surface.
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
        self.blocker: Finding | None = None
        self.session_turns: dict[str, list[SessionReport]] = {}
        self._stages = AgentStages(profile, folder, models)
        self._profile = profile
        self._bounds = bounds
        self._book = book
        self._folder = folder
        self._hygiene = hygiene

    async def run(self, loaded: Loaded) -> Run:
        """Play one scenario. Raises `SetupFailed` if the driver cannot be started."""
        if self.blocker is not None:
            raise SetupFailed(self.blocker, Trace(self._header(loaded)))
        recorder = Recorder(self._header(loaded), classify=classify_of(SDK), max_frames=MAX_FRAMES)
        play = self._play_on_agent if needs_agent(loaded.scenario) else self._play_scripted
        began = time.monotonic()
        try:
            run = await play(loaded, recorder)
        except NotStarted as error:
            self.blocker = Finding("setup.not-started", str(error), kind=SDK)
            raise SetupFailed(self.blocker, recorder.trace, ran=False) from error
        run.seconds = time.monotonic() - began
        return run

    async def _play_on_agent(self, loaded: Loaded, recorder: Recorder) -> Run:
        """Play a session's scenario: the driver runs the agent's program with our model."""
        session_turns = self.session_turns.get(loaded.id, ())
        async with self._stages.serve_agent(loaded, recorder, session_turns) as staged:
            args = loaded, recorder, staged.model, staged.stage, self._bounds
            player = SdkTurnsPlayer(*args, self._make_driver_setup())
            unmet = await player.play()
        recorder.trace.end = End.QUIESCENT
        result = PlayResult(
            unmet, player.survivors, player.stderr, player.overflow, staged.stage.cwd
        )
        return run_of(
            result,
            recorder,
            bound=self._bounds.scenario,
            hygiene=self._hygiene,
            model=staged.model,
            cast=Cast(turns=player.turns),
        )

    async def _play_scripted(self, loaded: Loaded, recorder: Recorder) -> Run:
        """Play a scenario of SDK calls with a scripted agent."""
        setup = self._make_driver_setup()
        player = SdkPlayer(loaded, recorder, setup, self._bounds)
        unmet: StepFailure | None = None
        overflow = ""
        try:
            unmet = await player.play()
        except TraceFull as full:
            overflow = str(full)
        result = PlayResult(unmet, player.survivors, player.stderr, overflow, setup.cwd)
        return run_of(result, recorder, bound=self._bounds.scenario, hygiene=self._hygiene)

    def _make_driver_setup(self) -> DriverSetup:
        cwd, home = self._folder.new_folder("work"), self._folder.new_folder("home")
        # The user's own keys must not be taken for options of the scenario.
        profile = self._profile
        own = environment({}, home, profile.home_env, confined=profile.is_confined)
        env = {name: value for name, value in own.items() if name not in KEY_VARIABLES}
        return DriverSetup(
            command=with_absolute_paths(find_program(self._profile.sdk.command, "--sdk-cmd")),
            env=env,
            cwd=cwd,
            scratch=self._folder.new_folder("sdk"),
            places={"cwd": str(cwd), "home": str(home)},
            owner=self._folder.path.name,
            agent_name=profile.sdk.agent_name,
            confinement=profile.confinement(self._folder.path),
        )

    def _header(self, loaded: Loaded) -> Header:
        return header_of(loaded, self._profile.sdk.command, self._profile, self._book)
