"""The conversation with the model, from the records of a rollout.

Each tool call has one output, and each output its call, whatever a server did not live to write and
whatever lines a file has lost. Also here is what the client was shown of a turn that was cut off,
before it was added to the conversation.
"""

from typing import Any

from harness.protocol.wire.item import AgentMessageItem, ThreadItem, UserMessageItem
from reference_server.rejected import Replaced, replace_items
from reference_server.rollout.records import CompactedRecord, HistoryRecord, SteeredRecord
from reference_server.words import (
    assistant_message,
    local_images,
    unread_image,
    user_message,
)

Fields = dict[str, Any]
ABORTED = "aborted: the server ended"
"""The output, for the model, of a call that its server did not live to answer."""
_CALL, _OUTPUT = "_call", "_call_output"
"""Type suffixes of calls that have a `call_id`, and of their outputs."""
_ENDED = "the server ended"


class Conversation:
    """`items` are Responses API items; `context_tokens`: how large the model counted them."""

    def __init__(self) -> None:
        self.items: list[Fields] = []
        self.context_tokens = 0
        self._open: dict[str, Fields] = {}
        self._steered: dict[str, Fields] = {}
        self._unheard: list[UserMessageItem | AgentMessageItem] = []

    def extend(self, record: HistoryRecord) -> None:
        """Add the items of a record."""
        self._add(record.items)
        if record.replaced:
            replaced = [Replaced(one.from_end, one.item) for one in record.replaced]
            replace_items(self.items, replaced)
        if self._unheard and any(not item["type"].endswith(_OUTPUT) for item in record.items):
            # Everything shown until now belongs to these items.
            self._unheard.clear()
        for item_id in record.steered or []:
            self._steered.pop(item_id, None)
        if record.tokens is not None and record.items:
            self.context_tokens = record.tokens.total_tokens

    def replace(self, record: CompactedRecord) -> None:
        """Take the compacted conversation for all that was before."""
        self.items, self.context_tokens = [], 0
        self._open.clear()
        self._unheard.clear()
        self._add(record.history)

    def steer(self, record: SteeredRecord) -> None:
        """Note input that a later HistoryRecord adds, or else `settle`."""
        self._steered[record.item.id] = record.history

    def note(self, item: ThreadItem) -> None:
        """Note an item that the client saw; a later HistoryRecord, or else `settle`, adds it."""
        if isinstance(item, UserMessageItem) or (isinstance(item, AgentMessageItem) and item.text):
            self._unheard.append(item)

    def end_turn(self) -> None:
        """Leave out what the client was shown and the server did not add: it belongs to no answer.

        For example, a message of an answer that was cut off, after which the model was asked again.
        """
        self._unheard.clear()

    def settle(self) -> None:
        """Add the items that a server that died could not add."""
        for call_id, call in self._open.items():
            output = {"type": f"{call['type']}_output", "call_id": call_id, "output": ABORTED}
            self.items.append(output)
        self._open.clear()
        self.items += map(_message, self._unheard)
        self._unheard.clear()
        self.items += self._steered.values()
        self._steered.clear()

    def go_back(self, items: list[Fields], length: int, context_tokens: int) -> None:
        """Return to an earlier state: the first `length` of these items."""
        self.settle()
        self.items, self.context_tokens = items[:length], context_tokens

    def _add(self, items: list[Fields]) -> None:
        for item in items:
            kind, call_id = item["type"], item.get("call_id")
            if kind.endswith(_CALL) and isinstance(call_id, str):
                if call_id in self._open:
                    # The line is there twice. (An id that has its output may be given again.)
                    continue
                self._open[call_id] = item
            elif kind.endswith(_OUTPUT) and self._open.pop(str(call_id), None) is None:
                # The line with its call is lost, or this one is there twice.
                continue
            self.items.append(item)


def _message(item: UserMessageItem | AgentMessageItem) -> Fields:
    if isinstance(item, AgentMessageItem):
        return assistant_message(item.text)
    images = [unread_image(path, _ENDED) for path in local_images(item.content)]
    return user_message(item.content, images)
