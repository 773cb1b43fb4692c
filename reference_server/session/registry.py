"""The threads of one server: those in memory, and those on disk.

Here live starting, looking up and reading threads. Source: session-protocol "thread/start",
"thread/read".
"""

from pathlib import Path
from threading import Event

from anyio import to_thread

from harness.wire.thread import Thread, ThreadStartParams
from reference_server.brief import brief
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.ids import IdAllocator
from reference_server.outbox import Outbox
from reference_server.presence import Presence, is_running
from reference_server.refusal import Refusal, invalid_params, invalid_request
from reference_server.rollout.fold import StoredThread, UnreadableRollout, fold, mark_running
from reference_server.rollout.reader import read_rollout
from reference_server.rollout.records import ThreadRecord
from reference_server.rollout.store import RolloutStore
from reference_server.rollout.writer import FileRecorder, MemoryRecorder, Recorder
from reference_server.session.thread import Clock, LoadedThread, stored_snapshot
from reference_server.settings import ThreadSettings, settings_of_new_thread


class Threads:
    """All threads of a home, as one server sees them."""

    def __init__(
        self,
        home: Home,
        config: Config,
        ids: IdAllocator,
        rollouts: RolloutStore,
        presence: Presence,
        clock: Clock,
    ) -> None:
        self._home = home
        self._presence = presence
        self._config = config
        self._ids = ids
        self._rollouts = rollouts
        self._clock = clock
        self._loaded: dict[str, LoadedThread] = {}

    @property
    def loaded(self) -> list[LoadedThread]:
        """The threads in memory."""
        return list(self._loaded.values())

    def unsubscribe(self, outbox: Outbox) -> None:
        """Remove a connection, whose client has left, from the subscribers of every thread."""
        for thread in self._loaded.values():
            thread.subscribers.remove(outbox)

    async def start(self, params: ThreadStartParams) -> LoadedThread:
        """Make a new thread; its rollout begins at once. Raises Refusal, OSError."""
        settings = settings_of_new_thread(self._config, params)
        if self._config.provider(settings.model_provider) is None:
            raise invalid_params(
                f"modelProvider: `{brief(settings.model_provider)}` is not in config.toml"
            )
        return await self._new(settings, ephemeral=bool(params.ephemeral))

    async def start_beside(self, thread: LoadedThread) -> LoadedThread:
        """Make a new thread under the settings of another, without its turns. Raises OSError."""
        return await self._new(thread.settings, ephemeral=thread.ephemeral)

    async def _new(self, settings: ThreadSettings, *, ephemeral: bool) -> LoadedThread:
        thread_id = await self._ids.thread_id()
        recorder = self._recorder(thread_id, ephemeral=ephemeral)
        thread = LoadedThread(thread_id, settings, recorder, self._clock, self._presence)
        thread.record(
            ThreadRecord(
                at=self._clock(),
                id=thread_id,
                settings=settings,
            )
        )
        self._loaded[thread_id] = thread
        return thread

    def _recorder(self, thread_id: str, *, ephemeral: bool) -> Recorder:
        if ephemeral:
            return MemoryRecorder()
        return FileRecorder(self._rollouts.new_path(thread_id, self._clock()))

    async def get_loaded(self, thread_id: str) -> LoadedThread:
        """Give a thread that is in memory. Raises Refusal for any other, OSError."""
        if thread := self._loaded.get(thread_id):
            return thread
        if await to_thread.run_sync(self._rollouts.find, thread_id) is not None:
            raise invalid_request(
                f"thread {thread_id} is not loaded, and this server cannot load it again: read it "
                "with thread/read, and go on in a new thread (thread/start)"
            )
        raise _unknown(thread_id)

    async def read(self, thread_id: str, *, with_turns: bool) -> Thread:
        """Show a thread without loading it; its turns come from its rollout. Raises Refusal."""
        thread = self._loaded.get(thread_id)
        if thread is None:
            return await self._read_unloaded(thread_id, with_turns=with_turns)
        if not with_turns:
            return thread.snapshot()
        running = thread.turn
        held = thread.recorder.records()
        path = thread.recorder.path
        if held is not None:
            stored = fold(held)
        elif path is not None:
            stored = await _read(thread_id, path)
            if running is not None and running.done.is_set():
                # It ended while the file was read. The end is recorded now, and no other turn can
                # have begun meanwhile: turn/start waits in the same lane.
                stored = await _read(thread_id, path)
        else:
            return thread.snapshot()
        if running is not None and not running.done.is_set():
            mark_running(stored, running.id)
        return thread.snapshot(stored.turns)

    async def _read_unloaded(self, thread_id: str, *, with_turns: bool) -> Thread:
        path = await to_thread.run_sync(self._rollouts.find, thread_id)
        if path is None:
            raise _unknown(thread_id)
        size = _size(path)
        stored = await _read(thread_id, path)
        if stored.unended and not self._mark_running(stored) and _size(path) != size:
            # Its server ended while the rollout was read: the turn's end is recorded now.
            stored = await _read(thread_id, path)
        return stored_snapshot(stored, str(path), with_turns=with_turns)

    def _mark_running(self, stored: StoredThread) -> bool:
        """Mark the turns that other servers run as in progress; tells whether there are any."""
        running = [turn for turn, by in stored.unended.items() if is_running(self._home, by)]
        for turn in running:
            mark_running(stored, turn)
        return bool(running)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _unknown(thread_id: str) -> Refusal:
    # Which code an unknown thread has is not shown; -32600 is the shipping server's choice.
    return invalid_request(f"there is no thread {brief(thread_id)}")


async def _read(thread_id: str, path: Path) -> StoredThread:
    given_up = Event()
    try:
        # Reading a long rollout takes seconds; a server that ends does not wait for it.
        stored = await to_thread.run_sync(read_rollout, path, given_up, abandon_on_cancel=True)
        if stored.id != thread_id:
            raise UnreadableRollout(
                f"{path}: its name says {thread_id}, its thread record {stored.id}"
            )
        return stored
    except (OSError, UnreadableRollout) as error:
        raise invalid_request(
            f"the rollout of thread {thread_id} is unreadable: {error}"
        ) from error
    finally:
        given_up.set()
