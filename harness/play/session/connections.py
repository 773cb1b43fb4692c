"""The connections of one conversation, and the process behind them, as a scenario reaches them.

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
from harness.scenario.client_steps import MAIN
from harness.scenario.steps.context import StepFailed, UnmetKind
from harness.trace.marks import Closed, ModelListens, ServerEnded, Setup
from harness.trace.recorder import Recorder

Opener = Callable[[], Awaitable[Transport]]


class Door(Protocol):
    """Lets the model's address take connections, or refuse them."""

    async def __call__(self, *, listening: bool) -> None:
        """Do so, and come back when it is done."""
        ...


class ConnectionManager:
    """A scenario's connections.

    `again` ends the process if need be and starts it over the same home, its connection named as
    given; `open_transport` opens a further connection, None where the target allows one only;
    `pump` runs a peer, `greet` shakes hands on a further connection, `model` is the model's door.
    """

    def __init__(
        self,
        server: RunningServer,
        recorder: Recorder,
        *,
        again: Callable[[str], Awaitable[RunningServer]],
        pump: Callable[[Peer], Any],
        open_transport: Opener | None = None,
        greet: Callable[[Peer], Awaitable[None]] | None = None,
        model: Door | None = None,
    ) -> None:
        self.server = server
        self.closed: set[str] = set()
        self._restarted = False
        self._at_restart: set[int] = set()
        self._of_connection: set[int] = set()
        self._recorder = recorder
        self._again = again
        self._pump = pump
        self._open_transport = open_transport
        self._greet = greet
        self._model = model
        self._peers: dict[str, Peer] = {MAIN: server.peer}
        self._count = 1

    @property
    def main_is_closed(self) -> bool:
        """Return whether we ended the first connection and did not start again."""
        return self.server.peer.name in self.closed

    def children_of_no_turn(self, before: set[int]) -> set[int]:
        """The ids of the server's child processes that no turn has begun.

        `before` are those which it had when the conversation began.
        """
        return (self._at_restart if self._restarted else before) | self._of_connection

    @property
    def open_peers(self) -> list[Peer]:
        """The connections that the scenario has not ended, the first client's before others."""
        return [peer for peer in self._peers.values() if peer.name not in self.closed]

    @property
    def overflow(self) -> str:
        """Return what the server wrote too much of, "" for nothing."""
        return next((peer.overflow for peer in self._peers.values() if peer.overflow), "")

    def peer(self, name: str) -> Peer:
        """The connection that a scenario's name stands for now."""
        return self._peers[name]

    async def connect(self, name: str) -> None:
        """Open a further connection, or the first one again after its end."""
        if self._open_transport is None:
            message = f"connection {name!r}: the target is reached over one connection only"
            raise StepFailed(UnmetKind.NOT_OFFERED, message, capability="several-clients")
        before = self.server.process.children()
        peer = Peer(await self._open_transport(), self._recorder, name=self._next_name())
        peer.when_ended = partial(self._given_up, peer)
        self._pump(peer)
        if self._greet is not None:
            self._recorder.mark(Setup(active=True))
            await self._greet(peer)
            self._recorder.mark(Setup(active=False))
        self._peers[name] = peer
        # What serves the connection lives as long as it does.
        self._of_connection |= self.server.process.children() - before
        if name == MAIN:
            self.server.follow(peer)

    async def disconnect(self, name: str) -> None:
        """End a connection, and wait until the server ended it too."""
        peer = self._peers[name]
        self._forget(peer)
        await peer.transport.aclose()
        await peer.ended.wait()

    async def kill(self) -> None:
        """Kill the server's process group."""
        for peer in self._peers.values():
            self._forget(peer)
        with contextlib.suppress(ProcessLookupError):  # It can have ended a moment before.
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
        self.server = await self._again(self._next_name())
        self._restarted = True
        # What it has from its start on, helpers for example, no turn has begun.
        self._at_restart = self.server.process.children()
        self._peers = {MAIN: self.server.peer}

    async def model_listens(self, *, listening: bool) -> None:
        """Let the model's address take connections or refuse them."""
        if self._model is None:
            raise StepFailed(UnmetKind.REFUSED, "the model's address is not ours")
        await self._model(listening=listening)
        self._recorder.mark(ModelListens(listening))

    async def close_further(self, bound: float) -> bool:
        """After the end of the trace: end what `connect` opened, if anything, each in so long.

        These count as open to the end. What comes from now on, also to the first client, is in no
        trace any more: a server may tell it that a thread was closed, which the others followed.
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

    def _given_up(self, peer: Peer) -> None:
        """A further connection has ended. That of a client that did not read may: we made it so."""
        if peer.was_slow:
            self._forget(peer)

    def _forget(self, peer: Peer) -> None:
        """From here on nothing is owed on this connection: it ends by our own doing."""
        peer.when_ended = None
        if peer.name in self.closed:
            return
        peer.set_reading(active=True)
        peer.questions.clear()
        self.closed.add(peer.name)
        self._recorder.mark(Closed(peer.name))
