"""Processes of the server under test for one worker, one for each kind of settings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from harness.client.peer import Peer
from harness.client.target.launch import launch
from harness.client.target.process import ProcessExit, ServerProcess, describe_environment
from harness.client.target.profile import Bounds, Profile
from harness.client.target.program import NotStarted
from harness.client.target.run_folders import RunFolder
from harness.client.transport.base import Transport
from harness.errors import TargetError, TargetGone, UsageError
from harness.play.hygiene import Hygiene
from harness.play.session.initialize_answers import LATE_ANSWER_HINT, describe_other_id, late_answer
from harness.play.session.process_watch import ProcessWatch
from harness.report.results.outcome import Finding
from harness.report.results.server_starts import ServerStart, StartReason
from harness.scenario.loader import Loaded
from harness.trace.marks import Setup
from harness.trace.recorder import Recorder
from harness.trace.trace import Trace

# Idle processes with a configuration of their own, beside the plain one and one that listens.
MAX_WAITING = 2
CLIENT = {"name": "harness", "title": "Conformance harness", "version": "1"}


class SetupFailed(TargetError):
    """Error: the server cannot be used at all; `finding` says why.

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
    """A running server: process, first connection, home, profile, and the scenarios it served.

    Those that an earlier process over the same home served are among them. `watch` checks the side
    effects of the process. `unproven_after` is the scenario after which it has yet to show that it
    still works, "" for none.
    """

    process: ServerProcess
    peer: Peer
    home: Path
    profile: Profile
    watch: ProcessWatch
    served_scenarios: list[Loaded] = field(default_factory=list[Loaded])
    unproven_after: str = ""

    def follow(self, peer: Peer) -> None:
        """Use another connection in place of the first one, which was closed."""
        self.peer = peer
        self.watch.follow(peer)


class Servers:
    """Server processes of one worker.

    One is in use, `current`; idle ones have other settings. `starts` has the reason of each start.
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
        self.last_exit: ProcessExit | None = None
        self.starts: list[ServerStart] = []
        self.wrap_transport: Callable[[Transport], Transport] = _pass_through
        """Function that wraps the transport of each new connection."""
        self._profile = profile
        self._bounds = bounds
        self._folder = folder
        self._hygiene = hygiene
        self._model_url = model_url
        self._tasks = tasks
        self._waiting: list[RunningServer] = []
        self._one_at_a_time = False
        self._end_reasons: list[tuple[Profile, StartReason]] = []

    async def select(self, profile: Profile | None) -> RunningServer | None:
        """Make the process with these settings the current one and return it, or None.

        The others stay idle, at most two of them with a configuration of their own.
        """
        if self.current is not None:
            self._waiting.append(self.current)
        self.current = next((server for server in self._waiting if server.profile == profile), None)
        if self.current is not None:
            self._waiting.remove(self.current)
        configured = [
            server for server in self._waiting if server.profile.home != self._profile.home
        ]
        for server in self._waiting[:] if self._one_at_a_time else configured[:-MAX_WAITING]:
            self._waiting.remove(server)
            await self._end(server, StartReason.MADE_ROOM)
        return self.current

    async def run_alone(self) -> bool:
        """End all idle processes, and keep none from now on; return whether there were any."""
        self._one_at_a_time, waiting = True, len(self._waiting)
        await self.select(self.current.profile if self.current is not None else None)
        return waiting > 0

    async def acquire(
        self,
        recorder: Recorder,
        profile: Profile | None = None,
        *,
        fresh: bool = False,
        reason: StartReason = StartReason.FIRST,
    ) -> RunningServer:
        """Return the running server with these settings, or start one.

        With `fresh` always start one, which the caller must retire. `reason` is why one is started
        if there never was one with these settings. Raises `SetupFailed` if it cannot be started.
        """
        profile = profile or self._profile
        await self.select(None if fresh else profile)
        if self.current is not None and not self.current.peer.inbox.closed:
            self.current.watch.on_conversation_begin()
            self.current.peer.begin(recorder)
            return self.current
        if self.current is not None:
            self._hygiene.add_unasked_end(await self.exit_status(self.current))
        await self.retire(StartReason.EXITED)
        recorder.mark(Setup(active=True))
        start_reason = reason if fresh else self._start_reason(profile, reason)
        server = await self._start(recorder, profile, start_reason)
        recorder.mark(Setup(active=False))
        return server

    def _start_reason(self, profile: Profile, reason: StartReason) -> StartReason:
        """Return why the last process with these settings was ended; `reason` if there was none."""
        for number, (ended, end_reason) in enumerate(self._end_reasons):
            if ended == profile:
                del self._end_reasons[number]
                return end_reason
        return reason

    async def restart(
        self, recorder: Recorder, connection: str, ended: RunningServer
    ) -> RunningServer:
        """Start the server again over the same home. Raises `TargetGone` if it does not start."""
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
            # It started before, so the failure is the restart's, not that of the run's set-up.
            raise TargetGone(f"after its restart: {failed}") from failed
        server.served_scenarios += ended.served_scenarios
        return server

    async def retire(self, reason: StartReason | None = StartReason.FAILED) -> None:
        """End the current process; `reason` is why others need a new one, None if they do not."""
        server, self.current = self.current, None
        if server is not None:
            self.last_exit = await self._end(server, reason)

    async def retire_all(self) -> None:
        """End the current process and all idle ones."""
        await self.retire()
        waiting, self._waiting = self._waiting, []
        for waiting_server in waiting:
            await self._end(waiting_server, StartReason.FAILED)

    async def _end(self, server: RunningServer, reason: StartReason | None) -> ProcessExit:
        if reason is not None:
            self._end_reasons = [entry for entry in self._end_reasons if entry[0] != server.profile]
            self._end_reasons.append((server.profile, reason))
        ending = await server.process.stop(self._bounds.stop)
        server.watch.on_exit(ending, self._bounds.stop)
        return ending

    async def exit_status(self, server: RunningServer) -> int | None:
        """Wait for the exit of a disconnected server; return its status, None if it runs on."""
        with anyio.move_on_after(self._bounds.stop):
            await server.process.wait()
        return server.process.returncode

    def pump(self, peer: Peer) -> None:
        """Receive messages of a connection until it ends, in the background."""
        self._tasks.start_soon(peer.pump)

    async def greet(self, peer: Peer) -> None:
        """Do the handshake of one connection, as the profile says; accept any answer."""
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
        """Start the server and shake hands. Raises `SetupFailed` if it does not start or answer."""
        self.starts.append(ServerStart(reason, recorder.trace.header.scenario))
        try:
            process, home = await launch(
                profile, self._folder, self._bounds, model_url=self._model_url, home=home
            )
        except (TargetError, UsageError) as error:
            finding = Finding("setup.not-started", str(error))
            ran = not isinstance(error, NotStarted)
            raise SetupFailed(finding, recorder.trace, ran=ran) from error
        peer = Peer(self.wrap_transport(process.transport), recorder, name=connection)
        watch = ProcessWatch(process, peer, self._hygiene, profile.panics)
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
            elif (status := await self.exit_status(server)) is None:
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
            if wrong := describe_other_id(frames):
                problem = wrong if kind == "setup.no-handshake" else f"{problem}; it {wrong}"
            elif kind == "setup.no-handshake" and late_answer(frames) is not None:
                problem += f"; {LATE_ANSWER_HINT}"
            tail = server.process.stderr_tail(600).strip()
            command = " ".join(server.process.command)
            stderr_words = (
                f"; the end of its stderr: {tail}" if tail else "; it wrote nothing to stderr"
            )
            message = f"the server `{command}` {problem}{stderr_words}"
            if kind == "setup.not-started":
                # A wrapper script may need variables that the run replaces, such as HOME.
                profile = server.profile
                changes = describe_environment(
                    profile.env, profile.home_env, confined=profile.is_confined
                )
                message = f"{message}; {changes}"
            raise SetupFailed(Finding(kind, message), recorder.trace, listens=bool(places))


def _pass_through(transport: Transport) -> Transport:
    return transport
