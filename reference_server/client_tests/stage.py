"""The stage: each connection gets a scenario, and a server of its own that plays it.

Where connections come from is not known here (`reception`, standard streams).
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio import to_thread

from harness.play.client_tests.choice import Choice
from harness.play.client_tests.connection import Ended, StagedConnection
from harness.play.client_tests.faults import FaultsBetween
from harness.play.client_tests.folders import Folders, Furnished, furnished
from reference_server.client_tests.wires import ClientEnd, Quiet, ServerEnd, ShownTransport
from reference_server.config.home import Home
from reference_server.config.load import ConfigError, load_config
from reference_server.config.model import Config
from reference_server.connection import FAREWELL_TIME, Connection
from reference_server.envelope import encode_error
from reference_server.model.scripted import ScriptedConnection
from reference_server.outbox import OVERLOADED, TOO_SLOW
from reference_server.sandbox.places import ENCLOSURE, OPEN_IN_ENCLOSURE
from reference_server.server import Server, running_server
from reference_server.transport.base import Incoming, MemoryTransport, PeerGone, Transport

_log = logging.getLogger(__name__)

SCENARIO_ADDRESS = "http://scenario.invalid/v1"
USED_UP = (
    "no scenario is left: each was begun once; name one in the address to play it again, such as "
    "ws://HOST:PORT/{example}"
)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits at which a stage ends by itself. None of these: when it is told to.

    `connections`: after so many. `once`: when each scenario was begun once. `idle`: the seconds
    after which a connection is closed on which nothing passes.
    """

    connections: int | None = None
    once: bool = False
    idle: float | None = None


class Stage:
    """Plays scenarios to clients, each connection apart from all others.

    `root` is a private folder for all of theirs; `environment` what commands may know of ours;
    `overrides` the settings of the command line. `ended` is told of each result.
    """

    def __init__(
        self,
        choice: Choice,
        root: Path,
        environment: Mapping[str, str],
        *,
        overrides: tuple[str, ...] = (),
        requires_initialize: bool = False,
        bounds: Bounds,
        say: Say,
        ended: Callable[[Ended], None],
    ) -> None:
        self._choice = choice
        self._root = root
        self._environment = environment
        self._overrides = overrides
        self._requires_initialize = requires_initialize
        self._bounds = bounds
        self._say = say
        self._ended = ended
        self._begun = 0
        self._running: set[Server] = set()
        self._open = 0
        self.told_to_stop = anyio.Event()

    def missing(self, path: str) -> str | None:
        """Say that there is no scenario of that path, None if there is one."""
        return self._choice.missing(path)

    def stop(self) -> None:
        """Take no client any more, and end the servers; does not wait."""
        self.told_to_stop.set()
        for server in list(self._running):
            server.stop()

    async def host(self, transport: Transport, path: str) -> bool:
        """Serve one client and return whether it was let go as too slow.

        One that leaves without a word has begun nothing: programs look whether somebody listens.
        """
        first = await self._first_messages(transport)
        if not first:
            return False
        self._begun += 1
        number = str(self._begun)
        loaded = None if self._is_full else self._choice.take(path)
        if loaded is None:
            await self._turn_away(transport, number)
            return False
        connection = StagedConnection(number, loaded)
        self._open += 1
        try:
            quiet = Quiet(self._bounds.idle)
            shown = ShownTransport(transport, first, connection, quiet)
            return await self._play(connection, shown, quiet)
        finally:
            self._open -= 1
            self._end_by_itself()

    @property
    def _is_full(self) -> bool:
        most = self._bounds.connections
        return most is not None and self._begun > most

    async def _first_messages(self, transport: Transport) -> list[Incoming]:
        messages: list[Incoming] = []
        async with anyio.create_task_group() as either:

            async def told() -> None:
                await self.told_to_stop.wait()
                either.cancel_scope.cancel()

            either.start_soon(told)
            messages = await transport.receive()
            either.cancel_scope.cancel()
        return messages

    async def _turn_away(self, transport: Transport, number: str) -> None:
        words = USED_UP.format(example=self._choice.example)
        self._ended(Ended(number, "", (words,)))
        with anyio.move_on_after(FAREWELL_TIME):
            try:
                await transport.send([encode_error(None, OVERLOADED, words)])
            except PeerGone:
                return

    def _end_by_itself(self) -> None:
        most, once = self._bounds.connections, self._bounds.once
        over = (most is not None and self._begun >= most) or (once and not self._choice.unused)
        if over and not self._open:
            self.stop()

    async def _play(
        self, connection: StagedConnection, transport: ShownTransport, quiet: Quiet
    ) -> bool:
        folders = Folders(self._root / connection.number)
        too_slow = False
        try:
            folders.make()
            async with furnished(
                connection.loaded, folders, model_url=SCENARIO_ADDRESS
            ) as laid_out:
                home, config = Home(folders.agent), self._config(folders, laid_out)
                async with self._server(home, config, laid_out) as server:
                    too_slow = await self._serve(connection, transport, quiet, server)
                    connection.closed()
                ended = connection.result(laid_out.model, folders.work)
        except (ConfigError, OSError) as error:
            ended = connection.failed(f"the scenario cannot be played: {error}")
            await self._excuse(transport, ended.problems[-1])
        except Exception as error:
            _log.exception("connection %s failed", connection.number)
            ended = connection.failed(f"the server failed: {type(error).__name__}: {error}")
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(folders.remove)
        self._ended(ended)
        return too_slow

    async def _excuse(self, transport: ShownTransport, words: str) -> None:
        with anyio.move_on_after(FAREWELL_TIME):
            try:
                await transport.send([encode_error(None, OVERLOADED, words)])
            except PeerGone:
                return

    def _config(self, folders: Folders, laid_out: Furnished) -> Config:
        environment = {
            **self._environment,
            **laid_out.environment,
            "AGENT_HOME": str(folders.agent),
            "HOME": str(folders.home),
            ENCLOSURE: str(self._root),
            OPEN_IN_ENCLOSURE: f"{folders.work}:{folders.home}",
        }
        home = Home(folders.agent)
        config = load_config(home.config_file, environment, self._say, overrides=self._overrides)
        return replace(config, folder=str(folders.work))

    @asynccontextmanager
    async def _server(
        self, home: Home, config: Config, laid_out: Furnished
    ) -> AsyncGenerator[Server]:
        async with running_server(
            home,
            config,
            model_transport=lambda: ScriptedConnection(laid_out.model),
            requires_initialize=self._requires_initialize,
        ) as server:
            self._running.add(server)
            if self.told_to_stop.is_set():
                server.stop()
            try:
                yield server
            finally:
                self._running.discard(server)

    async def _serve(
        self,
        connection: StagedConnection,
        transport: ShownTransport,
        quiet: Quiet,
        server: Server,
    ) -> bool:
        """Serve the client until it leaves and return whether it was let go as too slow."""
        too_slow = False

        def too_quiet() -> None:
            connection.note(
                f"nothing was said for {self._bounds.idle:g} s, so the connection was closed"
            )
            server.stop()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(quiet.wait, too_quiet)
            too_slow = await self._through_faults(connection, transport, server)
            tasks.cancel_scope.cancel()
        if too_slow:
            connection.note(f"the client was let go: {TOO_SLOW}")
        return too_slow

    async def _through_faults(
        self, connection: StagedConnection, transport: ShownTransport, server: Server
    ) -> bool:
        loaded = connection.loaded
        if not loaded.scenario.faults:
            client = Connection(transport, may_give_up=True)
            await server.serve(client, then_stop=True)
            return client.outbox.given_up.is_set()
        between = FaultsBetween(
            loaded, lambda words: self._say(f"connection {connection.number}: {words}")
        )
        inner = MemoryTransport()
        client = Connection(inner, may_give_up=True)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(between.pass_on, ClientEnd(transport), ServerEnd(inner))
                await server.serve(client, then_stop=True)
                inner.end_output()
                # What is on its way to a client that does not read is not waited for.
                tasks.cancel_scope.deadline = anyio.current_time() + FAREWELL_TIME
        finally:
            inner.close()
        for number, missing in between.idle():
            place = f"{loaded.path}:{loaded.line('faults', number)}"
            why = f": {missing}" if missing else ""
            connection.note(f"{place}: the fault never acted{why}")
        return client.outbox.given_up.is_set()
