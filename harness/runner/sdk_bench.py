"""Plays scenarios on an SDK, by its driver program.

Here: what a driver gets. Not here: the steps (sdk_player), the agent (scripted_agent), judging.
"""

import shlex
import time

from harness.backend.model import ScriptedModel
from harness.backend.wire.responses import ResponsesEncoder
from harness.results.outcome import Finding
from harness.runner.hygiene import Hygiene
from harness.runner.run import Run
from harness.runner.sdk_player import KEYS, Desk, SdkPlayer
from harness.runner.servers import SetupFailed
from harness.scenario.ending import Ended
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast, Unmet
from harness.spec.book import Book
from harness.surface.known import classify_of
from harness.target.place import RunFolder
from harness.target.process import environment
from harness.target.profile import Bounds, Profile
from harness.target.program import NotStarted, find_program, from_anywhere
from harness.trace.recorder import Recorder, TraceFull
from harness.trace.surfaces import SDK
from harness.trace.trace import End, Header, Trace


class SdkBench:
    """Plays one scenario after the other. `blocked` is why no more need be tried."""

    def __init__(
        self, profile: Profile, bounds: Bounds, book: Book, folder: RunFolder, hygiene: Hygiene
    ) -> None:
        self.blocked: Finding | None = None
        self._profile = profile
        self._bounds = bounds
        self._book = book
        self._folder = folder
        self._hygiene = hygiene

    async def run(self, loaded: Loaded) -> Run:
        """Play one scenario. Raises `SetupFailed` where the driver cannot be started."""
        if self.blocked is not None:
            raise SetupFailed(self.blocked, Trace(self._header(loaded)))
        began = time.monotonic()
        recorder = Recorder(self._header(loaded), classify=classify_of(SDK))
        desk = self._desk()
        player = SdkPlayer(loaded, recorder, desk, self._bounds)
        unmet: Unmet | None = None
        overflow = ""
        try:
            unmet = await player.play()
        except NotStarted as error:
            self.blocked = Finding("setup.not-started", str(error))
            raise SetupFailed(self.blocked, recorder.trace, ran=False) from error
        except TraceFull as full:
            overflow = str(full)
        self._hygiene.left_by_program(loaded.id, tuple(player.survivors))
        if unmet is not None or overflow:
            # What did not end was ended, or had ended: the unmet step tells of it.
            recorder.trace.end = End.CLOSED
        return Run(
            trace=recorder.trace,
            cast=Cast(),
            unmet=unmet,
            ended=Ended(recorder.trace.end),
            model=ScriptedModel({}, ResponsesEncoder(), mark=recorder.mark),
            cwd=desk.cwd,
            stderr=player.stderr,
            seconds=time.monotonic() - began,
            bound=self._bounds.scenario,
            overflow=overflow,
        )

    def _desk(self) -> Desk:
        cwd, home = self._folder.fresh("work"), self._folder.fresh("home")
        # Whatever of the agent's the user has set must not look like an option that was given.
        env = {
            name: value
            for name, value in environment({}, home, self._profile.home_env).items()
            if name not in KEYS
        }
        return Desk(
            command=from_anywhere(find_program(self._profile.sdk.command)),
            env=env,
            cwd=cwd,
            scratch=self._folder.fresh("sdk"),
            places={"cwd": str(cwd), "home": str(home)},
            owner=self._folder.path.name,
        )

    def _header(self, loaded: Loaded) -> Header:
        declared = self._profile.capabilities
        return Header(
            target=shlex.join(self._profile.sdk.command),
            profile=self._profile.name,
            scenario=loaded.id,
            surface=SDK,
            spec_revision=self._book.revision,
            capabilities=[] if declared == "probe" else list(declared),
        )
