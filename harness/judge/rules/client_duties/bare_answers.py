"""Answers without content: an object with the id of an open server request, and nothing else."""

from harness.protocol.values import obj
from harness.trace.correlation import key_of, request_key
from harness.trace.frame import SAYS_NOTHING, Frame, Kind, opposite
from harness.trace.views import Conversation


def question_of_bare_answer(conversation: Conversation, frame: Frame) -> Frame | None:
    """Return the unanswered request whose id is all that a message has; None for other messages."""
    message = obj(frame.json)
    if frame.kind is not Kind.MALFORMED or frame.deliberate or message.keys() - SAYS_NOTHING:
        return None
    key = request_key(frame.connection, opposite(frame.direction), frame.id)
    if key is None:
        return None
    question = next((one for one in conversation.requests if key_of(one) == key), None)
    is_open = question is not None and conversation.answer_of(question) is None
    return question if is_open else None
