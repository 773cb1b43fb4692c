"""Reading threads from their rollouts, loaded or not.

A loaded thread goes on while it is read, and its client must get every later notification exactly
once. So most of a loaded thread's rollout is read in a worker thread, and the records that were
added meanwhile at the moment of the answer, without letting the turn go on in between.
"""

from pathlib import Path
from threading import Event

from anyio import to_thread

from harness.protocol.wire.turn import Turn
from reference_server.config.home import Home
from reference_server.presence import is_running
from reference_server.refusal import Refusal, invalid_request
from reference_server.rollout.fold import StoredThread, UnreadableRollout, fold, mark_running
from reference_server.rollout.reader import RolloutReader
from reference_server.session.thread import LoadedThread

READ_AT_ONCE = 64 * 1024
"""Bytes that are read while nothing else runs: about a millisecond."""
_MAX_ROUNDS = 8


class LiveReading:
    """The rollout of a loaded thread: first `prepare`, then, as the answer is written, `turns`."""

    def __init__(self, thread: LoadedThread) -> None:
        self._thread = thread
        path = thread.recorder.path
        self._reader = None if path is None else RolloutReader(path)

    async def prepare(self) -> None:
        """Read the rollout, which may grow meanwhile. Raises Refusal."""
        if self._reader is None:
            return
        # After the last round the rest is read at once, however long it is: the answer must come.
        for _ in range(_MAX_ROUNDS):
            if await _read_in_thread(self._thread.id, self._reader) < READ_AT_ONCE:
                return

    def stored_thread(self) -> StoredThread:
        """Return the thread as recorded at this moment. Raises Refusal."""
        if self._reader is None:
            return fold(self._thread.recorder.records() or [])
        try:
            self._reader.read()
            return self._reader.finish()
        except (OSError, UnreadableRollout) as error:
            raise unreadable(self._thread.id, error) from error

    def turns(self, *, with_open_items: bool = False) -> list[Turn]:
        """Return the turns as they are at this moment. Raises Refusal.

        `with_open_items`: also the items of the active turn that were started and not completed.
        """
        return self._mark_active_turn(self.stored_thread(), with_open_items=with_open_items)

    def _mark_active_turn(self, stored: StoredThread, *, with_open_items: bool) -> list[Turn]:
        active = self._thread.turn
        if active is not None:
            mark_running(stored, active.id)
            if with_open_items:
                for turn in stored.turns:
                    if turn.id == active.id:
                        turn.items += active.open_items()
        return stored.turns


async def read_own(thread_id: str, path: Path) -> StoredThread:
    """Read a thread that is not loaded and that this server has claimed. Raises Refusal."""
    stored, _ = await _read_whole(thread_id, path)
    return stored


async def read_stored(home: Home, thread_id: str, path: Path) -> StoredThread:
    """Read a thread that this server has not loaded. Raises Refusal.

    The turns that other servers of the home run are shown in progress.
    """
    stored, size = await _read_whole(thread_id, path)
    running = _running_elsewhere(home, stored)
    if stored.unfinished_turns and not running and _size(path) != size:
        # Its server ended while the rollout was read: the turn's end is recorded now.
        stored, _ = await _read_whole(thread_id, path)
        running = _running_elsewhere(home, stored)
    for turn in running:
        mark_running(stored, turn)
    return stored


def _running_elsewhere(home: Home, stored: StoredThread) -> list[str]:
    return [turn for turn, by in stored.unfinished_turns.items() if is_running(home, by)]


async def _read_whole(thread_id: str, path: Path) -> tuple[StoredThread, int | None]:
    size = _size(path)
    reader = RolloutReader(path)
    await _read_in_thread(thread_id, reader)
    try:
        stored = reader.finish()
        check_id(stored.id, thread_id, path)
    except UnreadableRollout as error:
        raise unreadable(thread_id, error) from error
    return stored, size


async def _read_in_thread(thread_id: str, reader: RolloutReader) -> int:
    """Read in a worker thread, and give the bytes that were added meanwhile. Raises Refusal.

    A server that ends does not wait for a long rollout.
    """
    given_up = Event()
    try:
        await to_thread.run_sync(reader.read, given_up, abandon_on_cancel=True)
        return reader.unread
    except (OSError, UnreadableRollout) as error:
        raise unreadable(thread_id, error) from error
    finally:
        given_up.set()


def check_id(thread_id: str, expected: str, path: Path) -> None:
    """Raise UnreadableRollout where a file holds another thread than its name says."""
    if thread_id != expected:
        raise UnreadableRollout(f"{path}: its name says {expected}, its thread record {thread_id}")


def unreadable(thread_id: str, error: Exception) -> Refusal:
    """Refuse a request for a thread whose rollout cannot be read."""
    return invalid_request(f"the rollout of thread {thread_id} is unreadable: {error}")


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
