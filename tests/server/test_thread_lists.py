"""Notes about threads, written while another thread makes the index for the first time."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from anyio import from_thread
from stored_threads import StoredHome

from reference_server.config.home import Home
from reference_server.index import index as index_module
from reference_server.index.index import ThreadIndex
from reference_server.index.lists import ThreadLists
from reference_server.index.query import Query

BOUND = 5.0


@dataclass(frozen=True, kw_only=True)
class WatchedHome(Home):
    """Home that sets `asked` when the place of the index is read, just before notes are written."""

    asked: anyio.Event

    @property
    def thread_index(self) -> Path:
        self.asked.set()
        return self.root / "index"


async def test_notes_that_are_dropped_while_the_index_is_made_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before there is an index the notes are thrown away: whoever makes it reads every file."""
    stored = StoredHome(tmp_path)
    thread = stored.add(1, preview="Question 1")
    asked = anyio.Event()

    def made(home: Home) -> ThreadIndex:
        from_thread.run(asked.wait)
        return ThreadIndex(Home(home.root))

    monkeypatch.setattr(index_module, "ThreadIndex", made)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            lists = ThreadLists(tasks, WatchedHome(tmp_path, asked=asked), lambda: stored.now)
            lists.on_change(thread.id, thread.path)
            threads, cursor = await lists.page(Query(), None)
            await lists.close()
            assert ([one.summary.id for one in threads], cursor) == ([thread.id], None)


async def test_check_that_fails_costs_neither_the_list_nor_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stored = StoredHome(tmp_path)
    thread = stored.add(1, preview="Question 1")

    def fails(_: ThreadIndex) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(ThreadIndex, "is_check_due", True)
    monkeypatch.setattr(ThreadIndex, "check_if_due", fails)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            lists = ThreadLists(tasks, Home(tmp_path), lambda: stored.now)
            for _ in range(2):
                threads, _cursor = await lists.page(Query(), None)
                assert [one.summary.id for one in threads] == [thread.id]
            await lists.close()
    assert "threads were not compared with their files: unable to open" in caplog.text
