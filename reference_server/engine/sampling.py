"""Conversion of one model call's events into items and history.

Output that is hidden from clients (a summary of the history, a reviewer's answer) goes to classes
with the same methods that send nothing. Failures and retries are up to the caller, who calls `cut`
if a stream breaks. Source: session-protocol "ThreadItem", "Events".
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar, cast

from reference_server.engine.items import GrowingItem, GrowingReasoning, ItemLog
from reference_server.engine.reply_items import GrowingReply
from reference_server.engine.web_items import GrowingSearch
from reference_server.model.events import (
    Answering,
    Completed,
    ModelEvent,
    OutputItemAdded,
    OutputItemDone,
    ReasoningDelta,
    SummaryDelta,
    SummaryPartAdded,
    TextDelta,
)
from reference_server.words import assistant_message


class HiddenMessage:
    """A message whose text is collected but not sent."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """Return the text so far."""
        return "".join(self._parts)

    def add(self, delta: str) -> None:
        """Append a piece of text."""
        self._parts.append(delta)

    def finish(self, final_text: str, _phase: str | None) -> None:
        """Replace the text by the model's final one, unless that is empty."""
        self._parts = [final_text] if final_text else self._parts

    def complete(self) -> None:
        """Do nothing: no client sees it."""


class HiddenReasoning:
    """Reasoning that is neither collected nor sent."""

    def begin_summary_part(self, index: int) -> None:
        """Ignore the beginning of a section."""

    def add_summary(self, index: int, delta: str) -> None:
        """Ignore a delta of a summary."""

    def add_content(self, index: int, delta: str) -> None:
        """Ignore a delta of a raw block."""

    def finish(self, summary: list[str], content: list[str]) -> None:
        """Ignore the final parts."""

    def complete(self) -> None:
        """Do nothing: no client sees it."""


Fields = dict[str, Any]
G = TypeVar("G", bound=GrowingItem)
CALLS = ("function_call", "custom_tool_call")
_MESSAGES = (GrowingReply, HiddenMessage)
_REASONING = (GrowingReasoning, HiddenReasoning)


class Visibility(Enum):
    """The model's items that clients see: all, all but messages, or none."""

    ALL = "all"
    WORK = "work"
    NOTHING = "nothing"


@dataclass(slots=True)
class Sampled:
    """The result of one model call.

    `history`: items to add to the conversation, of the Responses API; `calls`: its tool calls, as
    the model sent them; `texts`: the texts of its messages.
    """

    history: list[Fields] = field(default_factory=list[Fields])
    calls: list[Fields] = field(default_factory=list[Fields])
    texts: list[str] = field(default_factory=list[str])
    usage: Fields = field(default_factory=dict[str, Any])


class Sampling:
    """Receiver of one model call's events; `result` is complete after the last event."""

    def __init__(self, log: ItemLog, visibility: Visibility = Visibility.ALL) -> None:
        self._log = log
        self._visibility = visibility
        self._open: list[tuple[int | None, GrowingItem]] = []
        self._visible_texts: list[str] = []
        self.result = Sampled()

    async def receive(self, events: list[ModelEvent]) -> None:
        """Handle the next events; wait until a subscriber has room. Raises OSError."""
        subscribers = self._log.thread.subscribers
        for event in events:
            if subscribers.are_full:
                # A single read from a model can hold more than a client takes in a second.
                await subscribers.wait_for_room()
            match event:
                case TextDelta(index, delta):
                    self._message(index).add(delta)
                case SummaryDelta(index, part, delta):
                    self._reasoning(index).add_summary(part, delta)
                case SummaryPartAdded(index, part):
                    self._reasoning(index).begin_summary_part(part)
                case ReasoningDelta(index, part, delta):
                    self._reasoning(index).add_content(part, delta)
                case OutputItemAdded(index, item):
                    self._begin(index, item)
                case OutputItemDone(index, item):
                    self._finish(index, item)
                case Answering(model):
                    self._log.reroutes.note(model)
                case Completed(usage):
                    self.result.usage = usage
                    self._end_messages()
                    self.cut()
        await subscribers.wait_for_room()

    def cut(self) -> list[str]:
        """Complete every open item with the text streamed so far.

        Return the texts of all visible messages of this call, also of those completed before.
        Raises OSError, after all are completed.
        """
        failure: OSError | None = None
        while self._open:
            _, item = self._open.pop(0)
            if isinstance(item, GrowingReply):
                self._visible_texts.append(item.text)
            try:
                item.complete()
            except OSError as error:
                failure = error
        if failure is not None:
            raise failure
        return self._visible_texts

    def _begin(self, index: int | None, item: Fields) -> None:
        match item.get("type"):
            case "message":
                self._add_open(index, self._new_message(_phase(item)))
            case "reasoning":
                self._add_open(index, self._new_reasoning())
            case "web_search_call" if self._visibility is not Visibility.NOTHING:
                self._add_open(index, GrowingSearch(self._log))
            case _:
                pass

    def _finish(self, index: int | None, item: Fields) -> None:
        match item.get("type"):
            case "message":
                message = self._find(index, _MESSAGES)
                if message is None:
                    message = self._add_open(index, self._new_message(_phase(item)))
                self._end_message(message, _message_text(item), _phase(item))
            case "reasoning":
                reasoning = self._reasoning(index)
                self._close(reasoning)
                reasoning.finish(_texts(item, "summary"), _texts(item, "content"))
                if item.get("encrypted_content"):
                    # The provider stores nothing: it needs its own reasoning sent back.
                    self.result.history.append(_without_id(item))
            case "web_search_call" if self._visibility is not Visibility.NOTHING:
                search = self._find(index, (GrowingSearch,))
                search = search or self._add_open(index, GrowingSearch(self._log))
                self._close(search)
                search.finish(item)
                self.result.history.append({**_without_id(item), "status": "completed"})
            case kind if kind in CALLS:
                self.result.history.append(_without_id(item))
                self.result.calls.append(item)
            case _:
                pass

    def _end_messages(self) -> None:
        """Complete the messages that the model left open in a complete answer."""
        for _, item in list(self._open):
            if isinstance(item, _MESSAGES):
                self._end_message(item, item.text, None)

    def _end_message(
        self, message: GrowingReply | HiddenMessage, final_text: str, phase: str | None
    ) -> None:
        self._close(message)
        message.finish(final_text, phase)
        if isinstance(message, GrowingReply):
            self._visible_texts.append(message.text)
        self.result.texts.append(message.text)
        self.result.history.append(assistant_message(message.text))

    def _message(self, index: int | None) -> GrowingReply | HiddenMessage:
        message = self._find(index, _MESSAGES)
        return message or self._add_open(index, self._new_message(None))

    def _reasoning(self, index: int | None) -> GrowingReasoning | HiddenReasoning:
        reasoning = self._find(index, _REASONING)
        return reasoning or self._add_open(index, self._new_reasoning())

    def _new_message(self, phase: str | None) -> GrowingReply | HiddenMessage:
        is_visible = self._visibility is Visibility.ALL
        return GrowingReply(self._log, phase) if is_visible else HiddenMessage()

    def _new_reasoning(self) -> GrowingReasoning | HiddenReasoning:
        is_visible = self._visibility is not Visibility.NOTHING
        return GrowingReasoning(self._log) if is_visible else HiddenReasoning()

    def _add_open(self, index: int | None, item: G) -> G:
        self._open.append((index, item))
        return item

    def _find(self, index: int | None, kinds: tuple[type[G], ...]) -> G | None:
        """Return the open item of these kinds with the index, else the latest one, else None."""
        latest: G | None = None
        for item_index, item in self._open:
            if isinstance(item, kinds):
                if item_index == index:
                    return item
                latest = item
        return latest

    def _close(self, item: GrowingItem) -> None:
        self._open = [pair for pair in self._open if pair[1] is not item]


def _without_id(item: Fields) -> Fields:
    """Return an item without `id` and `status`, which mean nothing if the provider stores none."""
    return {key: value for key, value in item.items() if key not in ("id", "status")}


def _phase(item: Fields) -> str | None:
    phase = item.get("phase")
    return phase if isinstance(phase, str) else None


def _message_text(item: Fields) -> str:
    return "".join(_texts(item, "content"))


def _texts(item: Fields, key: str) -> list[str]:
    """Return the texts of a list of content parts (`text`, or `refusal` if the model refuses)."""
    parts: Any = item.get(key)
    if not isinstance(parts, list):
        return []
    texts = [
        cast("Fields", part).get("text", cast("Fields", part).get("refusal"))
        for part in cast("list[Any]", parts)
        if isinstance(part, dict)
    ]
    return [text for text in texts if isinstance(text, str)]
