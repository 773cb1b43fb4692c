"""One conversation with a server, as a block at whose end the trace is completed."""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from harness.client.peer import Peer
from harness.client.target.overrides import merge_tables, placeholder_values, with_overrides
from harness.client.target.profile import Bounds, Profile, fill
from harness.client.target.run_folders import RunFolder
from harness.client.transport.base import Transport
from harness.errors import TargetError, TargetGone
from harness.model.mcp_hosting import McpSettings, serve_mcp_servers
from harness.model.mcp_script import McpServer
from harness.model.model import ScriptedModel
from harness.model.named_pipes import named_pipes
from harness.model.script import Script
from harness.model.server import ModelServer
from harness.model.tools import ToolRow
from harness.model.wire.responses import ResponsesEncoder
from harness.play.hygiene import Hygiene
from harness.play.late_messages import LateMessages
from harness.play.run import Run
from harness.play.scenario_faults import ActiveFaults
from harness.play.session.connections import ConnectionManager
from harness.play.session.conversation_context import ConversationContext
from harness.play.session.servers import RunningServer, Servers
from harness.play.session.stderr_times import StderrTimes
from harness.play.session.unfinished_turns import may_still_run
from harness.play.trace_header import header_members
from harness.protocol.spec.book import Book
from harness.report.results.server_starts import StartReason
from harness.scenario.ending import TraceEnding, TraceFinisher
from harness.scenario.faults import FaultEntry
from harness.scenario.home_files import written_file_mark
from harness.scenario.loader import Loaded
from harness.scenario.player import STEP_ERRORS, Cast, StepFailure
from harness.scenario.workspace import WorkspaceFile, furnish_workspace
from harness.trace.connection_ledgers import ConnectionLedgers
from harness.trace.marks import PartialLine, Place
from harness.trace.names import Renamer
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header, Trace

# A conversation needs at most a few thousand messages; beyond this a server floods.
MAX_FRAMES = 100_000


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of a conversation beyond the model's scripts and the profile.

    `files` of the workspace (path -> file), its `pipes` and the `awaited_gates` among them (see
    `named_pipes`), a `fresh` process, `config` of the home, which may name files of the
    `scenario_folder`, `mcp` servers that the harness plays, more than one connection, `faults`
    between it and each connection; `markers` and `strict_model` for the model. `header_members` is
    all this in the form of the trace's header.
    """

    files: Mapping[str, WorkspaceFile] = field(default_factory=dict[str, WorkspaceFile])
    pipes: Sequence[str] = ()
    awaited_gates: Sequence[str] = ()
    fresh: bool = False
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    scenario_folder: Path | None = None
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    several_clients: bool = False
    client_name: str | None = None
    faults: Sequence[FaultEntry] = ()
    markers: Mapping[str, str] | None = None
    strict_model: bool = False
    header_members: Mapping[str, Any] = field(default_factory=dict[str, Any])


def needs_of(loaded: Loaded) -> Needs:
    """Return the requirements of a scenario's conversation."""
    scenario = loaded.scenario
    return Needs(
        files=scenario.workspace.contents(loaded.path.parent),
        pipes=scenario.workspace.pipes,
        awaited_gates=scenario.awaited_gates(),
        fresh=scenario.needs_fresh_server,
        config=scenario.config,
        scenario_folder=loaded.path.parent.resolve(),
        mcp=scenario.mcp,
        several_clients=scenario.has_several_clients,
        client_name=scenario.client_name,
        faults=scenario.faults,
        markers=loaded.thread_markers(),
        strict_model=scenario.strict_model,
        header_members=header_members(loaded),
    )


class Conversations:
    """Conversations with the server of one worker, one after the other."""

    def __init__(
        self,
        profile: Profile,
        bounds: Bounds,
        book: Book,
        folder: RunFolder,
        models: ModelServer,
        servers: Servers,
        hygiene: Hygiene,
    ) -> None:
        self._profile = profile
        self._bounds = bounds
        self._book = book
        self._folder = folder
        self._models = models
        self._servers = servers
        self._hygiene = hygiene
        self._renamer = Renamer(profile.names, book.paths_of)
        self._late_messages = LateMessages(book, profile)
        self.on_recorder: Callable[[str, Recorder], None] | None = None
        """Called with the name and the recorder of each conversation that begins."""

    @asynccontextmanager
    async def open(
        self,
        name: str,
        scripts: Mapping[str, Script],
        *,
        needs: Needs | None = None,
        ending: Bounds | None = None,
    ) -> AsyncGenerator[ConversationContext]:
        """Hold one conversation for the length of the block, then bring its trace to its end.

        `ending` replaces the profile's bounds at the end. An exception in `STEP_ERRORS` that leaves
        the block becomes `unmet` of the conversation and of its run; after any other exception the
        trace is not ended, and the process is ended. Raises `SetupFailed` if the server cannot be
        used at all.
        """
        needs = needs or Needs()
        async with (
            serve_mcp_servers(needs.mcp, lambda: self._folder.new_folder("mcp")) as desk,
            self._open_with_desk(name, scripts, needs, desk, ending) as stage,
        ):
            yield stage

    @asynccontextmanager
    async def _open_with_desk(
        self,
        name: str,
        scripts: Mapping[str, Script],
        needs: Needs,
        desk: McpSettings,
        ending: Bounds | None,
    ) -> AsyncGenerator[ConversationContext]:
        """Hold the conversation while the MCP servers of the play are running."""
        began = time.monotonic()
        recorder, owed = self._make_recorder(name)
        recorder.trace.header.faults = bool(needs.faults)
        recorder.trace.header.given = dict(needs.header_members)
        desk.servers.begin(recorder.mark)
        cwd = self._folder.new_folder("work")
        stands_for = placeholder_values(self._profile, cwd)
        files = {fill(name, stands_for): file for name, file in needs.files.items()}
        furnish_workspace(cwd, files)
        profile = self._profile_for(needs, cwd, desk)
        at_work = ActiveFaults(needs.faults, quiet=self._bounds.settle)
        between = self._servers.wrap_transport
        if needs.faults:
            self._servers.wrap_transport = lambda transport: between(at_work.wrap(transport))
        try:
            server = await self._servers.acquire(
                recorder, profile, fresh=needs.fresh, reason=_start_reason(needs)
            )
        except BaseException:
            self._servers.wrap_transport = between
            raise
        if needs.faults:
            await at_work.begin()
        model = self._make_model(scripts, recorder, needs)
        model.watch_tools(desk.servers.tools)
        connections = self._make_connections(server, recorder)
        stderr_times = StderrTimes(
            recorder, lambda: connections.server.process, server.watch.stderr_offset
        )
        stage = ConversationContext(recorder, model, cwd, connections, self._bounds)
        agent = profile.agent_folder
        folders = {"home": str(server.home), "cwd": str(cwd), "server_cwd": str(Path.cwd())}
        recorder.mark(Place(**folders, agent=agent))
        # The server reads the files in the agent's folder by itself, so rules must know them.
        for own in (name for name in files if f"/{agent}/" in f"/{name}"):
            mark = written_file_mark(str(cwd / own), files[own].content)
            recorder.mark(mark)
            model.watch(mark)
        self._models.set_model(model)
        before = server.process.children()
        try:
            async with named_pipes(cwd, needs.pipes, needs.awaited_gates, model.gates):
                try:
                    yield stage
                except STEP_ERRORS as error:
                    stage.unmet = StepFailure.from_exception(error, "conversation")
                await self._models.listen(listening=True)
                server = connections.server
                before = connections.children_of_no_turn(before)
                ended = await self._finish_trace(stage, owed, ending or self._bounds, before)
        except Exception:
            await self._servers.retire()
            raise
        finally:
            self._models.set_model(None)
            self._servers.wrap_transport = between
        run = Run(
            trace=_complete_trace(recorder, server.peer, ended),
            cast=stage.cast,
            unmet=stage.unmet,
            ending=ended,
            model=model,
            cwd=cwd,
            stderr=server.process.stderr_tail(),
            seconds=time.monotonic() - began,
            bound=self._bounds.scenario,
            overflow=connections.overflow,
            idle_faults=at_work.idle_faults(),
        )
        run.rows = self._late_messages.rows_of(run.trace)
        if ended.end is End.EXITED:
            run.status = await self._servers.exit_status(server)
        await self._release(run, name, server, before, needs)
        run.trace.stderr = stderr_times.lines(run.trace)
        stage.finish(run)

    async def _finish_trace(
        self, stage: ConversationContext, owed: ConnectionLedgers, bounds: Bounds, before: set[int]
    ) -> TraceEnding:
        """Bring the trace to its end; `before` are the processes that no turn has started."""
        connections = stage.connections
        peers = connections.open_peers
        if not peers:
            stage.model.gates.open_all()
            return TraceEnding(End.CLOSED)
        server = connections.server
        barrier = (self._profile.barrier, _barrier_params(stage.cast))
        finisher = TraceFinisher(
            peers,
            stage.model,
            owed,
            bounds=bounds,
            barrier=barrier,
            children=server.process.children,
            initial_children=before,
            main_is_open=not connections.is_main_closed,
            expected=self._late_messages,
        )
        ended = await finisher.run()
        closed_any = await connections.close_extra(self._bounds.step)
        if closed_any and ended.end is End.QUIESCENT and not connections.is_main_closed:
            # Messages about the closed connections must not reach the next conversation.
            with anyio.move_on_after(self._bounds.step), suppress(TargetGone):
                await server.peer.request(*barrier)
        return ended

    async def _release(
        self, run: Run, name: str, server: RunningServer, before: set[int], needs: Needs
    ) -> None:
        """Check the server's side effects, and end the process if others cannot use it."""
        self._hygiene.check_line_lengths(run.trace)
        server.watch.on_conversation_end(run.trace, died=run.has_died)
        # Processes of a conversation's own configuration may live as long as the server does.
        plain = not (needs.fresh or needs.config or needs.mcp)
        if run.ending.end is End.QUIESCENT and plain:
            lingering = await server.process.lingering_children(before, self._bounds.settle)
            self._hygiene.add_lingering(name, lingering)
        reason, shared = _unusable_reason(run, server), self.can_share(needs)
        if reason is not None or not shared:
            await self._servers.retire(reason if shared else None)
            run.stderr = server.process.stderr_tail()

    def shared_profile(self, needs: Needs) -> Profile | None:
        """Return the profile of the process that a conversation can share; None if it cannot."""
        return self._profile_for(needs, Path("{cwd}")) if self.can_share(needs) else None

    def can_share(self, needs: Needs) -> bool:
        """Return whether other conversations may use the process before and after."""
        own = needs.fresh or needs.mcp or needs.faults
        return not own and "{cwd}" not in repr(needs.config)

    def _profile_for(self, needs: Needs, cwd: Path, desk: McpSettings | None = None) -> Profile:
        """Return the profile adapted to a conversation's requirements."""
        return with_overrides(
            self._profile,
            config=merge_tables(needs.config, desk.config if desk is not None else {}),
            placeholders=placeholder_values(
                self._profile, cwd, scenario_folder=needs.scenario_folder
            ),
            several=needs.several_clients,
            env=desk.env if desk is not None else {},
            client_name=needs.client_name,
        )

    def _make_model(
        self, scripts: Mapping[str, Script], recorder: Recorder, needs: Needs
    ) -> ScriptedModel:
        profile = self._profile
        return ScriptedModel(
            scripts,
            ResponsesEncoder(),
            mark=recorder.mark,
            markers=needs.markers,
            strict=needs.strict_model,
            tools=[ToolRow(**tool.row()) for tool in profile.tools],
            outcomes={str(name): texts for name, texts in profile.outcomes.items()},
            loose=profile.capabilities == "probe",
        )

    def _make_connections(self, server: RunningServer, recorder: Recorder) -> ConnectionManager:
        servers = self._servers

        async def restart_server(connection: str) -> RunningServer:
            return await servers.restart(recorder, connection, server)

        async def open_transport() -> Transport:
            process = (servers.current or server).process
            try:
                return servers.wrap_transport(await process.connect(self._bounds.step))
            except TargetError as error:
                raise TargetGone(str(error)) from error

        return ConnectionManager(
            server,
            recorder,
            restart_server=restart_server,
            pump=servers.pump,
            open_transport=open_transport if server.process.address else None,
            greet=servers.greet,
            model=self._models.listen,
        )

    def _make_recorder(self, name: str) -> tuple[Recorder, ConnectionLedgers]:
        recorder = Recorder(self._header(name), renamer=self._renamer, max_frames=MAX_FRAMES)
        owed = ConnectionLedgers()
        recorder.listeners.append(owed.feed)
        recorder.mark_listeners.append(owed.feed_mark)
        if self.on_recorder is not None:
            self.on_recorder(name, recorder)
        return recorder, owed

    def _header(self, name: str) -> Header:
        declared = self._profile.capabilities
        return Header(
            target=" ".join(self._profile.command),
            profile=self._profile.name,
            scenario=name,
            spec_revision=self._book.revision,
            names=dict(self._profile.names),
            capabilities=[] if declared == "probe" else list(declared),
        )


def _start_reason(needs: Needs) -> StartReason:
    """Return why a process is started if no process has these settings."""
    reasons = {
        StartReason.FAULTS: needs.faults,
        StartReason.MCP_SERVERS: needs.mcp,
        StartReason.CLIENT_NAME: needs.client_name,
        StartReason.FRESH: needs.fresh,
        StartReason.CONFIG: needs.config,
        StartReason.LISTENER: needs.several_clients,
    }
    return next((reason for reason, applies in reasons.items() if applies), StartReason.FIRST)


def _unusable_reason(run: Run, server: RunningServer) -> StartReason | None:
    """Return why no other conversation can use the process, None if others can."""
    if run.ending.end is End.CLOSED:
        return StartReason.CONNECTION_CLOSED
    if run.has_died or server.peer.inbox.closed:
        return StartReason.EXITED
    if run.unmet is not None or run.ending.end is not End.QUIESCENT:
        return StartReason.FAILED
    return StartReason.TURN_MAY_RUN if may_still_run(run.trace) else None


def _complete_trace(recorder: Recorder, peer: Peer, ended: TraceEnding) -> Trace:
    """Return a copy of the trace to judge, without messages that arrive at the shutdown."""
    recorder.trace.end = ended.end
    if peer.transport.partial:
        head = peer.transport.partial[:80].decode("utf-8", "backslashreplace")
        recorder.mark(PartialLine(head, len(peer.transport.partial)))
    return recorder.take_snapshot()


def _barrier_params(cast: Cast) -> dict[str, object]:
    # Without a thread the barrier names one that does not exist: an error is an answer, too.
    return {"threadId": next(iter(cast.threads.values()), "thr_0")}
