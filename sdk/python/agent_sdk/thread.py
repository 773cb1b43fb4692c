"""A thread, whose turns run one after the other, buffered or streamed."""

import weakref
from collections.abc import Mapping
from typing import Any, TypeVar, overload

from agent_sdk.abort import AbortSignal
from agent_sdk.errors import AgentError
from agent_sdk.events import (
    ItemCompletedEvent,
    ThreadErrorEvent,
    ThreadEvent,
    ThreadStartedEvent,
    TurnCompletedEvent,
    TurnFailedEvent,
    Usage,
)
from agent_sdk.inputs import Input, Prompt, build_prompt
from agent_sdk.items import AgentMessageItem, ThreadItem
from agent_sdk.options import KEY, AgentOptions, ThreadOptions, command_line
from agent_sdk.process import Process
from agent_sdk.result import RunResult, TurnFailedError
from agent_sdk.schema import OutputSchema, Schema, SchemaFile, build_schema
from agent_sdk.starting import start
from agent_sdk.stream import Launch, RunStreamedResult, redact
from agent_sdk.sync import Loop, SyncRunStreamedResult

T = TypeVar("T")


class Thread:
    """A thread of an agent, made by `Agent.start_thread` and `Agent.resume_thread`.

    It keeps no process: each turn is one run of the agent. A turn that begins while another one
    runs raises AgentError.
    """

    def __init__(self, agent: AgentOptions, options: ThreadOptions, thread_id: str | None) -> None:
        self._agent = agent
        self._options = options
        self._id = thread_id
        self._current: weakref.ref[RunStreamedResult] | None = None
        self._previous: Process | None = None
        # Raises ConfigError here, where the options were given, not in the first turn.
        command_line(agent, options, thread_id=None, images=(), schema=None)

    def __repr__(self) -> str:
        return f"Thread(id={self._id!r})"

    @property
    def id(self) -> str | None:
        """The id, to resume the thread later; None until the agent has reported it."""
        return self._id

    def run_streamed(
        self,
        input: Input,
        *,
        output_schema: OutputSchema | None = None,
        signal: AbortSignal | None = None,
    ) -> RunStreamedResult:
        """Return the events of a new turn as they arrive; iterating starts it.

        >>> async with thread.run_streamed("Tidy up") as events:  # doctest: +SKIP
        ...     async for event in events:
        ...         print(event.type)

        Raises ConfigError for an invalid input or schema. All other errors are raised while
        iterating.
        """
        return self._stream(build_prompt(input), _optional_schema(output_schema), signal)

    @overload
    async def run(
        self, input: Input, *, output_schema: type[T], signal: AbortSignal | None = None
    ) -> RunResult[T]: ...
    @overload
    async def run(
        self,
        input: Input,
        *,
        output_schema: Mapping[str, Any] | None = None,
        signal: AbortSignal | None = None,
    ) -> RunResult[Any]: ...
    async def run(
        self,
        input: Input,
        *,
        output_schema: OutputSchema | None = None,
        signal: AbortSignal | None = None,
    ) -> RunResult[Any]:
        """Run a turn to its end and return its result.

        Raises TurnFailedError with the agent's message if the turn fails, AbortError if the signal
        is aborted, and ConfigError, AgentNotFoundError, ProcessError or ProtocolError. The agent is
        ended in every case; processes that it left running when it exited by itself stay.
        """
        return await self._run(input, output_schema, signal)

    async def _run(
        self, input: Input, output_schema: OutputSchema | None, signal: AbortSignal | None
    ) -> RunResult[Any]:
        schema = _optional_schema(output_schema)
        stream = self._stream(build_prompt(input), schema, signal)
        items: list[ThreadItem] = []
        response, usage, end, error = "", None, None, None
        try:
            async for event in stream:
                match event:
                    case ItemCompletedEvent(item=item):
                        items.append(item)
                        response = item.text if isinstance(item, AgentMessageItem) else response
                    case TurnCompletedEvent() | TurnFailedEvent():
                        end = end or event
                        usage = event.usage if isinstance(event, TurnCompletedEvent) else usage
                    case ThreadErrorEvent():
                        error = event
                    case _:
                        pass
        finally:
            await stream.aclose()
        if not isinstance(end, TurnCompletedEvent):
            message = end.error.message if end else error.message if error else ""
            raise self._turn_failed(message, tuple(items), usage, stream.stderr)
        return RunResult(
            final_response=response,
            items=tuple(items),
            usage=usage,
            output_type=schema.type if schema else None,
        )

    def _turn_failed(
        self, message: str, items: tuple[ThreadItem, ...], usage: Usage | None, stderr: str
    ) -> TurnFailedError:
        return TurnFailedError(
            redact(message, self._secrets()) or "the agent did not say why the turn failed",
            thread_id=self._id,
            items=items,
            usage=usage,
            stderr=stderr,
        )

    def _secrets(self) -> tuple[str, ...]:
        key = self._agent.child_environment().get(KEY, "")
        return (key,) if key else ()

    @overload
    def run_sync(
        self, input: Input, *, output_schema: type[T], signal: AbortSignal | None = None
    ) -> RunResult[T]: ...
    @overload
    def run_sync(
        self,
        input: Input,
        *,
        output_schema: Mapping[str, Any] | None = None,
        signal: AbortSignal | None = None,
    ) -> RunResult[Any]: ...
    def run_sync(
        self,
        input: Input,
        *,
        output_schema: OutputSchema | None = None,
        signal: AbortSignal | None = None,
    ) -> RunResult[Any]:
        """Run a turn as `run` does, but block until it has ended.

        Ctrl-C ends the agent and its descendants.
        """
        with Loop() as loop:
            return loop.run(self._run(input, output_schema, signal))

    def run_streamed_sync(
        self,
        input: Input,
        *,
        output_schema: OutputSchema | None = None,
        signal: AbortSignal | None = None,
    ) -> SyncRunStreamedResult:
        """Return the events of a new turn as `run_streamed` does, as a blocking iterator.

        >>> with thread.run_streamed_sync("Tidy up") as events:  # doctest: +SKIP
        ...     for event in events:
        ...         print(event.type)
        """
        return SyncRunStreamedResult(
            self.run_streamed(input, output_schema=output_schema, signal=signal)
        )

    def _stream(
        self, prompt: Prompt, schema: Schema | None, signal: AbortSignal | None
    ) -> RunStreamedResult:
        own: list[weakref.ref[RunStreamedResult]] = []

        async def begin() -> Process:
            self._claim(own[0])
            # The previous run saves the thread until it ends; this one continues from that state.
            if (previous := self._previous) is not None:
                await previous.wait_until_done()
            self._previous = self._launch(prompt, schema)
            return self._previous

        stream = RunStreamedResult(Launch(begin, self._observe, self._secrets(), signal))
        # A strong reference would keep the stream from being collected.
        own.append(weakref.ref(stream))
        return stream

    def _claim(self, own: weakref.ref[RunStreamedResult]) -> None:
        current = self._current and self._current()
        if current is not None and current is not own() and current.active:
            raise AgentError("a turn of this thread still runs; let it end, or close its stream")
        self._current = own

    def _launch(self, prompt: Prompt, schema: Schema | None) -> Process:
        file = SchemaFile(schema) if schema else None
        try:
            words = command_line(
                self._agent,
                self._options,
                thread_id=self._id,
                images=prompt.images,
                schema=file.path if file else None,
            )
        except BaseException:
            if file:
                file.remove()
            raise
        return start(
            self._agent.program,
            words,
            self._agent.child_environment(),
            prompt.text,
            file.remove if file else _do_nothing,
        )

    def _observe(self, event: ThreadEvent) -> None:
        if isinstance(event, ThreadStartedEvent):
            self._id = event.thread_id


def _optional_schema(value: OutputSchema | None) -> Schema | None:
    return None if value is None else build_schema(value)


def _do_nothing() -> None:
    pass
