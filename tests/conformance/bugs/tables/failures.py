"""Bugs about a model that fails: wrong reports, wrong retries, a lost history."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.conformance.bugs.planting import Message, instead, swap
from tests.conformance.bugs.registry import bug
from tests.conformance.bugs.tables.commands import A_WHILE
from tests.conformance.bugs.tables.interrupts import refuses_the_next_turn
from tests.conformance.bugs.tables.turns import TURN, ends

CALL = "reference_server.model.client:ModelClient.call"
STUCK = "scenario.expectation: the thread is not ready"
ENDED = "scenario.expectation: ended as completed"


def calls(change: Callable[[Any, list[Any], Any], Any]) -> None:
    """Let `change(failure, seen, receive)` replace the failure of a model call; None drops it.

    `seen` are the events that had come, `receive` takes more of them.
    """

    def call(original: Any) -> Any:
        async def changed(client: Any, provider: Any, body: Message, receive: Any) -> None:
            from reference_server.model.errors import ModelError

            seen: list[Any] = []

            async def noted(events: list[Any]) -> None:
                seen.extend(events)
                await receive(events)

            try:
                await original(client, provider, body, noted)
            except ModelError as failure:
                if (final := await change(failure, seen, receive)) is not None:
                    raise final from None

        return changed

    swap(CALL, call)


def taken_for_the_end(which: Callable[[Any, list[Any]], bool], *, twice: bool = False) -> None:
    """Take a failure that `which(failure, seen)` picks for the end of an answer.

    With `twice`, the items that were whole by then are taken for two.
    """

    async def change(failure: Any, seen: list[Any], receive: Any) -> Any:
        from reference_server.model.events import Completed, OutputItemDone

        if not which(failure, seen):
            return failure
        if twice:
            await receive([event for event in seen if isinstance(event, OutputItemDone)])
        await receive([Completed()])
        return None

    calls(change)


def swallowed(words: str) -> None:
    """Take a failure with these words for the end of an answer."""
    taken_for_the_end(lambda failure, _: words in str(failure))


def other_failure(change: Callable[[Any], Any]) -> None:
    """Change failures of the model before anything is made of them."""

    async def changed(failure: Any, seen: list[Any], receive: Any) -> Any:
        return change(failure)

    calls(changed)


def _kinds(seen: list[Any]) -> set[str]:
    """The types of the items of which something had come."""
    found = {str(getattr(event, "item", {}).get("type", "")) for event in seen}
    names = {type(event).__name__ for event in seen}
    return found | ({"reasoning"} if names & {"SummaryDelta", "ReasoningDelta"} else set())


@bug(reds={"failures/after-a-tool": "scenario.expectation: without its output"})
def a_failed_turn_forgets_the_outputs_of_its_calls() -> None:
    """After a failed turn the model gets its calls without their outputs."""

    def end(original: Any) -> Any:
        def changed(turn: Any, error: Any) -> None:
            history = turn.thread.history
            if error is not None:
                history[:] = [one for one in history if "output" not in str(one.get("type"))]
            original(turn, error)

        return changed

    swap(f"{TURN}:ActiveTurn._end", end)


@bug(reds={"failures/rejected-image": "turn.fails-with-its-model"})
def a_rejected_image_is_taken_for_an_answer() -> None:
    """A turn whose image the model has rejected is completed."""
    taken_for_the_end(lambda failure, _: "image" in failure.details)


@bug(reds={"failures/bad-request": "turn.error-iff-failed"})
def a_failed_turn_has_no_error() -> None:
    """A turn that failed ends without an error that says why."""
    ends(lambda turn: turn.update(error=None))


@bug(
    reds={
        "failures/connection-refused": "scenario.expectation: ended as failed",
        "failures/unreachable": "scenario.expectation: ended as failed",
    }
)
def a_model_that_was_not_reached_is_gone_for_good() -> None:
    """Every turn fails after the first connection to the model that could not be made."""
    refused: list[Any] = []

    def call(original: Any) -> Any:
        async def changed(client: Any, *given: Any) -> None:
            from reference_server.model.errors import ModelError

            try:
                await original(client, *given)
            except ModelError as failure:
                refused.append(replace(failure, retryable=False))
            if refused:
                raise refused[0]

        return changed

    swap(CALL, call)


@bug(reds={"failures/context-window": ENDED})
def a_conversation_that_is_too_long_has_an_empty_answer() -> None:
    """A stream that reports an overlong conversation counts as an empty answer."""
    swallowed("(context_length_exceeded)")


@bug(
    reds={
        "failures/cut-after-a-call": "scenario.expectation: made\\nmade",
        "failures/cut-after-a-patch": "scenario.expectation: two\\ntwo",
    }
)
def a_call_of_a_cut_stream_is_carried_out_twice() -> None:
    """A call that was whole when its stream was cut is carried out, and then once more."""
    taken_for_the_end(lambda _, seen: bool(_kinds(seen) & CALLS), twice=True)


CALLS = {"function_call", "custom_tool_call"}


@bug(reds={"failures/cut-after-a-failure": ENDED})
def a_failure_right_before_a_cut_is_lost() -> None:
    """A stream that reports a failure and is then cut counts as an empty answer."""
    swallowed("(insufficient_quota)")


@bug(reds={"failures/cut-after-completed": "scenario.expectation: model calls"})
def an_answer_that_is_complete_is_asked_for_again() -> None:
    """A stream that is cut after its last event counts as cut."""
    asked: list[Message] = []

    def call(original: Any) -> Any:
        async def changed(client: Any, provider: Any, body: Message, receive: Any) -> None:
            from reference_server.model.errors import stream_broken

            await original(client, provider, body, receive)
            asked.append(body)
            if len(asked) == 1:
                raise stream_broken("the stream was cut")

        return changed

    swap(CALL, call)


@bug(
    reds={
        "failures/cut-around-a-call": "scenario.expectation: made.txt: line",
        "failures/cut-around-a-patch": "scenario.expectation: two.txt exists",
        "failures/cut-within-a-call": "scenario.expectation: made.txt: line",
    }
)
def a_call_is_carried_out_before_its_end() -> None:
    """A call is carried out with partial arguments after its stream was cut."""
    begun: dict[int, Message] = {}

    def read(original: Any) -> Any:
        def changed(fields: Message) -> Any:
            from reference_server.model.events import OutputItemDone

            index, kind = fields.get("output_index", 0), str(fields.get("type"))
            item = fields.get("item", {})
            if kind == "response.output_item.added" and item.get("type") in CALLS:
                begun[index] = item
            if kind.endswith(("arguments.delta", "input.delta")):
                call = begun.pop(index)
                text = "input" if call["type"] == "custom_tool_call" else "arguments"
                return OutputItemDone(index, {**call, text: fields["delta"]})
            if kind == "response.output_item.done" and item.get("type") in CALLS:
                return None if index not in begun else original(fields)
            return original(fields)

        return changed

    swap("reference_server.model.events:_read_other", read)
    taken_for_the_end(lambda _, seen: "OutputItemDone" in {type(one).__name__ for one in seen})


@bug(reds={"failures/cut-around-a-search": "turn.fails-with-its-model"})
def an_answer_that_is_cut_at_a_search_is_whole() -> None:
    """A stream that is cut when a search has begun counts as an answer."""
    taken_for_the_end(lambda _, seen: "web_search_call" in _kinds(seen))


@bug(
    reds={
        "failures/cut-around-message": "turn.fails-with-its-model",
        "failures/cut-at-events": "turn.fails-with-its-model",
        "failures/cut-once": "scenario.expectation: model calls",
        "failures/disconnect-retry": "turn.fails-with-its-model",
    }
)
def an_answer_that_is_cut_within_a_message_is_whole() -> None:
    """A stream that is cut when a message has begun counts as an answer."""
    taken_for_the_end(lambda _, seen: "message" in _kinds(seen))


@bug(
    reds={
        "failures/cut-around-reasoning": "turn.fails-with-its-model",
        "failures/cut-within-reasoning": "turn.fails-with-its-model",
    }
)
def an_answer_that_is_cut_within_reasoning_is_whole() -> None:
    """A stream that is cut when reasoning has begun counts as an answer."""
    taken_for_the_end(lambda _, seen: "reasoning" in _kinds(seen))


@bug(reds={"failures/retry-twice": "turn.fails-with-its-model"})
def a_model_that_is_called_too_often_has_nothing_to_say() -> None:
    """The failure `rate_limit_exceeded` counts as an empty answer, without a retry."""
    swallowed("(rate_limit_exceeded)")


@bug(reds={"failures/several-failures": "turn.fails-with-its-model"})
def one_kind_of_failure_is_no_failure() -> None:
    """A cut stream is retried; a failure that the model reports counts as an empty answer."""
    swallowed("(server_error)")


@bug(
    reds={
        "compaction/automatic-fails": STUCK,
        "failures/disconnect-until-turn-ends": STUCK,
        "failures/error-event": STUCK,
        "failures/http-500": STUCK,
    }
)
def a_thread_whose_turn_failed_is_stuck() -> None:
    """No turn can begin where one has failed."""
    refuses_the_next_turn(lambda turn: turn._status == "failed")


@bug(reds={"failures/elsewhere": ENDED})
def an_address_elsewhere_is_an_answer() -> None:
    """A redirect counts as an empty answer."""
    swallowed("HTTP status 302")


@bug(reds={"failures/empty-body": ENDED})
def a_failure_without_words_is_none() -> None:
    """A failure whose answer has no body counts as an empty answer."""
    swallowed("without a text")


@bug(reds={"failures/half-line": "scenario.expectation: ended as failed"})
def half_a_line_is_final() -> None:
    """A turn fails where its stream ends within a line."""
    left: list[bytes] = []

    def feed(original: Any) -> Any:
        def changed(parser: Any, chunk: bytes) -> list[bytes]:
            events: list[bytes] = original(parser, chunk)
            left[:] = parser._rest
            return events

        return changed

    swap("reference_server.model.sse:SseParser.feed", feed)
    other_failure(lambda failure: replace(failure, retryable=not left))


@bug(reds={"failures/idle-stream": "scenario.expectation: ended as failed"})
def silence_is_final() -> None:
    """A turn fails where its stream falls silent."""
    other_failure(
        lambda failure: replace(failure, retryable="nothing was received" not in failure.details)
    )


@bug(reds={"failures/limits-of-use": ENDED})
def an_empty_purse_is_no_failure() -> None:
    """The failure `billing_hard_limit_reached` counts as an empty answer."""
    swallowed("(billing_hard_limit_reached)")


@bug(reds={"failures/malformed-event": "scenario.crash: exit status 70"})
def an_event_that_cannot_be_read_ends_the_server() -> None:
    """The server stops at bytes of the model that are not JSON."""
    instead("reference_server.model.events:stream_broken", lambda *_: os._exit(70))


@bug(reds={"failures/unheard-of-events": "scenario.crash: exit status 70"})
def an_unknown_event_ends_the_server() -> None:
    """The server stops at an event of the model that it does not know."""

    def read(original: Any) -> Any:
        def changed(fields: Message) -> Any:
            if "unheard" in str(fields.get("type")):
                os._exit(70)
            return original(fields)

        return changed

    swap("reference_server.model.events:_read_other", read)


@bug(reds={"failures/not-a-stream": ENDED})
def a_page_is_an_answer() -> None:
    """A page instead of a stream of events counts as an empty answer."""
    swallowed("no stream of events")


@bug(reds={"failures/not-now": ENDED})
def too_early_is_no_failure() -> None:
    """The failure with status 425 counts as an empty answer."""
    swallowed("HTTP status 425")


@bug(reds={"failures/nothing-half": "scenario.expectation: does not contain 'look about'"})
def a_retry_asks_for_nothing() -> None:
    """A retry of a call of the model lacks the user's message."""

    def ask(original: Any) -> Any:
        async def changed(turn: Any, body: Any, *shows: Any) -> Any:
            tries = 0

            def shorter() -> Message:
                nonlocal tries
                tries += 1
                asked: Message = body()
                if tries > 1:
                    asked["input"] = json.loads(
                        json.dumps(asked["input"]).replace("look about", "")
                    )
                return asked

            return await original(turn, shorter, *shows)

        return changed

    swap(f"{TURN}:ActiveTurn.ask", ask)


@bug(reds={"failures/odd-bodies": ENDED})
def a_failure_in_html_is_none() -> None:
    """A failure whose body is an HTML page counts as an empty answer."""
    swallowed("<html>")


@bug(reds={"failures/other-failures": ENDED})
def a_failure_that_nobody_knows_is_none() -> None:
    """The failure with status 418 counts as an empty answer."""
    swallowed("HTTP status 418")


@bug(reds={"failures/overloaded": "scenario.expectation: none of 2 accepted outcomes"})
def an_overloaded_model_has_nothing_to_say() -> None:
    """The failure with status 503 counts as an empty answer, without a retry."""
    swallowed("HTTP status 503")


@bug(reds={"failures/refused-requests": ENDED})
def a_request_that_cannot_be_worked_on_is_no_failure() -> None:
    """The failure with status 422 counts as an empty answer."""
    swallowed("HTTP status 422")


@bug(reds={"failures/retry-after": "scenario.expectation: none of 2 accepted outcomes"})
def a_model_that_asks_for_patience_has_nothing_to_say() -> None:
    """A failure with Retry-After counts as an empty answer, without a retry."""
    taken_for_the_end(lambda failure, _: failure.retry_after is not None)


def _waits(original: Any, which: Callable[[Any], bool]) -> Any:
    def delay(retries: Any, failure: Any) -> float | None:
        return A_WHILE if which(failure) else original(retries, failure)

    return delay


@bug(reds={"failures/retry-after-a-day": "scenario.timeout: step wait"})
def a_day_is_waited_for() -> None:
    """The pause that a model asks for cannot be interrupted."""
    swap(
        "reference_server.model.retry:Retries.delay",
        lambda original: _waits(original, lambda failure: (failure.retry_after or 0) > 1000),
    )
    swap(
        f"{TURN}:ActiveTurn.interrupt",
        lambda original: lambda turn: original(turn) if turn._sampling.result.usage else None,
    )


@bug(
    reds={
        "failures/retry-after-odd": "scenario.timeout: step wait",
        "failures/retry-date": "scenario.timeout: step wait",
    }
)
def a_pause_that_is_no_number_is_without_end() -> None:
    """A turn waits without end if the model's Retry-After is not a number of seconds."""

    def read(original: Any) -> Any:
        def changed(headers: Any) -> float | None:
            value = headers.get("retry-after", "0")
            return original(headers) if value.replace(".", "").isdigit() else A_WHILE

        return changed

    swap("reference_server.model.errors:_retry_after", read)


@bug(reds={"failures/slow-stream": "scenario.expectation: model calls"})
def a_moment_of_silence_is_a_cut() -> None:
    """A stream that is silent for a fifth of a second counts as cut."""

    def call(original: Any) -> Any:
        async def hasty(client: Any, provider: Any, *given: Any) -> None:
            await original(client, replace(provider, stream_idle_timeout_ms=200), *given)

        return hasty

    swap("reference_server.model.client:ModelClient._call", call)


@bug(reds={"failures/thread-after-failures": STUCK})
def two_failures_are_enough() -> None:
    """No turn can begin on a thread of which two have failed."""

    def after(turn: Any) -> bool:
        failed = getattr(turn.thread, "failed", 0) + (turn._status == "failed")
        turn.thread.failed = failed
        return failed > 1

    refuses_the_next_turn(after)


@bug(reds={"failures/unauthorized": ENDED})
def one_way_to_refuse_a_caller_is_no_failure() -> None:
    """The failure `authentication_error` counts as an empty answer."""
    swallowed("(authentication_error)")


@bug(reds={"failures/usage-limit": ENDED})
def a_limit_of_use_is_no_failure() -> None:
    """The failure `usage_limit_reached` counts as an empty answer."""
    swallowed("usage_limit_reached")
