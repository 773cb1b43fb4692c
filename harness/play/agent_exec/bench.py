"""Plays scenarios on `agent exec`, one after the other."""

import shlex
import time

from harness.client.target.place import RunFolder
from harness.client.target.profile import Bounds, Profile
from harness.client.target.program import NotStarted
from harness.model.server import ModelServer
from harness.play.agent_exec.player import ExecPlayer
from harness.play.hygiene import Hygiene
from harness.play.program_plays import header_of
from harness.play.run import Run
from harness.play.sdk.agent_home import AgentStages
from harness.play.session.conversation import MAX_FRAMES
from harness.play.session.servers import SetupFailed
from harness.protocol.spec.book import Book
from harness.report.results.outcome import Finding
from harness.scenario.ending import Ended
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast
from harness.trace.frame import Kind
from harness.trace.marks import ProgramEnded, ProgramErrors, ToldBySession
from harness.trace.recorder import Recorder
from harness.trace.surface.known import classify_of
from harness.trace.surfaces import EXEC
from harness.trace.trace import End, Header, Trace


class ExecBench:
    """Plays one scenario after the other; nothing of one is there for the next.

    `blocked` is why no more need be tried. `told` is what a session told of a scenario, by its id.
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
        self._profile = profile
        self._bounds = bounds
        self._book = book
        self._stages = AgentStages(profile, folder, models)
        self._hygiene = hygiene
        self._spoke = False

    async def run(self, loaded: Loaded) -> Run:
        """Play one scenario. Raises `SetupFailed` where the program cannot be used at all."""
        if self.blocked is not None:
            raise SetupFailed(self.blocked, Trace(self._header(loaded)))
        began = time.monotonic()
        recorder = Recorder(self._header(loaded), classify=classify_of(EXEC), max_frames=MAX_FRAMES)
        try:
            run = await self._played(loaded, recorder)
        except NotStarted as error:
            finding = Finding("setup.not-started", str(error), kind=EXEC)
            self.blocked = finding
            raise SetupFailed(finding, recorder.trace, ran=False) from error
        run.seconds = time.monotonic() - began
        self._watch(run)
        return run

    async def _played(self, loaded: Loaded, recorder: Recorder) -> Run:
        told_before = self.told.get(loaded.id, ())
        async with self._stages.served(loaded, recorder, told_before) as staged:
            player = ExecPlayer(loaded, recorder, staged.model, staged.stage, self._bounds)
            unmet = await player.play()
        for ended in player.exits:
            self._hygiene.add_program_leftovers(loaded.id, ended.survivors)
        trace = recorder.trace
        if not trace.frames:
            trace.end = End.QUIESCENT
        told = [mark.body.text for mark in trace.marks_of(ProgramErrors) if mark.body.text]
        return Run(
            trace=trace,
            cast=Cast(turns=player.turns),
            unmet=unmet,
            ending=_ended(player, trace.end),
            model=staged.model,
            cwd=staged.stage.cwd,
            stderr="\n".join(told)[-4000:],
            seconds=0.0,
            bound=self._bounds.scenario,
            overflow=player.overflow,
        )

    def _header(self, loaded: Loaded) -> Header:
        return header_of(loaded, self._profile.exec.command, self._profile, self._book)

    def _watch(self, run: Run) -> None:
        """One finding, and nothing more to try, where no process of it ever wrote an event."""
        self._spoke = self._spoke or any(one.kind is Kind.EVENT for one in run.trace.frames)
        if self._spoke or not run.cast.turns or run.overflow:
            return
        ends = " and ".join(_how(mark.body.status) for mark in run.trace.marks_of(ProgramEnded))
        said = f"; the end of its stderr: {run.stderr[-600:].strip()}" if run.stderr else ""
        self.blocked = Finding(
            "setup.no-events",
            f"`{shlex.join(self._profile.exec.command)}` wrote no event: it {ends}{said}",
            kind=EXEC,
        )
        run.findings.append(self.blocked)


def _ended(player: ExecPlayer, end: End) -> Ended:
    """The end of a run: whoever still ran when a bound was hit was busy, and not we.

    What we ended because the script could not go on is not to blame.
    """
    if end is not End.TIMED_OUT or player.overflow:
        return Ended(end)
    if player.ended_by_us:
        return Ended(End.CLOSED)
    return Ended(end, liveness="its process did not end by itself")


def _how(status: int | None) -> str:
    if status is None:
        return "was ended"
    return f"ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
