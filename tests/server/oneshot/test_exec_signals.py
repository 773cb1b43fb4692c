"""Signals at every moment of `agent exec`: its status, its last event, and that nothing is left."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import JSON, Agent, scenario

from tests.sampling import one_in

pytestmark = [
    pytest.mark.socket,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

BOUND = 30.0
PAUSE = threading.Event()
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
ENDLESS = "[{run: 'echo $$ > pid; exec sleep 300'}]"
"""A command that ends with its process tree alone."""
REPLIES: dict[str, tuple[str, ...]] = {
    "prompt": (ENDLESS,),
    "thread.started": (ENDLESS,),
    "turn.started": (ENDLESS,),
    "command": (ENDLESS,),
    "two commands": ("[{run: 'sleep 300 & echo $! > other; echo $$ > pid; wait'}]",),
    "stubborn command": (
        "[{run: 'trap \"\" TERM INT HUP; echo $$ > pid; while :; do sleep 1; done'}]",
    ),
    "model": ("[{message: {deltas: [a, {hold: never}]}}]",),
    "turn.completed": ("[{message: m}]",),
}


def wait_until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + BOUND
    while not true():
        assert time.monotonic() < deadline
        # Of another process nothing tells it.
        PAUSE.wait(0.01)


def is_drained(pipe: int) -> bool:
    unread = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, unread)
    return int.from_bytes(unread, sys.byteorder) == 0


def running(folder: Path) -> list[str]:
    """The processes whose working directory is this folder."""
    found: list[str] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            if status != "Z" and os.readlink(f"/proc/{name}/cwd") == str(folder):
                found.append(name)
        except OSError:
            continue
    return found


def reach(moment: str, process: subprocess.Popen[bytes], work: Path) -> bytes:
    """Bring the process to that moment; gives the output so far."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"hi")
    process.stdin.flush()
    if moment == "prompt":
        wait_until(lambda: is_drained(process.stdin.fileno()))  # pyright: ignore[reportOptionalMemberAccess]
        return b""
    process.stdin.close()
    until = moment if "." in moment else "turn.started"
    said = b""
    while f'"type":"{until}"'.encode() not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    if "command" in moment:
        wait_until(lambda: (work / "pid").exists() and (work / "pid").read_text().endswith("\n"))
    return said


@pytest.mark.parametrize(
    ("moment", "number"),
    one_in(
        5,
        [(moment, number) for moment in REPLIES for number in SIGNALS],
        pytest.mark.kills,
    ),
)
def test_a_signal_leaves_a_clean_end_and_no_process(
    agent: Agent, moment: str, number: signal.Signals
) -> None:
    model = ("--scenario", scenario(agent.folder, *REPLIES[moment]))
    with agent.start(*JSON, *model, "-s", "danger-full-access") as process:
        try:
            said = reach(moment, process, agent.cwd)
            process.send_signal(number)
            assert process.stdout is not None
            said += process.stdout.read()
            assert process.stderr is not None
            errors = process.stderr.read()
            status = process.wait(BOUND)
        finally:
            process.kill()
    wait_until(lambda: not running(agent.cwd))
    if number == signal.SIGKILL:
        # It may have been done before.
        assert status == -9 or moment == "turn.completed"
    else:
        check_end(moment, number, status, said, errors)
    check_thread_goes_on(agent, said)


def check_end(moment: str, number: int, status: int, said: bytes, errors: bytes) -> None:
    assert said.endswith(b"\n") or not said
    kinds = [json.loads(line)["type"] for line in said.splitlines()]
    name = signal.Signals(number).name
    said_so = f"agent exec: the turn was interrupted by {name}\n".encode()
    assert errors == (said_so if kinds and kinds[-1] in ("turn.failed", "error") else b"")
    if moment == "turn.completed":
        assert kinds[-1] == "turn.completed"
        assert status in (0, 128 + number)
        return
    assert status == 128 + number
    match kinds:
        case []:
            assert moment == "prompt"
        case ["thread.started", "error"]:
            assert moment == "thread.started"
        case _:
            assert kinds[-1] == "error"
            assert kinds.count("error") == 1
            assert "turn.failed" not in kinds
            assert kinds.count("item.started") == sum(
                1
                for line in said.splitlines()
                if (event := json.loads(line))["type"] == "item.completed"
                and event["item"]["type"] == "command_execution"
            )


def check_thread_goes_on(agent: Agent, said: bytes) -> None:
    if not said:
        return
    thread = json.loads(said.splitlines()[0])["thread_id"]
    model = ("--scenario", scenario(agent.folder, "[{message: again}]"))
    ran = agent.run(*JSON, *model, "resume", thread, stdin=b"go on")
    assert (ran.status, ran.types[-1]) == (0, "turn.completed")


def test_a_signal_that_is_ignored_from_the_start_stays_ignored(agent: Agent) -> None:
    model = (
        "--scenario",
        scenario(agent.folder, "[{run: 'touch pid; sleep 1'}]", "[{message: m}]"),
    )
    words = (*JSON, *model, "-s", "danger-full-access", "hi")

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with agent.start(*words, preexec_fn=ignore) as process:
        wait_until((agent.cwd / "pid").exists)
        process.send_signal(signal.SIGHUP)
        assert process.stdout is not None
        assert b"turn.completed" in process.stdout.read()
        assert process.wait(BOUND) == 0


def ignores_termination(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(mask, 16) >> (signal.SIGTERM - 1) & 1)


def test_a_second_signal_changes_nothing(agent: Agent) -> None:
    model = ("--scenario", scenario(agent.folder, ENDLESS))
    with agent.start(*JSON, *model, "-s", "danger-full-access", "hi") as process:
        wait_until((agent.cwd / "pid").exists)
        process.send_signal(signal.SIGINT)
        # Of signals that come together nobody can say which was the first.
        wait_until(lambda: ignores_termination(process.pid))
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert b'{"type":"error"' in process.stdout.read()
        assert process.wait(BOUND) == 130


def test_a_reader_that_leaves_ends_it_quietly(agent: Agent) -> None:
    model = ("--scenario", scenario(agent.folder, ENDLESS))
    with agent.start(*JSON, *model, "-s", "danger-full-access", "hi") as process:
        wait_until((agent.cwd / "pid").exists)
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(BOUND) == 141
    wait_until(lambda: not running(agent.cwd))


def test_a_reader_that_stands_still_does_not_hold_up_a_signal(agent: Agent) -> None:
    # More than a pipe holds, which nobody reads.
    text = "x" * 200_000
    model = ("--scenario", scenario(agent.folder, f"[{{message: {text}}}]", "[{message: m}]"))
    with agent.start(*JSON, *model, "hi") as process:
        assert process.stdout is not None
        wait_until(lambda: not is_drained(process.stdout.fileno()))  # pyright: ignore[reportOptionalMemberAccess]
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 143
