"""The index of threads when its files, the rollouts or the disk are not as they should be."""

import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stored_threads import StoredHome

from reference_server.config.home import Home
from reference_server.index import database as database_module
from reference_server.index import index as index_module
from reference_server.index.index import ThreadIndex
from reference_server.index.query import Query

ROOT_MAY_ALL = os.geteuid() == 0


@pytest.fixture
def home(tmp_path) -> StoredHome:
    stored = StoredHome(tmp_path)
    for number in range(1, 6):
        stored.add(number, preview=f"Question {number}")
    return stored


def ids(index: ThreadIndex, home: StoredHome, **query: Any) -> list[str]:
    page = index.page(Query(**query), None, home.now)
    assert page.next is None
    return [one.summary.id for one in page.threads]


def newest_first(home: StoredHome) -> list[str]:
    threads = sorted(home.threads.values(), key=lambda one: one.created, reverse=True)
    return [one.id for one in threads]


def database(home: StoredHome) -> Path:
    (found,) = (home.root / "index").glob("threads-*.sqlite")
    return found


def in_a_row(connection: sqlite3.Connection, statement: str) -> None:
    connection.execute(statement)
    connection.commit()
    connection.close()


def changed(statement: str) -> Callable[[StoredHome], object]:
    return lambda home: in_a_row(sqlite3.connect(database(home)), statement)


DAMAGE: dict[str, Callable[[StoredHome], object]] = {
    "removed": lambda home: shutil.rmtree(home.root / "index"),
    "database removed": lambda home: database(home).unlink(),
    "empty": lambda home: database(home).write_bytes(b""),
    "cut short": lambda home: os.truncate(database(home), 9000),
    "garbage": lambda home: database(home).write_bytes(os.urandom(20_000)),
    "garbage inside": lambda home: _overwrite(database(home), 4096, os.urandom(12_000)),
    "zeros inside": lambda home: _overwrite(database(home), 4096, bytes(12_000)),
    "a folder": lambda home: (path := database(home), path.unlink(), path.mkdir()),
    "a pipe": lambda home: (path := database(home), path.unlink(), os.mkfifo(path)),
    "a link": lambda home: (
        path := database(home),
        path.rename(home.root / "elsewhere"),
        path.symlink_to(home.root / "elsewhere"),
    ),
    "no database named": lambda home: (home.root / "index" / "current-1").write_bytes(b"\xff" * 9),
    "a path named": lambda home: (home.root / "index" / "current-1").write_text("../../x.sqlite"),
    "another named": lambda home: (home.root / "index" / "current-1").write_text(
        "threads-0123456789abcdef.sqlite"
    ),
    "pointer a folder": lambda home: (
        path := home.root / "index" / "current-1",
        path.unlink(),
        path.mkdir(),
    ),
    "index a file": lambda home: (
        shutil.rmtree(home.root / "index"),
        (home.root / "index").write_text("mine"),
    ),
    "of an older version": changed("PRAGMA user_version = 0"),
    "of a newer version": changed("PRAGMA user_version = 99"),
    "without a table": changed("DROP TABLE threads"),
    "without titles": changed("DROP TABLE titles"),
    "without rows": changed("DELETE FROM threads"),
    "with rows of nothing": changed("UPDATE threads SET folder = x'2e2e', id = 'thr_' || key + 90"),
    "with old rows": changed("UPDATE threads SET size = 1, preview = x'00', created = 5"),
    "with rows of no text": changed("UPDATE threads SET preview = x'ff', size = 1"),
    "with rows of no kind": changed("UPDATE threads SET preview = 5, size = 'x', read_to = 'y'"),
}


def _overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("kind", DAMAGE)
def test_whatever_the_index_has_become_the_next_server_lists_every_thread(home, kind: str) -> None:
    first = ThreadIndex(Home(home.root))
    assert ids(first, home) == newest_first(home)
    first.close()
    DAMAGE[kind](home)
    for _ in range(2):
        index = ThreadIndex(Home(home.root))
        assert ids(index, home) == newest_first(home)
        assert ids(index, home, term="Question 3") == ["thr_3"]
        index.close()


@pytest.mark.parametrize("kind", ["removed", "empty", "garbage", "cut short", "no database named"])
def test_an_index_that_is_damaged_while_it_is_in_use_is_made_anew(home, kind: str) -> None:
    index = ThreadIndex(Home(home.root))
    ids(index, home)
    DAMAGE[kind](home)
    home.add(6)
    assert ids(index, home) == newest_first(home)
    index.close()


def test_a_row_that_is_not_as_its_file_is_read_again_before_it_is_given(home) -> None:
    index = ThreadIndex(Home(home.root))
    ids(index, home)
    home.say(home.add(7), "new")
    home.name(home.threads["thr_2"], "A name")
    page = index.page(Query(), None, home.now)
    named = {one.summary.id: one.summary.name for one in page.threads}
    assert named["thr_2"] == "A name"
    assert page.threads[0].summary.preview == "new"
    index.close()


def test_a_file_that_was_rewritten_is_read_from_its_beginning(home) -> None:
    index = ThreadIndex(Home(home.root))
    ids(index, home)
    thread = home.threads["thr_3"]
    text = thread.path.read_text()
    thread.path.write_text(text.replace("Question 3", "Another question, and a longer one"))
    page = index.page(Query(), None, home.now)
    previews = [one.summary.preview for one in page.threads]
    assert "Another question, and a longer one" in previews
    assert "Question 3" not in previews
    assert ids(index, home, term="longer") == ["thr_3"]
    index.close()


def test_a_thread_missing_from_the_index_of_a_killed_server_is_found_by_the_next(home) -> None:
    index = ThreadIndex(Home(home.root))
    ids(index, home)
    home.answer(home.threads["thr_1"])
    index.note("thr_1", home.threads["thr_1"].path)
    # It is not closed: that would write it down.
    after = ThreadIndex(Home(home.root))
    assert ids(after, home, sort="updated")[0] == "thr_1"
    after.close()
    index.close()


def test_unnoticed_changes_are_found_when_every_file_is_looked_at(home, monkeypatch) -> None:
    monkeypatch.setattr(index_module, "EVERY_FILE_TIME", 0.0)
    monkeypatch.setattr(index_module, "EVERY_FILE_SHARE", 0)
    index = ThreadIndex(Home(home.root))
    ids(index, home)
    home.answer(home.threads["thr_1"])
    assert index.is_check_due
    index.check_if_due()
    page = index.page(Query("updated", limit=1), None, home.now)
    assert [one.summary.id for one in page.threads] == ["thr_1"]
    index.close()


def test_the_files_of_the_index_are_private(home) -> None:
    mask = os.umask(0)
    try:
        index = ThreadIndex(Home(home.root))
        ids(index, home)
        home.add(6)
        ids(index, home)
    finally:
        os.umask(mask)
    folder = home.root / "index"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(folder.iterdir())
    assert len(files) >= 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    index.close()


def test_old_databases_do_not_pile_up(home) -> None:
    for _ in range(4):
        index = ThreadIndex(Home(home.root))
        ids(index, home)
        index.close()
        (home.root / "index" / "current-1").unlink()
        leftover = database(home)
        os.utime(leftover, (0, 0))
    index = ThreadIndex(Home(home.root))
    ids(index, home)
    assert len(list((home.root / "index").glob("threads-*.sqlite"))) == 1
    index.close()


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_where_the_disk_takes_no_index_it_is_kept_in_memory(home, monkeypatch, code: int) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(database_module, "make_private", refuse)
    index = ThreadIndex(Home(home.root))
    assert ids(index, home) == newest_first(home)
    home.add(6)
    home.remove(home.threads["thr_2"])
    assert ids(index, home) == newest_first(home)
    assert not (home.root / "index").exists()
    index.close()


@pytest.mark.parametrize("moment", ["building", "in use"])
def test_a_disk_that_is_full_costs_no_thread(home, monkeypatch, moment: str) -> None:
    index = ThreadIndex(Home(home.root))
    if moment == "in use":
        ids(index, home)
    connected = database_module._connect

    def small(path: Path) -> sqlite3.Connection:
        connection = connected(path)
        connection.execute("PRAGMA max_page_count = 3")
        return connection

    if moment == "building":
        monkeypatch.setattr(database_module, "_connect", small)
    else:
        assert index._database is not None
        index._database.connection.execute("PRAGMA max_page_count = 1")
    for number in range(6, 40):
        home.add(number, preview="word " * 1000)
    page = index.page(Query(limit=100), None, home.now)
    assert [one.summary.id for one in page.threads] == newest_first(home)
    index.close()


def test_an_index_that_another_program_keeps_locked_costs_no_thread(home, monkeypatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_TIME", 0.05)
    first = ThreadIndex(Home(home.root))
    ids(first, home)
    holder = sqlite3.connect(database(home), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    home.add(6)
    second = ThreadIndex(Home(home.root))
    for index in (first, second):
        assert ids(index, home) == newest_first(home)
    holder.close()
    first.close()
    second.close()


def hostile_folder(home: StoredHome) -> None:
    """Everything that is no rollout of ours, under names that could be."""
    day = home.root / "sessions" / "2025/01/02"
    name = "rollout-2025-01-02T00-00-00-thr_{}.jsonl"
    os.mkfifo(day / name.format(900))
    (day / name.format(901)).mkdir()
    (day / name.format(902)).symlink_to("/etc/passwd")
    (day / name.format(903)).symlink_to(name.format(903))
    (day / name.format(904)).write_bytes(b"")
    (day / name.format(905)).write_bytes(os.urandom(5000))
    (day / name.format(906)).write_text('{"type":"thread","at":1,"version":99,"id":"thr_906"}\n')
    shutil.copy(home.threads["thr_1"].path, day / name.format(907))
    (day / name.format("x")).write_text("no number")
    (day / "notes.txt").write_text("mine")
    with open(os.fsencode(day) + b"/rollout-\xff-thr_908.jsonl", "wb") as file:
        file.write(home.threads["thr_1"].path.read_bytes().replace(b"thr_1", b"thr_908"))
    (home.root / "sessions" / "loop").symlink_to("loop")
    (home.root / "sessions" / "circle").symlink_to(home.root / "sessions")
    (home.root / "sessions" / "file").write_text("")


def test_a_file_that_is_not_a_rollout_is_not_listed_and_hides_no_thread(home) -> None:
    hostile_folder(home)
    for _ in range(2):
        index = ThreadIndex(Home(home.root))
        assert ids(index, home) == newest_first(home)
        assert ids(index, home) == newest_first(home)
        index.close()


def test_a_file_that_is_empty_at_first_is_listed_once_it_has_its_first_line(home) -> None:
    index = ThreadIndex(Home(home.root))
    ids(index, home)
    thread = home.add(6)
    whole = thread.path.read_bytes()
    thread.path.write_bytes(b"")
    assert "thr_6" not in ids(index, home)
    thread.path.write_bytes(whole)
    assert ids(index, home)[0] == "thr_6"
    index.close()


def test_of_two_files_of_a_thread_the_one_that_is_read_is_shown_also_after_the_other_goes(
    home,
) -> None:
    thread = home.threads["thr_2"]
    copy = home.root / "archived_sessions" / thread.path.name
    copy.parent.mkdir()
    shutil.copy(thread.path, copy)
    index = ThreadIndex(Home(home.root))
    assert ids(index, home) == newest_first(home)
    assert ids(index, home, archived=True) == []
    thread.path.unlink()
    assert ids(index, home, archived=True) == ["thr_2"]
    assert "thr_2" not in ids(index, home)
    index.close()


def test_lines_that_are_damaged_are_left_out_as_when_the_thread_is_read(home) -> None:
    thread = home.threads["thr_1"]
    with thread.path.open("ab") as file:
        file.write(b'{"type":"name","at":1760000900.0,"name":"torn\n')
        file.write(b'{"type":"item","at":1790000000.0,"turnId":"turn_1","item":{"ty\n')
        file.write(b'{"type":"unknown","at":1790000000.0}\n')
        file.write(b'{"type":"name","at":1e999,"name":"late"}\n')
        file.write(b"\xff\xfe\x00\n\n[1]\nnull\n" + b"x" * 200_000 + b"\n")
        file.write(b'{"at":1760000800.0,"name":"Okapi","type":"name"}')
    index = ThreadIndex(Home(home.root))
    page = index.page(Query(), None, home.now)
    (found,) = [one.summary for one in page.threads if one.summary.id == "thr_1"]
    assert (found.name, found.updated_at) == ("Okapi", 1760000800.0)
    index.close()


@pytest.mark.skipif(ROOT_MAY_ALL, reason="the administrator may read everything")
def test_a_file_that_may_not_be_read_is_listed_once_it_may(home) -> None:
    path = home.threads["thr_4"].path
    path.chmod(0)
    index = ThreadIndex(Home(home.root))
    assert "thr_4" not in ids(index, home)
    path.chmod(0o600)
    assert ids(index, home) == newest_first(home)
    index.close()


def test_many_folders_are_looked_at_in_turn_and_a_file_that_is_gone_is_not_given(
    tmp_path, monkeypatch
) -> None:
    from reference_server.index import upkeep

    monkeypatch.setattr(upkeep, "FEW_FOLDERS", 3)
    monkeypatch.setattr(upkeep, "OTHERS_TIME", 1e9)
    home = StoredHome(tmp_path)
    for number in range(1, 13):
        home.add(number, day=f"2025/{number:02}/01")
    index = ThreadIndex(Home(home.root))
    ids(index, home)
    old = home.threads["thr_1"]
    (new := home.root / "sessions/2025/06/01").mkdir(exist_ok=True)
    old.path = old.path.rename(new / old.path.name)
    page = index.page(Query(limit=100), None, home.now)
    assert [one.summary.id for one in page.threads] == newest_first(home)
    home.remove(home.threads["thr_3"])
    assert ids(index, home) == newest_first(home)
    home.add(13, day="2026/01/01")
    assert ids(index, home) == newest_first(home)
    index.close()


def test_long_folder_is_not_scanned_for_each_list(home, monkeypatch) -> None:
    from reference_server.index import upkeep

    monkeypatch.setattr(upkeep, "LONG_FOLDER", 5)
    monkeypatch.setattr(upkeep, "SCAN_SHARE", 1e9)
    index = ThreadIndex(Home(home.root))
    known = ids(index, home)
    home.add(6)  # By another server: it is listed after the next scan.
    own = home.add(7)
    index.note(own.id, own.path)
    assert sorted(ids(index, home)) == sorted([*known, own.id])
    home.remove(own)
    assert sorted(ids(index, home)) == sorted([*known, "thr_6"])  # A lost file is looked for.
    index.close()


@pytest.mark.slow
def test_nothing_of_sqlite_is_imported_before_the_first_list() -> None:
    code = (
        "import sys, reference_server.services, reference_server.handlers as h; h.discover(); "
        "print('sqlite3' in sys.modules, 'reference_server.index.index' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False False\n"


@pytest.mark.parametrize("kind", ["empty", "removed", "without rows", "of an older version"])
def test_no_thread_comes_twice_when_the_index_is_lost_between_pages(home, kind: str) -> None:
    query, after, seen = Query("updated", limit=2), None, []
    for _ in range(3):
        index = ThreadIndex(Home(home.root))
        page = index.page(query, after, home.now)
        seen += [one.summary.id for one in page.threads]
        after = page.next
        index.close()
        DAMAGE[kind](home)
    assert seen == newest_first(home)
    assert after is None
