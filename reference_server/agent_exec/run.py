"""Run of one turn, from its thread to its last event, on the engine of the app server.

A failure before the thread is open raises `NotBegun`, without an event; a later one ends with a
last event, `turn.failed` or `error`.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from harness.protocol.wire.input import LocalImageInput, TextInput, UserInput
from harness.protocol.wire.thread import ThreadStartParams
from harness.protocol.wire.turn import TurnStartParams
from reference_server.agent_exec.ending import COMPLETED, FAILED, Interruption, NotBegun
from reference_server.agent_exec.events import TurnEvents, fatal, thread_started, turn_failed
from reference_server.agent_exec.follower import Follower
from reference_server.agent_exec.items import View
from reference_server.agent_exec.output import Sink
from reference_server.agent_exec.run_config import resumed_settings
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.output_schema import BadSchema, OutputSchema, SchemaChecker
from reference_server.engine.turn import ActiveTurn
from reference_server.gc_pause import garbage_collection_paused
from reference_server.outbox import Outbox
from reference_server.refusal import Refusal, describe_disk_error, invalid_request
from reference_server.server import running_server
from reference_server.services import Services
from reference_server.session.thread import LoadedThread
from reference_server.settings import ThreadSettings, settings_of_new_thread
from reference_server.transport.base import PeerGone

if TYPE_CHECKING:
    from reference_server.model.pool import MakeTransport

_log = logging.getLogger(__name__)
Fields = dict[str, Any]

SOURCE = "exec"
"""Source of threads of this command."""
FAREWELL_SECONDS = 2.0
"""Seconds to write the end of an interrupted turn to a slow reader."""


@dataclass(frozen=True, slots=True)
class Job:
    """Input of a run. `cwd` and `images` are absolute; `resume` is the id of a thread.

    `last`: resume the newest thread of `cwd`. `config` includes the settings of the command line;
    `named_settings`: their keys; in a resumed thread they override the thread's own.
    """

    config: Config
    prompt: str
    cwd: str
    images: tuple[str, ...] = ()
    schema: Fields | None = None
    schema_file: str = ""
    resume: str | None = None
    last: bool = False
    ephemeral: bool = False
    named_settings: frozenset[str] = field(default_factory=frozenset[str])

    def input(self) -> list[UserInput]:
        """Return the input of the turn."""
        images: list[UserInput] = [LocalImageInput(path=path) for path in self.images]
        return [*images, TextInput(text=self.prompt)] if self.prompt else images


async def run_job(
    home: Home,
    job: Job,
    sink: Sink,
    interruption: Interruption,
    model_transport: "MakeTransport | None" = None,
    on_begin: Callable[[], None] = lambda: None,
) -> int:
    """Run the turn and return the exit status. Raises NotBegun if it cannot begin.

    `on_begin` is called once the first event is written.
    """
    status, run = FAILED, None
    async with running_server(home, job.config, model_transport=model_transport) as server:
        run = _Run(server.services, job, sink, interruption, on_begin)
        status = await run.play()
    if (stop_status := interruption.status()) is not None:
        return stop_status
    if run.not_begun:
        # Raised outside the task group above, which would wrap it in an exception group.
        raise NotBegun(f"agent exec: {run.not_begun}")
    return status


class _Run:
    """The steps of one run."""

    def __init__(
        self,
        services: Services,
        job: Job,
        sink: Sink,
        interruption: Interruption,
        on_begin: Callable[[], None],
    ) -> None:
        self._services = services
        self._job = job
        self._sink = sink
        self._interruption = interruption
        self._on_begin = on_begin
        view = View(job.cwd, raw_reasoning=job.config.show_raw_agent_reasoning)
        self._events = TurnEvents(view, interruption.reason)
        self._outbox = Outbox(Follower(self._take, self._answer))
        self._opening = anyio.CancelScope()
        self._farewell = anyio.CancelScope()
        self._turn: ActiveTurn | None = None
        self._ended = anyio.Event()
        self.not_begun = ""
        """Reason why the run did not begin, "" if it did."""

    async def play(self) -> int:
        """Run the turn and return the exit status; `not_begun` is set if it could not begin."""
        status = FAILED
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_interruption)
            tasks.start_soon(self._outbox.run)
            status = await self._play()
            tasks.cancel_scope.cancel()
        return status

    async def _play(self) -> int:
        opened = await self._open()
        if opened is None:
            return FAILED
        thread, schema = opened
        await self._write_events([thread_started(thread.id)])
        self._on_begin()
        try:
            return await self._run_turn(thread, schema)
        except Refusal as refusal:
            words = refusal.message
        except OSError as error:
            words = describe_disk_error(error)
        except Exception as error:
            _log.exception("agent exec failed")
            words = f"agent exec failed: {type(error).__name__}"
        if self._events.final_status is None:
            await self._write_events(
                turn_failed(words) if self._events.has_begun else [fatal(words)]
            )
        return FAILED

    async def _open(self) -> tuple[LoadedThread, OutputSchema | None] | None:
        """Return the thread and the schema; None, with `not_begun` or a stop, if that fails."""
        with self._opening:
            try:
                schema = await self._schema()
                return await self._thread(), schema
            except NotBegun as error:
                self.not_begun = str(error)
            except Refusal as refusal:
                self.not_begun = refusal.message
            except OSError as error:
                self.not_begun = describe_disk_error(error)
        return None

    async def _schema(self) -> OutputSchema | None:
        if self._job.schema is None:
            return None
        try:
            return await SchemaChecker().compile(self._job.schema)
        except BadSchema as error:
            raise NotBegun(f"--output-schema {self._job.schema_file}: {error}") from None

    async def _thread(self) -> LoadedThread:
        """Start a thread, or load the one to resume. Raises NotBegun, Refusal, OSError."""
        threads, job = self._services.threads, self._job
        thread_id = await self._newest_thread_id() if job.last else job.resume
        if thread_id is None:
            params = ThreadStartParams(cwd=job.cwd, ephemeral=job.ephemeral)
            await self._check_images(settings_of_new_thread(job.config, params))
            return await threads.start(params, SOURCE)
        with garbage_collection_paused():
            thread = (await threads.load(thread_id)).thread
        settings = resumed_settings(thread.settings, job.config, job.named_settings, job.cwd)
        await self._check_images(settings)
        thread.settings = settings
        # The client that provided tools is not connected, so their calls could not be answered.
        thread.client_tools = []
        return thread

    async def _check_images(self, settings: ThreadSettings) -> None:
        """Raise NotBegun for an image that cannot be sent to the model."""
        if not self._job.images:
            return
        from reference_server.engine.images import ImageBudget, ImageError

        budget = ImageBudget()
        for path in self._job.images:
            try:
                await self._services.tools.images.image_part(path, settings, budget)
            except ImageError as error:
                raise NotBegun(f"--image {path}: {error}") from None

    async def _newest_thread_id(self) -> str:
        from reference_server.index.query import Query

        newest = Query(sort="updated", limit=1, cwd=self._job.cwd)
        threads, _ = await self._services.lists.page(newest, None)
        if not threads:
            raise NotBegun(f"resume --last: there is no thread of the folder {self._job.cwd}")
        return threads[0].summary.id

    async def _run_turn(self, thread: LoadedThread, schema: OutputSchema | None) -> int:
        """Run the turn and return the exit status. Raises Refusal, OSError."""
        if self._interruption.stop_requested.is_set():
            raise invalid_request(self._interruption.reason())
        params = TurnStartParams(thread_id=thread.id, input=self._job.input())
        engine = self._services.engine
        thread.subscribers.add(self._outbox)
        self._turn = turn = await engine.prepare(thread, params, schema)
        engine.run(thread, turn)
        if self._interruption.stop_requested.is_set():
            turn.interrupt()
        await turn.end_event.wait()
        with self._farewell:
            if self._interruption.stop_requested.is_set():
                self._hurry()
            await self._ended.wait()
            finished = await self._finish()
            return COMPLETED if finished and self._events.final_status == "completed" else FAILED
        return FAILED

    async def _finish(self) -> bool:
        """Write the end of the output; return False if the message file could not be written."""
        try:
            await self._sink.finish()
        except PeerGone as gone:
            self._interruption.stop_by_closed_output(gone.__cause__)
        except OSError as error:
            _log.error("the final message was not written: %s", describe_disk_error(error))
            return False
        return True

    async def _watch_interruption(self) -> None:
        await self._interruption.stop_requested.wait()
        self._opening.cancel()
        self._hurry()
        if self._turn is not None:
            self._turn.interrupt()

    def _hurry(self) -> None:
        self._farewell.deadline = anyio.current_time() + FAREWELL_SECONDS

    async def _write_events(self, events: list[Fields]) -> None:
        if self._interruption.output_gone:
            return
        try:
            await self._sink.tell(events)
        except PeerGone as gone:
            self._interruption.stop_by_closed_output(gone.__cause__)

    async def _take(self, method: str, params: Fields) -> None:
        if events := self._events.events_of(method, params):
            await self._write_events(events)
        if self._events.final_status is not None:
            self._ended.set()

    def _answer(self, request_id: int, answer: Fields) -> None:
        self._services.server_requests.take_answer(request_id, answer, self._outbox)
