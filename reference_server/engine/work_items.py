"""Items of a running command and of a file change in progress.

The tools run and change. Source: session-protocol "ThreadItem", "Item lifecycle".
"""

from collections.abc import Sequence

from harness.protocol.wire.item import (
    CommandAction,
    CommandExecutionItem,
    DeclinableStatus,
    FileChangeItem,
    FileUpdateChange,
)
from harness.protocol.wire.item_events import (
    CommandExecutionOutputDeltaNotification,
    FileChangeOutputDeltaNotification,
)
from reference_server.deltas import DeltaLine
from reference_server.engine.items import ItemLog


class CommandWork:
    """A commandExecution item, from its start to its one completion."""

    def __init__(
        self,
        log: ItemLog,
        command: str,
        cwd: str,
        actions: Sequence[CommandAction],
    ) -> None:
        self._log = log
        self._line: DeltaLine | None = None
        self._earlier = ""
        self._streamed: list[str] = []
        self.item = CommandExecutionItem(
            id=log.thread.new_item_id(),
            command=command,
            cwd=cwd,
            status="inProgress",
            command_actions=list(actions),
        )
        log.start_item(self.item, self._so_far)

    def _so_far(self) -> CommandExecutionItem:
        if not self._streamed:
            return self.item
        return self.item.model_copy(update={"aggregated_output": "".join(self._streamed)})

    async def output(self, text: str) -> None:
        """Stream a piece of output; wait until a subscriber has room."""
        if self._line is None:
            thread = self._log.thread
            self._line = DeltaLine(
                CommandExecutionOutputDeltaNotification(
                    thread_id=thread.id, turn_id=self._log.turn_id, item_id=self.item.id, delta=""
                )
            )
        self._streamed.append(text)
        self._log.thread.subscribers.send_delta(self._line, text)
        await self._log.thread.subscribers.wait_for_room()

    def add_earlier_output(self, output: str) -> None:
        """Keep the output of a run that is repeated outside the sandbox, for the completed item."""
        self._earlier += output

    def complete(
        self,
        status: DeclinableStatus,
        *,
        output: str | None = None,
        exit_code: int | None = None,
        duration_ms: int | None = None,
        process_id: str | None = None,
    ) -> None:
        """Complete the item; fields that are None are left out, since they are optional."""
        if self._earlier:
            output = self._earlier + (output or "")
        members = {
            "process_id": process_id,
            "aggregated_output": output,
            "exit_code": exit_code,
            "duration_ms": duration_ms,
        }
        update = {name: value for name, value in members.items() if value is not None}
        self.item = self.item.model_copy(update={"status": status, **update})
        self._log.complete_item(self.item)


class FileWork:
    """A fileChange item, from its start to its one completion."""

    def __init__(self, log: ItemLog, changes: Sequence[FileUpdateChange]) -> None:
        self._log = log
        self.item = FileChangeItem(
            id=log.thread.new_item_id(), changes=list(changes), status="inProgress"
        )
        log.start_item(self.item)

    def output(self, text: str) -> None:
        """Send a piece of output as a delta."""
        thread = self._log.thread
        thread.subscribers.notify(
            FileChangeOutputDeltaNotification(
                thread_id=thread.id, turn_id=self._log.turn_id, item_id=self.item.id, delta=text
            )
        )

    def complete(self, status: DeclinableStatus) -> None:
        """Complete the item."""
        self.item = self.item.model_copy(update={"status": status})
        self._log.complete_item(self.item)
