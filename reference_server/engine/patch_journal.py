"""Journal of a turn's patch, by which the next server records the patch if this one is killed."""

from harness.protocol.wire.item import FileChangeItem
from reference_server.engine.items import ItemLog
from reference_server.patch.journal import Journal
from reference_server.rollout.records import ItemRecord


def journal_of(log: ItemLog, item: FileChangeItem) -> Journal | None:
    """Return the journal of a patch, not yet written; None without a presence, as in tests."""
    thread = log.thread
    if thread.presence is None:
        return None
    record = ItemRecord(at=thread.clock(), turn_id=log.turn_id, item=item)
    heading = {"threadId": None if thread.ephemeral else thread.id, "record": record.plain()}
    return Journal(thread.presence.new_journal, heading, required=not thread.ephemeral)
