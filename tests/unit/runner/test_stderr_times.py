"""Times of the lines of a server's standard error, as a trace has them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import Any

import pytest

from harness.client.target.process import ServerProcess
from harness.play.session.stderr_times import MAX_BYTES, StderrTimes
from harness.trace.frame import Direction
from harness.trace.marks import GateOpened
from harness.trace.recorder import Recorder
from harness.trace.trace import End, StderrLine


class Conversation:
    """A conversation with a process of which there is only the file of its standard error."""

    def __init__(self, folder: Path, before: bytes = b"") -> None:
        self.now = 100.0
        self.recorder = Recorder(clock=lambda: self.now)
        self.process: Any = self.start(folder / "first", before)
        self.times = StderrTimes(self.recorder, lambda: self.process, len(before))

    def start(self, path: Path, written: bytes = b"") -> Any:
        path.write_bytes(written)
        process: Any = SimpleNamespace(stderr_path=path)
        process.stderr_since = MethodType(ServerProcess.stderr_since, process)
        return process

    def writes(self, data: bytes, seconds_ago: float = 0.5) -> None:
        with self.process.stderr_path.open("ab") as file:
            file.write(data)
        then = time.time() - seconds_ago
        os.utime(self.process.stderr_path, (then, then))

    def tells(self, at: float) -> None:
        self.now = 100.0 + at
        self.recorder.record(b"{}", Direction.FROM_TARGET)

    def lines(self, end: End = End.QUIESCENT) -> list[StderrLine]:
        self.recorder.trace.end = end
        return self.times.lines(self.recorder.trace)


def test_lines_stand_before_the_event_that_follows_them(tmp_path: Path) -> None:
    talk = Conversation(tmp_path, before=b"of an earlier conversation\n")
    talk.tells(1.0)
    talk.writes(b"one\ntwo \xff\x1b[31m\n")
    talk.tells(2.0)
    talk.writes(b"three\n")
    talk.now = 103.0
    talk.recorder.mark(GateOpened("g"))
    talk.process = talk.start(tmp_path / "second")
    talk.writes(b"of another process")
    talk.now = 104.0
    lines = talk.lines()
    assert [(line.after, line.text) for line in lines] == [
        *((0, "one"), (0, "two \\xff\x1b[31m"), (1, "three"), (1, "of another process"))
    ]
    assert [line.at for line in lines] == pytest.approx([1.5, 1.5, 2.5, 3.5], abs=0.4)


@pytest.mark.parametrize(("end", "after"), [(End.QUIESCENT, 1), (End.EXITED, 2)])
def test_message_that_was_read_late_stands_before_the_line(
    end: End, after: int, tmp_path: Path
) -> None:
    talk = Conversation(tmp_path)
    talk.tells(1.0)
    talk.writes(b"words\n", seconds_ago=0.01)
    talk.tells(1.001)
    talk.tells(1.2)
    talk.recorder.record(b"{}", Direction.TO_TARGET)
    talk.tells(1.2)
    [line] = talk.lines(end)
    assert (line.after, line.at) == (after, talk.recorder.trace.frames[after].at)


def test_line_written_in_a_silence_has_its_own_time(tmp_path: Path) -> None:
    talk = Conversation(tmp_path)
    talk.tells(1.0)
    talk.writes(b"in the silence\n", seconds_ago=20.0)
    talk.tells(31.0)
    talk.writes(b"never before the last event\n", seconds_ago=500.0)
    talk.tells(32.0)
    first, second = talk.lines()
    assert first.at == pytest.approx(11.0, abs=0.5)
    assert second.at == 31.0


def test_only_the_end_of_much_is_kept(tmp_path: Path) -> None:
    talk = Conversation(tmp_path)
    talk.writes(b"".join(b"%d\n" % number for number in range(100_000)))
    talk.tells(1.0)
    texts = [line.text for line in talk.lines()]
    assert texts[-1] == "99999"
    assert MAX_BYTES // 2 < sum(len(text) + 1 for text in texts) <= MAX_BYTES
