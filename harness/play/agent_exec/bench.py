"""Environment for plays on `agent exec`, one after the other."""

import shlex
import time

from harness.client.target.process import describe_environment
from harness.client.target.profile import Bounds, Profile
from harness.client.target.program import NotStarted
from harness.client.target.run_folders import RunFolder
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
from harness.scenario.ending import TraceEnding
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast
from harness.trace.frame import Kind
from harness.trace.marks import ProgramEnded, ProgramErrors, SessionReport
from harness.trace.recorder import Recorder
from harness.trace.surface.registry import classify_of
from harness.trace.surfaces import EXEC
from harness.trace.trace import End, Header, Trace


class ExecBench:
    """Environment that plays scenarios on `agent exec`, each isolated from the next.

    `blocker` is the finding that makes further plays pointless. `session_turns` maps a scenario id
    to the turns that a session reported for it.
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
        self._profile = profile
        self._bounds = bounds
        self._book = book
        self._stages = AgentStages(profile, folder, models)
        self._hygiene = hygiene
        self._wrote_events = False

    async def run(self, loaded: Loaded) -> Run:
        """Play one scenario. Raises `SetupFailed` if the program cannot be started or used."""
        if self.blocker is not None:
            raise SetupFailed(self.blocker, Trace(self._header(loaded)))
        began = time.monotonic()
        recorder = Recorder(self._header(loaded), classify=classify_of(EXEC), max_frames=MAX_FRAMES)
        try:
            run = await self._play(loaded, recorder)
        except NotStarted as error:
            finding = Finding("setup.not-started", str(error), kind=EXEC)
            self.blocker = finding
            raise SetupFailed(finding, recorder.trace, ran=False) from error
        run.seconds = time.monotonic() - began
        self._check_events(run)
        return run

    async def _play(self, loaded: Loaded, recorder: Recorder) -> Run:
        told_before = self.session_turns.get(loaded.id, ())
        async with self._stages.serve_agent(loaded, recorder, told_before) as staged:
            player = ExecPlayer(loaded, recorder, staged.model, staged.stage, self._bounds)
            unmet = await player.play()
        for ended in player.exits:
            self._hygiene.add_program_leftovers(loaded.id, ended.survivors)
        trace = recorder.trace
        if not trace.frames:
            trace.end = End.QUIESCENT
        stderr_texts = [mark.body.text for mark in trace.marks_of(ProgramErrors) if mark.body.text]
        return Run(
            trace=trace,
            cast=Cast(turns=player.turns),
            unmet=unmet,
            ending=_ending_of(player, trace.end),
            model=staged.model,
            cwd=staged.stage.cwd,
            stderr="\n".join(stderr_texts)[-4000:],
            seconds=0.0,
            bound=self._bounds.scenario,
            overflow=player.overflow,
        )

    def _header(self, loaded: Loaded) -> Header:
        return header_of(loaded, self._profile.exec.command, self._profile, self._book)

    def _check_events(self, run: Run) -> None:
        """Add a finding and block further plays if no process has ever written an event."""
        self._wrote_events = self._wrote_events or any(
            frame.kind is Kind.EVENT for frame in run.trace.frames
        )
        if self._wrote_events or not run.cast.turns or run.overflow:
            return
        ends = " and ".join(
            _describe_exit(mark.body.status) for mark in run.trace.marks_of(ProgramEnded)
        )
        stderr_words = f"; the end of its stderr: {run.stderr[-600:].strip()}" if run.stderr else ""
        profile = self._profile
        changes = describe_environment(profile.env, profile.home_env, confined=profile.is_confined)
        self.blocker = Finding(
            "setup.no-events",
            f"`{shlex.join(profile.exec.command)}` wrote no event: it {ends}{stderr_words}; "
            f"{changes}",
            kind=EXEC,
        )
        run.findings.append(self.blocker)


def _ending_of(player: ExecPlayer, end: End) -> TraceEnding:
    """Return the ending of a run; a process that still ran at its bound is at fault.

    That is not so if we ended it because the script could not continue.
    """
    if end is not End.TIMED_OUT or player.overflow:
        return TraceEnding(end)
    if player.ended_by_us:
        return TraceEnding(End.CLOSED)
    return TraceEnding(end, liveness="its process did not end by itself")


def _describe_exit(status: int | None) -> str:
    if status is None:
        return "was ended"
    return f"ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
