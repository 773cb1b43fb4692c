"""Program of `harness run` on a worker: it plays scenarios and races, one after the other.

The first line of its input has the options. Each line after it is a `PlayUnit`, answered with a
`Played`. The line `LAST` is answered when the servers have ended.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from harness.play.interruption import Interrupted, Interruption
from harness.play.worker_session import WorkerSession
from harness.scenario.bundled import bundled_folder
from harness.search.cluster.units import Outcome, Played, PlayUnit, decode, encode, plays_of
from harness.search.worker_processes import decode_config


class _Session(WorkerSession):
    """A session whose traces are in a folder of this program."""

    folder: Path

    def trace_path(self, scenario: str) -> Path:
        return self.folder / "traces" / f"{scenario}.jsonl"


def play_unit(session: WorkerSession, unit: PlayUnit, folder: Path) -> Outcome:
    """Play a unit, with its files in `folder`."""
    loaded = unit.loaded
    path = bundled_folder() / loaded.path  # An absolute one stays as it is.
    for name, content in unit.files.items():
        path = folder / "files" / loaded.path.name
        (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / name).write_bytes(content)
    loaded = replace(loaded, path=path)
    if unit.action:
        return session.race(loaded, unit.action, unit.only, confirms=unit.confirms)
    return session.play(loaded, confirms=unit.confirms, earlier=unit.earlier)


def result_of(session: WorkerSession, outcome: Outcome | None) -> Played:
    """Return the result of a unit, or of the end, with what was found since the one before."""
    plays = [] if outcome is None else [play for play in plays_of(outcome) if play.trace]
    traces = {play.id: zlib.compress(Path(play.trace).read_bytes(), 1) for play in plays}
    findings, starts = session.take_results()
    return Played(outcome, traces, findings, starts, session.start_seconds, session.answer_seconds)


def work(session: WorkerSession, lines: Iterable[bytes], sink: BinaryIO, folder: Path) -> None:
    """Play the unit of each line, and write its result."""
    for line in lines:
        unit = decode(json.loads(line), object)
        outcome = None
        if isinstance(unit, PlayUnit):
            outcome = play_unit(session, unit, folder)
        else:
            session.close()
        sink.write(json.dumps(encode(result_of(session, outcome))).encode() + b"\n")
        sink.flush()


def main() -> None:
    """Work on standard input and output; whatever is printed meanwhile goes to standard error."""
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    config = decode_config(json.loads(sys.stdin.buffer.readline())["config"])
    interruption = Interruption(config.base)
    interruption.role = "worker"
    interruption.install()
    session = _Session(config, "cluster", interruption=interruption)
    session.folder = Path(tempfile.mkdtemp(prefix="harness-"))
    try:
        with interruption.defer_signals():
            work(session, sys.stdin.buffer, sink, session.folder)
            # Nobody takes in what would be found from here on.
            interruption.signal = interruption.signal or signal.SIGTERM
    except (Interrupted, BrokenPipeError):
        pass
    finally:
        session.close()
        shutil.rmtree(session.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
