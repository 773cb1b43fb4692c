"""A worker's servers under test: one process for each kind of settings that scenarios ask for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from harness.client.peer import Peer
from harness.client.target.launch import launch
from harness.client.target.place import RunFolder
from harness.client.target.process import ProcessExit, ServerProcess
from harness.client.target.profile import Bounds, Profile
from harness.client.target.program import NotStarted
from harness.client.transport.base import Transport
from harness.errors import TargetError, TargetGone, UsageError
from harness.play.hygiene import Hygiene
from harness.play.session.greeting import LATE, late, other_id
from harness.play.session.process_watch import Watch
from harness.report.results.outcome import Finding
from harness.report.results.starts import ServerStart, StartReason
from harness.scenario.loader import Loaded
from harness.trace.marks import Setup
from harness.trace.recorder import Recorder
from harness.trace.trace import Trace

# Beside the plain one and one that listens, of those with a configuration of their own.
MAX_WAITING = 2
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

    Those that an earlier process over the same home served are among them. `watch` sees what the
    process does beside the protocol. `doubted` is the scenario after which it has yet to show that
    it is still good, "" for none.
    """

    process: ServerProcess
    peer: Peer
    home: Path
    profile: Profile
    watch: Watch
    served: list[Loaded] = field(default_factory=list[Loaded])
    doubted: str = ""

    def follow(self, peer: Peer) -> None:
        """Take another connection for the first one, which was closed."""
        self.peer = peer
        self.watch.follow(peer)


class Servers:
    """Starts and ends the servers of one worker.

    One is spoken to, `current`; others, with other settings, wait meanwhile. `starts` says why each
    was started.
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
        self.starts: list[ServerStart] = []
        self.between: Callable[[Transport], Transport] = _nothing_between
        """What stands between a server and the client, on each connection that is opened."""
        self._profile = profile
        self._bounds = bounds
        self._folder = folder
        self._hygiene = hygiene
        self._model_url = model_url
        self._tasks = tasks
        self._waiting: list[RunningServer] = []
        self._alone = False
        self._ended: list[tuple[Profile, StartReason]] = []

    async def select(self, profile: Profile | None) -> RunningServer | None:
        """Make the process with these settings the current one, or none; the others wait.

        Of those with a configuration of their own the last two may wait.
        """
        if self.current is not None:
            self._waiting.append(self.current)
        self.current = next((one for one in self._waiting if one.profile == profile), None)
        if self.current is not None:
            self._waiting.remove(self.current)
        configured = [one for one in self._waiting if one.profile.home != self._profile.home]
        for one in self._waiting[:] if self._alone else configured[:-MAX_WAITING]:
            self._waiting.remove(one)
            await self._end(one, StartReason.MADE_ROOM)
        return self.current

    async def run_alone(self) -> bool:
        """End all processes and never let two run at a time; False if none but `current` ran."""
        self._alone, waiting = True, len(self._waiting)
        await self.select(self.current.profile if self.current is not None else None)
        return waiting > 0

    async def ready(
        self,
        recorder: Recorder,
        profile: Profile | None = None,
        *,
        fresh: bool = False,
        reason: StartReason = StartReason.FIRST,
    ) -> RunningServer:
        """Return the running server with these settings, or one that is started now.

        With `fresh` one is started in any case, which the caller must retire. `reason` is why one
        is started if there never was one with these settings. Raises `SetupFailed`.
        """
        profile = profile or self._profile
        await self.select(None if fresh else profile)
        if self.current is not None and not self.current.peer.inbox.closed:
            self.current.watch.conversation_begins()
            self.current.peer.begin(recorder)
            return self.current
        if self.current is not None:
            self._hygiene.add_unasked_end(await self.status(self.current))
        await self.retire(StartReason.EXITED)
        recorder.mark(Setup(active=True))
        why = reason if fresh else self._why_gone(profile, reason)
        server = await self._start(recorder, profile, why)
        recorder.mark(Setup(active=False))
        return server

    def _why_gone(self, profile: Profile, reason: StartReason) -> StartReason:
        """Return why the last process with these settings was ended; `reason` if there was none."""
        for number, (ended, why) in enumerate(self._ended):
            if ended == profile:
                del self._ended[number]
                return why
        return reason

    async def again(
        self, recorder: Recorder, connection: str, ended: RunningServer
    ) -> RunningServer:
        """End the server if it runs and start it over the same home. Raises `TargetGone`."""
        ran = self.current is not None and self.current.process.returncode is None
        await self.retire()
        try:
            server = await self._start(
                recorder,
                ended.profile,
                StartReason.RESTART if ran else StartReason.KILLED,
                home=ended.home,
                connection=connection,
            )
        except SetupFailed as failed:
            # It started before: this is what the restart did, not how the run is set up.
            raise TargetGone(f"after its restart: {failed}") from failed
        server.served += ended.served
        return server

    async def retire(self, reason: StartReason | None = StartReason.FAILED) -> None:
        """End the current process; `reason` is why others need a new one, None if they do not."""
        server, self.current = self.current, None
        if server is not None:
            self.last_ending = await self._end(server, reason)

    async def retire_all(self) -> None:
        """End the current process, and those that wait."""
        await self.retire()
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            await self._end(one, StartReason.FAILED)

    async def _end(self, server: RunningServer, reason: StartReason | None) -> ProcessExit:
        if reason is not None:
            self._ended = [one for one in self._ended if one[0] != server.profile]
            self._ended.append((server.profile, reason))
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
        reason: StartReason,
        *,
        home: Path | None = None,
        connection: str = "c1",
    ) -> RunningServer:
        """Start the server, over a new home or over the one of a server that ended."""
        self.starts.append(ServerStart(reason, recorder.trace.header.scenario))
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
            if not server.process.address and (places := server.process.listening_addresses()):
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
