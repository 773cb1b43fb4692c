"""Permissions of a home: its user alone can read it, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_side import patches, says
from session_peer import session

from reference_server.config.home import Home


@pytest.fixture(params=[0o000, 0o022, 0o177], ids=oct)
def umask(request) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def folders_of(home: Path) -> dict[str, int]:
    """The folders below a home, and their rights."""
    found = (path for path in home.rglob("*") if path.is_dir())
    return {str(path.relative_to(home)): rights(path) for path in found}


def files_of(home: Path) -> set[int]:
    return {rights(path) for path in home.rglob("*") if path.is_file()}


async def used(home: Path, work: Path) -> None:
    unasked = {"sandbox": "danger-full-access", "approvalPolicy": "never", "cwd": str(work)}
    async with session(home, [patches("*** Add File: a", "+x"), says("hi")]) as peer:
        assert (await peer.run_turn(await peer.start_thread(**unasked)))["status"] == "completed"
        assert [item["status"] for item in peer.completed_items("fileChange")] == ["completed"]
        seen, files = folders_of(home), files_of(home)
    assert {"sessions", "servers"} <= set(seen)
    assert set(seen.values()) == {0o700}
    assert {mode & 0o077 for mode in files} == {0}


async def test_a_home_that_the_server_makes_is_its_users_alone(tmp_path, umask: int) -> None:
    home = tmp_path / "deep" / "home"
    await used(home, tmp_path)
    assert rights(home) == rights(home.parent) == 0o700


async def test_the_rights_of_a_home_that_is_there_are_not_changed(tmp_path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    await used(home, tmp_path)
    assert rights(home) == 0o755


def test_a_home_that_is_a_link_stays_where_it_led_at_the_start(tmp_path: Path) -> None:
    """A command whose workspace holds the link could lead it to rules of its own."""
    real = tmp_path / "real"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    home = Home.from_environment({"AGENT_HOME": str(link)})
    link.unlink()
    link.symlink_to(tmp_path)
    assert home.config_file == real / "config.toml"
