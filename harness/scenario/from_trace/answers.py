"""Answers of a client to the requests of its server, as steps of a scenario."""

from typing import Any, Final

from harness.protocol.values import dig, obj, text
from harness.scenario.from_trace.story import Story
from harness.scenario.from_trace.told_items import Workshop
from harness.trace.frame import Direction, Frame, Kind

_NEEDED: Final = {
    "item/commandExecution/requestApproval": ("command-approval",),
    "item/fileChange/requestApproval": ("file-change-approval",),
    "item/tool/call": ("dynamic-tools",),
}
_REFUSED: Final = -32000


def answer_body(story: Story, shop: Workshop, answer: Frame, question: Frame) -> dict[str, Any]:
    """The `answer` step for an answer; a `result` stands in it as it was sent."""
    body: dict[str, Any] = {"to": question.method}
    if where := _which(story, shop, answer, question):
        body["where"] = where
    if was_answered(story, question, answer.seq):
        body["again"] = True
    result = obj(answer.result)
    if answer.kind is Kind.ERROR:
        error = obj(answer.failure)
        code = error.get("code")
        body["error"] = {
            "code": code if type(code) is int else _REFUSED,
            "message": text(error.get("message")) or "refused",
        }
    elif result.keys() == {"decision"}:
        body["decision"] = result["decision"]
    else:
        body["result"] = answer.result
    if answer.deliberate:
        body["deliberate"] = True
    shop.needs |= dict.fromkeys(_NEEDED.get(question.method, ()))
    return body


def question_of(story: Story, answer: Frame) -> Frame | None:
    """The last request of the server with the id of an answer, None where there is none."""
    asked = [
        one
        for one in _questions(story, answer.connection)
        if one.id == answer.id and one.seq < answer.seq
    ]
    return asked[-1] if asked else None


def was_answered(story: Story, question: Frame, before: int) -> bool:
    """Return whether the client had answered a request of the server before a frame."""
    return any(
        one.direction is Direction.TO_TARGET
        and one.kind in (Kind.RESPONSE, Kind.ERROR)
        and one.connection == question.connection
        and one.id == question.id
        and question.seq < one.seq < before
        for one in story.frames
    )


def _which(story: Story, shop: Workshop, answer: Frame, question: Frame) -> dict[str, Any] | None:
    """Return what tells a request from others of its kind that were open too, or None."""
    alike = [
        one
        for one in _questions(story, answer.connection)
        if one.method == question.method
        and one is not question
        and one.seq < answer.seq
        and not was_answered(story, one, answer.seq)
    ]
    if not alike:
        return None
    command = dig(question.params, "command")
    others = [dig(one.params, "command") for one in alike]
    if isinstance(command, str | list) and command not in others:
        return {"command": command}
    shop.note(f"several {question.method} were open; they are answered in order")
    return None


def _questions(story: Story, connection: str) -> list[Frame]:
    return [
        one
        for one in story.frames
        if one.kind is Kind.REQUEST
        and one.direction is Direction.FROM_TARGET
        and one.connection == connection
    ]
