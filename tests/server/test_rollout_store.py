"""Finding rollouts while other servers use the home, and among many."""

import os
from pathlib import Path
from typing import Any

import pytest

from reference_server.config.home import Home
from reference_server.rollout import store as store_module
from reference_server.rollout.store import RolloutStore

LONG_AGO = 1_000_000_000


def name(thread: int) -> str:
    return f"rollout-2025-01-02T03-04-05-thr_{thread}.jsonl"


def placed(home: Path, thread: int, day: str = "2025/01/02") -> Path:
    path = home / "sessions" / day / name(thread)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def grow_old(root: Path) -> None:
    """Let the folders look as if nobody had touched them lately."""
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        os.utime(folder, (LONG_AGO, LONG_AGO))


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were read."""
    folders: list[str] = []
    real: Any = os.scandir

    def scandir(path: str) -> Any:
        folders.append(path)
        return real(path)

    monkeypatch.setattr(store_module.os, "scandir", scandir)
    return folders


def test_a_thread_that_was_found_once_is_found_without_a_search(tmp_path, scanned) -> None:
    path = placed(tmp_path, 1)
    store = RolloutStore(Home(tmp_path))
    assert store.find("thr_1") == path
    scanned.clear()
    assert store.find("thr_1") == path
    assert scanned == []


def test_few_paths_are_kept_and_every_thread_is_found(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(store_module, "MAX_KEPT_PATHS", 2)
    paths = {thread: placed(tmp_path, thread) for thread in (1, 2, 3, 11, 21)}
    store = RolloutStore(Home(tmp_path))
    for thread in (1, 2, 3, 1, 11, 21, 2):
        assert store.find(f"thr_{thread}") == paths[thread]
        assert len(vars(store)["_paths"]) <= 2


def test_of_two_rollouts_of_a_thread_the_older_name_is_found(tmp_path) -> None:
    path = placed(tmp_path, 1)
    path.with_name(name(1).replace("2025", "2026")).touch()
    assert RolloutStore(Home(tmp_path)).find("thr_1") == path


def test_folders_that_have_not_changed_are_not_read_again(tmp_path, scanned) -> None:
    for thread in range(50):
        placed(tmp_path, thread, f"2025/01/{thread % 28 + 1:02}")
    grow_old(tmp_path)
    store = RolloutStore(Home(tmp_path))
    assert store.find("thr_7") is not None
    scanned.clear()
    assert store.find("thr_99") is None
    assert scanned == []
    there = placed(tmp_path, 99, "2025/01/05")
    assert store.find("thr_99") == there
    assert scanned == [str(there.parent)]


def test_a_rollout_that_another_server_adds_is_found(tmp_path) -> None:
    store = RolloutStore(Home(tmp_path))
    assert store.find("thr_1") is None
    for thread, day in [(1, "2025/01/02"), (2, "2025/01/02"), (3, "2025/01/03"), (4, "2026/01/02")]:
        assert store.find(f"thr_{thread}") is None
        path = placed(tmp_path, thread, day)
        assert store.find(f"thr_{thread}") == path


def test_a_rollout_that_another_server_archives_or_brings_back_is_found(tmp_path) -> None:
    path = placed(tmp_path, 1)
    store = RolloutStore(Home(tmp_path))
    assert store.find("thr_1") == path
    archived = tmp_path / "archived_sessions" / name(1)
    archived.parent.mkdir()
    path.rename(archived)
    assert store.find("thr_1") == archived
    archived.rename(path)
    assert store.find("thr_1") == path
    path.unlink()
    assert store.find("thr_1") is None


@pytest.mark.parametrize(
    "thread", ["thr_*", "thr_1/../x", "thr_\u0661", "thr_" + "1" * 5000, "", "1"]
)
def test_a_text_that_is_not_a_thread_id_is_not_looked_for(tmp_path, scanned, thread: str) -> None:
    placed(tmp_path, 1)
    assert RolloutStore(Home(tmp_path)).find(thread) is None
    assert scanned == []


def test_a_day_that_is_a_link_is_looked_into_and_a_circle_of_links_is_left(tmp_path) -> None:
    elsewhere = placed(tmp_path / "elsewhere", 1)
    (tmp_path / "sessions" / "2025").mkdir(parents=True)
    (tmp_path / "sessions" / "2025" / "01").symlink_to(elsewhere.parents[1])
    (tmp_path / "sessions" / "2024").symlink_to(tmp_path / "sessions")
    found = RolloutStore(Home(tmp_path)).find("thr_1")
    assert found is not None
    assert found.samefile(elsewhere)
