"""Compaction of a thread's conversation with the model.

A compaction happens when the context is nearly full (`usage`), or when the client asks
(`thread/compact/start`). Source: session-protocol "ThreadItem" ("emitted when conversation history
is compacted"), "Other thread operations". The compacted history is not shown there. Here it is the
user's own messages, the newest ones up to `KEPT_CHARACTERS`; then the summary; then the user's
messages since the model's last answer. A compaction that fails or is interrupted leaves the history
unchanged.
"""

from typing import Any

from harness.protocol.wire.item import ContextCompactionItem
from harness.protocol.wire.thread import TokenCounts
from reference_server.engine.prompt import request_body
from reference_server.engine.sampling import Visibility
from reference_server.engine.turn_context import TurnContext
from reference_server.engine.usage import token_counts
from reference_server.model.errors import ModelError
from reference_server.rollout.records import CompactedRecord
from reference_server.words import is_skill_text

Fields = dict[str, Any]

PROMPT = (
    "The conversation is about to be cut to make room. Write a summary from which you can go on "
    "without it: what the user wants, what was done and found out, which files and commands "
    "matter, what is left to do. Answer with the summary alone."
)
PREFIX = "Summary of the conversation so far, which was cut to make room:\n\n"
KEPT_CHARACTERS = 60_000
"""Maximum characters of the user's older messages that stay beside the summary, newest first."""


async def compact(turn: TurnContext) -> None:
    """Compact the history of a turn's thread. Raises ModelError, OSError.

    A history of nothing but the user's last messages stays unchanged, without a model call.
    """
    thread = turn.thread
    old, recent = split_history(thread.history)
    item = ContextCompactionItem(id=thread.new_item_id())
    turn.log.start_item(item)
    try:
        if old:
            summary, tokens = await _summarise(turn, old)
            _replace(turn, [*kept_messages(old), _user_text(PREFIX + summary), *recent], tokens)
        thread.context_tokens = 0
    finally:
        turn.log.complete_item(item)


def split_history(history: list[Fields]) -> tuple[list[Fields], list[Fields]]:
    """Return the part to summarise and the user's messages after the model's last item."""
    end = len(history)
    while end and _is_user_message(history[end - 1]):
        end -= 1
    return history[:end], history[end:]


def kept_messages(old: list[Fields]) -> list[Fields]:
    """Return the newest user messages that fit KEPT_CHARACTERS, oldest first, without images.

    The texts of skills in a message stay if they fit too.
    """
    messages: list[Fields] = []
    room = KEPT_CHARACTERS
    for item in reversed(old):
        texts = _texts(item) if _is_user_message(item) else []
        skills = [text for text in texts if is_skill_text(text)]
        words = "\n".join(text for text in texts if not is_skill_text(text))
        if not words:
            continue
        if sum(map(len, skills)) + len(words) > room:
            skills = []
        if len(words) > room:
            break
        room -= sum(map(len, skills)) + len(words)
        messages.append(_user_text(*skills, words))
    return messages[::-1]


async def _summarise(turn: TurnContext, old: list[Fields]) -> tuple[str, TokenCounts | None]:
    """Return the model's summary and its tokens; retry a too long history without its older half.

    Raises ModelError if the model fails or gives no summary.
    """
    while True:
        try:
            body = request_body(turn.thread.settings, [*old, _user_text(PROMPT)], [])
            answer = await turn.ask(lambda body=body: body, Visibility.NOTHING)
        except ModelError as failure:
            shorter = without_oldest(old)
            if failure.info != "ContextWindowExceeded" or not shorter:
                raise
            turn.tell_retry(failure, "with less")
            old = shorter
            continue
        tokens = token_counts(answer.usage)
        turn.meter.report(tokens)
        text = "\n\n".join(filter(None, answer.texts)).strip()
        if not text:
            raise ModelError("The history was not compacted", "Other", "the model gave no summary")
        return text, tokens


def without_oldest(old: list[Fields]) -> list[Fields]:
    """Return the newer half of a history, without outputs whose calls are in the older half."""
    rest = old[(len(old) + 1) // 2 :]
    call_ids = {item.get("call_id") for item in rest if not _is_output(item)}
    return [item for item in rest if not _is_output(item) or item.get("call_id") in call_ids]


def _replace(turn: TurnContext, history: list[Fields], tokens: TokenCounts | None) -> None:
    thread = turn.thread
    record = CompactedRecord(at=thread.clock(), turn_id=turn.id, history=history)
    thread.record(record if tokens is None else record.model_copy(update={"tokens": tokens}))
    thread.history = history


def _is_user_message(item: Fields) -> bool:
    """Return whether it is the user's; the summary of an earlier compaction has the same role."""
    return item.get("role") == "user" and not any(t.startswith(PREFIX) for t in _texts(item))


def _is_output(item: Fields) -> bool:
    return str(item.get("type")).endswith("_call_output")


def _texts(item: Fields) -> list[str]:
    parts: list[Fields] = item.get("content") or []
    return [part["text"] for part in parts if part.get("type") == "input_text"]


def _user_text(*texts: str) -> Fields:
    content = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": "user", "content": content}
