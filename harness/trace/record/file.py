"""The file of a recording: a trace that is written line by line while it happens.

Each line is one `write`, so that it is kept whoever dies; a full disk ends the recording and not
the session.
"""

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Generator
from pathlib import Path

from harness.errors import UsageError
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody
from harness.trace.record.masks import Masker
from harness.trace.store import end_line, frame_line, header_line, mark_line
from harness.trace.trace import End, Header, Mark

Say = Callable[[str], None]


class RecordingFile:
    """Writes a trace to a file that must not exist, or may with `force`. Raises `UsageError`.

    What cannot be written is told once, by `say`; nothing is written from then on.
    """

    def __init__(
        self, path: Path, header: Header, masker: Masker, *, force: bool = False, say: Say
    ) -> None:
        self.path = path
        self._masker = masker
        self._say = say
        self._start = time.monotonic()
        self._seq = 0
        self._length = 0
        self._descriptor = _opened(path, force=force)
        self._write(header_line(header))

    @property
    def broken(self) -> bool:
        """Return whether something could not be written."""
        return self._descriptor < 0

    def now(self) -> float:
        """Seconds since the recording began."""
        return time.monotonic() - self._start

    def next_seq(self) -> int:
        """The number of the next frame."""
        self._seq += 1
        return self._seq - 1

    def frame(self, frame: Frame) -> None:
        """Write a frame, whose number is of `next_seq`, and whose secrets are masked already."""
        self._write(frame_line(frame))

    def mark(self, body: MarkBody) -> None:
        """Write that something happened now."""
        self._write(self._masker.text(mark_line(Mark(self.now(), self._seq - 1, body))))

    def close(self, end: End) -> None:
        """Write how it ended. Idempotent."""
        self._write(end_line(end))
        if not self.broken:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextlib.contextmanager
    def kept(self, end: Callable[[], End]) -> Generator[None]:
        """The file for as long as the block runs; then how it ended is written.

        One without a message is removed where the block raises `UsageError`: whoever mends the
        mistake gives the same command again, for the same file.
        """
        try:
            yield
        except UsageError:
            if self.empty:
                self._remove()
            raise
        finally:
            self.close(end())

    def _remove(self) -> None:
        """Close the file, and remove it: nothing was recorded."""
        if not self.broken:
            os.close(self._descriptor)
            self._descriptor = -1
        # What is no file, such as a pipe, is not ours.
        if self.path.is_file():
            self.path.unlink(missing_ok=True)

    @property
    def empty(self) -> bool:
        """Return whether no message was recorded."""
        return self._seq == 0

    def _write(self, line: str) -> None:
        if self._descriptor < 0:
            return
        data = line.encode("utf-8", "surrogatepass") + b"\n"
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            self._give_up(error)
        else:
            self._length += len(data)

    def _give_up(self, error: OSError) -> None:
        """End the file with its last whole line."""
        descriptor, self._descriptor = self._descriptor, -1
        # What is no file, such as a pipe, cannot be cut: its last line is a part of one.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, self._length)
        os.close(descriptor)
        self._say(
            f"{self.path}: {error.strerror}: the recording ends after {self._seq} messages; "
            "the session goes on"
        )


def numbered(folder: Path) -> Path:
    """The first of `1.jsonl`, `2.jsonl`, … that is not in a folder, which is made if needed.

    A client may start its server, or an agent, many times. Raises `UsageError`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = {one.name for one in folder.iterdir()}
    except OSError as error:
        raise UsageError(
            f"{folder}: {error.strerror}; no recording can be written there"
        ) from error
    return folder / next(f"{n}.jsonl" for n in itertools.count(1) if f"{n}.jsonl" not in there)


def _opened(path: Path, *, force: bool) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    flags |= os.O_TRUNC if force else 0
    special = path.exists() and not path.is_file()
    if not force and not special:
        flags |= os.O_EXCL
    try:
        # It may hold what nobody knows to be a secret.
        return os.open(path, flags, 0o600)
    except FileExistsError as error:
        raise UsageError(
            f"{path} is there already; name another file, or --force to write over it"
        ) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; no recording can be written there") from error
