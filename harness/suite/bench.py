"""A worker's bench: one model server, one server under test at a time, scenarios one by one.

Here: starting and sharing the process, the handshake, recording, the set-up findings. Not here:
judging (judging), merging (merge), pytest (plugin).
"""

import time
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from harness.backend.model import ScriptedModel
from harness.backend.script import Script
from harness.backend.server import ModelServer, model_server
from harness.backend.tools import ToolRow
from harness.backend.wire.responses import ResponsesEncoder
from harness.client.inbox import TargetGone
from harness.client.peer import Peer
from harness.rules.verdict import Level
from harness.scenario.client_steps import StartTurnStep
from harness.scenario.ending import Ended, Ending
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast, Player, Unmet
from harness.spec.book import Book
from harness.suite.outcome import Finding
from harness.suite.wires import OwedByTheLiving, Wires
from harness.target.launch import launch
from harness.target.place import RunFolder
from harness.target.process import ServerProcess
from harness.target.profile import Bounds, Profile, ProfileError
from harness.trace.names import Renamer
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header, Trace
from harness.transport.base import Transport
from harness.transport.jsonl import over_limit

CLIENT = {"name": "harness", "title": "Conformance harness", "version": "1"}
# A conversation needs a few thousand messages at most; beyond this a server floods.
MAX_FRAMES = 100_000


class SetupFailed(Exception):
    """The server cannot be used at all; `finding` says why."""

    def __init__(self, finding: Finding, trace: Trace) -> None:
        super().__init__(finding.message)
        self.finding = finding
        self.trace = trace


@dataclass(slots=True)
class Run:
    """What playing one scenario gave, before any judgement.

    `status` is the exit status of a server that ended by itself, None while it ran; `overflow`
    says which bound a flood went over; `closed` names the connections that the scenario ended.
    """

    trace: Trace
    cast: Cast
    unmet: Unmet | None
    ended: Ended
    model: ScriptedModel
    cwd: Path
    stderr: str
    seconds: float
    overflow: str = ""
    status: int | None = None
    closed: frozenset[str] = frozenset()
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def died(self) -> bool:
        """Whether the server ended, or closed its output, unasked."""
        return self.ended.end is End.EXITED

    @property
    def whole(self) -> bool:
        """Whether the trace came to the end that the scenario wanted."""
        ended_by_us = self.ended.end is End.CLOSED and not self.overflow
        return self.ended.end is End.QUIESCENT or ended_by_us

    @property
    def flooded(self) -> bool:
        """Whether it was still writing when a bound was hit."""
        return bool(self.overflow) or (bool(self.ended.liveness) and not self.ended.outstanding)


@dataclass(frozen=True, slots=True)
class Stage:
    """What a conversation is held with: the connection, the model's side, a private workspace."""

    peer: Peer
    model: ScriptedModel
    cwd: Path
    cast: Cast
    wires: "Wires[_Live]"


@dataclass(slots=True)
class _Live:
    process: ServerProcess
    peer: Peer
    home: Path


class Bench:
    """Plays scenarios against one target. Make it with `open_bench`."""

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
        self.blocked: Finding | None = None
        self.findings: list[Finding] = []
        self._bounds = bounds
        self._book = book
        self._folder = folder
        self._models = models
        self._tasks = tasks
        self._live: _Live | None = None
        self._turns_without_model = 0
        self._renamer = Renamer(profile.names, book.paths_of)

    def blocks(self, loaded: Loaded) -> Finding | None:
        """The set-up finding because of which this scenario need not be tried, if any."""
        finding = self.blocked
        if finding is None or (
            finding.id == "setup.model-not-called" and not _starts_turns(loaded)
        ):
            return None
        return finding

    async def run(self, loaded: Loaded) -> Run:
        """Play one scenario. Raises `SetupFailed` where the server cannot be used at all."""
        scenario = loaded.scenario
        if scenario.fresh:
            await self.retire()
        markers = _markers(loaded)

        async def talk(stage: Stage) -> Unmet | None:
            if not self._offered(scenario.needs):
                return None  # Not applicable, whatever it would do.
            player = Player(
                loaded,
                stage.peer,
                stage.model,
                cast=stage.cast,
                cwd=stage.cwd,
                bounds=self._bounds,
                thread_params=self.profile.thread,
                markers=markers,
                reach=stage.wires,
            )
            return await player.play()

        return await self.converse(
            loaded.id,
            scenario.scripts(),
            talk,
            files=scenario.workspace.files,
            markers=markers,
            strict_model=scenario.strict_model,
        )

    def _offered(self, needs: list[str]) -> bool:
        """Whether a scenario can be tried: what it needs is declared, or to be probed."""
        declared = self.profile.capabilities
        return declared == "probe" or set(needs) <= set(declared)

    async def converse(
        self,
        name: str,
        scripts: Mapping[str, Script],
        talk: Callable[["Stage"], Awaitable[Unmet | None]],
        *,
        files: Mapping[str, str] | None = None,
        markers: Mapping[str, str] | None = None,
        strict_model: bool = False,
    ) -> Run:
        """Hold one conversation: `talk` speaks, then the trace is brought to its end.

        Raises `SetupFailed` where the server cannot be used at all.
        """
        began = time.monotonic()
        recorder, owed = self._recorder(name)
        live = await self._ready(recorder)
        model = ScriptedModel(
            scripts,
            ResponsesEncoder(),
            mark=recorder.mark,
            markers=markers,
            strict=strict_model,
            tools=[ToolRow(**tool.model_dump()) for tool in self.profile.tools],
            outcomes={str(name): texts for name, texts in self.profile.outcomes.items()},
        )
        wires = self._wires(live, recorder, owed)
        stage = Stage(live.peer, model, self._workspace(files or {}), Cast(), wires)
        recorder.mark("place", {"home": str(live.home), "cwd": str(stage.cwd)})
        self._models.serve(model)
        before = live.process.children()
        unmet = await self._bounded(talk, stage)
        if live is not wires.live:
            live, before = wires.live, set[int]()
        await wires.close_further(self._bounds.step)
        model.gates.open_all()
        ending = Ending(
            live.peer,
            model,
            owed,
            bounds=self._bounds,
            barrier=(self.profile.barrier, _barrier_params(stage.cast)),
            children=live.process.children,
            before=before,
        )
        ended = Ended(End.CLOSED) if wires.main_is_closed else await ending.run()
        self._models.serve(None)
        _close_trace(recorder, live.peer, ended, wires.closed)
        run = Run(
            trace=recorder.trace,
            cast=stage.cast,
            unmet=unmet,
            ended=ended,
            model=model,
            cwd=stage.cwd,
            stderr=live.process.stderr_tail(),
            seconds=time.monotonic() - began,
            overflow=live.peer.overflow,
            closed=frozenset(wires.closed),
        )
        if ended.end is End.EXITED:
            run.status = await self._status(live)
        self._watch_model(run)
        self._watch_lines(run)
        await self._watch_children(run, live, before)
        if unmet is not None or ended.end is not End.QUIESCENT:
            await self.retire()
            run.stderr = live.process.stderr_tail()
        return run

    async def _bounded(
        self, talk: Callable[["Stage"], Awaitable[Unmet | None]], stage: "Stage"
    ) -> Unmet | None:
        with anyio.move_on_after(self._bounds.scenario):
            return await talk(stage)
        message = f"the scenario took longer than its bound of {self._bounds.scenario:g} s"
        return Unmet("timeout", "scenario", 1, message)

    def _wires(self, live: _Live, recorder: Recorder, owed: OwedByTheLiving) -> Wires[_Live]:
        async def again(connection: str) -> _Live:
            await self.retire()
            try:
                self._live = await self._start(recorder, home=live.home, connection=connection)
            except SetupFailed as failed:
                # It started before: this is what the restart did, not how the run is set up.
                self.blocked = None
                raise TargetGone(f"after its restart: {failed}") from failed
            return self._live

        async def further() -> Transport:
            process = (self._live or live).process
            try:
                return await process.connect(self._bounds.step)
            except ProfileError as error:
                raise TargetGone(str(error)) from error

        return Wires(
            live,
            recorder,
            owed,
            again=again,
            pump=lambda peer: self._tasks.start_soon(peer.pump),
            open_transport=further if live.process.address else None,
            greet=self._greet,
        )

    def _recorder(self, name: str) -> tuple[Recorder, OwedByTheLiving]:
        recorder = Recorder(self._header(name), renamer=self._renamer, max_frames=MAX_FRAMES)
        owed = OwedByTheLiving()
        recorder.listeners.append(owed.feed)
        recorder.mark_listeners.append(owed.feed_mark)
        return recorder, owed

    async def retire(self) -> None:
        """End the current process, so that the next scenario gets a fresh one."""
        live, self._live = self._live, None
        if live is None:
            return
        ending = await live.process.stop(self._bounds.stop)
        level = Level(self.profile.hygiene)
        if ending.survivors:
            names = ", ".join(ending.survivors)
            message = f"processes of the server outlived it and were killed: {names}"
            self.findings.append(Finding("hygiene.leaked-process", message, level=level))
        if ending.push == "KILL":
            message = (
                f"the server ignored the end of its input and TERM ({self._bounds.stop:g} s each)"
            )
            self.findings.append(Finding("hygiene.ignores-term", message, level=level))

    def _header(self, name: str) -> Header:
        declared = self.profile.capabilities
        return Header(
            target=" ".join(self.profile.command),
            profile=self.profile.name,
            scenario=name,
            spec_revision=self._book.revision,
            names=dict(self.profile.names),
            capabilities=[] if declared == "probe" else list(declared),
        )

    async def _ready(self, recorder: Recorder) -> _Live:
        if self._live is not None and not self._live.peer.inbox.closed:
            self._live.peer.begin(recorder)
            return self._live
        if self._live is not None:
            await self._watch_gone(self._live)
        await self.retire()
        recorder.mark("setup", {"active": True})
        self._live = await self._start(recorder)
        recorder.mark("setup", {"active": False})
        return self._live

    async def _start(
        self, recorder: Recorder, *, home: Path | None = None, connection: str = "c1"
    ) -> _Live:
        """Start the server, over a new home or over the one of a server that ended."""
        try:
            process, home = await launch(
                self.profile, self._folder, self._bounds, model_url=self._models.url, home=home
            )
        except ProfileError as error:
            raise self._failed("setup.not-started", str(error), recorder) from error
        peer = Peer(process.transport, recorder, name=connection)
        live = _Live(process, peer, home)
        self._tasks.start_soon(peer.pump)
        await self._handshake(live, recorder)
        return live

    async def _handshake(self, live: _Live, recorder: Recorder) -> None:
        kind = problem = ""
        try:
            with anyio.fail_after(self._bounds.start):
                await self._greet(live.peer)
        except TargetGone:
            kind = "setup.not-started"
            if live.peer.overflow:
                kind, problem = "setup.no-handshake", f"floods: {live.peer.overflow}, none of it"
            elif (status := await self._status(live)) is None:
                problem = "closed its output"
            else:
                problem = f"ended with exit status {status}"
            problem += " before it answered initialize"
        except TimeoutError:
            problem = f"did not answer initialize within {self._bounds.start:g} s"
            kind = "setup.no-handshake"
        if problem:
            self._live = live
            await self.retire()
            tail = live.process.stderr_tail(600).strip()
            command = " ".join(live.process.command)
            said = f"; the end of its stderr: {tail}" if tail else "; it wrote nothing to stderr"
            raise self._failed(kind, f"the server `{command}` {problem}{said}", recorder)

    async def _greet(self, peer: Peer) -> None:
        """The handshake of one connection, as the profile has it; any answer will do."""
        if self.profile.handshake == "none":
            return
        params: dict[str, Any] = {"clientInfo": CLIENT, **self.profile.initialize}
        await peer.request("initialize", params)
        await peer.notify("initialized")

    async def _status(self, live: _Live) -> int | None:
        """The exit status of a server whose connection is gone; None if it runs on."""
        with anyio.move_on_after(self._bounds.stop):
            await live.process.wait()
        return live.process.returncode

    def _failed(self, kind: str, message: str, recorder: Recorder) -> SetupFailed:
        self.blocked = Finding(kind, message)
        return SetupFailed(self.blocked, recorder.trace)

    def _workspace(self, files: Mapping[str, str]) -> Path:
        cwd = self._folder.fresh("work")
        for name, content in files.items():
            file = cwd / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        return cwd

    def _watch_model(self, run: Run) -> None:
        """One finding, and nothing more to try, when the server never reaches the model."""
        if run.model.calls:
            self._turns_without_model = -1
        elif run.died or run.flooded:
            return  # It had no time to: what ended it is the finding.
        elif run.cast.turns and self._turns_without_model >= 0:
            strays = (
                f"; it asked the model for {self._models.strays[0]}" if self._models.strays else ""
            )
            self.blocked = Finding(
                "setup.model-not-called",
                f"a turn was started and the model at {self._models.url} was never called{strays}; "
                "point the server at it: the profile sets PROVIDER_BASE_URL, OPENAI_BASE_URL and "
                "config.toml, and {model_url} can stand in --server-cmd",
            )
            run.findings.append(self.blocked)

    async def _watch_gone(self, live: _Live) -> None:
        """A server that is gone when the next scenario begins ended after all was judged."""
        status = await self._status(live)
        how = "closed its output" if status is None else f"ended with exit status {status}"
        message = f"the server {how} by itself between two scenarios"
        level = Level(self.profile.hygiene)
        self.findings.append(Finding("hygiene.ended-unasked", message, level=level))

    async def _watch_children(self, run: Run, live: _Live, before: set[int]) -> None:
        """Processes of a conversation that are still there when it is over."""
        if run.ended.end is not End.QUIESCENT:
            return
        names = await live.process.lingering(before, self._bounds.settle)
        if names:
            message = (
                f"processes that {run.trace.header.scenario} started were still running after it: "
                f"{', '.join(names)}"
            )
            level = Level(self.profile.hygiene)
            self.findings.append(Finding("hygiene.process-after-turn", message, level=level))

    def _watch_lines(self, run: Run) -> None:
        """A line over the bound breaks no rule, but its content was not kept: say so."""
        for frame in run.trace.frames:
            if frame.from_target and over_limit(frame.note):
                message = (
                    f"the server wrote {frame.note} and was not kept whole: "
                    f"{frame.text(60)} ({run.trace.header.scenario})"
                )
                level = Level(self.profile.hygiene)
                self.findings.append(Finding("hygiene.long-line", message, level=level))
                return


@asynccontextmanager
async def open_bench(
    profile: Profile, book: Book, *, base: Path, worker: str = "main", scale: float = 1.0
) -> AsyncGenerator[Bench]:
    """A bench for one worker; everything it started is gone when it closes."""
    folder = RunFolder(base, worker)
    try:
        async with model_server() as models, anyio.create_task_group() as tasks:
            bounds = profile.bounds.scaled(scale)
            bench = Bench(profile, bounds, book, folder, models, tasks)
            try:
                yield bench
            finally:
                await bench.retire()
                tasks.cancel_scope.cancel()
    finally:
        folder.close()


def _close_trace(recorder: Recorder, peer: Peer, ended: Ended, closed: set[str]) -> None:
    # Of a connection that we ended nothing is owed; a reader of the file asks for the whole trace.
    recorder.trace.end = End.CLOSED if closed and ended.end is End.QUIESCENT else ended.end
    if peer.transport.partial:
        head = peer.transport.partial[:80].decode("utf-8", "backslashreplace")
        recorder.mark("partial-line", {"head": head, "bytes": len(peer.transport.partial)})


def _starts_turns(loaded: Loaded) -> bool:
    steps = (*loaded.scenario.setup, *loaded.scenario.client)
    return any(isinstance(step, StartTurnStep) for step in steps)


def _markers(loaded: Loaded) -> dict[str, str]:
    """With several scripted threads, a nonce for each thread's first user text."""
    aliases = list(loaded.scenario.scripts())
    if len(aliases) < 2:
        return {}
    return {alias: f"[thread {alias} {zlib.crc32(loaded.id.encode()):08x}]" for alias in aliases}


def _barrier_params(cast: Cast) -> dict[str, object]:
    # Without a thread of its own the barrier names one that does not exist: an error is an answer.
    return {"threadId": next(iter(cast.threads.values()), "thr_0")}
