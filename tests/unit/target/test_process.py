"""A server's process: found, started without a shell, and certainly gone afterwards."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from harness.client.target.process import ProcessExit, ServerProcess, environment, start
from harness.client.target.program import find_program
from harness.errors import TargetGone, UsageError
from harness.trace.record.masks import secret_values

pytestmark = [pytest.mark.socket]

GRACE = 0.5
READS = "import sys; sys.stdin.read()"
DEAF = "import signal, sys\nprint('ready', flush=True)\nwhile True: signal.pause()"
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + DEAF


async def server(script: str, folder: Path, *arguments: str) -> ServerProcess:
    command = [sys.executable, "-c", script, *arguments]
    stderr = folder / "stderr"
    return await start(
        command,
        cwd=folder,
        env=dict(os.environ),
        stderr=stderr,
        owner="test",
        home=folder,
        temporary=folder / "temporary",
    )


async def first_line(process: ServerProcess) -> str:
    with anyio.fail_after(10):
        return (await process.transport.receive())[0].raw.decode()


async def send_messages(process: ServerProcess, count: int) -> None:
    for _ in range(count):
        await process.transport.send(b"{}")


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def write_to_ended_server(folder: Path) -> None:
    process = await server("", folder)
    # The loop, which is kept waiting, has not heard yet that it ended.
    until = time.monotonic() + 10
    while runs(process.pid) and time.monotonic() < until:
        pass
    with pytest.raises(TargetGone):
        await send_messages(process, 10)
    await process.stop(GRACE)


def test_server_that_ended_is_reported_to_the_writer_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def write_to_three() -> None:
        for _ in range(3):
            await write_to_ended_server(tmp_path)
            gc.collect()  # What nobody retrieved is logged when it is collected.

    anyio.run(write_to_three)
    assert caplog.messages == []


async def test_end_of_input_is_enough_for_a_good_server(tmp_path: Path) -> None:
    process = await server(READS, tmp_path)
    ending = await process.stop(10)
    assert (ending.returncode, ending.push, ending.survivors) == (0, "none", ())
    assert not runs(process.pid)


async def test_server_that_ignores_its_input_gets_term(tmp_path: Path) -> None:
    process = await server(DEAF, tmp_path)
    await first_line(process)
    ending = await process.stop(GRACE)
    assert (ending.returncode, ending.push) == (-15, "TERM")
    assert not runs(process.pid)


async def test_server_that_ignores_term_is_killed(tmp_path: Path) -> None:
    process = await server(STUBBORN, tmp_path)
    await first_line(process)
    ending = await process.stop(GRACE)
    assert (ending.returncode, ending.push) == (-9, "KILL")
    assert not runs(process.pid)


async def test_server_that_is_stopped_by_a_signal_is_killed(tmp_path: Path) -> None:
    process = await server(READS, tmp_path)
    psutil.Process(process.pid).suspend()
    assert (await process.stop(GRACE)).push == "KILL"
    assert not runs(process.pid)


async def test_server_that_is_gone_already_has_its_own_status(tmp_path: Path) -> None:
    process = await server("import os; os._exit(7)", tmp_path)
    with anyio.fail_after(10):
        assert await process.wait() == 7
    assert (await process.stop(GRACE)).returncode == 7


FAMILY = """
import subprocess, sys
line = [sys.executable, "-c", sys.argv[1]]
new = sys.argv[2] == "new"
child = subprocess.Popen(line, start_new_session=new, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("session", ["same", "new"])
async def test_child_that_outlives_its_server_is_killed_and_named(
    session: str, tmp_path: Path
) -> None:
    process = await server(FAMILY, tmp_path, STUBBORN, session)
    child = int(await first_line(process))
    assert process.children() == {child}
    ending = await process.stop(GRACE)
    assert [re.sub(r"^.* ", "", name) for name in ending.survivors] == [f"{child})"]
    assert not runs(child)


async def test_orphan_that_nobody_saw_being_born_is_killed_and_named(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        print(os.getpid(), flush=True)\n"
        "        while True: signal.pause()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "sys.stdin.read()\n"
    )
    process = await server(script, tmp_path)
    orphan = int(await first_line(process))
    assert orphan not in process.children()
    ending = await process.stop(10)
    assert len(ending.survivors) == 1
    assert f"pid {orphan}" in ending.survivors[0]
    assert not runs(orphan)


async def test_child_that_ends_with_its_server_is_no_survivor(tmp_path: Path) -> None:
    script = FAMILY.replace("start_new_session", "stdin=subprocess.PIPE, start_new_session")
    process = await server(script, tmp_path, f"print('ready', flush=True); {READS}", "new")
    child = int(await first_line(process))
    assert (await process.stop(10)).survivors == ()
    assert not runs(child)


async def test_processes_that_outlast_the_grace_are_named(tmp_path: Path) -> None:
    process = await server(FAMILY, tmp_path, STUBBORN, "same")
    child = int(await first_line(process))
    assert await process.lingering_children({child}, 0.1) == ()
    (name,) = await process.lingering_children(set(), 0.1)
    assert name.endswith(f"(pid {child})")
    await process.stop(GRACE)


async def test_end_of_stderr_is_given_whatever_its_bytes(tmp_path: Path) -> None:
    script = "import os; os.write(2, b'x' * 9000 + b'\\xff end')"
    process = await server(script, tmp_path)
    await process.stop(10)
    assert process.stderr_tail(7) == "xx\\xff end"
    assert len(process.stderr_tail()) < 4100


async def test_new_standard_error_is_returned_within_a_bound(tmp_path: Path) -> None:
    process = await server("import os; os.write(2, b'first second')", tmp_path)
    await process.stop(10)
    assert process.stderr_since(0, 100) == (b"first second", 12)
    assert process.stderr_since(6, 100) == (b"second", 12)
    assert process.stderr_since(0, 3) == (b"ond", 12)
    assert process.stderr_since(12, 100) == (b"", 12)


LEAVES = """
import os, pathlib, sys, tempfile
folder = pathlib.Path(tempfile.mkdtemp(prefix="made-"))
(folder / "file").touch()
pathlib.Path(tempfile.gettempdir(), "empty").mkdir()
print(os.environ["TMPDIR"], flush=True)
sys.stdin.read()
"""


async def test_files_in_the_temporary_folder_of_its_own_are_named_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    (tmp_path / "temporary").mkdir()
    process = await server(LEAVES, tmp_path)
    assert await first_line(process) == str(tmp_path / "temporary")
    ending = await process.stop(10)
    assert ending.is_graceful
    assert [re.sub("made-.*/", "made/", name) for name in ending.files] == ["empty/", "made/file"]


@pytest.mark.parametrize(
    ("ending", "graceful"),
    [
        (ProcessExit(0, "none", ()), True),
        (ProcessExit(-15, "TERM", ()), True),
        (ProcessExit(1, "none", ()), False),
        (ProcessExit(-9, "none", ()), False),
        (ProcessExit(-9, "KILL", ()), False),
    ],
)
def test_only_an_end_of_its_own_making_is_graceful(ending: ProcessExit, *, graceful: bool) -> None:
    assert ending.is_graceful is graceful


async def test_program_that_the_system_refuses_is_a_profile_error(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("no interpreter")
    script.chmod(0o755)
    stderr = tmp_path / "stderr"
    with pytest.raises(UsageError, match="cannot be started: Exec format error"):
        await start(
            [str(script)],
            cwd=tmp_path,
            env={},
            stderr=stderr,
            owner="test",
            home=tmp_path,
            temporary=tmp_path,
        )


def test_program_is_looked_for_on_the_path_and_beside_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "my-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program(["my-server", "--x"]) == [str(program), "--x"]
    beside = Path(sys.executable).name
    assert find_program([beside]) == [str(Path(sys.executable).parent / beside)]


def test_environment_is_private_and_without_secrets_and_proxies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SOME_API_KEY", "GIT_TOKEN", "db_password", "HTTPS_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("KEPT", "yes")
    monkeypatch.setenv("TMPDIR", "/where/we/put/ours")
    env = environment({"PROVIDER_API_KEY": "ours", "KEPT": "ours"}, tmp_path, "AGENT_HOME")
    assert "secret" not in env.values()
    assert "TMPDIR" not in env
    assert (env["HOME"], env["AGENT_HOME"]) == (str(tmp_path), str(tmp_path))
    assert (env["PROVIDER_API_KEY"], env["KEPT"]) == ("ours", "ours")


class Vanishing(dict[str, str]):
    """An environment of which a variable goes while it is looked through."""

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        yield "GONE"

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


def test_a_variable_that_goes_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest names its current test in the environment while lanes start servers."""
    variables = Vanishing(KEPT="yes", OWN_API_KEY="secret-of-ours", PYTEST_CURRENT_TEST="another")
    monkeypatch.setattr(os, "environ", variables)
    env = environment({}, tmp_path, "AGENT_HOME")
    assert env["KEPT"] == "yes"
    assert not {"GONE", "PYTEST_CURRENT_TEST"} & env.keys()
    assert secret_values(variables) == ["secret-of-ours"]


def test_git_finds_no_repository_around_the_workspace(tmp_path: Path) -> None:
    work, home = tmp_path / "run" / "work", tmp_path / "run" / "home"
    work.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    ask = ["git", "rev-parse", "--show-toplevel"]
    found = subprocess.run(ask, cwd=work, capture_output=True)
    assert found.returncode == 0
    env = environment({}, home, "AGENT_HOME")
    hidden = subprocess.run(ask, cwd=work, env=env, capture_output=True, text=True)
    assert (hidden.returncode, "not a git repository" in hidden.stderr) == (128, True)
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    assert subprocess.run(ask, cwd=work, env=env, capture_output=True).returncode == 0
