"""A command as a process: its exit, its streams, its failures, its descriptors."""

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest
from commands import BOUND, PATH, Heard, ended, fifo, finished, linux, living, shell

from reference_server.sandbox.launcher import SHARED, Launcher, LaunchFailed
from reference_server.sandbox.output import HEAD_LIMIT, TAIL_LIMIT
from reference_server.sandbox.process import Command, Running, run

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.socket]


async def test_the_exit_code_and_both_streams_in_the_order_written(tmp_path) -> None:
    result = await finished(shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 7", tmp_path))
    assert (result.exit_code, result.output) == (7, "1\n2\n3\n4\n")
    assert result.duration_ms >= 0
    assert (result.timed_out, result.was_stopped, result.failure, result.surviving_pids) == (
        False,
        False,
        None,
        (),
    )


async def test_a_signal_reads_as_shells_say_it(tmp_path) -> None:
    result = await finished(shell("kill -SEGV $$", tmp_path))
    assert result.exit_code == 128 + signal.SIGSEGV


async def test_it_runs_in_its_folder_with_its_environment_and_nothing_else(tmp_path) -> None:
    env = {"PATH": PATH, "ONLY": "ünï\ncode"}
    result = await finished(Command(("/usr/bin/env", "-0"), str(tmp_path), env=env))
    assert set(result.output.split("\0")) == {f"PATH={PATH}", "ONLY=ünï\ncode", ""}
    result = await finished(shell("pwd -P; umask; ulimit -n", tmp_path))
    assert result.output.startswith(f"{tmp_path.resolve()}\n0022\n")


async def test_without_an_environment_it_has_the_servers(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OF_THE_SERVER", "yes")
    command = Command(("/bin/sh", "-c", "echo $OF_THE_SERVER"), str(tmp_path))
    assert (await finished(command)).output == "yes\n"


@linux
async def test_signals_are_as_in_a_new_process(tmp_path) -> None:
    result = await finished(shell("trap; grep -E 'Sig(Blk|Ign)' /proc/self/status", tmp_path))
    _, blocked, _, ignored = result.output.split()
    # The C library keeps two real-time signals for itself and lets nobody set them.
    kept = sum(1 << number - 1 for number in (32, 33))
    assert (int(blocked, 16), int(ignored, 16) & ~kept) == (0, 0)


@linux
async def test_signals_that_the_servers_parent_ignores_end_a_command(tmp_path) -> None:
    was = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    launcher = Launcher()
    try:
        launcher.start()
    finally:
        signal.signal(signal.SIGUSR2, was)
    try:
        result = await run(shell("kill -USR2 $$", tmp_path), Heard(), launcher=launcher)
    finally:
        launcher.close()
    assert result.exit_code == 128 + signal.SIGUSR2


async def test_a_program_is_looked_up_on_its_own_path_and_in_its_own_folder(tmp_path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "greet"
    program.write_text("#!/bin/sh\necho greeting by $0\n")
    program.chmod(0o755)
    for argv0, path in (("greet", f"bin:{PATH}"), ("bin/greet", PATH), (str(program), "")):
        command = Command((argv0,), str(tmp_path), env={"PATH": path})
        result = await finished(command)
        assert result.output == f"greeting by {program}\n", argv0


async def test_a_reader_of_standard_input_gets_its_end(tmp_path) -> None:
    result = await finished(shell("cat; read x; echo $?", tmp_path))
    assert (result.exit_code, result.output) == (0, "1\n")


@linux
async def test_output_arrives_while_the_command_runs(tmp_path) -> None:
    gate = fifo(tmp_path)
    heard = Heard()
    running = Running(shell("echo first; read x < never; echo second $x", tmp_path))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run, heard)
        await heard.until(lambda text: text == "first\n")
        assert running.finished is None
        assert running.pid is not None
        assert living(running.pid) == [running.pid]
        gate.write_text("go\n")
        await heard.until(lambda text: text.endswith("second go\n"))
    assert running.finished is not None
    assert running.finished.exit_code == 0


async def test_a_character_in_two_writes_arrives_in_one_piece(tmp_path) -> None:
    gate = fifo(tmp_path)
    heard = Heard()
    async with anyio.create_task_group() as tasks:
        script = r"printf 'a\xf0\x9f'; read x < never; printf '\x98\x80b\xff'"
        tasks.start_soon(Running(shell(script, tmp_path)).run, heard)
        await heard.until(lambda text: text == "a")
        gate.write_text("\n")
    assert heard.pieces[0] == "a"
    assert heard.text == "a\N{GRINNING FACE}b\N{REPLACEMENT CHARACTER}"
    assert not [piece for piece in heard.pieces if piece == ""]


@linux
async def test_100_mb_are_bounded_in_what_is_kept_passed_on_and_used(tmp_path) -> None:
    import resource

    await finished(shell("true", tmp_path))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    script = "printf start; head -c 100000000 /dev/zero | tr '\\0' x; printf end"
    result = await finished(shell(script, tmp_path))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    total = 100_000_000 + len("startend")
    assert result.cut_bytes == total - HEAD_LIMIT - TAIL_LIMIT
    assert result.output.startswith("startx")
    assert result.output.endswith("xend")
    assert f"\n[... {result.cut_bytes} bytes of output cut ...]\n" in result.output
    assert len(result.output) < HEAD_LIMIT + TAIL_LIMIT + 100
    assert grown < (16_000 if sys.platform == "linux" else 16_000_000)


async def test_who_takes_the_output_slowly_makes_the_command_wait(tmp_path) -> None:
    """Between the command and us is one pipe; what does not fit into it is not yet printed."""
    hold = anyio.Event()
    taken: list[str] = []

    async def take(piece: str) -> None:
        taken.append(piece)
        await hold.wait()

    script = "head -c 4000000 /dev/zero >&1; echo over > said"
    running = Running(shell(script, tmp_path))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run, take)
        with anyio.fail_after(BOUND):
            await running.started.wait()
            while not taken:
                await anyio.wait_all_tasks_blocked()
        assert not (tmp_path / "said").exists()
        hold.set()
    assert (tmp_path / "said").exists()
    assert running.finished is not None
    assert running.finished.cut_bytes == 4_000_000 - HEAD_LIMIT - TAIL_LIMIT


async def test_all_that_was_printed_is_there_however_slowly_it_is_taken(tmp_path) -> None:
    taken: list[str] = []

    async def take(piece: str) -> None:
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        taken.append(piece)

    result = await run(shell("seq 1 60000", tmp_path), take)
    assert "".join(taken) == result.output == "".join(f"{n}\n" for n in range(1, 60001))


async def test_a_terminal_is_one_for_all_three_streams(tmp_path) -> None:
    script = "test -t 0 && test -t 1 && test -t 2 && stty size < /dev/tty && tty"
    result = await finished(shell(script, tmp_path, tty=True))
    size, name, rest = result.output.split("\r\n")
    assert (size, rest, result.exit_code) == ("24 80", "", 0)
    assert name.startswith("/dev/pts/")


async def test_typed_input_is_read_and_echoed(tmp_path) -> None:
    heard = Heard()
    script = "echo ready; read x; echo got $x; cat; echo over"
    running = Running(shell(script, tmp_path, tty=True))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run, heard)
        await heard.until(lambda text: "ready\r\n" in text)
        assert await running.write("grün\n")
        await heard.until(lambda text: "got grün\r\n" in text)
        assert await running.write("\x04")
    assert heard.text == "ready\r\ngrün\r\ngot grün\r\nover\r\n"
    assert not await running.write("late")


async def test_control_c_typed_interrupts_what_runs_in_the_terminal(tmp_path) -> None:
    fifo(tmp_path)
    heard = Heard()
    running = Running(shell("echo ready; read x < never", tmp_path, tty=True))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run, heard)
        await heard.until(lambda text: "ready\r\n" in text)
        assert await running.write("\x03")
    assert running.finished is not None
    assert running.finished.exit_code == 128 + signal.SIGINT


async def test_nothing_can_be_typed_where_there_is_no_terminal(tmp_path) -> None:
    running = Running(shell("true", tmp_path))
    assert not await running.write("x")
    await running.run(Heard())
    assert not await running.write("x")


@pytest.mark.parametrize(
    ("argv", "cwd", "says"),
    [
        ((), "", "the command is empty"),
        (("",), "", "the command is empty"),
        (("no-such-program",), "", "no-such-program: command not found on PATH"),
        (("./no-such-file",), "", "./no-such-file: no such file"),
        (("./plain",), "", "./plain: not executable"),
        ((".",), "", ".: command not found on PATH"),
        (("./",), "", "./: is a folder, not a program"),
        (("tr\0ue",), "", "the command, its folder or its environment holds a NUL character"),
        (("echo", "\ud800"), "", "the command holds half a surrogate pair"),
        (("true",), "missing", "No such file or directory"),
        (("true",), "plain", "is not a folder"),
        (("./noise",), "", "the command did not run, it cannot be started: Exec format error"),
        (("./orphan",), "", "the command did not run, it cannot be started: No such file"),
        (("true", "x" * 3_000_000), "", "cannot be started: Argument list too long"),
    ],
)
async def test_a_command_that_cannot_start_is_a_value_that_says_why(
    tmp_path, argv, cwd, says
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    for name, content in (("noise", b"\0noise"), ("orphan", b"#!/no/such/interpreter\n")):
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o755)
    command = Command(argv, str(tmp_path / cwd), env={"PATH": PATH})
    result = await finished(command)
    assert (result.exit_code, result.output) == (None, "")
    assert result.failure is not None
    assert says in result.failure


@pytest.mark.parametrize("env", [{"A=B": "x"}, {"": "x"}, {"A": "\0"}])
async def test_an_impossible_environment_is_a_value_too(tmp_path, env) -> None:
    result = await finished(Command(("/bin/true",), str(tmp_path), env=env))
    assert result.failure is not None
    assert "environment" in result.failure


async def test_a_relative_folder_is_refused(tmp_path) -> None:
    result = await finished(Command(("true",), "here"))
    assert result.failure == "the working directory here is not an absolute path"


async def test_of_a_wrapped_command_it_is_the_command_that_is_looked_up(tmp_path) -> None:
    wrapped = Command(
        ("no-such-program",), str(tmp_path), env={"PATH": PATH}, wrapper=("env", "--")
    )
    assert (await finished(wrapped)).failure == "no-such-program: command not found on PATH"
    wrapped = Command(("echo", "x"), str(tmp_path), env={"PATH": PATH}, wrapper=("env", "A=B"))
    assert (await finished(wrapped)).output == "x\n"


@linux
async def test_no_descriptor_stays_open_whatever_happens(tmp_path) -> None:
    fifo(tmp_path)
    SHARED.start()

    async def each_kind() -> None:
        await finished(shell("echo x", tmp_path))
        await finished(shell("echo x", tmp_path, tty=True))
        await finished(Command(("/no/such",), str(tmp_path)))
        await finished(Command(("true", "x" * 3_000_000), str(tmp_path)))
        await finished(shell("read x < never", tmp_path, timeout=0.01, grace=0))
        with anyio.move_on_after(0.01):
            await run(shell("read x < never", tmp_path, grace=0), Heard())

    await each_kind()
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await each_kind()
    assert sorted(os.listdir("/proc/self/fd")) == before


@linux
async def test_a_command_inherits_no_descriptor_of_anybody(tmp_path) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(finished, shell("ls /proc/self/fd >/dev/null", tmp_path))
        for tty in (False, True):
            script = "for n in {0..200}; do test -e /proc/$$/fd/$n && echo $n; done"
            result = await finished(shell(script, tmp_path, tty=tty))
            assert result.output.split() == ["0", "1", "2"]


async def test_commands_run_side_by_side(tmp_path) -> None:
    for name in "abcd":
        fifo(tmp_path, name)
    script = "echo > {}; read x < {}; echo $x".format
    results: list[str] = []

    async def one(command: Command) -> None:
        results.append((await finished(command)).output)

    async with anyio.create_task_group() as tasks:
        # Each opens what the other opens the other way round: one alone would never end.
        tasks.start_soon(one, shell(script("a", "b"), tmp_path))
        tasks.start_soon(one, shell("read x < a; echo $x > b; echo done", tmp_path))
    assert sorted(results) == ["\n", "done\n"]


@linux
async def test_a_helper_that_was_killed_is_started_again(tmp_path) -> None:
    launcher = Launcher()
    try:
        for _ in range(2):
            result = await run(shell("echo x", tmp_path), Heard(), launcher=launcher)
            assert result.output == "x\n"
            pid = launcher.pid
            assert pid is not None
            watched = os.pidfd_open(pid)
            os.kill(pid, signal.SIGKILL)
            await ended(watched)
    finally:
        launcher.close()
    assert launcher.pid is None


async def test_a_helper_that_cannot_be_started_is_a_value(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("reference_server.sandbox.launcher.sys.executable", "/no/such/python")
    launcher = Launcher()
    with pytest.raises(LaunchFailed, match="No such file"):
        launcher.start()
    result = await run(shell("true", tmp_path), Heard(), launcher=launcher)
    assert result.failure is not None
    assert "/no/such/python" in result.failure


@linux
async def test_a_failing_reader_of_the_output_leaves_no_command_behind(tmp_path) -> None:
    fifo(tmp_path)

    async def take(piece: str) -> None:
        raise ValueError(piece)

    running = Running(shell("echo x; read x < never", tmp_path))
    with pytest.raises(ExceptionGroup) as caught:
        await running.run(take)
    assert [str(one) for one in caught.value.exceptions] == ["x\n"]
    assert running.pid is not None
    assert living(running.pid) == []


@linux
async def test_the_helper_keeps_no_folder_busy(tmp_path: Path) -> None:
    SHARED.start()
    assert os.readlink(f"/proc/{SHARED.pid}/cwd") == "/"
