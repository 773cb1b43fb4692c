"""Parts of the conversation that made a model call fail for good.

The provider would reject each later call with them too, so a note to the model replaces them. Parts
that were once accepted stay: only items after the model's last answer are replaced, except images.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, cast

from reference_server.brief import brief

Fields = dict[str, Any]
Rejects = Literal["content", "text", "size"]
"""Cause of a provider's rejection: some part of the call, its texts, or its size."""
LARGE_TEXT = 1_000
"""Minimum characters of a text that is replaced because the call was too large."""
_REASON_LIMIT = 200
_MODEL_TYPES = frozenset({"function_call", "custom_tool_call", "reasoning", "web_search_call"})

Change = Callable[[Fields, str], Fields]
"""A function of an item and a reason: the item with notes for its rejected parts, else itself."""


class Replaced(NamedTuple):
    """A new item for index `-from_end` of the history: 1 is the last."""

    from_end: int
    item: Fields


def leave_out(
    history: list[Fields], rejects: Rejects, reason: str, old_item: Fields | None = None
) -> list[Replaced]:
    """Replace parts that only the rejected call held, in `history`; return the replacements.

    One kind is replaced at a time: images, then outputs of tools, then texts; for "size", first
    everything large. Texts may all go if the provider objects to texts, else only those up to
    `old_item`, the last item of an earlier rejected call: the cause may be a setting, not the text.
    """
    start = end = len(history)
    while start and not _is_of_model(history[start - 1]):
        start -= 1
    end_of_old = next((i + 1 for i in range(start, end) if history[i] is old_item), start)
    end_of_texts = end if rejects == "text" else end_of_old
    # A model that takes no images rejects those that another one has taken, too.
    start_of_images = 0 if "image" in reason.lower() or end_of_old > start else start
    changes: list[tuple[Change, int, int]] = [
        (_without_images, start, end),
        (_without_images, start_of_images, end),
        (_without_output, start, end),
        (_without_texts, start, end_of_texts),
    ]
    if rejects == "size":
        changes = [(_without_large_parts, start, end), (_without_texts, start, end_of_texts)]
    words = brief(reason, _REASON_LIMIT)
    for change, first, last in changes:
        found: list[Replaced] = []
        for index in range(first, last):
            item = change(history[index], words)
            if item is not history[index]:
                found.append(Replaced(end - index, item))
        if found:
            replace_items(history, found)
            return found
    return []


def replace_items(history: list[Fields], replaced: Sequence[Replaced]) -> None:
    """Put the new items into `history`; skip one whose place holds another kind of item."""
    for from_end, item in replaced:
        if 0 < from_end <= len(history) and _kind(history[-from_end]) == _kind(item):
            history[-from_end] = item


def _kind(item: Fields) -> tuple[object, object, object]:
    return item.get("type"), item.get("role"), item.get("call_id")


def _is_of_model(item: Fields) -> bool:
    return item.get("role") == "assistant" or item.get("type") in _MODEL_TYPES


def _is_output(item: Fields) -> bool:
    return str(item.get("type")).endswith("_call_output")


def _without_images(item: Fields, words: str) -> Fields:
    return _replace_parts(item, lambda part: part.get("type") == "input_image", "An image", words)


def _without_output(item: Fields, words: str) -> Fields:
    return {**item, "output": _note("The output", words)} if _is_output(item) else item


def _without_texts(item: Fields, words: str) -> Fields:
    return _replace_parts(item, lambda _part: not _is_output(item), "A text", words)


def _without_large_parts(item: Fields, words: str) -> Fields:
    item = _without_images(item, words)
    if _is_output(item) and len(str(item.get("output"))) >= LARGE_TEXT:
        return _without_output(item, words)
    return _replace_parts(
        item, lambda part: len(str(part.get("text"))) >= LARGE_TEXT, "A text", words
    )


def _replace_parts(
    item: Fields, is_rejected: Callable[[Fields], bool], kind: str, words: str
) -> Fields:
    """Return an item with a note in place of each rejected part; the item itself if none is."""
    name = "output" if _is_output(item) else "content"
    parts = item.get(name)
    if not isinstance(parts, list):
        return item
    note = {"type": "input_text", "text": _note(kind, words)}
    fields = cast("list[Fields]", parts)
    if not any(is_rejected(part) for part in fields):
        return item
    return {**item, name: [note if is_rejected(part) else part for part in fields]}


def _note(kind: str, words: str) -> str:
    return f"[{kind} was left out here, since the model call with it failed: {words}]"
