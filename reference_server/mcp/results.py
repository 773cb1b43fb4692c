"""Results of an MCP server's tools: limits for the client, and extraction of texts.

Content is MCP's list of blocks: texts, images and others (audio, links, resources), which are
passed on as the server sends them. The engine decides which parts a model gets.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from reference_server.brief import brief
from reference_server.limits import is_too_deep

Fields = dict[str, Any]

RESULT_LIMIT = 4 * 2**20
"""Maximum characters of one result's JSON; a note replaces what exceeds it."""
MAX_BLOCKS = 1_000
"""Maximum blocks of one result."""


def limit_result(content: Iterable[Fields], structured: Any) -> tuple[list[Fields], Any]:
    """Return content and structured content within the limits, with notes for parts left out."""
    room = RESULT_LIMIT
    if is_too_deep(structured):
        structured, note = None, [_text("[structured content with too many levels: left out]")]
    elif (size := _size(structured)) > room:
        structured, note = None, [_text(f"[structured content of {size:,} characters: left out]")]
    else:
        note, room = [], room - size
    kept_blocks: list[Fields] = []
    blocks = [
        _text(f"[{one.get('type')} with too many levels: left out]") if is_too_deep(one) else one
        for one in content
    ]
    for block in blocks[:MAX_BLOCKS]:
        size = _size(block)
        if size <= room:
            room -= size
            kept_blocks.append(block)
            continue
        text = block.get("text")
        if isinstance(text, str) and room > 0:
            kept_blocks.append({**block, "text": brief(text, room // 2)})
        else:
            kept_blocks.append(_text(f"[{block.get('type')} of {size:,} characters: left out]"))
        room = 0
    if len(blocks) > MAX_BLOCKS:
        note.append(_text(f"[{len(blocks) - MAX_BLOCKS:,} more blocks: left out]"))
    return [*kept_blocks, *note], structured


def texts(content: Iterable[Fields]) -> Iterator[str]:
    """Yield the texts of content, including those of embedded resources."""
    for block in content:
        match block:
            case {"type": "text", "text": str(text)}:
                yield text
            case {"type": "resource", "resource": {"text": str(text)}}:
                yield text
            case _:
                pass


def _text(text: str) -> Fields:
    return {"type": "text", "text": text}


def _size(value: Any) -> int:
    return 0 if value is None else len(json.dumps(value, ensure_ascii=False))
