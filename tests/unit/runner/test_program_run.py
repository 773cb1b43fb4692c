"""A program that is told to end: its last output is recorded, and nothing is owed."""

import sys
from pathlib import Path

import anyio
import pytest

from harness.play.program_run import Program, run_program
from harness.trace.frame import Frame
from harness.trace.marks import ProgramEnded
from harness.trace.recorder import Recorder
from harness.trace.surface.registry import classify_of
from harness.trace.surfaces import EXEC
from harness.trace.trace import End, Header

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

GRACE = 0.5
POLITE = """
import os, signal
def leave(*_):
    os.write(1, b'{"type": "error", "message": "told to end"}\\n')
    os._exit(3)
signal.signal(signal.SIGTERM, leave)
print('{"type": "turn.started"}', flush=True)
signal.pause()
"""
DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('{"type": "turn.started"}', flush=True)
while True:
    signal.pause()
"""


async def told_to_end(source: str, folder: Path) -> tuple[Recorder, ProgramEnded]:
    """Run it, and tell it to end when it has written its first line."""
    header = Header(target="t", profile="spec", scenario="s@exec", surface=EXEC)
    recorder = Recorder(header, classify=classify_of(EXEC))
    told = anyio.Event()

    def look(frame: Frame) -> None:
        if frame.from_target:
            told.set()

    recorder.listeners.append(look)
    program = Program([sys.executable, "-c", source], folder, {}, folder)
    scope = anyio.CancelScope(deadline=anyio.current_time() + 60)
    await run_program(recorder, program, scope=scope, grace=GRACE, stop_requested=told)
    (ended,) = recorder.trace.marks_of(ProgramEnded)
    return recorder, ended.body


async def test_last_words_of_a_terminated_program_are_recorded(tmp_path: Path) -> None:
    recorder, ended = await told_to_end(POLITE, tmp_path)
    lines = [one.raw for one in recorder.trace.frames if one.from_target]
    assert lines[-1] == b'{"type": "error", "message": "told to end"}'
    assert (ended.status, ended.push) == (3, "TERM")
    assert recorder.trace.end is End.CLOSED


async def test_a_program_that_does_not_listen_is_killed_and_owes_nothing(tmp_path: Path) -> None:
    recorder, ended = await told_to_end(DEAF, tmp_path)
    assert (ended.status, ended.push) == (-9, "KILL")
    assert recorder.trace.end is End.CLOSED
