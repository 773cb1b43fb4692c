"""A worker's server under test: one process for most scenarios, and others for those that need it.

Here: starting one, the handshake, handing it out, retiring it, the set-up findings. Not here: what
is played on it (bench), what it left behind (hygiene).
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from harness.client.peer import Peer
from harness.errors import TargetError, TargetGone, UsageError
from harness.results.outcome import Finding
from harness.runner.greeting import LATE, late, other_id
from harness.runner.hygiene import Hygiene
from harness.runner.process_watch import Watch
from harness.scenario.loader import Loaded
from harness.target.launch import launch
from harness.target.place import RunFolder
from harness.target.process import ProcessExit, ServerProcess
from harness.target.profile import Bounds, Profile
from harness.target.program import NotStarted
from harness.trace.marks import Setup
from harness.trace.recorder import Recorder
from harness.trace.trace import Trace
from harness.transport.base import Transport

CLIENT = {"name": "harness", "title": "Conformance harness", "version": "1"}


class SetupFailed(TargetError):
    """The server cannot be used at all; `finding` says why.

    `listens`: it is silent on its standard output, but waits for connections. `ran`: its program
    began to run.
    """

    def __init__(
        self, finding: Finding, trace: Trace, *, listens: bool = False, ran: bool = True
    ) -> None:
        super().__init__(finding.message)
        self.finding = finding
        self.trace = trace
        self.listens = listens
        self.ran = ran


@dataclass(slots=True)
class RunningServer:
    """A running server, the first connection, its home, its profile, the scenarios it served.

    `watch` sees what the process does beside the protocol. `doubted` is the scenario after which it
    has yet to show that it is still good, "" for none.
    """

    process: ServerProcess
    peer: Peer
    home: Path
    profile: Profile
    watch: Watch
    served: list[Loaded] = field(default_factory=list[Loaded])
    doubted: str = ""


class Servers:
    """Starts and ends the servers of one worker.

    One is spoken to, `current`; another may wait meanwhile (see `apart`). Where a server has to be
    told to listen for several clients to reach it, one that was told so is shared too (see
    `listening`).
    """

    def __init__(
        self,
        profile: Profile,
        bounds: Bounds,
        folder: RunFolder,
        hygiene: Hygiene,
        *,
        model_url: str,
        tasks: TaskGroup,
    ) -> None:
        self.current: RunningServer | None = None
        self.last_ending: ProcessExit | None = None
        self.shares_listening = False
        self.between: Callable[[Transport], Transport] = _nothing_between
        """What stands between a server and the client, on each connection that is opened."""
        self._profile = profile
        self._bounds = bounds
        self._folder = folder
        self._hygiene = hygiene
        self._model_url = model_url
        self._tasks = tasks
        self._waiting: RunningServer | None = None
        self._listening: RunningServer | None = None

    @asynccontextmanager
    async def apart(self) -> AsyncGenerator[None]:
        """Set the shared process aside for the length of the block, which starts one of its own.

        So a scenario that needs its own process does not cost the others theirs. A process that
        was started in the block is ended with it.
        """
        self._waiting, self.current = self.current, None
        try:
            yield
        finally:
            try:
                await self.retire()
            finally:
                self.current, self._waiting = self._waiting, None

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Use the shared process that listens for the length of the block, instead of the other.

        One that is started in the block becomes that process.
        """
        self._waiting, self.current, self._listening = self.current, self._listening, None
        self.shares_listening = True
        try:
            yield
        finally:
            self.shares_listening = False
            self._listening, self.current, self._waiting = self.current, self._waiting, None

    async def alone(self) -> bool:
        """Within `apart`, end the shared processes too; False where there is none."""
        ended = [one for one in (self._waiting, self._listening) if one is not None]
        self._waiting = self._listening = None
        for one in ended:
            await self._end(one)
        return bool(ended)

    async def ready(self, recorder: Recorder, profile: Profile | None = None) -> RunningServer:
        """The running server, or one that is started now. Raises `SetupFailed`.

        A server that was started with a `profile` other than the worker's own must be retired by
        the caller.
        """
        if self.current is not None and not self.current.peer.inbox.closed:
            self.current.watch.conversation_begins()
            self.current.peer.begin(recorder)
            return self.current
        if self.current is not None:
            self._hygiene.ended_unasked(await self.status(self.current))
        await self.retire()
        recorder.mark(Setup(active=True))
        server = await self._start(recorder, profile or self._profile)
        recorder.mark(Setup(active=False))
        return server

    async def again(
        self, recorder: Recorder, connection: str, ended: RunningServer
    ) -> RunningServer:
        """End the server if it runs and start it over the same home. Raises `TargetGone`."""
        await self.retire()
        try:
            return await self._start(
                recorder, ended.profile, home=ended.home, connection=connection
            )
        except SetupFailed as failed:
            # It started before: this is what the restart did, not how the run is set up.
            raise TargetGone(f"after its restart: {failed}") from failed

    async def retire(self) -> None:
        """End the current process, so that the next scenario gets a fresh one."""
        server, self.current = self.current, None
        if server is not None:
            self.last_ending = await self._end(server)

    async def retire_all(self) -> None:
        """End the current process, and the shared one that listens."""
        await self.retire()
        listening, self._listening = self._listening, None
        if listening is not None:
            await self._end(listening)

    async def _end(self, server: RunningServer) -> ProcessExit:
        ending = await server.process.stop(self._bounds.stop)
        server.watch.ended(ending, self._bounds.stop)
        return ending

    async def status(self, server: RunningServer) -> int | None:
        """The exit status of a server whose connection is gone; None if it runs on."""
        with anyio.move_on_after(self._bounds.stop):
            await server.process.wait()
        return server.process.returncode

    def pump(self, peer: Peer) -> None:
        """Receive on a connection until it ends."""
        self._tasks.start_soon(peer.pump)

    async def greet(self, peer: Peer) -> None:
        """The handshake of one connection, as the profile has it; any answer will do."""
        profile = self.current.profile if self.current is not None else self._profile
        if profile.handshake == "none":
            return
        params: dict[str, Any] = {"clientInfo": CLIENT, **profile.initialize}
        await peer.request("initialize", params)
        await peer.notify("initialized")

    async def _start(
        self,
        recorder: Recorder,
        profile: Profile,
        *,
        home: Path | None = None,
        connection: str = "c1",
    ) -> RunningServer:
        """Start the server, over a new home or over the one of a server that ended."""
        try:
            process, home = await launch(
                profile, self._folder, self._bounds, model_url=self._model_url, home=home
            )
        except (TargetError, UsageError) as error:
            finding = Finding("setup.not-started", str(error))
            ran = not isinstance(error, NotStarted)
            raise SetupFailed(finding, recorder.trace, ran=ran) from error
        peer = Peer(self.between(process.transport), recorder, name=connection)
        watch = Watch(process, peer, self._hygiene, profile.panics)
        self.current = server = RunningServer(process, peer, home, profile, watch)
        self.pump(server.peer)
        await self._handshake(server, recorder)
        return server

    async def _handshake(self, server: RunningServer, recorder: Recorder) -> None:
        kind = problem = ""
        places: list[str] = []
        try:
            with anyio.fail_after(self._bounds.start):
                await self.greet(server.peer)
        except TargetGone:
            kind = "setup.not-started"
            if server.peer.overflow:
                kind, problem = "setup.no-handshake", f"floods: {server.peer.overflow}, none of it"
            elif (status := await self.status(server)) is None:
                problem = "closed its output"
            else:
                problem = f"ended with exit status {status}"
            problem += " before it answered initialize"
        except TimeoutError:
            problem = f"did not answer initialize within {self._bounds.start:g} s"
            kind = "setup.no-handshake"
            if not server.process.address and (places := server.process.listening()):
                problem += (
                    f" on its standard output, but listens on {', '.join(places)}; write "
                    "{listen} into its command where it wants that address"
                )
        if problem:
            await self.retire()
            frames = recorder.trace.frames
            if wrong := other_id(frames):
                problem = wrong if kind == "setup.no-handshake" else f"{problem}; it {wrong}"
            elif kind == "setup.no-handshake" and late(frames) is not None:
                problem += f"; {LATE}"
            tail = server.process.stderr_tail(600).strip()
            command = " ".join(server.process.command)
            said = f"; the end of its stderr: {tail}" if tail else "; it wrote nothing to stderr"
            message = f"the server `{command}` {problem}{said}"
            raise SetupFailed(Finding(kind, message), recorder.trace, listens=bool(places))


def _nothing_between(transport: Transport) -> Transport:
    return transport
