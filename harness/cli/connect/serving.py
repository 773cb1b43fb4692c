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
from harness.client.target.place import RunFolder
from harness.client.target.process import ProcessExit, ServerProcess
from harness.client.target.profile import Bounds, Profile, fill
from harness.client.transport.base import Transport
from harness.client.transport.connect import Connection, connect
from harness.client.transport.websocket import HandshakeFailed
from harness.errors import TargetError, TargetGone, UsageError
from harness.model.mcp_desk import McpDesk, mcp_desk
from harness.model.named_pipes import named_pipes
from harness.model.server import ModelServer
from harness.scenario.loader import Loaded
from harness.trace.marks import Closed, Place, ServerEnded

CLIENT = {"name": "harness", "title": "harness connect", "version": "1"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command: a server's command in the profile, or an address.

    `scenario` scripts the model, and gives a server that we start its files, pipes, MCP servers
    and settings; `model_port` is the port of the model, 0 for any free one.
    """

    profile: Profile
    bounds: Bounds
    address: str = ""
    scenario: Loaded | None = None
    model_port: int = 0


@dataclass(slots=True)
class Serving:
    """The server and the connection to it. Make it with `serving`."""

    wanted: Wanted
    talk: Talk
    model: ModelSide
    display: Display
    cwd: Path
    home: Path | None = None
    process: ServerProcess | None = None
    _desk: McpDesk = field(kw_only=True)
    _folder: RunFolder = field(kw_only=True)
    _tasks: TaskGroup = field(kw_only=True)
    _socket: Connection | None = None
    _ending: bool = False
    _begun_with: set[int] = field(default_factory=set[int])

    async def start(self) -> None:
        """Start the server, or connect to it, and shake hands. Raises `TargetError`, `UsageError`.

        After a start over the same home the connection has another name in the trace.
        """
        self._ending = False
        transport = await self._transport()
        peer = Peer(
            transport, self.talk.recorder, name=self.talk.next_connection(), first_id=FIRST_ID
        )
        self.talk.peer = peer
        self.talk.unasked_end = False
        folders = {"cwd": str(self.cwd), "server_cwd": str(Path.cwd())}
        if self.home is not None:
            agent = self.wanted.profile.agent_folder
            self.talk.recorder.mark(Place(home=str(self.home), agent=agent, **folders))
        self._tasks.start_soon(peer.pump)
        self._tasks.start_soon(self._ended, peer)
        if self.wanted.profile.handshake != "none":
            await self._shake_hands(peer)
        if self.process is not None:
            self._begun_with = self.process.children()

    async def _transport(self) -> Transport:
        options = self.wanted
        if options.address:
            self._socket = await _connected(options.address, options.bounds.start)
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
        params: dict[str, Any] = {"clientInfo": CLIENT, **self.wanted.profile.initialize}
        bound = self.wanted.bounds.start
        with contextlib.suppress(TargetGone):  # That it ended is told where it is noticed.
            with anyio.move_on_after(bound) as waited:
                await peer.request("initialize", params)
                await peer.notify("initialized")
            if waited.cancelled_caught:
                words = f"no answer to initialize within {bound:g} s; you may go on by hand"
                self.display.note(words, "red")

    @property
    def working(self) -> bool:
        """Return whether the server has child processes that it did not have in the beginning."""
        return self.process is not None and bool(self.process.children() - self._begun_with)

    async def _ended(self, peer: Peer) -> None:
        """The connection ended, or the trace is full; say so where it was not our doing."""
        await peer.ended.wait()
        if self._ending or peer is not self.talk.peer:
            return
        self.talk.unasked_end = True
        self.talk.notice()
        self.display.note(await self._why_ended(peer), "red")
        for line in self.stderr_lines(8):
            self.display.note(f"  | {line}")

    async def _why_ended(self, peer: Peer) -> str:
        if peer.overflow:
            return f"the server floods: {peer.overflow}; nothing more of it is read"
        if self.process is None:
            return "the server closed the connection"
        with anyio.move_on_after(self.wanted.bounds.stop):
            await self.process.wait()
        if self.process.returncode is None:
            return "the server closed its output, and runs on"
        return f"the server ended with exit status {self.process.returncode}"

    def stderr_lines(self, count: int) -> list[str]:
        """The last lines of the server's standard error."""
        if self.process is None:
            return []
        return [line[:300] for line in self.process.stderr_tail().strip().splitlines()[-count:]]

    async def restart(self) -> None:
        """End the server and start it over the same home, or connect again."""
        peer = self.talk.peer
        await self.stop()
        if peer is not None and not self.talk.unasked_end:
            if self.process is not None:
                self.talk.recorder.mark(ServerEnded(killed=False))
            self.talk.recorder.mark(Closed(peer.name))
        await self.start()

    async def stop(self) -> ProcessExit | None:
        """End the server that we started, or leave the one we connected to."""
        self._ending = True
        if self._socket is not None:
            await self._socket.aclose()
            await self._socket.release()
        return await self.process.stop(self.wanted.bounds.stop) if self.process else None


async def _connected(address: str, bound: float) -> Connection:
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
async def serving(
    wanted: Wanted, judging: Judging, display: Display, base: Path
) -> AsyncGenerator[Serving]:
    """A model and what is needed for a server, which `start` then starts; all of it is ended."""
    folder = RunFolder(base, "connect")
    models: ModelServer | UsageError | None = None
    try:
        # What is raised within a task group comes out of it in a group.
        async with anyio.create_task_group() as tasks:
            models = _model_server(tasks, wanted.model_port)
            if isinstance(models, ModelServer):
                await models.listen(listening=True)
                async with _furnished(wanted, judging, display, models, folder, tasks) as serves:
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
    """The model's server, or why it cannot listen."""
    try:
        return ModelServer(tasks, port=port)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason = "something listens there already; give another port, or 0 for a free one"
        return UsageError(f"--model-port {port}: {reason}")


@asynccontextmanager
async def _furnished(
    wanted: Wanted,
    judging: Judging,
    display: Display,
    models: ModelServer,
    folder: RunFolder,
    tasks: TaskGroup,
) -> AsyncGenerator[Serving]:
    """The conversation, with what its scenario brings: MCP servers that we play, and pipes."""
    # A server that is not ours has its own folders and its own configuration.
    scenario = wanted.scenario.scenario if wanted.scenario and not wanted.address else None
    async with mcp_desk(scenario.mcp if scenario else {}, lambda: folder.new_folder("mcp")) as desk:
        serves = _serving(wanted, judging, display, models, folder, tasks, desk)
        pipes = scenario.workspace.pipes if scenario else []
        awaited_gates = scenario.awaited_gates() if scenario else []
        serves.model.pipes = {pipe: pipe in awaited_gates for pipe in pipes}
        async with named_pipes(serves.cwd, pipes, awaited_gates, serves.model.gates):
            yield serves


def _left_out(loaded: Loaded) -> list[str]:
    """Return the parts of a scenario beside its script, in words."""
    scenario = loaded.scenario
    parts = {
        "files": scenario.workspace.files,
        "pipes": scenario.workspace.pipes,
        "MCP servers": scenario.mcp,
        "config": scenario.config,
    }
    return [name for name, value in parts.items() if value]


def _serving(
    wanted: Wanted,
    judging: Judging,
    display: Display,
    models: ModelServer,
    folder: RunFolder,
    tasks: TaskGroup,
    desk: McpDesk,
) -> Serving:
    cwd = folder.new_folder("work")
    loaded = wanted.scenario
    name = loaded.id if loaded is not None else "connect"
    recorder = judging.recorder(wanted.address or " ".join(wanted.profile.command), name)
    desk.servers.begin(recorder.mark)
    model = ModelSide(models, recorder, wanted.profile, display.note, desk.servers.tools)
    talk = Talk(
        judging,
        recorder,
        shown=display.frame,
        found=display.finding,
        defaults=_defaults(wanted, cwd),
        streams=lambda: model.streams,
    )
    if loaded is not None:
        model.script(loaded.scenario.scripts(), loaded.id)
        stands_for = placeholder_values(wanted.profile, cwd)
        files = loaded.scenario.workspace.contents(loaded.path.parent)
        for path, data in files.items():
            file = cwd / fill(path, stands_for)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        left_out = _left_out(loaded) if wanted.address else []
        if left_out:
            words = (
                f"the {', '.join(left_out)} of {loaded.id} are left out: a server that we did not"
            )
            display.note(f"{words} start has its own; the model plays the script", "yellow")
    return Serving(wanted, talk, model, display, cwd, _desk=desk, _folder=folder, _tasks=tasks)


def _defaults(wanted: Wanted, cwd: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return default params of requests: a thread works in a folder of ours."""
    if wanted.address:
        return {}
    settings: dict[str, Any] = {}
    if wanted.scenario is not None:
        settings = wanted.scenario.scenario.settings.model_dump(exclude_none=True)
    return {"thread/start": {"cwd": str(cwd), **wanted.profile.thread, **settings}}
