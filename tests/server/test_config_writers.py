"""Concurrent writers of config.toml, a killed one, and the content of the file."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest
from agent_mcp import Home
from anyio import to_thread
from session_peer import session
from skill_folders import project, put_skill

from reference_server.config import editing
from reference_server.config.editing import Unwritable, change_config
from reference_server.config.load import ConfigError, read_config
from reference_server.config.text import CONFIG_LIMIT
from tests.agent_process import AgentProcess
from tests.processes import Said

WRITER = """
import os, sys
from pathlib import Path
from reference_server.config import editing

def held(*_):
    print("held", flush=True)
    sys.stdin.read()

setattr(*{"edit": (editing, "_replace"), "exchange": (os, "replace")}[sys.argv[2]], held)
editing.change_config(Path(sys.argv[1]), lambda text: text + "# written\\n")
"""


@contextmanager
def writer_held(file: Path, moment: str) -> Generator[subprocess.Popen[bytes]]:
    """A writer of the file in a process of its own, stopped before this moment."""
    words = [sys.executable, "-c", WRITER, str(file), moment]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.attacks)])
def test_of_servers_that_are_added_at_once_none_is_lost(home: Home, count: int) -> None:
    home.write("# mine\n[mcp_servers.old]\ncommand = 'x' # kept\n")
    started = [
        AgentProcess(
            home.command("add", f"s{number}", "--env", f"N={number}", "--", "serve", str(number)),
            env={"HOME": str(home.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for number in range(count)
    ]
    said = [process.communicate(timeout=120)[0].decode() for process in started]
    assert [process.returncode for process in started] == [0] * count, said
    servers = home.servers()
    assert servers.pop("old") == {"command": "x"}
    assert {name: one["env"]["N"] for name, one in servers.items()} == {
        f"s{number}": str(number) for number in range(count)
    }
    assert home.config.read_text().startswith("# mine\n[mcp_servers.old]\ncommand = 'x' # kept\n")
    assert sorted(os.listdir(home.config.parent)) == ["config.lock", "config.toml"]


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.socket
async def test_the_server_and_the_command_wait_for_each_other(home: Home, tmp_path: Path) -> None:
    """One lock for skills and MCP servers: neither loses what the other writes."""
    skill = put_skill(project(tmp_path), "tally")
    said: list[Said] = []
    async with session(home.config.parent) as peer, anyio.create_task_group() as tasks:

        async def add() -> None:
            said.append(await to_thread.run_sync(home.mcp, "add", "x", "--", "c"))

        with writer_held(home.config, "exchange"):
            tasks.start_soon(add)
            asked = await peer.send("skills/config/write", {"path": str(skill), "enabled": False})
        assert "result" in await peer.answer(asked)
    assert [one.status for one in said] == [0]
    text = home.config.read_text()
    assert "[mcp_servers.x]" in text
    assert "[[skills.config]]" in text


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.parametrize("moment", ["edit", "exchange"])
def test_a_writer_that_was_killed_holds_nobody_up_and_leaves_nothing(
    home: Home, moment: str
) -> None:
    home.write("a = 1\n")
    with writer_held(home.config, moment) as writer:
        writer.kill()
        writer.wait()
    assert home.config.read_text() == "a = 1\n"
    assert home.mcp("add", "x", "--", "c").status == 0
    assert "# written" not in home.config.read_text()
    assert sorted(os.listdir(home.config.parent)) == ["config.lock", "config.toml"]


@pytest.mark.slow
def test_a_writer_that_keeps_the_lock_is_waited_for_and_then_told(home: Home) -> None:
    home.write("a = 1\n")
    with (
        writer_held(home.config, "edit"),
        pytest.raises(OSError, match=r"another process has had it locked for 0\.1 s"),
    ):
        change_config(home.config, lambda text: text + "b = 2\n", patience=0.1)
    assert home.config.read_text() == "a = 1\n"


def write(file: Path) -> None:
    change_config(file, lambda text: text + "b = 2\n")


def test_mode_owner_and_attributes_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("a = 1\n")
    file.chmod(0o640)
    if os.getuid() == 0:
        os.chown(file, 1234, 2345)
    before = file.stat()
    write(file)
    after = file.stat()
    assert file.read_text() == "a = 1\nb = 2\n"
    kept = [(one.st_mode, one.st_uid, one.st_gid) for one in (before, after)]
    assert kept[0] == kept[1]
    assert before.st_ino != after.st_ino, "the file was not exchanged"


def of_another(file: Path, field: int) -> os.stat_result:
    """The status of a file as if another user (4) or group (5) had it."""
    fields = list(file.stat())
    fields[field] = 4321
    return os.stat_result(fields)


def test_a_replaced_file_gives_nobody_else_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.touch()
    file.chmod(0o660)

    def refuse(*_given: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    with open(tmp_path / "new", "w") as new:
        with pytest.raises(Unwritable, match="belongs to another user; change it as that user"):
            editing._keep_rights(file, new.fileno(), of_another(file, 4))
        editing._keep_rights(file, new.fileno(), of_another(file, 5))
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


def test_files_that_root_makes_in_a_users_home_are_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, given = os.fstat, []
    theirs = os.stat_result([*list(tmp_path.stat())[:4], 4321, 8765, *list(tmp_path.stat())[6:]])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fchown", lambda *words: given.append(words[1:]))
    monkeypatch.setattr(os, "stat", lambda _path: theirs)
    with open(tmp_path / "new", "w") as new:
        monkeypatch.setattr(
            os, "fstat", lambda it: os.stat_result([*list(real(it))[:4], 0, 0, *list(real(it))[6:]])
        )
        editing._give_to_owner(new.fileno(), tmp_path)
        assert given == [(4321, 8765)]
        monkeypatch.setattr(os, "geteuid", lambda: 1)
        editing._give_to_owner(new.fileno(), tmp_path)
        assert len(given) == 1


def has_open(pid: int, file: Path) -> bool:
    """Return True if a process has a file open."""
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/{descriptor}") == str(file):
                return True
    return False


@pytest.mark.slow
@pytest.mark.socket
def test_who_waits_for_a_writer_can_stop_waiting(home: Home) -> None:
    home.write("a = 1\n")
    with writer_held(home.config, "edit"):
        words, env = home.command("add", "x", "--", "c"), {"HOME": str(home.folder)}
        with AgentProcess(words, env=env, stderr=subprocess.PIPE) as waiting:
            deadline = time.monotonic() + 60
            while not has_open(waiting.pid, home.config.parent / "config.lock"):
                assert time.monotonic() < deadline, "it never opened the lock"
            waiting.send_signal(signal.SIGINT)
            assert waiting.communicate(timeout=60)[1] == b""
        assert waiting.returncode == 130
    assert home.config.read_text() == "a = 1\n"


def test_a_link_stays_a_link_also_to_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles" / "agent.toml"
    kept.parent.mkdir()
    file = tmp_path / "home" / "config.toml"
    file.parent.mkdir()
    file.symlink_to(kept)
    for length in (6, 12):
        write(file)
        assert file.is_symlink()
        assert len(kept.read_text()) == length
    assert os.listdir(kept.parent) == ["agent.toml"]


def test_a_write_protected_file_is_not_exchanged(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("a = 1\n")
    file.chmod(0o444)
    with pytest.raises(Unwritable, match=r"is write-protected; chmod u\+w"):
        write(file)
    assert file.read_text() == "a = 1\n"


def test_a_file_does_not_grow_beyond_what_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    before = "#" * (CONFIG_LIMIT - 3) + "\n"
    file.write_text(before)
    with pytest.raises(Unwritable, match="would be larger than 1024 KiB; shorten it"):
        write(file)
    assert file.read_text() == before


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_folder_in_which_nothing_can_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Root may write anywhere, so the refusal is made up."""
    file = tmp_path / "config.toml"
    file.write_text("a = 1\n")

    def refuse(**_given: object) -> None:
        raise OSError(number, os.strerror(number), "a name that nobody knows")

    monkeypatch.setattr(editing.tempfile, "mkstemp", refuse)
    words = f"{file}: cannot be written: {os.strerror(number)}; it is as it was"
    with pytest.raises(Unwritable) as error:
        write(file)
    assert str(error.value) == words
    assert file.read_text() == "a = 1\n"


def test_a_file_that_nobody_may_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("a = 1\n")

    def refuse(*_given: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ConfigError, match=r"config\.toml:1:1: cannot be read: Permission denied"):
        read_config(file)


def test_files_of_editors_beside_it_stay(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    others = {".config.toml.swp", ".config.toml.un~", "config.toml.bak"}
    for name in others:
        (tmp_path / name).write_text("")
    write(file)
    assert set(os.listdir(tmp_path)) == {*others, "config.toml", "config.lock"}


@pytest.mark.slow
@pytest.mark.socket
def test_a_full_disk_leaves_the_file_as_it_was(home: Home) -> None:
    home.write("a = 1\n")
    done = subprocess.run(
        home.command("add", "x", "--", "c"),
        env={"HOME": str(home.folder)},
        capture_output=True,
        text=True,
        preexec_fn=_no_room,
        check=False,
    )
    words = f"agent mcp add: {home.config}: cannot be written: File too large; it is as it was\n"
    assert Said(done.returncode, done.stdout, done.stderr) == Said(1, "", words)
    assert home.config.read_text() == "a = 1\n"
    assert sorted(os.listdir(home.config.parent)) == ["config.lock", "config.toml"]


def _no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
