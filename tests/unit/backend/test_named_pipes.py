"""Named pipes of a workspace: gates at which commands wait, and which report that."""

import subprocess
from pathlib import Path

import anyio
import pytest

from harness.model.gates import Gates
from harness.model.named_pipes import named_pipes

pytestmark = pytest.mark.anyio
BOUND = 20


async def shell(script: str, folder: Path) -> str:
    done = await anyio.run_process(["sh", "-c", script], cwd=folder, stderr=subprocess.STDOUT)
    return done.stdout.decode()


async def test_a_command_that_writes_has_reached_its_gate(tmp_path: Path) -> None:
    gates = Gates()
    with anyio.fail_after(BOUND):
        async with named_pipes(tmp_path, ["in/begun", "other"], ["in/begun"], gates):
            await shell("echo here > in/begun", tmp_path)
            await gates.wait_until_reached("in/begun")
            with anyio.move_on_after(0) as scope:
                await gates.wait_until_reached("other")
    assert scope.cancelled_caught


async def test_commands_that_read_a_line_wait_until_their_gate_is_open(tmp_path: Path) -> None:
    gates = Gates()
    said: list[str] = []

    async def run() -> None:
        script = "echo x > begun; read line < go-on; echo on; read line < go-on; echo on"
        said.append(await shell(script, tmp_path))

    with anyio.fail_after(BOUND):
        async with (
            named_pipes(tmp_path, ["begun", "go-on"], ["begun"], gates),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(run)
            await gates.wait_until_reached("begun")
            assert said == []
            gates.open("go-on")
    assert said == ["on\non\n"]


async def test_all_pipes_are_opened_with_all_gates_and_gone_afterwards(tmp_path: Path) -> None:
    gates = Gates()
    gates.open_all()
    with anyio.fail_after(BOUND):
        async with named_pipes(tmp_path, ["go-on"], [], gates):
            assert await shell("read line < go-on; echo on", tmp_path) == "on\n"
    # Nobody holds it open any more: a writer that must not wait is refused.
    assert "No such device" in await shell(
        "python3 -c \"import os; os.open('go-on', os.O_WRONLY | os.O_NONBLOCK)\" || true", tmp_path
    )
