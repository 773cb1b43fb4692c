"""The journal of a turn's patch.

Here lives what it says of the thread, so that a later server can record what became of the patch.
"""

from harness.wire.item import FileChangeItem
from reference_server.engine.items import ItemLog
from reference_server.patch.journal import Journal
from reference_server.rollout.records import ItemRecord


def journal_of(log: ItemLog, item: FileChangeItem) -> Journal | None:
    """Give a patch its journal; nothing is written yet. None in a server without a home's lock."""
    thread = log.thread
    if thread.presence is None:
        return None
    record = ItemRecord(at=thread.clock(), turn_id=log.turn_id, item=item)
    heading = {"threadId": None if thread.ephemeral else thread.id, "record": record.plain()}
    return Journal(thread.presence.new_journal, heading, required=not thread.ephemeral)
