"""Times of the lines that a server writes to its standard error during a conversation.

The server writes to a file, which nothing reads meanwhile. Its size is looked at with each message
and mark of the trace, and the time of its last change tells when a silent server wrote.
"""

import os
import time
from collections.abc import Callable
from typing import Final

from harness.client.target.process import ServerProcess
from harness.trace.recorder import Recorder
from harness.trace.trace import End, StderrLine, Trace

MAX_BYTES: Final = 16_384
"""The end of a process's standard error that a trace keeps."""
MAX_READ_DELAY: Final = 0.02
"""Seconds by which a message may be read later than it was written."""


class StderrTimes:
    """Watch over the standard error of a conversation's process, or of those that replace it.

    `process` returns the one in use; `start` is the offset at which the conversation begins.
    """

    def __init__(
        self, recorder: Recorder, process: Callable[[], ServerProcess], start: int
    ) -> None:
        self._recorder = recorder
        self._current = process
        self._process = process()
        self._start = self._size = start
        self._last_at = recorder.elapsed_seconds()
        self._looks: list[tuple[int, float, int]] = []
        self._lines: list[StderrLine] = []
        recorder.listeners.append(lambda frame: self._look(frame.at, frame.seq - 1))
        recorder.mark_listeners.append(lambda mark: self._look(mark.at, mark.after))

    def lines(self, trace: Trace) -> list[StderrLine]:
        """Return the lines of the complete trace, in order."""
        self._look(self._recorder.elapsed_seconds(), len(trace.frames) - 1)
        self._collect(trace, has_exited=trace.end is End.EXITED)
        return self._lines

    def _look(self, at: float, after: int) -> None:
        """Note how much was written before the event at `at`, which follows the frame `after`."""
        if (process := self._current()) is not self._process:
            self._collect(self._recorder.trace, has_exited=False)
            self._process, self._start, self._size = process, 0, 0
        try:
            file = os.stat(self._process.stderr_path)
        except OSError:
            return
        if file.st_size > self._size:
            self._size = file.st_size
            written_at = at - max(0.0, time.time() - file.st_mtime)
            self._looks.append((self._size, max(self._last_at, written_at), after))
        self._last_at = at

    def _collect(self, trace: Trace, *, has_exited: bool) -> None:
        """Read the lines that were seen to be written."""
        looks, self._looks = self._looks, []
        if not looks:
            return
        data, end = self._process.stderr_since(self._start, MAX_BYTES)
        position = end - len(data)
        for line in data.splitlines(keepends=True):
            position += len(line)
            look = next((one for one in looks if one[0] >= position), looks[-1])
            at, after = _place(trace, look, is_last=has_exited and look is looks[-1])
            text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
            self._lines.append(StderrLine(at, after, text))
        self._start = end


def _place(trace: Trace, look: tuple[int, float, int], *, is_last: bool) -> tuple[float, int]:
    """Return the time of a line and the frame before it.

    Messages that were read shortly after the line was written had been written before it, as far as
    anyone can tell; all of them if it is the last thing that a server wrote before it exited.
    """
    _, at, after = look
    late = float("inf") if is_last else at + MAX_READ_DELAY
    shown_at = at
    for frame in trace.frames[after + 1 :]:
        if frame.at > (late if frame.from_target else at):
            break
        after, shown_at = frame.seq, max(at, frame.at)
    return shown_at, after
