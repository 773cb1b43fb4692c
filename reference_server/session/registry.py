"""Threads of one server, in memory and on disk.

`rollout.archive` moves the files of stored threads. Source: session-protocol
"thread/start", "thread/resume", "thread/read", "Thread storage and loading".
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from harness.protocol.wire.thread import Thread, ThreadStartParams
from harness.protocol.wire.tool import DynamicTool
from harness.protocol.wire.turn import Turn
from reference_server.brief import brief
from reference_server.claims import Claims
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.ids import IdAllocator
from reference_server.outbox import Outbox
from reference_server.presence import Presence
from reference_server.refusal import invalid_params, invalid_request
from reference_server.rollout.archive import archived_place, move, restored_place
from reference_server.rollout.fold import StoredThread
from reference_server.rollout.records import first_record
from reference_server.rollout.store import RolloutStore
from reference_server.rollout.writer import FileRecorder, MemoryRecorder, Recorder
from reference_server.session.reading import LiveReading, read_own, read_stored
from reference_server.session.subscribers import Everyone
from reference_server.session.thread import Clock, LoadedThread, stored_snapshot
from reference_server.session.watcher import NoWatcher, ThreadWatcher
from reference_server.settings import ThreadSettings, settings_of_new_thread

_log = logging.getLogger(__name__)


class OpenedThread(NamedTuple):
    """A loaded thread; `history` is a LiveReading if it was loaded before, else its turns."""

    thread: LoadedThread
    history: LiveReading | list[Turn]

    @property
    def was_loaded(self) -> bool:
        """Return whether the thread was in memory before."""
        return isinstance(self.history, LiveReading)

    def turns(self) -> list[Turn]:
        """Return the turns at this moment, with started items. Raises Refusal if unreadable."""
        if isinstance(self.history, LiveReading):
            return self.history.turns(with_open_items=True)
        return self.history


class Threads:
    """All threads of a home, as one server sees them. `watcher` follows changes on disk."""

    def __init__(
        self,
        home: Home,
        config: Config,
        ids: IdAllocator,
        rollouts: RolloutStore,
        presence: Presence,
        clock: Clock,
        everyone: Everyone | None = None,
    ) -> None:
        self._everyone = everyone
        self._home = home
        self._presence = presence
        self._config = config
        self._ids = ids
        self._rollouts = rollouts
        self._clock = clock
        self._loaded: dict[str, LoadedThread] = {}
        self.claims = Claims(home)
        self.watcher: ThreadWatcher = NoWatcher()

    @property
    def loaded_threads(self) -> list[LoadedThread]:
        """The threads in memory, in the order in which they were loaded."""
        return list(self._loaded.values())

    def find_loaded(self, thread_id: str) -> LoadedThread | None:
        """Return a thread that is in memory, else None."""
        return self._loaded.get(thread_id)

    def unsubscribe(self, outbox: Outbox) -> None:
        """Remove a connection whose client has left from the subscribers of every thread."""
        for thread in self._loaded.values():
            thread.subscribers.remove(outbox)

    async def start(self, params: ThreadStartParams, source: str) -> LoadedThread:
        """Make a new thread and begin its rollout. Raises Refusal for wrong params, OSError."""
        settings = settings_of_new_thread(self._config, params)
        if self._config.provider(settings.model_provider) is None:
            raise invalid_params(
                f"modelProvider: `{brief(settings.model_provider)}` is not in config.toml"
            )
        tools = params.dynamic_tools or []
        return await self._start(settings, source, tools, ephemeral=bool(params.ephemeral))

    async def start_beside(self, thread: LoadedThread) -> LoadedThread:
        """Make a thread with another's settings and client tools, without turns. Raises OSError."""
        return await self._start(
            thread.settings, thread.source, thread.client_tools, ephemeral=thread.ephemeral
        )

    async def _start(
        self, settings: ThreadSettings, source: str, tools: list[DynamicTool], *, ephemeral: bool
    ) -> LoadedThread:
        thread_id = await self._ids.new_thread_id()
        first = first_record(self._clock(), thread_id, source, settings, tools)
        if ephemeral:
            thread = self._make_thread(thread_id, settings, MemoryRecorder())
            thread.record(first)
        else:
            self.claim(thread_id)
            try:
                path = self._rollouts.new_path(thread_id, self._clock())
                thread = self._make_thread(thread_id, settings, FileRecorder(path))
                thread.record(first)
            except BaseException:
                self.claims.release(thread_id)
                raise
        thread.source = source
        thread.client_tools = tools
        self._loaded[thread_id] = thread
        return thread

    def _make_thread(
        self, thread_id: str, settings: ThreadSettings, recorder: Recorder
    ) -> LoadedThread:
        return LoadedThread(
            thread_id,
            settings,
            recorder,
            self._clock,
            self._presence,
            self.watcher,
            self._everyone,
        )

    def claim(self, thread_id: str) -> None:
        """Claim a thread for this server.

        Raises Refusal if another server has it open, OSError if its lock cannot be made.
        """
        if not self.claims.take(thread_id):
            raise invalid_request(
                f"thread {thread_id} is open in another server of this home, and only one can "
                "write to it: unsubscribe there, or end that server; or go on in a copy "
                "(thread/fork)"
            )

    async def get_loaded(self, thread_id: str) -> LoadedThread:
        """Return a thread that is in memory. Raises Refusal if it is not loaded or is unknown."""
        if thread := self._loaded.get(thread_id):
            return thread
        await self.find_stored(thread_id)
        raise invalid_request(
            f"thread {thread_id} is not loaded: load it with thread/resume, then try again"
        )

    async def find_stored(self, thread_id: str) -> Path:
        """Return the rollout of a thread, archived or not. Raises Refusal for an unknown one."""
        path = await to_thread.run_sync(self._rollouts.find, thread_id)
        if path is None:
            # Which code an unknown thread has is not shown; -32600 is the shipping server's choice.
            raise invalid_request(f"there is no thread {brief(thread_id)}")
        return path

    def is_archived(self, path: Path) -> bool:
        """Return whether a rollout lies in the archive."""
        return path.is_relative_to(self._home.archived_sessions)

    def refuse_archived(self, thread_id: str, path: Path) -> None:
        """Raise Refusal if a thread is archived."""
        if self.is_archived(path):
            raise invalid_request(
                f"thread {thread_id} is archived: bring it back with thread/unarchive first"
            )

    async def load(self, thread_id: str) -> "OpenedThread":
        """Load a thread, unless it is loaded already. Raises Refusal, OSError.

        The caller sends the notification of the new status.
        """
        if thread := self._loaded.get(thread_id):
            reading = LiveReading(thread)
            await reading.prepare()
            return OpenedThread(thread, reading)
        async with self.claimed_rollout(thread_id) as path:
            self.refuse_archived(thread_id, path)
            stored = await read_own(thread_id, path)
            thread = self.adopt(stored, FileRecorder(path, create=False))
        return OpenedThread(thread, stored.turns)

    @asynccontextmanager
    async def claimed_rollout(self, thread_id: str) -> AsyncGenerator[Path]:
        """Claim, for the block, a stored thread that is not loaded and yield its rollout.

        If the block loads it, it stays claimed. Raises Refusal, OSError.
        """
        await self.find_stored(thread_id)
        self.claim(thread_id)
        try:
            # Another server may have moved it before it was claimed.
            yield await self.find_stored(thread_id)
        finally:
            if thread_id not in self._loaded:
                self.claims.release(thread_id)

    def adopt(self, stored: StoredThread, recorder: Recorder) -> LoadedThread:
        """Load a thread from its stored state; this server has claimed it. Raises OSError."""
        thread = self._make_thread(stored.id, stored.settings, recorder)
        thread.adopt(stored)
        self._loaded[thread.id] = thread
        return thread

    @asynccontextmanager
    async def for_writing(
        self, thread_id: str, *, archived: bool = True
    ) -> AsyncGenerator[LoadedThread]:
        """Yield a thread to append records to; one that is not loaded is open during the block.

        Raises Refusal, without `archived` also for an archived thread; OSError.
        """
        if thread := self._loaded.get(thread_id):
            yield thread
            return
        async with self.claimed_rollout(thread_id) as path:
            if not archived:
                self.refuse_archived(thread_id, path)
            stored = await read_own(thread_id, path)
            thread = self._make_thread(thread_id, stored.settings, FileRecorder(path, create=False))
            thread.adopt(stored)
            thread.mark_unloaded()
            try:
                yield thread
            finally:
                await _close(thread.recorder)

    async def unload(self, thread: LoadedThread) -> None:
        """Unload a thread that has no active turn; its records are on the disk afterwards.

        The caller notifies the clients; no other task runs between the unloading and its return.
        """
        await _close(thread.recorder)
        self._forget(thread)

    def _forget(self, thread: LoadedThread) -> None:
        self._loaded.pop(thread.id, None)
        thread.mark_unloaded()
        if not thread.ephemeral:
            self.claims.release(thread.id)

    async def archive(self, thread: LoadedThread, path: Path) -> None:
        """Archive and unload a loaded thread that has no active turn.

        As with `unload`, the caller notifies the clients. Raises OSError; it stays loaded then.
        """
        await _close(thread.recorder)
        await self._move(thread.id, path, archived_place(self._home, path))
        self._forget(thread)

    async def archive_stored(self, thread_id: str) -> None:
        """Archive a thread that is not loaded. Raises Refusal, OSError."""
        async with self.claimed_rollout(thread_id) as path:
            if self.is_archived(path):
                raise invalid_request(f"thread {thread_id} is archived already")
            await self._move(thread_id, path, archived_place(self._home, path))

    async def unarchive(self, thread_id: str) -> Thread:
        """Move a thread out of the archive and return it. Raises Refusal, OSError."""
        if thread_id in self._loaded:
            raise invalid_request(f"thread {thread_id} is not archived")
        async with self.claimed_rollout(thread_id) as path:
            if not self.is_archived(path):
                raise invalid_request(f"thread {thread_id} is not archived")
            # An unreadable thread stays where it is.
            stored = await read_own(thread_id, path)
            place = restored_place(self._home, path)
            await self._move(thread_id, path, place)
        return stored_snapshot(stored, str(place), with_turns=False)

    async def _move(self, thread_id: str, old: Path, new: Path) -> None:
        """Move the rollout of a claimed thread. Raises OSError."""
        await to_thread.run_sync(move, old, new)
        self.watcher.on_move(thread_id, old, new)

    async def read(self, thread_id: str, *, with_turns: bool) -> Thread:
        """Return a thread without loading it. Raises Refusal if it is missing or unreadable."""
        thread = self._loaded.get(thread_id)
        if thread is None:
            path = await self.find_stored(thread_id)
            stored = await read_stored(self._home, thread_id, path)
            return stored_snapshot(stored, str(path), with_turns=with_turns)
        if not with_turns:
            return thread.snapshot()
        reading = LiveReading(thread)
        await reading.prepare()
        return thread.snapshot(reading.turns())


async def _close(recorder: Recorder) -> None:
    try:
        await to_thread.run_sync(recorder.close)
    except OSError as error:
        _log.error("%s: not synced to disk: %s", recorder.path, error)
