"""The server, the model and the connection behind a conversation by hand."""

import contextlib
import errno
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from harness.cli.connect.display import Display
from harness.cli.connect.model_side import ModelSide
from harness.cli.connect.talk import FIRST_ID, Judging, Talk
from harness.client.peer import Peer
from harness.client.target.launch import launch
from harness.client.target.overrides import merge_tables, placeholder_values, with_overrides
from harness.client.target.process import ProcessExit, ServerProcess
from harness.client.target.profile import Bounds, Profile, fill
from harness.client.target.run_folders import RunFolder
from harness.client.transport.base import Transport
from harness.client.transport.connect import Connection, connect
from harness.client.transport.websocket import HandshakeFailed
from harness.errors import TargetError, TargetGone, UsageError
from harness.model.mcp_hosting import McpSettings, serve_mcp_servers
from harness.model.named_pipes import named_pipes
from harness.model.server import ModelServer
from harness.scenario.loader import Loaded
from harness.scenario.workspace import furnish_workspace
from harness.trace.marks import Closed, Place, ServerEnded

CLIENT = {"name": "harness", "title": "harness connect", "version": "1"}


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """Options of the command: a server's command in the profile, or an address.

    `scenario` scripts the model, and gives a server that we start its files, pipes, MCP servers
    and settings; `model_port` is the port of the model, 0 for any free one.
    """

    profile: Profile
    bounds: Bounds
    address: str = ""
    scenario: Loaded | None = None
    model_port: int = 0


@dataclass(slots=True)
class LiveServer:
    """The server and the connection to it. Made by `open_live_server`."""

    options: ConnectOptions
    talk: Talk
    model: ModelSide
    display: Display
    cwd: Path
    home: Path | None = None
    process: ServerProcess | None = None
    _desk: McpSettings = field(kw_only=True)
    _folder: RunFolder = field(kw_only=True)
    _tasks: TaskGroup = field(kw_only=True)
    _socket: Connection | None = None
    _ending: bool = False
    _first_children: set[int] = field(default_factory=set[int])

    async def start(self) -> None:
        """Start the server, or connect to it, and send initialize, unless the profile has none.

        Each start has a new connection name in the trace. Raises `UsageError` if the server cannot
        be started, `TargetError` if it cannot be reached.
        """
        self._ending = False
        transport = await self._transport()
        peer = Peer(
            transport, self.talk.recorder, name=self.talk.next_connection(), first_id=FIRST_ID
        )
        self.talk.peer = peer
        self.talk.ended_unasked = False
        folders = {"cwd": str(self.cwd), "server_cwd": str(Path.cwd())}
        if self.home is not None:
            agent = self.options.profile.agent_folder
            self.talk.recorder.mark(Place(home=str(self.home), agent=agent, **folders))
        self._tasks.start_soon(peer.pump)
        self._tasks.start_soon(self._watch_end, peer)
        if self.options.profile.handshake != "none":
            await self._shake_hands(peer)
        if self.process is not None:
            self._first_children = self.process.children()

    async def _transport(self) -> Transport:
        options = self.options
        if options.address:
            self._socket = await _connect(options.address, options.bounds.start)
            return self._socket
        loaded = options.scenario
        scenario = loaded.scenario if loaded is not None else None
        beside = loaded.path.parent.resolve() if loaded is not None else None
        profile = with_overrides(
            options.profile,
            config=merge_tables(scenario.config if scenario is not None else {}, self._desk.config),
            placeholders=placeholder_values(options.profile, self.cwd, scenario_folder=beside),
            several=False,
            env=self._desk.env,
        )
        self.process, self.home = await launch(
            profile, self._folder, options.bounds, model_url=self.model.url, home=self.home
        )
        return self.process.transport

    async def _shake_hands(self, peer: Peer) -> None:
        params: dict[str, Any] = {"clientInfo": CLIENT, **self.options.profile.initialize}
        bound = self.options.bounds.start
        with contextlib.suppress(TargetGone):  # `_watch_end` reports it.
            with anyio.move_on_after(bound) as waited:
                await peer.request("initialize", params)
                await peer.notify("initialized")
            if waited.cancelled_caught:
                words = f"no answer to initialize within {bound:g} s; you may go on by hand"
                self.display.note(words, "red")

    @property
    def has_new_children(self) -> bool:
        """Return whether the server has child processes that it did not start with."""
        return self.process is not None and bool(self.process.children() - self._first_children)

    async def _watch_end(self, peer: Peer) -> None:
        """Show that the connection ended, or the trace is full, unless we ended it."""
        await peer.ended.wait()
        if self._ending or peer is not self.talk.peer:
            return
        self.talk.ended_unasked = True
        self.talk.wake_waiters()
        self.display.note(await self._end_reason(peer), "red")
        for line in self.stderr_lines(8):
            self.display.note(f"  | {line}")

    async def _end_reason(self, peer: Peer) -> str:
        if peer.overflow:
            return f"the server floods: {peer.overflow}; nothing more of it is read"
        if self.process is None:
            return "the server closed the connection"
        with anyio.move_on_after(self.options.bounds.stop):
            await self.process.wait()
        if self.process.returncode is None:
            return "the server closed its output, and runs on"
        return f"the server ended with exit status {self.process.returncode}"

    def stderr_lines(self, count: int) -> list[str]:
        """Return the last lines of the server's standard error; [] if we did not start it."""
        if self.process is None:
            return []
        return [line[:300] for line in self.process.stderr_tail().strip().splitlines()[-count:]]

    async def restart(self) -> None:
        """End the server and start it over the same home, or connect again."""
        peer = self.talk.peer
        await self.stop()
        if peer is not None and not self.talk.ended_unasked:
            if self.process is not None:
                self.talk.recorder.mark(ServerEnded(killed=False))
            self.talk.recorder.mark(Closed(peer.name))
        await self.start()

    async def stop(self) -> ProcessExit | None:
        """End the server that we started and return its exit, or disconnect and return None."""
        self._ending = True
        if self._socket is not None:
            await self._socket.aclose()
            await self._socket.release()
        return await self.process.stop(self.options.bounds.stop) if self.process else None


async def _connect(address: str, bound: float) -> Connection:
    try:
        with anyio.fail_after(bound):
            return await connect(address)
    except TimeoutError:
        raise TargetError(f"{address}: no answer within {bound:g} s") from None
    except HandshakeFailed as error:
        raise TargetError(f"what listens at {address} is no such server: {error}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise TargetError(
            f"nothing can be reached at {address} ({reason}); start the server first, or give its "
            "command by --server-cmd"
        ) from error


@asynccontextmanager
async def open_live_server(
    options: ConnectOptions, judging: Judging, display: Display, base: Path
) -> AsyncGenerator[LiveServer]:
    """Yield a server, not started yet, with its model; end both. `UsageError` for a taken port."""
    folder = RunFolder(base, "connect")
    models: ModelServer | UsageError | None = None
    try:
        # An exception raised within a task group would come out as a group.
        async with anyio.create_task_group() as tasks:
            models = _model_server(tasks, options.model_port)
            if isinstance(models, ModelServer):
                await models.listen(listening=True)
                async with _open_conversation(
                    options, judging, display, models, folder, tasks
                ) as serves:
                    try:
                        yield serves
                    finally:
                        with anyio.CancelScope(shield=True):
                            await serves.stop()
                            await models.close()
                        tasks.cancel_scope.cancel()
        if isinstance(models, UsageError):
            raise models
    finally:
        folder.close()


def _model_server(tasks: TaskGroup, port: int) -> ModelServer | UsageError:
    """Return the model's server, or the error why it cannot listen."""
    try:
        return ModelServer(tasks, port=port)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason = "something listens there already; give another port, or 0 for a free one"
        return UsageError(f"--model-port {port}: {reason}")


@asynccontextmanager
async def _open_conversation(
    options: ConnectOptions,
    judging: Judging,
    display: Display,
    models: ModelServer,
    folder: RunFolder,
    tasks: TaskGroup,
) -> AsyncGenerator[LiveServer]:
    """Yield the server; if we start it, with the MCP servers and pipes of the scenario."""
    # A server that we did not start has its own folders and configuration.
    scenario = options.scenario.scenario if options.scenario and not options.address else None
    async with serve_mcp_servers(
        scenario.mcp if scenario else {}, lambda: folder.new_folder("mcp")
    ) as desk:
        serves = _build_live_server(options, judging, display, models, folder, tasks, desk)
        pipes = scenario.workspace.pipes if scenario else []
        awaited_gates = scenario.awaited_gates() if scenario else []
        serves.model.pipes = {pipe: pipe in awaited_gates for pipe in pipes}
        async with named_pipes(serves.cwd, pipes, awaited_gates, serves.model.gates):
            yield serves


def _left_out(loaded: Loaded) -> list[str]:
    """Return the scenario's parts that a server at an address does not get."""
    scenario = loaded.scenario
    parts = {
        "files": scenario.workspace.files,
        "pipes": scenario.workspace.pipes,
        "MCP servers": scenario.mcp,
        "config": scenario.config,
    }
    return [name for name, value in parts.items() if value]


def _build_live_server(
    options: ConnectOptions,
    judging: Judging,
    display: Display,
    models: ModelServer,
    folder: RunFolder,
    tasks: TaskGroup,
    desk: McpSettings,
) -> LiveServer:
    cwd = folder.new_folder("work")
    loaded = options.scenario
    name = loaded.id if loaded is not None else "connect"
    recorder = judging.recorder(options.address or " ".join(options.profile.command), name)
    desk.servers.begin(recorder.mark)
    model = ModelSide(models, recorder, options.profile, display.note, desk.servers.tools)
    talk = Talk(
        judging,
        recorder,
        on_frame=display.show_frame,
        on_finding=display.show_finding,
        defaults=_defaults(options, cwd),
        streams=lambda: model.streams,
    )
    if loaded is not None:
        model.script(loaded.scenario.scripts(), loaded.id)
        stands_for = placeholder_values(options.profile, cwd)
        files = loaded.scenario.workspace.contents(loaded.path.parent)
        furnish_workspace(cwd, files, lambda name: fill(name, stands_for))
        left_out = _left_out(loaded) if options.address else []
        if left_out:
            words = (
                f"the {', '.join(left_out)} of {loaded.id} are left out: a server that we did not"
            )
            display.note(f"{words} start has its own; the model plays the script", "yellow")
    return LiveServer(options, talk, model, display, cwd, _desk=desk, _folder=folder, _tasks=tasks)


def _defaults(options: ConnectOptions, cwd: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return method -> default params: a thread's folder and settings; {} with an address."""
    if options.address:
        return {}
    settings: dict[str, Any] = {}
    if options.scenario is not None:
        settings = options.scenario.scenario.settings.model_dump(exclude_none=True)
    return {"thread/start": {"cwd": str(cwd), **options.profile.thread, **settings}}
