"""A conversation that is being held: what its caller speaks with, and what it gave in the end."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from harness.client.inbox import Predicate
from harness.client.peer import Peer
from harness.client.target.profile import Bounds
from harness.model.model import ScriptedModel
from harness.play.run import Run
from harness.play.session.connections import ConnectionManager
from harness.scenario.client_steps import MAIN
from harness.scenario.player import Cast, Unmet
from harness.trace.frame import Frame
from harness.trace.recorder import Recorder


class ConversationContext:
    """One conversation, while it is held and after it: `async with bench.conversation(...)`.

    `cast` holds the ids of the threads and turns that have a name; the first thread in it is the
    one that is read at the end. `unmet` is what kept the caller from going on, None so far. Its
    methods may be called from any task of the event loop.
    """

    def __init__(
        self,
        recorder: Recorder,
        model: ScriptedModel,
        cwd: Path,
        connections: ConnectionManager,
        bounds: Bounds,
    ) -> None:
        self.recorder = recorder
        self.model = model
        self.cwd = cwd
        self.connections = connections
        self.bounds = bounds
        self.cast = Cast()
        self.unmet: Unmet | None = None
        self._run: Run | None = None

    @property
    def peer(self) -> Peer:
        """The first connection; after a restart of the server the one to the new process."""
        return self.connections.peer(MAIN)

    @property
    def frames(self) -> list[Frame]:
        """Every message so far, of all connections and both directions, in recorded order."""
        return list(self.recorder.trace.frames)

    @property
    def run(self) -> Run:
        """Return the run. Raises RuntimeError while the conversation is being held."""
        if self._run is None:
            raise RuntimeError("the conversation is not over: leave its `async with` block first")
        return self._run

    def over(self, run: Run) -> None:
        """The conversation has come to its end, and gave this."""
        self._run = run

    async def send(
        self, method: str, params: Any, *, on: str = MAIN, deliberate: bool = False
    ) -> Frame:
        """Send a request without waiting; gives the sent frame, for `answer_to`.

        `on` names the connection; `deliberate` marks params that are wrong on purpose. Raises
        `TargetGone` where the connection has ended.
        """
        return await self.connections.peer(on).send_request(method, params, deliberate=deliberate)

    async def answer_to(self, request: Frame, *, on: str = MAIN) -> Frame:
        """Wait for the answer to a request, a result or an error.

        Raises TimeoutError after the bound of a step, `TargetGone` at the end of the connection.
        """
        with self._bounded(f"the answer to {request.method}"):
            return await self.connections.peer(on).wait_for_answer(request)

    async def request(
        self, method: str, params: Any, *, on: str = MAIN, deliberate: bool = False
    ) -> Frame:
        """Send a request and wait for its answer: `send`, then `answer_to`."""
        sent = await self.send(method, params, on=on, deliberate=deliberate)
        return await self.answer_to(sent, on=on)

    async def wait(self, matches: Predicate, what: str = "a message", *, on: str = MAIN) -> Frame:
        """The first message from the server that matches, waiting for it if it did not come yet.

        `what` says what is waited for. Raises TimeoutError after the bound of a step, `TargetGone`
        at the end of the connection.
        """
        with self._bounded(what):
            return await self.connections.peer(on).inbox.wait(matches)

    @contextmanager
    def _bounded(self, what: str) -> Generator[None]:
        try:
            with anyio.fail_after(self.bounds.step):
                yield
        except TimeoutError:
            message = f"waited {self.bounds.step:g} s for {what}; it did not come"
            raise TimeoutError(message) from None
