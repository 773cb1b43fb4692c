"""`make bench`: the command that measures the chosen parts and prints the table of budgets.

The exit status is 0 whatever the figures are, 1 if a measurement could not be made.
"""

import contextlib
import ctypes
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import NoReturn

import psutil

from harness.client.target.run_folders import base_folder
from tools.bench import (
    clients,
    dialects,
    histories,
    lists,
    measures,
    one_shot,
    suite,
    targets,
    where,
)
from tools.bench.client import MeasurementFailed, monotonic
from tools.bench.overhead import overhead
from tools.bench.parts import INSIDE, REAL, SERVER, START, WHERE, parse_arguments, rows
from tools.bench.stats import Absent, Cell
from tools.bench.table import lines_of

CHECKOUT = Path(__file__).parents[2]
OFFLINE = CHECKOUT / "tools" / "offline.py"
PR_SET_PDEATHSIG = 1

NOTES = f"""\
Figures are medians [least..greatest]; CPU and memory per thread are means. Every measurement has a
server and a home of its own. Model side: our own HTTP/1.1 server in a process of its own, with
canned bytes, connections kept alive, an event a chunk, an answer a write. Client: raw pipes; it
counts bytes and lines and reads JSON only of answers and turn ends. Turn: one message of two
deltas, at most {measures.TURNS_PER_THREAD} turns a thread. Idle: after one turn. Legacy doubles of
notifications are opted out of. The part `lists` measures thread/list among many threads, each with
one turn; of other servers it is measured among few, so it is not judged."""


def main() -> int:
    """Measure the chosen parts and return the exit status."""
    parts, inside = parse_arguments(sys.argv[1:])
    real = _asks_real(parts) and any(real.is_installed(CHECKOUT) for real in targets.REALS)
    if real and not inside:
        _enter_namespace(parts)
    _end_on_signals()
    started_at, busy = monotonic(), _other_cpu()
    _say(_machine())
    cells = _measure(parts, offline=inside)
    broken = any(_has_failed(cell) for column in cells.values() for cell in column.values())
    duration = monotonic() - started_at
    share = (_other_cpu() - busy) / duration / (os.cpu_count() or 1)
    columns = [targets.REFERENCE, *(real.column for real in targets.REALS if _asks_real(parts))]
    if budget_rows := rows(parts):
        for line in lines_of(budget_rows, columns, cells):
            _say(line)
        _say(f"\n{NOTES}\n")
    if WHERE in parts:
        broken = not _where() or broken
    _say(f"took {duration:.0f} s; other work had {max(0.0, share):.0%} of the machine")
    return 1 if broken else 0


def _measure(parts: Sequence[str], *, offline: bool) -> dict[str, dict[str, Cell]]:
    with _folder() as folder, _model() as url:
        reference = targets.reference(folder)
        measurements: dict[str, Callable[[], dict[str, Cell]]] = {
            SERVER: lambda: measures.all_of(reference, url, measures.FULL),
            # The part SERVER measures the start too.
            START: lambda: {} if SERVER in parts else _start(reference, url),
            "exec": lambda: one_shot.all_of(folder),
            "resume": lambda: histories.resume(reference, url),
            "fork": lambda: histories.fork(reference, url),
            "lists": lambda: lists.all_of(reference, url),
            "clients": lambda: clients.all_of(reference, url),
            "dialect": lambda: dialects.all_of(reference, url, folder),
            "rules": suite.measure_rules,
            "suite": lambda: suite.measure_suite(folder),
            "fuzzing": lambda: suite.measure_fuzzing(folder),
            "races": lambda: suite.measure_races(folder),
            "mutation": lambda: suite.measure_mutation(folder),
            "overhead": lambda: overhead(folder),
        }
        reference_cells = [way() for name, way in measurements.items() if name in parts]
        cells = {
            targets.REFERENCE: {key: cell for part in reference_cells for key, cell in part.items()}
        }
        for real in targets.REALS if _asks_real(parts) else ():
            keys = None if REAL in parts else measures.START_KEYS
            cells[real.column] = _real(real, folder, url, keys, offline=offline)
    return cells


def _where() -> bool:
    """Print the shares of the suite's time; return whether they could be measured."""
    try:
        with _folder() as folder:
            for line in where.lines_of(where.measure(folder)):
                _say(line)
    except (MeasurementFailed, OSError, ValueError, KeyError) as error:
        _say(f"where: failed: {error}")
        return False
    return True


def _asks_real(parts: Sequence[str]) -> bool:
    return REAL in parts or START in parts


def _start(target: targets.Target, url: str) -> dict[str, Cell]:
    return measures.all_of(target, url, measures.FULL, measures.START_KEYS)


def _real(
    real: targets.Real, folder: Path, url: str, keys: Sequence[str] | None, *, offline: bool
) -> dict[str, Cell]:
    if not real.is_installed(CHECKOUT):
        return _everywhere("not installed")
    if real.needs_namespace and not offline:
        return _everywhere("no network namespace")
    return measures.all_of(real.target(CHECKOUT, folder), url, measures.SLOW, keys)


def _everywhere(reason: str) -> dict[str, Cell]:
    return {key: Absent(reason) for keys in measures.KEYS for key in keys}


def _has_failed(cell: Cell) -> bool:
    return isinstance(cell, Absent) and cell.reason.startswith("failed")


def _enter_namespace(parts: Sequence[str]) -> None:
    """Restart this program in a network namespace with loopback only, if one can be made."""
    probe = subprocess.run([sys.executable, str(OFFLINE), "--probe"], check=False)
    if probe.returncode == 0:
        again = [sys.executable, str(OFFLINE), sys.executable, "-m", "tools.bench", INSIDE, *parts]
        os.execv(sys.executable, again)


def _end_on_signals() -> None:
    """Exit with all clean-up on SIGTERM, which on Linux is also sent when the parent ends."""
    signal.signal(signal.SIGTERM, _on_terminate)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _on_terminate(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(143)


@contextlib.contextmanager
def _folder() -> Generator[Path]:
    """Yield a folder for homes and workspaces, removed afterwards; first remove old leftovers."""
    root = base_folder(CHECKOUT) / "bench"
    for leftover in root.glob("*") if root.is_dir() else ():
        if leftover.name.isdigit() and not psutil.pid_exists(int(leftover.name)):
            shutil.rmtree(leftover, ignore_errors=True)
    folder = root / str(os.getpid())
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            root.rmdir()


@contextlib.contextmanager
def _model() -> Generator[str]:
    """Run the model server and yield its base URL. Raises MeasurementFailed."""
    with subprocess.Popen(
        [sys.executable, "-m", "tools.bench.model"],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            if process.stdout is None or not (port := process.stdout.readline().strip()):
                raise MeasurementFailed("the model side did not start")
            yield f"http://127.0.0.1:{int(port)}/v1"
        finally:
            process.terminate()


def _machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {psutil.getloadavg()[0]:.1f}\n"
    )


def _other_cpu() -> float:
    """Return the CPU seconds used so far by other programs of the machine."""
    machine_times, own_times = psutil.cpu_times(), os.times()
    busy = sum(machine_times) - machine_times.idle - getattr(machine_times, "iowait", 0.0)
    # Guest time is contained in user time.
    busy -= getattr(machine_times, "guest", 0.0) + getattr(machine_times, "guest_nice", 0.0)
    return (
        busy
        - own_times.user
        - own_times.system
        - own_times.children_user
        - own_times.children_system
    )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
