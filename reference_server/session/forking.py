"""Copying of a thread, for a fork.

`rollout.copy` chooses the records. Source: session-protocol "thread/fork" ("copied history"). Not
shown there, so decided here: the completed items of an active turn are copied, and the copy of the
turn is interrupted; turns get new ids, items keep theirs; settings and ephemerality are copied, the
name is not.
"""

from functools import partial
from threading import Event

from anyio import to_thread

from harness.protocol.wire.turn import Turn
from reference_server.ids import IdAllocator
from reference_server.rollout.copy import Original, write_copy
from reference_server.rollout.fold import StoredThread, UnreadableRollout, fold
from reference_server.rollout.records import Record, ThreadRecord, first_record
from reference_server.rollout.store import RolloutStore
from reference_server.rollout.writer import FileRecorder, MemoryRecorder
from reference_server.session.reading import check_id, unreadable
from reference_server.session.registry import Threads
from reference_server.session.thread import Clock, LoadedThread


class Forks:
    """Maker of copies of one server's threads."""

    def __init__(
        self, threads: Threads, ids: IdAllocator, rollouts: RolloutStore, clock: Clock
    ) -> None:
        self._threads = threads
        self._ids = ids
        self._rollouts = rollouts
        self._clock = clock

    async def fork(self, thread_id: str, source: str) -> tuple[LoadedThread, list[Turn]]:
        """Make a copy of a thread, load it, and return it and its turns. Raises Refusal, OSError.

        `source`: the kind of client that the copy is made for.
        """
        loaded = self._threads.find_loaded(thread_id)
        original = await self._original(thread_id, loaded)
        if original.first is None:
            raise unreadable(thread_id, UnreadableRollout("it does not begin with a thread record"))
        original.rename(await self._ids.new_turn_ids(len(original.turns)))
        new_id = await self._ids.new_thread_id()
        # The settings of a loaded thread may have changed since its last turn.
        settings = original.first.settings if loaded is None else loaded.settings
        tools = original.first.tools or []
        first = first_record(self._clock(), new_id, source, settings, tools)
        if loaded is not None and loaded.ephemeral:
            records: list[Record] = [first, *(record for _, record in original.copied_records())]
            stored, recorder = fold(records), MemoryRecorder(records)
            thread = self._threads.adopt(stored, recorder)
        else:
            thread, stored = await self._write_copy(original, first)
        if loaded is not None:
            thread.settings = settings
        return thread, stored.turns

    async def _original(self, thread_id: str, loaded: LoadedThread | None) -> Original:
        if loaded is not None and (records := loaded.recorder.records()) is not None:
            return Original.of_records(records)
        if loaded is not None and loaded.recorder.path is not None:
            path = loaded.recorder.path
        else:
            path = await self._threads.find_stored(thread_id)
        given_up = Event()
        try:
            read = partial(Original.read, path, given_up)
            original = await to_thread.run_sync(read, abandon_on_cancel=True)
            if original.first is None:
                raise UnreadableRollout(f"{path}: does not begin with a thread record")
            check_id(original.first.id, thread_id, path)
        except (OSError, UnreadableRollout) as error:
            raise unreadable(thread_id, error) from error
        finally:
            given_up.set()
        return original

    async def _write_copy(
        self, original: Original, first: ThreadRecord
    ) -> tuple[LoadedThread, StoredThread]:
        path = self._rollouts.new_path(first.id, first.at)
        self._threads.claim(first.id)
        try:
            stored = await to_thread.run_sync(write_copy, original, first, path)
            thread = self._threads.adopt(stored, FileRecorder(path, create=False))
        except BaseException:
            self._threads.claims.release(first.id)
            raise
        self._threads.watcher.on_change(first.id, path)
        return thread, stored
