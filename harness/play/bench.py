"""A worker's bench: one model server, one server under test at a time, scenarios one by one.

`run` plays a scenario. To send messages by hand, or to play a scenario step by step, hold a
conversation:

    async with bench.conversation("mine", {"t": script}) as stage:
        answer = await stage.request("thread/start", {"cwd": str(stage.cwd)})
    stage.run.trace

    async with bench.conversation_of(loaded) as stage, bench.player(loaded, stage) as player:
        while player.next_step is not None:
            await player.step()
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

from harness.client.target.overrides import model_address_carriers, placeholder_values, turn_params
from harness.client.target.profile import Bounds, Profile
from harness.client.target.run_folders import RunFolder
from harness.judge.verdict import Level
from harness.model.script import Script
from harness.model.server import ModelServer, model_server
from harness.play.agent_exec.bench import ExecBench
from harness.play.agent_mcp.bench import CommandBench
from harness.play.hygiene import Hygiene
from harness.play.run import Run
from harness.play.sdk.bench import SdkBench
from harness.play.session.conversation import Conversations, Needs, needs_of
from harness.play.session.conversation_context import ConversationContext
from harness.play.session.first_turn import NO_TURN, plain_turn
from harness.play.session.sanity_turn import SANITY, last_turn_completed, sanity_problem
from harness.play.session.servers import RunningServer, Servers, SetupFailed
from harness.protocol.spec.book import Book
from harness.report.progress.log import SILENT, ProgressLog
from harness.report.results.outcome import Finding
from harness.report.results.server_starts import StartReason
from harness.scenario.loader import Loaded
from harness.scenario.player import Player
from harness.trace.marks import EndingBegins, MarkBody, StepBegins
from harness.trace.recorder import Recorder
from harness.trace.surfaces import COMMAND, EXEC, SDK
from harness.trace.trace import Mark

# Set-up findings that concern only scenarios that start a turn.
_TURN_FINDINGS = ("setup.model-not-called", NO_TURN)


class Bench:
    """Environment that plays scenarios against one target. Make it with `open_bench`."""

    def __init__(
        self,
        profile: Profile,
        bounds: Bounds,
        book: Book,
        folder: RunFolder,
        models: ModelServer,
        tasks: TaskGroup,
    ) -> None:
        self.profile = profile
        self.book = book
        self.blocker: Finding | None = None
        self.hygiene = Hygiene(Level(profile.hygiene))
        self.servers = Servers(
            profile, bounds, folder, self.hygiene, model_url=models.url, tasks=tasks
        )
        self._bounds = bounds
        self._models = models
        self._conversations = Conversations(
            profile, bounds, book, folder, models, self.servers, self.hygiene
        )
        self.exec = ExecBench(profile, bounds, book, folder, models, self.hygiene)
        self.commands = CommandBench(profile, bounds, book, folder, self.hygiene)
        self.sdk = SdkBench(profile, bounds, book, folder, models, self.hygiene)
        self.step_bound: float | None = None
        """Upper bound of a scenario's steps in seconds; None for the usual bounds."""
        self._on_wait: Callable[[str, float], None] | None = None
        self._model_reached = False
        self._proven = False

    @property
    def bounds(self) -> Bounds:
        """Return the profile's bounds, as this run scales them."""
        return self._bounds

    @property
    def model_strays(self) -> list[str]:
        """Return the requests to the model that no API of its answers, such as `POST /v1/x`."""
        return self._models.strays

    @property
    def model_url(self) -> str:
        """Return the address of the scripted model."""
        return self._models.url

    def report_steps(self, progress: ProgressLog, lane: str) -> None:
        """Report the steps of each session from now on."""

        def follow(name: str, recorder: Recorder) -> None:
            def on_mark(mark: Mark[MarkBody]) -> None:
                if isinstance(mark.body, StepBegins):
                    progress.begin_step(lane, name, f"{mark.body.name}, line {mark.body.line}")
                elif isinstance(mark.body, EndingBegins):
                    progress.begin_step(lane, name, "silence, at the end")

            progress.count_play()
            recorder.mark_listeners.append(on_mark)

        self._conversations.on_recorder = follow
        self._on_wait = partial(progress.begin_wait, lane)

    def blocker_for(self, loaded: Loaded) -> Finding | None:
        """Return the set-up finding that makes playing this scenario pointless, if any."""
        if loaded.surface == EXEC:
            return self.exec.blocker
        if loaded.surface == COMMAND:
            return self.commands.blocker
        if loaded.surface == SDK:
            return self.sdk.blocker
        finding = self.blocker
        if finding is None or (finding.id in _TURN_FINDINGS and not loaded.scenario.starts_turns):
            return None
        return finding

    async def first_turn(self, patience: float) -> Run:
        """Play the plain turn on a fresh process; `patience` multiplies the bound of its steps.

        The earlier blocker is dropped, since this play finds it again if it is right. The end of
        the trace is bounded by one short silence, and by the bound of the steps.
        """
        await self.servers.retire_all()
        self.blocker = None
        step = self._bounds.step * patience
        bounds = self._bounds.model_copy(update={"step": step})
        ending = self._bounds.model_copy(update={"step": self._bounds.settle, "scenario": step})
        return await self._play(plain_turn(), bounds=bounds, ending=ending)

    async def run(self, loaded: Loaded) -> Run:
        """Play one scenario. Raises `SetupFailed` if the server cannot be used at all.

        A scenario that asks for its own process shares it with no other.
        """
        if loaded.surface == EXEC:
            return await self.exec.run(loaded)
        if loaded.surface == COMMAND:
            return await self.commands.run(loaded)
        if loaded.surface == SDK:
            return await self.sdk.run(loaded)
        needs = needs_of(loaded)
        server = await self.servers.select(self._conversations.shared_profile(needs))
        if server is not None and server.unproven_after:
            await self._sanity_turn(server, needs)
        server = self.servers.current
        before = (
            tuple(server.served_scenarios)
            if server is not None and not server.peer.inbox.closed
            else ()
        )
        try:
            run = await self._play(loaded)
        except SetupFailed:
            # Some servers have a fixed port or a lock, so two cannot run at once.
            if not await self.servers.run_alone():
                raise
            self.blocker, before = None, ()
            run = await self._play(loaded)
        run.served_before = before
        proven = last_turn_completed(run)
        if self.servers.current is not None:
            self.servers.current.served_scenarios.append(loaded)
            self.servers.current.unproven_after = "" if proven else loaded.id
        self._proven = self._proven or proven
        return run

    async def _play(
        self, loaded: Loaded, *, bounds: Bounds | None = None, ending: Bounds | None = None
    ) -> Run:
        if self.step_bound is not None and bounds is None and loaded is not SANITY:
            bounds = ending = self._shortened_bounds(self.step_bound)
        async with self.conversation_of(loaded, ending=ending) as stage:
            stage.unmet = await self.player(loaded, stage, bounds=bounds).play()
        return stage.run

    def _shortened_bounds(self, step: float) -> Bounds:
        """Return bounds of at most `step` seconds for a step, and about four times that in all."""
        step = min(step, self._bounds.step)
        scenario = min(4 * step + self._bounds.settle, self._bounds.scenario)
        return self._bounds.model_copy(update={"step": step, "scenario": scenario})

    def conversation_of(
        self, loaded: Loaded, *, ending: Bounds | None = None
    ) -> AbstractAsyncContextManager[ConversationContext]:
        """Open a conversation with the settings of a scenario, without playing its steps."""
        scripts = loaded.scenario.scripts()
        return self.conversation(loaded.id, scripts, needs=needs_of(loaded), ending=ending)

    def player(
        self, loaded: Loaded, stage: ConversationContext, *, bounds: Bounds | None = None
    ) -> Player:
        """Return a player for a scenario's steps; `bounds` override those of the run."""
        return Player(
            loaded,
            stage.peer,
            stage.model,
            cast=stage.cast,
            cwd=stage.cwd,
            bounds=bounds or self._bounds,
            thread_params=self.profile.thread,
            turn_params=turn_params(self.profile, loaded.scenario.needs),
            placeholders=placeholder_values(self.profile, stage.cwd, stage.connections.server.home),
            markers=loaded.thread_markers(),
            connections=stage.connections,
            on_wait=self._on_wait,
        )

    async def _sanity_turn(self, server: RunningServer, needs: Needs) -> None:
        """Check that a process still works after a scenario, and end it if not.

        `needs` are those of the next scenario, whose settings the process has.
        """
        if self.blocker is not None:
            return  # A plain turn fails on every process.
        if server.peer.inbox.closed or not (self._proven and self._model_reached):
            return
        sane = replace(
            needs_of(SANITY),
            config=needs.config,
            scenario_folder=needs.scenario_folder,
            several_clients=needs.several_clients,
            client_name=needs.client_name,
        )
        async with self.conversation(SANITY.id, SANITY.scenario.scripts(), needs=sane) as stage:
            stage.unmet = await self.player(SANITY, stage).play()
        problem = sanity_problem(stage.run)
        if problem:
            self.hygiene.add_unusable(server.unproven_after, problem)
            await self.servers.retire(StartReason.UNUSABLE)

    @asynccontextmanager
    async def conversation(
        self,
        name: str,
        scripts: Mapping[str, Script],
        *,
        needs: Needs | None = None,
        ending: Bounds | None = None,
    ) -> AsyncGenerator[ConversationContext]:
        """Hold one conversation for the length of the block, then bring its trace to its end.

        `scripts` are the model's replies, keyed by thread alias. After the block `stage.run` is the
        result; its `unmet` is the reason why the block stopped: a TimeoutError, `StepFailed` or
        `TargetGone` raised in it, which is not raised further. The block has no bound of its own:
        steps, `stage.request` and `stage.wait` have theirs; use `anyio.fail_after` around the rest.
        It is entered and left in one task; other tasks may send within it (through a blocking
        portal: `wrap_async_context_manager`). Raises `SetupFailed` if the server cannot be used at
        all.
        """
        try:
            async with self._conversations.open(name, scripts, needs=needs, ending=ending) as stage:
                yield stage
        except SetupFailed as failed:
            self.blocker = failed.finding
            raise
        self._watch_model(stage.run)

    def _watch_model(self, run: Run) -> None:
        """Add a finding and block further scenarios if no turn has ever reached the model."""
        if run.model.calls:
            self._model_reached = True
        if self._model_reached or run.has_died or run.has_flooded or not run.cast.turns:
            return  # Its crash or flood is the finding.
        strays = f"; it asked the model for {self._models.strays[0]}" if self._models.strays else ""
        self.blocker = Finding(
            "setup.model-not-called",
            f"a turn was started and the model at {self._models.url} was never called{strays}; "
            f"{_advise_model_url(self.profile)}",
        )
        run.findings.append(self.blocker)


def _advise_model_url(profile: Profile) -> str:
    """Return advice for a model that is not called: how the profile can pass its address."""
    carriers = model_address_carriers(profile)
    if carriers:
        return (
            f"point the server at it: it gets the address from {carriers}, and {{model_url}} can "
            "stand in --server-cmd"
        )
    return (
        f"nothing tells the server that address: the profile {profile.name!r} has {{model_url}} "
        "nowhere; put it into the command, a variable of [env] or a file of [home]"
    )


B = TypeVar("B", bound=Bench)


@asynccontextmanager
async def open_bench(
    profile: Profile,
    book: Book,
    *,
    base: Path,
    worker: str = "main",
    scale: float = 1.0,
    progress: ProgressLog = SILENT,
    kind: type[B] = Bench,
) -> AsyncGenerator[B]:
    """Open a bench of class `kind` for one worker; stop all its processes at the end.

    `progress` gets the steps of sessions, as those of the lane `worker`.
    """
    folder = RunFolder(base, worker)
    try:
        async with model_server() as models, anyio.create_task_group() as tasks:
            bounds = profile.bounds.scale(scale)
            bench = kind(profile, bounds, book, folder, models, tasks)
            bench.report_steps(progress, worker)
            try:
                yield bench
            finally:
                await bench.servers.retire_all()
                tasks.cancel_scope.cancel()
    finally:
        folder.close()
