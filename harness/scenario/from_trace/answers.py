"""Answers of a client to the requests of its server, as steps of a scenario."""

from typing import Any, Final

from harness.protocol.values import dig, obj, text
from harness.scenario.from_trace.item_parts import Conversion
from harness.scenario.from_trace.story import Story
from harness.trace.frame import Direction, Frame, Kind

_NEEDS_OF_QUESTION: Final = {
    "item/commandExecution/requestApproval": ("command-approval",),
    "item/fileChange/requestApproval": ("file-change-approval",),
    "item/tool/call": ("dynamic-tools",),
}
_DEFAULT_ERROR_CODE: Final = -32000


def answer_body(
    story: Story, conversion: Conversion, answer: Frame, question: Frame
) -> dict[str, Any]:
    """Return the `answer` step that repeats an answer, and note the capabilities that it needs."""
    body: dict[str, Any] = {"to": question.method}
    if where := _where_of_question(story, conversion, answer, question):
        body["where"] = where
    if was_answered(story, question, answer.seq):
        body["again"] = True
    result = obj(answer.result)
    if answer.kind is Kind.ERROR:
        error = obj(answer.failure)
        code = error.get("code")
        body["error"] = {
            "code": code if type(code) is int else _DEFAULT_ERROR_CODE,
            "message": text(error.get("message")) or "refused",
        }
    elif result.keys() == {"decision"}:
        body["decision"] = result["decision"]
    else:
        body["result"] = answer.result
    if answer.deliberate:
        body["deliberate"] = True
    conversion.needs |= dict.fromkeys(_NEEDS_OF_QUESTION.get(question.method, ()))
    return body


def question_of(story: Story, answer: Frame) -> Frame | None:
    """Return the last server request before an answer with the same id; None if there is none."""
    questions = [
        question
        for question in _questions(story, answer.connection)
        if question.id == answer.id and question.seq < answer.seq
    ]
    return questions[-1] if questions else None


def was_answered(story: Story, question: Frame, before: int) -> bool:
    """Return whether the client answered a server request before the frame number `before`."""
    return any(
        frame.direction is Direction.TO_TARGET
        and frame.kind in (Kind.RESPONSE, Kind.ERROR)
        and frame.connection == question.connection
        and frame.id == question.id
        and question.seq < frame.seq < before
        for frame in story.frames
    )


def _where_of_question(
    story: Story, conversion: Conversion, answer: Frame, question: Frame
) -> dict[str, Any] | None:
    """Return the `where` that selects a request among open ones; None if unneeded or impossible."""
    open_questions = [
        other
        for other in _questions(story, answer.connection)
        if other.method == question.method
        and other is not question
        and other.seq < answer.seq
        and not was_answered(story, other, answer.seq)
    ]
    if not open_questions:
        return None
    command = dig(question.params, "command")
    other_commands = [dig(other.params, "command") for other in open_questions]
    if isinstance(command, str | list) and command not in other_commands:
        return {"command": command}
    conversion.add_note(f"several {question.method} were open; they are answered in order")
    return None


def _questions(story: Story, connection: str) -> list[Frame]:
    return [
        frame
        for frame in story.frames
        if frame.kind is Kind.REQUEST
        and frame.direction is Direction.FROM_TARGET
        and frame.connection == connection
    ]
