"""Suite, races and a search of sequences on three machines, compared with the same on one.

    python -m tools.three_machines FOLDER

The machines are network namespaces with links of their own; nothing leaves this machine. While each
command plays, a worker on the second is killed, and the link to the third is cut. Needs Linux, root
and `ip`. Exit status 1 if a report differs from that of one machine, 2 if it cannot be tried.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil

BIN = Path(sys.executable).parent
TARGET = ("--target", "reference", "--server-cmd", f"{BIN}/agent app-server")
COMMANDS = {
    "suite": ("run", *TARGET, "--agent-cmd", f"{BIN}/agent"),
    "races": ("run", *TARGET, "--race", "all", "turns/plain-turn", "threads/read-turns"),
    "sequences": ("fuzz", *TARGET, "--what", "sequences"),
}
MAX_COMMAND_SECONDS, MAX_WAIT_SECONDS = 1800.0, 120.0
LOOK_SECONDS = 0.1
PORT = 8786


class Machines:
    """Three network namespaces; the first one has a link to each of the others."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._names = [f"harness-{os.getpid()}-{number}" for number in (1, 2, 3)]
        for name in self._names:
            run_ip("netns", "add", name)
            stack.callback(run_ip, "netns", "del", name)
            run_ip("-n", name, "link", "set", "lo", "up")
        for number in (2, 3):
            run_ip("link", "add", "to-one", "netns", self._names[number - 1], "type", "veth",
                   "peer", "name", f"to-{number}", "netns", self._names[0])  # fmt: skip
            for name, end, host in ((0, f"to-{number}", 1), (number - 1, "to-one", 2)):
                run_ip(
                    "-n", self._names[name], "addr", "add", f"10.77.{number}.{host}/24", "dev", end
                )
                run_ip("-n", self._names[name], "link", "set", end, "up")

    def cut_link(self) -> None:
        """Cut the link to the third machine."""
        run_ip("-n", self._names[0], "link", "set", "to-3", "down")

    def start(self, number: int, name: str, *words: str) -> psutil.Popen:
        """Start a program on a machine; its output goes to `name`."""
        home = self._folder / f"machine-{number}"
        home.mkdir(exist_ok=True)
        enter = ("ip", "netns", "exec", self._names[number - 1])
        with (self._folder / f"{name}.txt").open("wb") as output:
            return psutil.Popen(
                [*enter, *words],
                cwd=home,
                env={**os.environ, "HARNESS_DIR": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )


def run_ip(*words: str) -> None:
    """Run `ip`. Raises `CalledProcessError`."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def end_all(process: psutil.Popen) -> None:
    """Kill a process with all that it started, and wait for their ends."""
    family: list[Any] = [process]
    with suppress(psutil.NoSuchProcess):
        family += process.children(recursive=True)
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(family, timeout=MAX_WAIT_SECONDS)


def wait_until(is_so: Callable[[], Any], process: psutil.Popen) -> Any:
    """Return the first true value of `is_so`, asked while a process runs. Raises `TimeoutError`."""
    end = time.monotonic() + MAX_WAIT_SECONDS
    while time.monotonic() < end:
        with suppress(psutil.NoSuchProcess):
            if value := is_so():
                return value
        with suppress(psutil.TimeoutExpired):
            process.wait(LOOK_SECONDS)
            break
    raise TimeoutError(f"not what was expected within {MAX_WAIT_SECONDS:g} s: {process.args}")


def playing_worker(process: psutil.Popen) -> psutil.Process | None:
    """Return the worker below `dask worker` if a program of a run has a server there, or None."""
    for worker in process.children(recursive=True):
        if "spawn_main" in " ".join(worker.cmdline()):
            programs = [one for one in worker.children() if "harness.search" in str(one.cmdline())]
            return worker if any(one.children() for one in programs) else None
    return None


def play_on_three(folder: Path, name: str) -> tuple[int, float]:
    """Play a command on three machines with both losses; return its exit status and seconds."""
    with ExitStack() as stack:
        machines = Machines(folder, stack)

        def start(number: int, role: str, *words: str) -> psutil.Popen:
            process = machines.start(number, f"{name}-{role}-{number}", *words)
            stack.callback(end_all, process)
            return process

        dask = (f"{BIN}/dask",)
        start(1, "scheduler", *dask, "scheduler", "--no-dashboard", "--port", str(PORT))
        workers: dict[int, psutil.Popen] = {}
        for number, subnet in ((1, 2), (2, 2), (3, 3)):
            address = f"tcp://10.77.{subnet}.1:{PORT}"
            workers[number] = start(number, "worker", *dask, "worker", address, "--no-dashboard")
            log = folder / f"{name}-worker-{number}.txt"
            wait_until(lambda log=log: "Registered to" in log.read_text("utf-8"), workers[number])
        began = time.monotonic()
        on = ("--on", f"tcp://10.77.2.1:{PORT}", "--json", str(folder / f"{name}-three.json"))
        run = start(1, "harness", f"{BIN}/harness", *COMMANDS[name], *on)
        for number in (2, 3):
            worker = wait_until(lambda number=number: playing_worker(workers[number]), run)
            worker.kill() if number == 2 else machines.cut_link()
        return run.wait(MAX_COMMAND_SECONDS), time.monotonic() - began


def essence(path: Path) -> dict[str, Any]:
    """Return what a report says that no time, port or machine changes."""
    plain = json.loads(path.read_text("utf-8"))
    if "searches" in plain:
        # How many conversations cover the same goals depends on what was covered by chance.
        coverage = [one["coverage"] for one in plain["searches"]]
        return {"verdict": plain["verdict"], "failures": plain["failures"], "coverage": coverage}
    keys = ("id", "verdict", "reason", "message", "level", "runs")
    told: dict[str, Any] = {"requirements": plain["requirements"], "red": plain["red"]}
    for part in ("rules", "scenarios", "races", "issues"):
        told[part] = [{key: row.get(key) for key in keys} for row in plain[part]]
    return told


def main(words: list[str]) -> int:
    """Play all commands; print a row of a table for each."""
    folder = Path(words[0]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            Machines(folder, stack)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or error
        sys.stderr.write(f"three machines cannot be made here (root and ip are needed): {reason}\n")
        return 2
    status = 0
    for name in words[1:] or COMMANDS:
        began = time.monotonic()
        one = folder / f"{name}-one.json"
        alone = subprocess.run(
            [f"{BIN}/harness", *COMMANDS[name], "--json", str(one)],
            cwd=folder,
            env={**os.environ, "HARNESS_DIR": str(folder / "alone")},
            capture_output=True,
            check=False,
            timeout=MAX_COMMAND_SECONDS,
        )
        seconds = time.monotonic() - began
        ended, seconds_of_three = play_on_three(folder, name)
        same = essence(one) == essence(folder / f"{name}-three.json") and ended == alone.returncode
        words_of = "the same" if same else "ANOTHER"
        sys.stdout.write(f"| {name} | {seconds:.0f} s | {seconds_of_three:.0f} s | {words_of} |\n")
        sys.stdout.flush()
        status |= not same
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
