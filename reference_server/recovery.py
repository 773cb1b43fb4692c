"""Settling the leftovers of killed servers of this home.

A server does so when it starts. Each patch that was under way is completed or undone, so that its
files are all old or all new, and its item is added to the rollout. Modules that take time to import
are imported only if there is something to settle.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from reference_server.config.home import Home
from reference_server.presence import leftovers, taking_over

if TYPE_CHECKING:
    from reference_server.patch.journal import Entry

_log = logging.getLogger(__name__)


def recover(home: Home) -> None:
    """Settle the leftovers of killed servers. Blocks. Never raises, whatever is on the disk."""
    try:
        journals_of = leftovers(home)
    except OSError as error:
        _log.warning("patches that killed servers may have left were not looked for: %s", error)
        return
    for server, journals in journals_of.items():
        try:
            with taking_over(home, server) as gone:
                # Another server may have settled it since the folder was read.
                waiting = [path for path in journals if gone and path.exists()]
                for path in reversed(waiting):
                    _settle_patch(home, path)
        except OSError as error:
            # The files of one killed server must not keep those of the others from being settled.
            _log.warning("what the killed server %s has left was not settled: %s", server, error)


def _settle_patch(home: Home, path: Path) -> None:
    from reference_server.patch.journal import read_journal
    from reference_server.patch.settle import settle

    try:
        entry = read_journal(path)
    except OSError as error:
        _log.warning("%s: a patch was not settled: %s", path, error.strerror or error)
        return
    except ValueError:
        # The server was killed while it wrote this: the patch had not begun.
        path.unlink(missing_ok=True)
        return
    try:
        warnings = settle(entry)
        _record_patch(home, entry)
    except (OSError, ValueError, RecursionError) as error:
        # Whatever the file says, the server starts.
        _log.warning("%s: a patch was not settled, the next server tries again: %s", path, error)
        return
    for words in warnings:
        _log.warning("a patch that a killed server had begun: %s", words)
    path.unlink(missing_ok=True)


def _record_patch(home: Home, entry: "Entry") -> None:
    """Append the patch's item to its thread, unless it is there. Raises OSError."""
    from harness.protocol.wire.item import FileChangeItem
    from reference_server.patch.journal import State
    from reference_server.rollout.fold import UnreadableRollout
    from reference_server.rollout.reader import read_rollout
    from reference_server.rollout.records import ItemRecord
    from reference_server.rollout.store import RolloutStore
    from reference_server.rollout.writer import FileRecorder

    thread_id = entry.heading.get("threadId")
    if thread_id is None:
        return
    try:
        record = ItemRecord.parse(entry.heading.get("record"))
        path = RolloutStore(home).find(str(thread_id))
        if path is None or not isinstance(record.item, FileChangeItem):
            return
        turns = [turn for turn in read_rollout(path).turns if turn.id == record.turn_id]
    except (ValueError, UnreadableRollout) as error:
        _log.warning("thread %s: a patch is not recorded: %s", thread_id, error)
        return
    if any(item.id == record.item.id for turn in turns for item in turn.items):
        return
    status = "completed" if entry.state is State.COMMITTED else "failed"
    item = record.item.model_copy(update={"status": status})
    recorder = FileRecorder(path)
    try:
        recorder.append(record.model_copy(update={"item": item}))
    finally:
        recorder.close()
