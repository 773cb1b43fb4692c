"""Bugs about the tools that a client brings."""

from __future__ import annotations

from typing import Any

import anyio

from tests.conformance.bugs.planting import Message, received, swap
from tests.conformance.bugs.registry import bug

DYNAMIC = "reference_server.engine.tools.dynamic"
REQUESTS = "reference_server.session.server_requests:ServerRequests"


def tells(change: Any) -> None:
    """Change the answer of a client's tool before the model gets it."""

    def told(original: Any) -> Any:
        return lambda answer, budget: original(change(answer), budget)

    swap(f"{DYNAMIC}:model_output", told)


def with_content(answer: Any, content: list[Any]) -> Any:
    return type(answer)(success=answer.success, content=content)


@bug(reds={"tools/dynamic/fails": "scenario.expectation: does not contain 'no such key'"})
def the_model_is_not_told_why_a_clients_tool_failed() -> None:
    """The model gets the failure of a client's tool without its content."""
    tells(lambda answer: answer if answer.success else with_content(answer, []))


@bug(reds={"tools/dynamic/image": "scenario.expectation: does not contain 'iVBOR"})
def images_of_a_clients_tool_are_left_out() -> None:
    """The model gets the texts of a client's tool, but not its images."""
    tells(
        lambda answer: with_content(
            answer, [one for one in answer.content if one.type == "inputText"]
        )
    )


@bug(reds={"tools/dynamic/nothing": "scenario.expectation: failed"})
def a_clients_tool_must_give_something() -> None:
    """A turn fails if a client's tool returns no content."""

    def first(answer: Any) -> Any:
        if not answer.content:
            raise OSError("there is nothing")
        return answer

    tells(first)


@bug(reds={"tools/dynamic/two-calls": "scenario.expectation: does not contain 'seven miles'"})
def what_a_clients_tool_gave_once_it_gives_again() -> None:
    """A second call of a client's tool within a turn returns the result of the first."""
    given: dict[Any, Any] = {}

    def run(original: Any) -> Any:
        async def remembered(tool: Any, call: Any, context: Any) -> Any:
            output = await original(tool, call, context)
            return given.setdefault((context.log.turn_id, tool.name), output)

        return remembered

    swap(f"{DYNAMIC}:ClientTool.run", run)


@bug(reds={"tools/dynamic/next-turn": "scenario.expectation: wanted to dynamic_call"})
def a_clients_tools_are_for_one_turn() -> None:
    """The tools of a client are offered to the model in the first turn only."""

    def offers(original: Any) -> Any:
        def fewer(calls: Any) -> Any:
            found = original(calls)
            thread = calls._log.thread
            first = first_turns.setdefault(thread.id, calls._log.turn_id)
            return found if calls._log.turn_id == first else found[: -len(thread.client_tools)]

        return fewer

    first_turns: dict[str, str] = {}
    swap("reference_server.engine.tool_provider:TurnCalls.offers", offers)


@bug(
    reds={
        "tools/dynamic/error": "scenario.timeout: end of turn u",
        "tools/dynamic/malformed": "scenario.timeout: end of turn u",
    }
)
def an_answer_that_is_no_result_is_not_taken() -> None:
    """The server waits for a client's tool until it returns a result."""

    def take(original: Any) -> Any:
        def taken(requests: Any, request_id: Any, answer: Message, sender: Any) -> None:
            result = answer.get("result")
            if isinstance(result, dict) and "contentItems" in result:
                original(requests, request_id, answer, sender)

        return taken

    swap(f"{REQUESTS}.take_answer", take)


@bug(reds={"tools/dynamic/interrupted": "scenario.timeout: end of turn u"})
def an_interrupt_waits_for_the_clients_tool() -> None:
    """A turn whose interrupt is granted goes on until the client has answered."""

    def ask(original: Any) -> Any:
        async def asked(*given: Any, **more: Any) -> Any:
            with anyio.CancelScope(shield=True):
                return await original(*given, **more)

        return asked

    swap(f"{REQUESTS}.ask", ask)


@bug(reds={"tools/dynamic/answered-too-late": "request.answered"})
def an_answer_that_comes_too_late_is_the_last_thing_read() -> None:
    """After a late answer of the client the server accepts no more requests."""
    late: set[Any] = set()

    def receive(method: str, message: Message) -> Message:
        if late and "id" in message:
            return {"method": "nothing/at/all"}
        if method == "answer" and "contentItems" in (message.get("result") or {}):
            late.add(message["id"])
        return message

    received(receive)
