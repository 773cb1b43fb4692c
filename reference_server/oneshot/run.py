"""One turn, from its thread to its last event, on the engine of the app server.

Here lives the order of the steps. A failure before the thread is there raises `NotBegun`, and
nothing was told; afterwards there is a last event, `turn.failed` or `error`, whatever happens.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from harness.wire.input import LocalImageInput, TextInput, UserInput
from harness.wire.thread import ThreadStartParams
from harness.wire.turn import TurnStartParams
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.output_schema import BadSchema, OutputSchema, SchemaChecker
from reference_server.oneshot.ending import COMPLETED, FAILED, Interruption, NotBegun
from reference_server.oneshot.events import TurnEvents, fatal, thread_started
from reference_server.oneshot.follower import Follower
from reference_server.oneshot.items import View
from reference_server.oneshot.output import Sink
from reference_server.outbox import Outbox
from reference_server.refusal import Refusal, disk_failure
from reference_server.server import running_server
from reference_server.services import Services
from reference_server.session.thread import LoadedThread
from reference_server.transport.base import PeerGone

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)
Fields = dict[str, Any]

SOURCE = "exec"
"""The kind of client that threads of this command were made for."""
LAST_WORDS = 2.0
"""Seconds in which the end of an interrupted turn can be written to somebody who reads slowly."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done. `cwd` and `images` are absolute; `resume` is the id of a thread.

    `config` holds what was asked for on the command line too. `named`: the settings among it that
    the command line names, which a resumed thread takes over.
    """

    config: Config
    prompt: str
    cwd: str
    images: tuple[str, ...] = ()
    schema: Fields | None = None
    resume: str | None = None
    ephemeral: bool = False
    named: frozenset[str] = field(default_factory=frozenset[str])

    def input(self) -> list[UserInput]:
        """Give the input of the turn."""
        images: list[UserInput] = [LocalImageInput(path=path) for path in self.images]
        return [*images, TextInput(text=self.prompt)] if self.prompt else images


async def run_job(
    home: Home,
    job: Job,
    sink: Sink,
    interruption: Interruption,
    model_transport: "Callable[[], httpx.AsyncBaseTransport] | None" = None,
) -> int:
    """Play the turn and give the exit status. Raises NotBegun."""
    status = FAILED
    async with running_server(home, job.config, model_transport=model_transport) as server:
        status = await _Run(server.services, job, sink, interruption).play()
    return interruption.status() or status


class _Run:
    """The steps of one run."""

    def __init__(
        self, services: Services, job: Job, sink: Sink, interruption: Interruption
    ) -> None:
        self._services = services
        self._job = job
        self._sink = sink
        self._interruption = interruption
        view = View(job.cwd)
        self._events = TurnEvents(view, interruption.why)
        self._ended = anyio.Event()
        self._outbox = Outbox(Follower(self._take, self._answer))

    async def play(self) -> int:
        """Play the turn; gives the exit status. Raises NotBegun."""
        try:
            schema = await self._schema()
            thread = await self._thread()
        except Refusal as refusal:
            raise NotBegun(refusal.message) from None
        except OSError as error:
            raise NotBegun(disk_failure(error)) from None
        status = FAILED
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._outbox.run)
            await self._tell([thread_started(thread.id)])
            status = await self._turn(thread, schema)
            self._outbox.close()
            tasks.cancel_scope.cancel()
        return status

    async def _schema(self) -> OutputSchema | None:
        if self._job.schema is None:
            return None
        try:
            return await SchemaChecker().compiled(self._job.schema)
        except BadSchema as error:
            raise NotBegun(f"--output-schema: {error}") from None

    async def _thread(self) -> LoadedThread:
        threads, job = self._services.threads, self._job
        if job.resume is None:
            params = ThreadStartParams(cwd=job.cwd, ephemeral=job.ephemeral)
            return await threads.start(params, SOURCE)
        thread = (await threads.load(job.resume)).thread
        # Tools that a client brought are not here: their calls could not be answered.
        thread.client_tools = []
        return thread

    async def _turn(self, thread: LoadedThread, schema: OutputSchema | None) -> int:
        params = TurnStartParams(thread_id=thread.id, input=self._job.input(), cwd=self._job.cwd)
        engine = self._services.engine
        thread.subscribers.add(self._outbox)
        try:
            turn = await engine.prepare(thread, params, schema)
        except Refusal as refusal:
            return await self._cannot(refusal.message)
        except OSError as error:
            return await self._cannot(disk_failure(error))
        engine.run(thread, turn)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._interrupt_when_told, thread)
            await turn.done.wait()
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(LAST_WORDS if self._interruption.told.is_set() else None):
            await self._ended.wait()
            await self._sink.finish()
        return COMPLETED if self._events.ended == "completed" else FAILED

    async def _interrupt_when_told(self, thread: LoadedThread) -> None:
        await self._interruption.told.wait()
        if thread.turn is not None:
            thread.turn.interrupt()

    async def _cannot(self, words: str) -> int:
        await self._tell([fatal(words)])
        return FAILED

    async def _tell(self, events: list[Fields]) -> None:
        try:
            await self._sink.tell(events)
        except PeerGone:
            self._interruption.by_closed_output()

    async def _take(self, method: str, params: Fields) -> None:
        events = self._events.of(method, params)
        if events and not self._interruption.output_gone:
            await self._tell(events)
        if self._events.ended is not None:
            self._ended.set()

    def _answer(self, request_id: int, answer: Fields) -> None:
        self._services.server_requests.take_answer(request_id, answer, self._outbox)
