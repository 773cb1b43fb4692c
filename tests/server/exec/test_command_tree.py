"""The end of a command is the end of everything it started, however that tried to get away."""

import os
import signal
import sys
import textwrap

import anyio
import pytest
from commands import BOUND, Heard, ended, fifo, finished, linux, living, shell

import reference_server
from reference_server.sandbox.process import Running

pytestmark = [linux, pytest.mark.anyio, pytest.mark.slow, pytest.mark.socket]

ROOT = os.path.dirname(os.path.dirname(reference_server.__file__))
GRACE = 0.2

DEAF = "trap '' TERM HUP INT; echo $BASHPID; read x < never"
"""Prints its process id and blocks, and no TERM ends it."""
KINDS = {
    "a plain child": "bash -c 'echo $$; read x < never' & ",
    "a child that is deaf to TERM": f'bash -c "{DEAF}" & '.replace("$", "\\$"),
    "one that left the session": f'setsid bash -c "{DEAF}" & '.replace("$", "\\$"),
    "one that forked twice": f'(setsid bash -c "{DEAF}" &) ; '.replace("$", "\\$"),
    "one without environment": f'(env -i setsid bash -c "{DEAF}" &) ; '.replace("$", "\\$"),
    "one that closed its streams": (
        "(setsid bash -c 'echo $$; exec <&- >&- 2>&-; trap \"\" TERM; read x < never' &) ; "
    ),
    "one that was stopped": "bash -c 'echo $$; kill -STOP $$' & ",
}
kinds = pytest.mark.parametrize("started", KINDS.values(), ids=KINDS)


async def ended_by(running: Running, heard: Heard, count: int, end) -> list[int]:
    """Run until `count` process ids were printed, end it, and say who they were."""
    pids: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run, heard)
        pids = await heard.pids(count)
        assert living(*pids) == pids
        end(tasks)
    return pids


@kinds
async def test_stopping_a_command_ends_its_whole_tree(tmp_path, started) -> None:
    fifo(tmp_path)
    running = Running(shell(started + DEAF, tmp_path, grace=GRACE))
    pids = await ended_by(running, Heard(), 2, lambda _: running.stop())
    assert living(*pids) == []
    result = running.finished
    assert result is not None
    assert (result.exit_code, result.was_stopped, result.surviving_pids) == (
        128 + signal.SIGKILL,
        True,
        (),
    )


@kinds
async def test_cancelling_a_command_ends_its_whole_tree(tmp_path, started) -> None:
    fifo(tmp_path)
    running = Running(shell(started + DEAF, tmp_path, grace=GRACE))
    heard = Heard()
    pids = await ended_by(running, heard, 2, lambda tasks: tasks.cancel_scope.cancel())
    assert living(*pids) == []
    assert running.finished is not None
    assert running.finished.was_stopped
    assert running.finished.output == heard.text


@kinds
async def test_a_process_that_outlives_its_command_is_ended_and_does_not_hold_it_up(
    tmp_path, started
) -> None:
    fifo(tmp_path)
    # The main process waits for the other's line by a descriptor of its own.
    script = f"mkfifo said; exec 3<>said; {{ {started} true; }} >said; read -u 3 pid; echo $pid"
    result = await finished(shell(script + "; exit 5", tmp_path, grace=GRACE))
    assert (result.exit_code, result.was_stopped, result.surviving_pids) == (5, False, ())
    assert living(int(result.output)) == []


async def test_a_time_out_ends_the_tree_and_keeps_the_output(tmp_path) -> None:
    fifo(tmp_path)
    started = KINDS["one that forked twice"]
    script = "echo before; " + started + DEAF
    result = await finished(shell(script, tmp_path, timeout=2, grace=GRACE))
    assert (result.exit_code, result.timed_out) == (128 + signal.SIGKILL, True)
    first, *pids = result.output.split()
    assert first == "before"
    assert living(*map(int, pids)) == []


async def test_a_command_that_heeds_term_has_its_last_word(tmp_path) -> None:
    fifo(tmp_path)
    script = "trap 'echo bye; exit 9' TERM; echo $$; read x < never"
    heard = Heard()
    running = Running(shell(script, tmp_path, grace=BOUND))
    pids = await ended_by(running, heard, 1, lambda _: running.stop())
    assert running.finished is not None
    assert running.finished.exit_code == 9
    assert heard.text == f"{pids[0]}\nbye\n"


async def test_children_are_told_too_and_have_the_same_grace(tmp_path) -> None:
    fifo(tmp_path)
    child = "trap 'echo child; exit' TERM; echo $BASHPID; read x < never"
    script = f"(trap '' INT; {child}) & trap 'wait; echo parent; exit 3' TERM; echo $$; wait"
    heard = Heard()
    running = Running(shell(script, tmp_path, grace=BOUND))
    await ended_by(running, heard, 2, lambda _: running.stop())
    assert heard.text.split()[2:] == ["child", "parent"]


async def test_a_background_process_can_still_say_what_it_was_about_to(tmp_path) -> None:
    """With `exec > >(tee log)`, for example, tee prints after the main process ended."""
    script = "exec > >(while read x; do echo seen $x; done); echo 1; echo 2"
    assert (await finished(shell(script, tmp_path))).output == "seen 1\nseen 2\n"


async def test_a_process_that_prints_without_end_does_not_hold_a_command(tmp_path) -> None:
    result = await finished(shell("yes & exit 4", tmp_path, grace=0))
    assert result.exit_code == 4


async def test_a_fork_storm_is_ended(tmp_path) -> None:
    """Each process starts the next and ends: whoever is killed has already moved on."""
    fifo(tmp_path)
    script = (
        "hop() { echo $BASHPID >> hops; (hop &) ; }; hop & hop & hop & "
        "until test -s hops; do :; done; echo $$; read x < never"
    )
    heard = Heard()
    running = Running(shell(script, tmp_path, grace=0))
    await ended_by(running, heard, 1, lambda _: running.stop())
    assert running.finished is not None
    assert running.finished.surviving_pids == ()
    pids = [int(line) for line in (tmp_path / "hops").read_text().split()]
    assert living(*pids[-50:]) == []


async def test_a_command_that_kills_its_keeper_dies_with_what_it_started(tmp_path) -> None:
    fifo(tmp_path)
    script = KINDS["one that forked twice"] + "read x < go; kill -KILL $PPID; read x < never"
    fifo(tmp_path, "go")
    heard = Heard()
    running = Running(shell(script, tmp_path))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run, heard)
        pids = await heard.pids(1)
        watched = [os.pidfd_open(pid) for pid in (*pids, running.pid or 0)]
        (tmp_path / "go").write_text("\n")
        # Nobody waits for them on our behalf any more; their descriptors say when they ended.
        await ended(*watched)
    assert running.finished is not None
    assert running.finished.exit_code is None
    assert "was killed" in (running.finished.failure or "")


async def test_other_signals_to_its_keeper_change_nothing(tmp_path) -> None:
    script = "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; echo alive"
    assert (await finished(shell(script, tmp_path))).output == "alive\n"


async def test_stopping_before_the_start_runs_nothing_or_ends_it(tmp_path) -> None:
    fifo(tmp_path)
    running = Running(shell("read x < never", tmp_path, grace=0))
    running.stop()
    with anyio.fail_after(BOUND):
        result = await running.run(Heard())
    assert result.was_stopped
    assert running.pid is None or living(running.pid) == []


SERVER = """
import anyio, sys
sys.path[:0] = [{root!r}, {tests!r}]
from commands import Heard, shell
from reference_server.sandbox.process import Running
async def main():
    async def say(piece):
        sys.stdout.write(piece); sys.stdout.flush()
    await Running(shell({script!r}, {cwd!r}, grace=0.2)).run(say)
anyio.run(main)
"""


async def test_when_the_server_is_killed_nothing_of_a_command_is_left(tmp_path) -> None:
    fifo(tmp_path)
    script = KINDS["one that forked twice"] + DEAF
    code = textwrap.dedent(SERVER).format(
        root=ROOT, tests=os.path.dirname(__file__), script=script, cwd=str(tmp_path)
    )
    async with await anyio.open_process([sys.executable, "-c", code], stderr=None) as server:
        assert server.stdout is not None
        printed = b""
        while printed.count(b"\n") < 2:
            printed += await server.stdout.receive()
        watched = [os.pidfd_open(int(pid)) for pid in printed.split()]
        server.kill()
    await ended(*watched)
