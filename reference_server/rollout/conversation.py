"""Conversation with the model, rebuilt from the records of a rollout.

Each tool call has one output, and each output its call, even if a killed server did not write one
or the file has lost lines. Messages of a cut-off turn that the client saw, but that were not yet
added to the conversation, are added too.
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
"""Output, for the model, of a call whose server ended before the output was written."""
_CALL, _OUTPUT = "_call", "_call_output"
"""Type suffixes of calls that have a `call_id`, and of their outputs."""
_ENDED = "the server ended"


class Conversation:
    """Conversation so far, as Responses API items; `context_tokens`: the model's last count."""

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
            # These items include everything that clients have seen until now.
            self._unheard.clear()
        for item_id in record.steered or []:
            self._steered.pop(item_id, None)
        if record.tokens is not None and record.items:
            self.context_tokens = record.tokens.total_tokens

    def replace(self, record: CompactedRecord) -> None:
        """Replace the conversation by the compacted one."""
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
        """Drop noted items that no HistoryRecord has added: no answer has them.

        For example, the message of a cut-off answer after which the model call was retried.
        """
        self._unheard.clear()

    def settle(self) -> None:
        """Add what a killed server did not: outputs of open calls, noted items, steered input."""
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
                    # A duplicate line. (After its output, a call id may be used again.)
                    continue
                self._open[call_id] = item
            elif kind.endswith(_OUTPUT) and self._open.pop(str(call_id), None) is None:
                # The line of its call is lost, or this line is a duplicate.
                continue
            self.items.append(item)


def _message(item: UserMessageItem | AgentMessageItem) -> Fields:
    if isinstance(item, AgentMessageItem):
        return assistant_message(item.text)
    images = [unread_image(path, _ENDED) for path in local_images(item.content)]
    return user_message(item.content, images)
