"""Parts that Chat Completions and Anthropic Messages share: chunks, and limits of what they say."""

import json
from collections.abc import Iterator
from typing import Any

from harness.model.encoder import Unsayable
from harness.model.parts import Malformed, Message, PlanItem, Reasoning
from harness.model.script import ModelStep
from harness.model.tool_parts import ProviderPart, Review, WebSearch
from harness.protocol.values import obj
from harness.trace.frame import parse

Json = dict[str, Any]

# Arguments of a tool call are streamed in at most this many pieces, none shorter than the minimum.
_MAX_PIECES, _MIN_PIECE_CHARACTERS = 8, 12


class Chunk(bytes):
    """Bytes of a stream with the name of the Responses event at whose place they are.

    A place at which this wire sends nothing is an empty chunk, so a script can cut there too.
    """

    event: str

    def __new__(cls, event: str, data: bytes = b"") -> "Chunk":
        """Return a chunk at the place of an event."""
        chunk = super().__new__(cls, data)
        chunk.event = event
        return chunk


class PlainStream:
    """Base of streams without summaries of reasoning and items of the provider: `Unsayable`."""

    def summary_part(self, index: int) -> bytes:
        """Raise `NotImplementedError`."""
        raise NotImplementedError

    def summary_delta(self, index: int, text: str) -> bytes:
        """Raise `NotImplementedError`."""
        raise NotImplementedError

    def provider_item(self, part: ProviderPart) -> list[bytes]:
        """Raise `NotImplementedError`."""
        raise NotImplementedError


def compact(value: Any) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def argument_pieces(arguments: Any) -> tuple[str, list[str]]:
    """Return the arguments of a tool call as JSON text, and the pieces that are streamed."""
    whole = json.dumps(arguments, ensure_ascii=False)
    size = max(_MIN_PIECE_CHARACTERS, -(-len(whole) // _MAX_PIECES))
    return whole, [whole[start : start + size] for start in range(0, len(whole), size)]


def unsayable_parts(step: ModelStep, wire: str) -> Iterator[Unsayable]:
    """Yield the parts of a step that neither wire can say; `wire` is the name for people."""
    for part in step.reply or []:
        match part:
            case WebSearch():
                reason = f"{wire} has no item for a web search"
                yield Unsayable("web_search", reason, "web-search")
            case Message(message=body) | PlanItem(plan_item=body) if body.phase is not None:
                yield Unsayable("phase", f"a message of {wire} has no phase")
            case PlanItem(plan_item=body) if body.final is not None:
                yield Unsayable("final", f"{wire} does not repeat a text at its end", "plan")
            case Reasoning(reasoning=body) if body.summary or not body.raw:
                reason = f"reasoning in {wire} is one text, without summary parts"
                yield Unsayable("reasoning", reason, "reasoning")
            case Reasoning(reasoning=body) if len(body.raw) != 1:
                reason = f"reasoning in {wire} is one text, not {len(body.raw)} blocks"
                yield Unsayable("reasoning", reason, "reasoning-raw")
            case Malformed() if _has_event(part.malformed.raw):
                yield Unsayable("malformed", f"its bytes are no events of {wire}")
            case _:
                pass


def _has_event(raw: bytes) -> bool:
    """Return whether malformed bytes contain a whole event, which another API does not have."""
    data = [line[5:] for line in raw.splitlines() if line.startswith(b"data:")]
    return any(obj(parse(line)) for line in data)


def is_text(part: Any) -> bool:
    """Return whether a part of a reply is sent as the text of a message."""
    return isinstance(part, Message | PlanItem | Review)
