"""Connections of one conversation, and the server process behind them.

Connections are numbered in the trace: c1, c2, ... in the order in which they began.
"""

import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import anyio

from harness.client.peer import Peer
from harness.client.transport.base import Transport
from harness.play.session.servers import RunningServer
from harness.scenario.client_steps import MAIN_CONNECTION
from harness.scenario.steps.context import FailureKind, StepFailed
from harness.trace.marks import Closed, ModelListens, ServerEnded, Setup
from harness.trace.recorder import Recorder

Opener = Callable[[], Awaitable[Transport]]


class ModelSwitch(Protocol):
    """Callback that makes the model's address accept or refuse connections."""

    async def __call__(self, *, listening: bool) -> None:
        """Switch the address, and return when that is done."""
        ...


class ConnectionManager:
    """A scenario's connections by their names in the file.

    `restart_server` ends the process if need be and starts it over the same home, with the given
    name for its connection; `open_transport` opens a further connection, None if the target allows
    only one; `pump` runs a peer, `greet` shakes hands on a further connection, `model` switches the
    model's address.
    """

    def __init__(
        self,
        server: RunningServer,
        recorder: Recorder,
        *,
        restart_server: Callable[[str], Awaitable[RunningServer]],
        pump: Callable[[Peer], Any],
        open_transport: Opener | None = None,
        greet: Callable[[Peer], Awaitable[None]] | None = None,
        model: ModelSwitch | None = None,
    ) -> None:
        self.server = server
        self.closed: set[str] = set()
        self._restarted = False
        self._children_at_restart: set[int] = set()
        self._connection_children: set[int] = set()
        self._recorder = recorder
        self._restart_server = restart_server
        self._pump = pump
        self._open_transport = open_transport
        self._greet = greet
        self._model = model
        self._peers: dict[str, Peer] = {MAIN_CONNECTION: server.peer}
        self._count = 1

    @property
    def is_main_closed(self) -> bool:
        """Return whether we closed the first connection and it was not opened again."""
        return self.server.peer.name in self.closed

    def children_of_no_turn(self, before: set[int]) -> set[int]:
        """Return the ids of the server's child processes that no turn has started.

        `before` are those that it had when the conversation began.
        """
        return (
            self._children_at_restart if self._restarted else before
        ) | self._connection_children

    @property
    def open_peers(self) -> list[Peer]:
        """Return the connections that the scenario has not closed, the first client's first."""
        return [peer for peer in self._peers.values() if peer.name not in self.closed]

    @property
    def overflow(self) -> str:
        """Return the bound that the server's output exceeded, "" for none."""
        return next((peer.overflow for peer in self._peers.values() if peer.overflow), "")

    def peer(self, name: str) -> Peer:
        """Return the current connection of that name in the scenario."""
        return self._peers[name]

    async def connect(self, name: str) -> None:
        """Open a connection, or the first one again. Raises `StepFailed` if only one is allowed."""
        if self._open_transport is None:
            message = f"connection {name!r}: the target is reached over one connection only"
            raise StepFailed(FailureKind.NOT_OFFERED, message, capability="several-clients")
        before = self.server.process.children()
        peer = Peer(await self._open_transport(), self._recorder, name=self._next_name())
        peer.when_ended = partial(self._on_ended, peer)
        self._pump(peer)
        if self._greet is not None:
            self._recorder.mark(Setup(active=True))
            await self._greet(peer)
            self._recorder.mark(Setup(active=False))
        self._peers[name] = peer
        # Processes that serve the connection live as long as it does.
        self._connection_children |= self.server.process.children() - before
        if name == MAIN_CONNECTION:
            self.server.follow(peer)

    async def disconnect(self, name: str, *, reset: bool = False) -> None:
        """Close a connection, and wait until it has ended; `reset` breaks it off."""
        peer = self._peers[name]
        self._forget(peer)
        if reset:
            await self.server.process.reset(peer.transport)
        else:
            await peer.transport.aclose()
        await peer.ended.wait()

    async def kill(self) -> None:
        """Kill the server's process group."""
        for peer in self._peers.values():
            self._forget(peer)
        with contextlib.suppress(ProcessLookupError):  # It may have ended already.
            os.killpg(self.server.process.pid, signal.SIGKILL)
        await self.server.process.wait()
        await self.server.peer.ended.wait()
        self._recorder.mark(ServerEnded(killed=True))

    async def restart(self) -> None:
        """End the server if it runs, and start it again over the same home."""
        for peer in self._peers.values():
            self._forget(peer)
        if self.server.process.returncode is None:
            self._recorder.mark(ServerEnded(killed=False))
        self.server = await self._restart_server(self._next_name())
        self._restarted = True
        # Processes from its start, such as helpers, belong to no turn.
        self._children_at_restart = self.server.process.children()
        self._peers = {MAIN_CONNECTION: self.server.peer}

    async def set_model_listening(self, *, listening: bool) -> None:
        """Make the model's address accept or refuse. Raises `StepFailed` if it is not ours."""
        if self._model is None:
            raise StepFailed(FailureKind.REFUSED, "the model's address is not ours")
        await self._model(listening=listening)
        self._recorder.mark(ModelListens(listening))

    async def close_extra(self, bound: float) -> bool:
        """Close further connections after the end of the trace; return whether there were any.

        Each gets `bound` seconds, and counts as open to the end. Later messages are in no trace:
        the server may tell the first client that a thread was closed to which only the others
        subscribed.
        """
        main = self.server.peer
        further = [peer for peer in self.open_peers if peer is not main]
        for peer in self.open_peers if further else ():
            peer.begin(Recorder(), name=peer.name)
        for peer in further:
            with anyio.move_on_after(bound):
                await peer.transport.aclose()
                await peer.ended.wait()
        return bool(further)

    def _next_name(self) -> str:
        self._count += 1
        return f"c{self._count}"

    def _on_ended(self, peer: Peer) -> None:
        """Mark a connection as closed by us if we had stopped reading from it."""
        if peer.was_slow:
            self._forget(peer)

    def _forget(self, peer: Peer) -> None:
        """Stop expecting messages on a connection that we are about to close."""
        peer.when_ended = None
        if peer.name in self.closed:
            return
        peer.set_reading(active=True)
        peer.questions.clear()
        self.closed.add(peer.name)
        self._recorder.mark(Closed(peer.name))
