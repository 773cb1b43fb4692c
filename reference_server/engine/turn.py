"""A turn, from `turn/started` to `turn/completed`.

Its notifications come in this order: turn/started, status active, the user's message, the model's
items, token usage, status idle (or systemError), turn/completed. The specification orders only
turn/started, items and turn/completed ("Ordering"). Status idle comes before turn/completed, so
that a client that sees the turn end finds the thread idle.
"""

import json
import logging
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import anyio
import anyio.lowlevel

from harness.protocol.wire.error import ErrorNotification, TurnError
from harness.protocol.wire.input import UserInput
from harness.protocol.wire.item import ThreadItem, UserMessageItem
from harness.protocol.wire.thread import TokenCounts
from harness.protocol.wire.turn import (
    Turn,
    TurnCompletedNotification,
    TurnStartedNotification,
    TurnStatus,
)
from reference_server.config.model import Provider
from reference_server.engine.compaction import compact
from reference_server.engine.failure import (
    MODEL_CALLS_LIMIT,
    TURN_TEXT_LIMIT,
    count_characters,
    internal_error,
    retry_error,
    too_many_calls,
    turn_error,
    turn_too_long,
)
from reference_server.engine.items import ItemLog
from reference_server.engine.output_schema import OutputSchema, correction, schema_mismatch
from reference_server.engine.prompt import request_body
from reference_server.engine.sampling import Sampled, Sampling, Visibility
from reference_server.engine.steering import Steering, read_input, unread_input
from reference_server.engine.tool_provider import ToolProvider, TurnCalls
from reference_server.engine.turn_context import Work
from reference_server.engine.usage import ContextWindow, Meter, token_counts
from reference_server.model.client import Receive
from reference_server.model.errors import ModelError
from reference_server.model.retry import Retries
from reference_server.refusal import invalid_request
from reference_server.rejected import leave_out
from reference_server.rollout.records import (
    HistoryRecord,
    ReplacedItem,
    TurnCompletedRecord,
    TurnStartedRecord,
)
from reference_server.session.thread import LoadedThread
from reference_server.session.transitions import COUPLING, TurnEvent, next_turn_status
from reference_server.words import assistant_message, without_known_skills

_log = logging.getLogger(__name__)
Fields = dict[str, Any]
MAX_ADDED_BYTES = 32 * 2**20
"""Maximum bytes of steered input that waits for the next model call."""


class Model(Protocol):
    """The parts of the model client that a turn needs."""

    async def call(self, provider: Provider, body: Fields, receive: Receive) -> None:
        """Make one call, passing its events to `receive`. Raises ModelError."""
        ...


class TurnSupport(NamedTuple):
    """The parts that all turns of a server share."""

    model: Model
    tools: ToolProvider
    window: ContextWindow


class TurnInput(NamedTuple):
    """Input of one turn; with `work`, a compaction or a review, `content` is empty."""

    content: list[UserInput]
    output_schema: OutputSchema | None = None
    work: Work | None = None


class ActiveTurn:
    """A turn in progress."""

    def __init__(
        self,
        turn_id: str,
        thread: LoadedThread,
        turn_input: TurnInput,
        support: TurnSupport,
        provider: Provider,
    ) -> None:
        self.id = turn_id
        self.start_event = anyio.Event()
        self.end_event = anyio.Event()
        self._thread = thread
        self._input = turn_input
        self._support = support
        self._provider = provider
        self._scope = anyio.CancelScope()
        self._interrupted = anyio.Event()
        self._status: TurnStatus = "inProgress"
        self._log = ItemLog(thread, turn_id)
        self._sampling = Sampling(self._log)
        self._steering = Steering(self._log)
        self._calls = TurnCalls(support.tools, self._log, self.interrupt, thread.client_tools)
        self._corrected = False
        self._text_size = 0
        self._steered_bytes = 0
        self.meter = Meter(thread, turn_id, support.window)

    @property
    def thread(self) -> LoadedThread:
        """The thread it runs on."""
        return self._thread

    @property
    def log(self) -> ItemLog:
        """Return the log of its items."""
        return self._log

    @property
    def takes_input(self) -> bool:
        """Return whether input can be added to it: not to a compaction or a review."""
        return self._input.work is None

    def own_calls(self) -> TurnCalls:
        """Return new tool calls for a conversation that is not the thread's, as of a review."""
        return TurnCalls(self._support.tools, self._log, self.interrupt)

    def wire(self, error: TurnError | None = None) -> Turn:
        """Return the turn as a wire object, without items, which come as notifications."""
        return Turn(id=self.id, items=[], status=self._status, error=error)

    @property
    def is_interrupted(self) -> bool:
        """Return whether it is to end as interrupted."""
        return self._interrupted.is_set()

    def open_items(self) -> list[ThreadItem]:
        """Return the items that were started and not completed, with the text streamed so far."""
        return self._log.open_items()

    def interrupt(self) -> None:
        """Interrupt the turn: cancel the model call, the tool or the request that it waits for."""
        self._interrupted.set()
        self._scope.cancel()

    def steer(self, content: list[UserInput], words: Fields) -> Callable[[], None]:
        """Record further input; `words` is the same as a Responses API item.

        Return a function that sends the item's notifications. Raises Refusal if more than
        MAX_ADDED_BYTES would wait, OSError.
        """
        size = sum(len(json.dumps(part)) for part in words["content"])
        self._steered_bytes = size + (self._steered_bytes if self._steering.has_waiting else 0)
        if self._steered_bytes > MAX_ADDED_BYTES:
            self._steered_bytes -= size
            raise invalid_request(
                f"turn {self.id} has more than {MAX_ADDED_BYTES // 2**20} MiB of input that no "
                "model call has taken yet; wait for the next items"
            )
        self._status = next_turn_status(self._status, "steered")
        return self._steering.accept(content, words)

    async def run(self) -> None:
        """Run the turn to its end; failures are sent to clients. Raises only if cancelled."""
        error: TurnError | None = None
        try:
            with self._scope:
                self._begin()
                await self._converse()
        except ModelError as failure:
            error = turn_error(failure)
        except OSError as failure:
            _log.warning("turn %s failed: %s", self.id, failure)
            error = internal_error(failure)
        except Exception as failure:
            _log.exception("turn %s failed", self.id)
            error = internal_error(failure)
        except anyio.get_cancelled_exc_class():
            self._interrupted.set()
            raise
        finally:
            self._end(error)

    def _begin(self) -> None:
        thread = self._thread
        try:
            thread.record(
                TurnStartedRecord(
                    at=thread.clock(),
                    turn_id=self.id,
                    settings=thread.settings,
                    server=thread.server_id(),
                )
            )
        finally:
            thread.subscribers.notify(
                TurnStartedNotification(thread_id=thread.id, turn=self.wire())
            )
            thread.change_state(COUPLING[self._status])
            self.start_event.set()

    async def _converse(self) -> None:
        if self._input.work is not None:
            await self._input.work(self)
            return
        await self._take_input()
        for _ in range(MODEL_CALLS_LIMIT):
            # A decision may have interrupted the turn: then the model is not called again.
            await anyio.lowlevel.checkpoint_if_cancelled()
            # Checked here, where every tool call has its output: the turn may fail now.
            if self._text_size > TURN_TEXT_LIMIT:
                raise turn_too_long()
            if self.meter.is_full:
                await compact(self)
            try:
                answer = await self._sample()
            except ModelError as failure:
                self._leave_out_rejected(failure)
                raise
            self._keep(answer)
            if answer.calls:
                await self._calls.carry_out(answer.calls, self.remember)
            elif not self._steering.has_waiting and await self._is_final(answer):
                return
        raise too_many_calls("model", "turn")

    async def _take_input(self) -> None:
        content = self._input.content
        message = UserMessageItem(id=self._thread.new_item_id(), content=content)
        self._thread.note_user_message(message)
        self._log.start_item(message)
        self._log.complete_item(message)
        try:
            words = await read_input(content, self._thread.settings, self._support.tools)
        except anyio.get_cancelled_exc_class():
            # The user's message stays in the conversation, which continues after an interrupt.
            self.remember([unread_input(content)])
            raise
        self.remember([without_known_skills(words, self._thread.history)])

    async def _sample(self) -> Sampled:
        await self._calls.prepare()
        return await self.ask(self._request_body)

    async def ask(
        self, body: Callable[[], Fields], visibility: Visibility = Visibility.ALL
    ) -> Sampled:
        """Call the model, retry where a failure allows it, and return the result.

        `body` is called for each try; `visibility`: the model's items that clients see. Raises
        ModelError.
        """
        retries = Retries(self._provider)
        while True:
            request = body()
            self._sampling = Sampling(self._log, visibility)
            try:
                await self._support.model.call(self._provider, request, self._sampling.receive)
            except ModelError as failure:
                delay = retries.delay(failure)
                if delay is None:
                    raise
                # Items that were streamed so far are completed as they are. The next try begins
                # new ones, and the incomplete answer is not added to the conversation.
                self._sampling.cut()
                self.tell_retry(failure, retries.count(failure.phase))
                with anyio.move_on_after(delay):
                    await self._interrupted.wait()
                # After an interrupt, which ends the pause, the model is not called again.
                await anyio.lowlevel.checkpoint_if_cancelled()
            else:
                # The caller adds the answer to the conversation; an interrupt must not add it too.
                sampling, self._sampling = self._sampling, Sampling(self._log)
                return sampling.result

    def _request_body(self) -> Fields:
        self._steering.join()
        schema = self._input.output_schema
        return request_body(
            self._thread.settings,
            self._thread.history,
            self._calls.offers(),
            schema and schema.schema,
        )

    async def _is_final(self, answer: Sampled) -> bool:
        """Return whether an answer without calls ends the turn.

        False for the first one that does not fit the outputSchema, after asking the model to
        correct it, and if input waits. Raises ModelError if a second one does not fit, OSError.
        """
        schema = self._input.output_schema
        if schema is None:
            return True
        objection = await schema.objection(answer.texts[-1] if answer.texts else "")
        if not objection:
            # Input may have been added during the check.
            return not self._steering.has_waiting
        failure = schema_mismatch(objection)
        if self._corrected:
            raise failure
        self._corrected = True
        self.tell_retry(failure, "1/1")
        self.remember([correction(objection)])
        return False

    def _keep(self, answer: Sampled) -> None:
        tokens = token_counts(answer.usage)
        self.remember(answer.history, tokens)
        self.meter.report(tokens, of_thread=bool(answer.history))

    def _leave_out_rejected(self, failure: ModelError) -> None:
        """Replace, in the conversation, parts for which the provider rejected the call."""
        thread = self._thread
        if failure.rejects is None or not thread.history:
            return
        replaced = leave_out(thread.history, failure.rejects, str(failure), thread.rejected_item)
        thread.rejected_item = thread.history[-1]
        if not replaced:
            return
        items = [ReplacedItem(from_end=one.from_end, item=one.item) for one in replaced]
        record = HistoryRecord(at=thread.clock(), turn_id=self.id, items=[])
        try:
            thread.record(record.model_copy(update={"replaced": items}))
        except OSError as error:
            _log.error("thread %s: not recorded: %s", thread.id, error)

    def count(self, answer: Sampled) -> None:
        """Count the tokens of a call for another conversation than the thread's. Raises OSError."""
        tokens = token_counts(answer.usage)
        self.remember([], tokens)
        self.meter.report(tokens, of_thread=False)

    def remember(self, items: list[Fields], tokens: TokenCounts | None = None) -> None:
        """Record `items` and append them to the conversation; `tokens` are those of the call.

        Raises OSError if they cannot be stored.
        """
        if not items and tokens is None:
            return
        thread = self._thread
        self._text_size += count_characters(items)
        record = HistoryRecord(at=thread.clock(), turn_id=self.id, items=items)
        # Recorded first: the conversation must not hold anything that the rollout lacks.
        thread.record(record if tokens is None else record.model_copy(update={"tokens": tokens}))
        thread.history.extend(items)

    def tell_retry(self, failure: ModelError, how: str) -> None:
        """Send an `error` notification that the turn will retry; `how` reads like `2/5`."""
        self._tell_error(retry_error(failure, how), retry=True)

    def _tell_error(self, error: TurnError, *, retry: bool) -> None:
        self._thread.subscribers.notify(
            ErrorNotification(
                error=error, will_retry=retry, thread_id=self._thread.id, turn_id=self.id
            )
        )

    def _end(self, error: TurnError | None) -> None:
        """Record the end and send its notifications, without awaiting, so nothing comes between."""
        event: TurnEvent = "failed" if error else "finished"
        if self._interrupted.is_set():
            # The response to turn/interrupt has promised the client this end.
            event, error = "interrupted", None
        if error is not None:
            self._tell_error(error, retry=False)
        try:
            self._cut_off()
        except OSError as failure:
            _log.error("thread %s: not recorded: %s", self._thread.id, failure)
        self._status = next_turn_status(self._status, event)
        self._record_end(error)
        self._thread.turn = None
        self._thread.change_state(COUPLING[self._status])
        self._thread.subscribers.notify(
            TurnCompletedNotification(thread_id=self._thread.id, turn=self.wire(error))
        )
        self.end_event.set()

    def _cut_off(self) -> None:
        """Complete open items; add to the conversation all that the next turn must know.

        That is the streamed text of an interrupted reply, outputs of unfinished calls, and steered
        input that waits. Raises OSError.
        """
        texts = self._sampling.cut()
        if self._interrupted.is_set():
            self.remember([assistant_message(text) for text in texts if text])
        self.remember(self._calls.cut())
        self._steering.join()

    def _record_end(self, error: TurnError | None) -> None:
        thread = self._thread
        try:
            thread.record(
                TurnCompletedRecord(
                    at=thread.clock(), turn_id=self.id, status=self._status, error=error
                )
            )
        except OSError as failure:
            _log.error("thread %s: not recorded: %s", thread.id, failure)
