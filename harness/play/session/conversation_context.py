"""An open conversation: methods to send and wait, and its result."""

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
from harness.scenario.client_steps import MAIN_CONNECTION
from harness.scenario.player import Cast, StepFailure
from harness.trace.frame import Frame
from harness.trace.recorder import Recorder


class ConversationContext:
    """One conversation, during its `async with bench.conversation(...)` block and after it.

    `cast` holds the ids of the named threads and turns; its first thread is the one that is read at
    the end. `unmet` is the reason why the caller could not continue, None so far. The methods may
    be called from any task of the event loop.
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
        self.unmet: StepFailure | None = None
        self._run: Run | None = None

    @property
    def peer(self) -> Peer:
        """Return the first connection; after a restart of the server the one to the new process."""
        return self.connections.peer(MAIN_CONNECTION)

    @property
    def frames(self) -> list[Frame]:
        """Return every message so far, of all connections and directions, in recorded order."""
        return list(self.recorder.trace.frames)

    @property
    def run(self) -> Run:
        """Return the run. Raises `RuntimeError` before the end of the conversation."""
        if self._run is None:
            raise RuntimeError("the conversation is not over: leave its `async with` block first")
        return self._run

    def finish(self, run: Run) -> None:
        """Store the run at the end of the conversation."""
        self._run = run

    async def send(
        self, method: str, params: Any, *, on: str = MAIN_CONNECTION, deliberate: bool = False
    ) -> Frame:
        """Send a request without waiting; return the sent frame, for `answer_to`.

        `on` names the connection; `deliberate` marks params that are wrong on purpose. Raises
        `TargetGone` if the connection has ended.
        """
        return await self.connections.peer(on).send_request(method, params, deliberate=deliberate)

    async def answer_to(self, request: Frame, *, on: str = MAIN_CONNECTION) -> Frame:
        """Wait for the answer to a request, a result or an error.

        Raises TimeoutError after the bound of a step, `TargetGone` at the end of the connection.
        """
        with self._step_bound(f"the answer to {request.method}"):
            return await self.connections.peer(on).wait_for_answer(request)

    async def request(
        self, method: str, params: Any, *, on: str = MAIN_CONNECTION, deliberate: bool = False
    ) -> Frame:
        """Send a request and wait for its answer, with the errors of `send` and `answer_to`."""
        sent = await self.send(method, params, on=on, deliberate=deliberate)
        return await self.answer_to(sent, on=on)

    async def wait(
        self, matches: Predicate, description: str = "a message", *, on: str = MAIN_CONNECTION
    ) -> Frame:
        """Return the first matching message from the server, waiting for it if need be.

        `description` is for the error message. Raises TimeoutError after the bound of a step,
        `TargetGone` at the end of the connection.
        """
        with self._step_bound(description):
            return await self.connections.peer(on).inbox.wait(matches)

    @contextmanager
    def _step_bound(self, description: str) -> Generator[None]:
        try:
            with anyio.fail_after(self.bounds.step):
                yield
        except TimeoutError:
            message = f"waited {self.bounds.step:g} s for {description}; it did not come"
            raise TimeoutError(message) from None
