"""Reading threads from their rollouts, loaded or not.

A loaded thread runs on while it is read, and its client must get every later notification exactly
once. So most of a loaded thread's rollout is read in a worker thread; the records that were added
meanwhile are read with the answer, and the turn cannot continue in between.
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
"""Bytes that may be read on the event loop: about a millisecond."""
_MAX_ROUNDS = 8


class LiveReading:
    """A reading of a loaded thread's rollout: `prepare` first, then `turns` with the answer."""

    def __init__(self, thread: LoadedThread) -> None:
        self._thread = thread
        path = thread.recorder.path
        self._reader = None if path is None else RolloutReader(path)

    async def prepare(self) -> None:
        """Read most of the rollout, which may grow meanwhile. Raises Refusal if unreadable."""
        if self._reader is None:
            return
        # After the last round the rest is read at once, however long it is: the answer must come.
        for _ in range(_MAX_ROUNDS):
            if await _read_in_thread(self._thread.id, self._reader) < READ_AT_ONCE:
                return

    def stored_thread(self) -> StoredThread:
        """Return the thread as recorded at this moment. Raises Refusal if unreadable."""
        if self._reader is None:
            return fold(self._thread.recorder.records() or [])
        try:
            self._reader.read()
            return self._reader.finish()
        except (OSError, UnreadableRollout) as error:
            raise unreadable(self._thread.id, error) from error

    def turns(self, *, with_open_items: bool = False) -> list[Turn]:
        """Return the turns as they are at this moment. Raises Refusal if unreadable.

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
    """Read a thread that this server has claimed, not loaded. Raises Refusal if unreadable."""
    stored, _ = await _read_whole(thread_id, path)
    return stored


async def read_stored(home: Home, thread_id: str, path: Path) -> StoredThread:
    """Read a thread that this server has not loaded. Raises Refusal if unreadable.

    Turns that run in other servers of the home are in progress in the result.
    """
    stored, size = await _read_whole(thread_id, path)
    running = _running_elsewhere(home, stored)
    if stored.unfinished_turns and not running and _size(path) != size:
        # The rollout grew while it was read, and the server that ran the turn has ended since.
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
    """Read in a worker thread and return the number of bytes added meanwhile. Raises Refusal.

    Cancelling the task abandons the reading, so a server that stops need not wait for it.
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
    """Raise UnreadableRollout if the thread in a file is not the one that its name says."""
    if thread_id != expected:
        raise UnreadableRollout(f"{path}: its name says {expected}, its thread record {thread_id}")


def unreadable(thread_id: str, error: Exception) -> Refusal:
    """Return the refusal of a request for a thread whose rollout cannot be read."""
    return invalid_request(f"the rollout of thread {thread_id} is unreadable: {error}")


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
