"""Servers that run confined: one that tries to get out, some that use up the machine, their end."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from harness.client.target.confine.command import Confinement, find_problem
from harness.client.target.confine.table import Confine
from harness.client.target.process import ServerProcess, start
from tests.processes import COMMANDS, run

from .judging import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket]
ESCAPING = ROOT / "fixtures" / "servers" / "escaping.py"
PLANTED = "planted-secret"
HIDDEN = "FileNotFoundError: [Errno 2] No such file or directory"
READ_ONLY = "OSError: [Errno 30] Read-only file system"
GONE = "ProcessLookupError: [Errno 3] No such process"
PROFILE = """
name = "escaping"
command = {command}
[confine]
writable = ["out"]
descriptors = 64
"""
FORKS = """
import os, sys
while True:
    try:
        if os.fork() == 0:
            continue
    except OSError:
        pass
"""
ALLOCATES = """
import os
reader, writer = os.pipe()
while True:
    if os.fork() == 0:
        kept = b"x" * 20_000_000
        os.write(writer, b"x")
        os.read(0, 1)
    os.read(reader, 1)  # Else on a busy machine the bound of processes can come first.
"""
LEAVES_A_CHILD = """
import os, subprocess, sys
subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
print("ready", flush=True)
sys.stdin.read()
"""
CLEANS_UP = """
import os, signal, sys
def leave(*_):
    open(sys.argv[1], "w").close()
    os._exit(5)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
while True:
    signal.pause()
"""
OWNER = """
import anyio, os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.conformance.test_confined_servers import server, first_line
async def main():
    process = await server({script!r}, Path({folder!r}))
    await first_line(process)
    print(process.pid, flush=True)
    await anyio.sleep_forever()
anyio.run(main)
"""


@pytest.fixture(autouse=True)
def needs_bubblewrap() -> None:
    """Skip with the reason on a machine where nothing can be confined."""
    if problem := find_problem():
        pytest.skip(f"no sandbox on this machine: {problem}")


async def server(script: str, folder: Path, *words: str, **bounds: object) -> ServerProcess:
    table = Confine.model_validate(bounds)
    (folder / "tmp").mkdir()
    return await start(
        [sys.executable, "-c", script, *words],
        cwd=folder,
        env={"PATH": os.defpath},
        stderr=folder / "stderr",
        owner="test",
        home=folder,
        temporary=folder / "tmp",
        confinement=Confinement(table, folder),
    )


async def first_line(process: ServerProcess) -> str:
    with anyio.fail_after(20):
        return (await process.transport.receive())[0].raw.decode()


async def ended(process: ServerProcess) -> int:
    with anyio.fail_after(30):
        return await process.wait()


def plant_secrets(home: Path) -> None:
    for name in (".ssh/id_x", ".aws/credentials", ".netrc", ".config/browser/logins", "letter.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(PLANTED)


def test_a_server_that_tries_to_get_out_reaches_nothing_but_its_own(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    plant_secrets(home)
    (project / "out").mkdir(parents=True)
    report = project / "out" / "report.json"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        words = [report, home, project, listener.getsockname()[1], os.getpid()]
        command = [sys.executable, str(ESCAPING), *map(str, words)]
        (project / "p.toml").write_text(PROFILE.format(command=json.dumps(command)))
        said = run(
            [COMMANDS / "harness", "run", "--target", "p.toml", "--confine", "turns/plain-turn"],
            cwd=project,
            env={**os.environ, "HOME": str(home), "STORE": PLANTED, "AN_API_KEY": PLANTED},
        )
    assert report.exists(), said.out
    found = json.loads(report.read_text("utf-8"))
    for name, error in found["read"].items():
        assert error == f"{HIDDEN}: '{home / name}'"
    assert found["write-outside"].startswith(READ_ONLY)
    # An empty folder of its own stands for the home.
    assert not (home / "here").exists()
    assert found["write-kernel-nested"] == "CalledProcessError"
    for name in ("write-etc", "write-device", "write-kernel"):
        assert found[name].startswith((READ_ONLY, "PermissionError"))
    assert found["write-own-home"] == ""
    assert found["connect-machine"] == "ConnectionRefusedError: [Errno 111] Connection refused"
    assert found["connect-away"] == "OSError: [Errno 101] Network is unreachable"
    assert found["kill"] == found["trace"].replace("OSError", "ProcessLookupError") == GONE
    assert found["environment"].startswith("FileNotFoundError")
    assert (found["environments"], found["variables"]) == ([], [])
    assert 40 <= found["descriptors"] < 64
    assert (found["allocate"], found["core"]) == ("MemoryError", 0)
    assert not (project / "here").exists()


@pytest.mark.anyio
async def test_a_server_that_forks_without_end_is_bounded_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    process = await server(FORKS, tmp_path, processes=40)
    if os.geteuid() == 0:  # The kernel counts no processes of root; the first process does.
        assert await ended(process) == -signal.SIGKILL
        assert "confined: more than 40 processes" in process.stderr_tail()
    ending = await process.stop(1)
    assert process.children() == set()
    assert ending.returncode is not None


@pytest.mark.anyio
async def test_memory_is_bounded_for_all_processes_together(tmp_path: Path) -> None:
    process = await server(ALLOCATES, tmp_path, processes=100, memory="200M")
    assert await ended(process) == -signal.SIGKILL
    assert "confined: more than 209715200 bytes of memory" in process.stderr_tail()
    await process.stop(1)


@pytest.mark.anyio
async def test_processes_that_outlive_a_confined_server_are_named_and_ended(tmp_path: Path) -> None:
    process = await server(LEAVES_A_CHILD, tmp_path)
    assert await first_line(process) == "ready"
    (child,) = process.children()
    ending = await process.stop(5)
    assert (ending.returncode, ending.push) == (0, "none")
    assert [name.split(" ")[0] for name in ending.survivors] == ["sleep"]
    assert not psutil.pid_exists(child)


@pytest.mark.anyio
async def test_term_reaches_the_server_itself_which_may_clean_up(tmp_path: Path) -> None:
    process = await server(CLEANS_UP, tmp_path, str(tmp_path / "cleaned"))
    assert await first_line(process) == "ready"
    process.terminate()
    assert await ended(process) == 5
    assert (tmp_path / "cleaned").exists()
    assert (await process.stop(1)).survivors == ()


@pytest.mark.anyio
async def test_a_killed_server_is_told_from_one_that_ended(tmp_path: Path) -> None:
    process = await server(CLEANS_UP, tmp_path, "unused")
    assert await first_line(process) == "ready"
    os.kill(process.pid, signal.SIGKILL)
    ending = await process.stop(5)
    assert ending.returncode == -signal.SIGKILL
    assert ending.was_killed_before


def test_a_confined_server_ends_with_a_harness_that_is_killed(tmp_path: Path) -> None:
    script = OWNER.format(root=str(ROOT), folder=str(tmp_path), script=CLEANS_UP)
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    assert owner.stdout is not None
    with owner.stdout:
        handle = os.pidfd_open(int(owner.stdout.readline()))
    try:
        owner.kill()
        owner.wait()
        assert select.select([handle], [], [], 20)[0], "the server outlived its harness"
    finally:
        os.close(handle)
