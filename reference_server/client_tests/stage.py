"""A stage, which gives each connection a scenario and a server of its own that plays it.

Connections come from `reception` or standard streams.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio import to_thread

from harness.play.client_tests.connection import ConnectionResult, StagedConnection
from harness.play.client_tests.faults import FaultRelay
from harness.play.client_tests.folders import Folders, ScenarioSetup, set_up_scenario
from harness.play.client_tests.scenario_choice import Choice
from reference_server.brief import brief
from reference_server.client_tests.wires import ClientEnd, IdleTimer, ObservedTransport, ServerEnd
from reference_server.config.home import Home
from reference_server.config.load import ConfigError, load_config
from reference_server.config.model import Config
from reference_server.connection import FAREWELL_TIME, Connection
from reference_server.dialect.choice import extra_methods_of, failures_of
from reference_server.dialect.client_words import client_words_of
from reference_server.envelope import encode_error
from reference_server.model.scripted import ScriptedConnection
from reference_server.outbox import OVERLOADED, TOO_SLOW
from reference_server.sandbox.places import ENCLOSURE, OPEN_IN_ENCLOSURE
from reference_server.scripted_answers import ScriptedAnswers
from reference_server.server import Server, running_server
from reference_server.transport.base import Incoming, MemoryTransport, PeerGone, Transport

_log = logging.getLogger(__name__)

# Characters of the reason why a path was refused, which quotes the client's path.
MAX_REASON_LENGTH = 400
SCENARIO_ADDRESS = "http://scenario.invalid/v1"
USED_UP = (
    "no scenario is left: each was begun once; name one in the address to play it again, such as "
    "ws://HOST:PORT/{example}"
)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits at which a stage or a connection ends by itself.

    `connections`: end after this many. `once`: end when each scenario was begun once. Without both
    only `stop` ends the stage. `idle`: seconds without a message after which a connection closes.
    """

    connections: int | None = None
    once: bool = False
    idle: float | None = None


class Stage:
    """Player of scenarios to clients, each connection isolated from all others.

    `root` is a private folder for the folders of all connections; `environment` is the server's
    environment for commands; `overrides` are settings of the command line. `on_result` is called
    with the result of each connection.
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
        on_result: Callable[[ConnectionResult], None],
    ) -> None:
        self._choice = choice
        self._root = root
        self._environment = environment
        self._overrides = overrides
        self._requires_initialize = requires_initialize
        self._bounds = bounds
        self._say = say
        self._dialect = client_words_of(environment)
        self._find_extra = extra_methods_of(environment)
        self._read_failure = failures_of(environment)
        self._on_result = on_result
        self._begun_count = 0
        self._running: dict[Server, StagedConnection] = {}
        self._open = 0
        self.stop_requested = anyio.Event()

    def missing_reason(self, path: str) -> str | None:
        """Return and print the reason why no scenario has that path; None if one has.

        Printed here too, since many client libraries do not show the body of a refusal.
        """
        reason = self._choice.error_for(path)
        if reason is not None:
            self._say(brief(f"a connection was refused (404): {reason}", MAX_REASON_LENGTH))
        return reason

    def stop(self) -> None:
        """Accept no more clients and stop the servers, without waiting for them."""
        self.stop_requested.set()
        for server, connection in list(self._running.items()):
            connection.close()
            server.stop()

    async def host(
        self, transport: Transport, path: str, *, overrides: tuple[str, ...] = ()
    ) -> bool:
        """Serve one client and return whether it was dropped as too slow.

        A client that leaves without a message does not count: programs probe if a port listens.
        `overrides` are settings of this connection alone.
        """
        first = await self.first_messages(transport)
        if not first:
            return False
        self._begun_count += 1
        number = str(self._begun_count)
        loaded = None if self._is_full else self._choice.take(path)
        if loaded is None:
            await self._turn_away(transport, number)
            return False
        connection = StagedConnection(
            number,
            loaded,
            self._requires_initialize,
            known_findings=self._dialect.findings,
            known_methods=self._dialect.methods,
        )
        self._open += 1
        try:
            quiet = IdleTimer(self._bounds.idle)
            observed = ObservedTransport(transport, first, connection, quiet)
            return await self._play(connection, observed, quiet, overrides)
        finally:
            self._open -= 1
            self._end_by_itself()

    def note_command(self) -> None:
        """Count a start of a command that is not a connection; it plays the scenario by itself."""
        self._begun_count += 1
        loaded = self._choice.take("")
        self._on_result(ConnectionResult(str(self._begun_count), loaded.id if loaded else ""))
        self._end_by_itself()

    @property
    def _is_full(self) -> bool:
        limit = self._bounds.connections
        return limit is not None and self._begun_count > limit

    async def first_messages(self, transport: Transport) -> list[Incoming]:
        """Return the first messages of a client; [] if it leaves, or the stage ends, before."""
        messages: list[Incoming] = []
        async with anyio.create_task_group() as either:

            async def on_stop() -> None:
                await self.stop_requested.wait()
                either.cancel_scope.cancel()

            either.start_soon(on_stop)
            messages = await transport.receive()
            either.cancel_scope.cancel()
        return messages

    async def _turn_away(self, transport: Transport, number: str) -> None:
        words = USED_UP.format(example=self._choice.example_id)
        self._on_result(ConnectionResult(number, "", (words,)))
        with anyio.move_on_after(FAREWELL_TIME):
            try:
                await transport.send([encode_error(None, OVERLOADED, words)])
            except PeerGone:
                return

    def _end_by_itself(self) -> None:
        limit, once = self._bounds.connections, self._bounds.once
        is_done = (limit is not None and self._begun_count >= limit) or (
            once and not self._choice.unused_ids
        )
        if is_done and not self._open:
            self.stop()

    async def _play(
        self,
        connection: StagedConnection,
        transport: ObservedTransport,
        quiet: IdleTimer,
        overrides: tuple[str, ...],
    ) -> bool:
        folders = Folders(self._root / connection.number)
        too_slow = False
        try:
            folders.make()
            async with set_up_scenario(
                connection.loaded, folders, model_url=SCENARIO_ADDRESS
            ) as laid_out:
                home, config = Home(folders.agent), self._config(folders, laid_out, overrides)
                async with self._server(home, config, laid_out, connection) as server:
                    too_slow = await self._serve(connection, transport, quiet, server)
                    connection.close()
                ended = connection.finish(laid_out.model, folders.work)
        except (ConfigError, OSError) as error:
            ended = connection.fail(f"the scenario cannot be played: {error}")
            await self._send_failure(transport, ended.problems[-1])
        except Exception as error:
            _log.exception("connection %s failed", connection.number)
            ended = connection.fail(f"the server failed: {type(error).__name__}: {error}")
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(folders.remove)
        self._on_result(ended)
        return too_slow

    async def _send_failure(self, transport: ObservedTransport, words: str) -> None:
        with anyio.move_on_after(FAREWELL_TIME):
            try:
                await transport.send([encode_error(None, OVERLOADED, words)])
            except PeerGone:
                return

    def _config(
        self, folders: Folders, laid_out: ScenarioSetup, overrides: tuple[str, ...]
    ) -> Config:
        environment = {
            **self._environment,
            **laid_out.environment,
            "AGENT_HOME": str(folders.agent),
            "HOME": str(folders.home),
            ENCLOSURE: str(self._root),
            OPEN_IN_ENCLOSURE: f"{folders.work}:{folders.home}",
        }
        home = Home(folders.agent)
        config = load_config(
            home.config_file,
            environment,
            self._say,
            overrides=(*self._overrides, *overrides),
        )
        return replace(config, folder=str(folders.work))

    @asynccontextmanager
    async def _server(
        self,
        home: Home,
        config: Config,
        laid_out: ScenarioSetup,
        connection: StagedConnection,
    ) -> AsyncGenerator[Server]:
        async with running_server(
            home,
            config,
            model_transport=lambda: ScriptedConnection(laid_out.model),
            requires_initialize=self._requires_initialize,
            answers=ScriptedAnswers(connection.loaded.scenario.answers_by_method()),
            find_extra=self._find_extra,
            read_failure=self._read_failure,
        ) as server:
            self._running[server] = connection
            if self.stop_requested.is_set():
                server.stop()
            try:
                yield server
            finally:
                del self._running[server]

    async def _serve(
        self,
        connection: StagedConnection,
        transport: ObservedTransport,
        quiet: IdleTimer,
        server: Server,
    ) -> bool:
        """Serve the client until it leaves and return whether it was dropped as too slow."""
        too_slow = False

        def too_quiet() -> None:
            connection.add_problem(
                f"nothing was said for {self._bounds.idle:g} s, so the connection was closed"
            )
            connection.close()
            server.stop()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(quiet.wait, too_quiet)
            too_slow = await self._through_faults(connection, transport, server)
            tasks.cancel_scope.cancel()
        if too_slow:
            connection.add_problem(f"the client was let go: {TOO_SLOW}")
        return too_slow

    async def _through_faults(
        self, connection: StagedConnection, transport: ObservedTransport, server: Server
    ) -> bool:
        loaded = connection.loaded
        if not loaded.scenario.faults:
            client = Connection(transport, may_give_up=True)
            await server.serve(client, then_stop=True)
            return client.outbox.given_up.is_set()
        faults = FaultRelay(
            loaded, lambda words: self._say(f"connection {connection.number}: {words}")
        )
        inner = MemoryTransport()
        client = Connection(inner, may_give_up=True)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(faults.relay, ClientEnd(transport), ServerEnd(inner))
                await server.serve(client, then_stop=True)
                inner.end_output()
                # Do not wait for messages to a client that does not read.
                tasks.cancel_scope.deadline = anyio.current_time() + FAREWELL_TIME
        finally:
            inner.close()
        for number, missing in faults.idle_faults():
            place = f"{loaded.path}:{loaded.line_of('faults', number)}"
            suffix = f": {missing}" if missing else ""
            connection.add_problem(f"{place}: the fault never acted{suffix}")
        return client.outbox.given_up.is_set()
