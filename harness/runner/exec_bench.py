"""Plays scenarios on `agent exec`: a home, a workspace and a model for each, and its run.

Here: what a scenario's processes get, and set-up findings. Not here: the steps (exec_player), the
session's server (bench), judging (judging).
"""

import shlex
import time
from pathlib import Path
from typing import Any

from harness.backend.model import ScriptedModel
from harness.backend.server import ModelServer
from harness.backend.tools import ToolRow
from harness.backend.wire.responses import ResponsesEncoder
from harness.results.outcome import Finding
from harness.runner.conversation import MAX_FRAMES, furnish_workspace, needs_of
from harness.runner.exec_player import ExecPlayer, Stage
from harness.runner.hygiene import Hygiene
from harness.runner.named_pipes import named_pipes
from harness.runner.run import Run
from harness.runner.servers import SetupFailed
from harness.scenario.ending import Ended
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast
from harness.scenario.surfaces import THREAD_PARAMS
from harness.spec.book import Book
from harness.surface.known import classify_of
from harness.target.overrides import places, turn_params, with_overrides
from harness.target.place import RunFolder, furnish
from harness.target.process import environment
from harness.target.profile import Bounds, Profile, fill
from harness.target.program import NotStarted, find_program, from_anywhere
from harness.trace.frame import Kind
from harness.trace.marks import Place, ProgramEnded, ProgramErrors, ToldBySession
from harness.trace.recorder import Recorder
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
        self._folder = folder
        self._models = models
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
        needs = needs_of(loaded)
        cwd, home = self._folder.fresh("work"), self._folder.fresh("home")
        stands_for = places(self._profile, cwd, home)
        files = {fill(name, stands_for): data for name, data in needs.files.items()}
        furnish_workspace(cwd, files)
        profile = with_overrides(
            self._profile, config=needs.config, places=stands_for, several=False
        )
        values = {"model_url": self._models.url, "home": str(home), "cwd": str(cwd)}
        furnish(home, profile, values)
        model = self._model(loaded, recorder)
        stage = self._stage(profile, loaded, cwd, home, stands_for, values)
        recorder.mark(
            Place(home=str(home), cwd=str(cwd), server_cwd=str(cwd), agent=profile.agent_folder)
        )
        for one in self.told.get(loaded.id, ()):
            recorder.mark(one)
        player = ExecPlayer(loaded, recorder, model, stage, self._bounds)
        self._models.serve(model)
        try:
            async with named_pipes(cwd, needs.pipes, needs.told, model.gates):
                unmet = await player.play()
        finally:
            self._models.serve(None)
        for name in player.exits:
            self._hygiene.left_by_program(loaded.id, player.exits[name].survivors)
        trace = recorder.trace
        if not trace.frames:
            trace.end = End.QUIESCENT
        told = [mark.body.text for mark in trace.marks_of(ProgramErrors) if mark.body.text]
        return Run(
            trace=trace,
            cast=Cast(turns=player.turns),
            unmet=unmet,
            ended=_ended(player, trace.end),
            model=model,
            cwd=cwd,
            stderr="\n".join(told)[-4000:],
            seconds=0.0,
            bound=self._bounds.scenario,
            overflow=player.overflow,
        )

    def _stage(
        self,
        profile: Profile,
        loaded: Loaded,
        cwd: Path,
        home: Path,
        stands_for: dict[str, str],
        values: dict[str, str],
    ) -> Stage:
        ours = fill(profile.env, values)
        settings: dict[str, Any] = loaded.scenario.settings.model_dump(exclude_none=True)
        known = {**profile.thread, **turn_params(profile, loaded.scenario.needs)}
        known = {name: one for name, one in known.items() if name in THREAD_PARAMS}
        return Stage(
            command=from_anywhere(find_program(fill(profile.exec.command, values))),
            program=profile.exec,
            env=environment(ours, home, profile.home_env),
            variables=tuple(sorted({"HOME", profile.home_env, "NO_PROXY", *ours})),
            cwd=cwd,
            home=home,
            scratch=self._folder.fresh("exec"),
            params={**settings, **known},
            places=stands_for,
        )

    def _model(self, loaded: Loaded, recorder: Recorder) -> ScriptedModel:
        profile = self._profile
        return ScriptedModel(
            loaded.scenario.scripts(),
            ResponsesEncoder(),
            mark=recorder.mark,
            markers=loaded.markers(),
            strict=loaded.scenario.strict_model,
            tools=[ToolRow(**tool.model_dump()) for tool in profile.tools],
            outcomes={str(name): texts for name, texts in profile.outcomes.items()},
            loose=profile.capabilities == "probe",
        )

    def _header(self, loaded: Loaded) -> Header:
        declared = self._profile.capabilities
        return Header(
            target=shlex.join(self._profile.exec.command),
            profile=self._profile.name,
            scenario=loaded.id,
            surface=EXEC,
            spec_revision=self._book.revision,
            capabilities=[] if declared == "probe" else list(declared),
        )

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
