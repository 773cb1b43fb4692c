"""The file of a recording: a trace that is written line by line while it happens.

Each line is one `write`, so that it survives a crash; a full disk ends the recording, but not
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
    """A trace file, written line by line.

    Raises `UsageError` if the file cannot be opened, or exists and `force` is False. A write error
    is reported once, by `say`; nothing is written from then on.
    """

    def __init__(
        self, path: Path, header: Header, masker: Masker, *, force: bool = False, say: Say
    ) -> None:
        self.path = path
        self._masker = masker
        self._report = say
        self._start = time.monotonic()
        self._seq = 0
        self._length = 0
        self._descriptor = _open_file(path, force=force)
        self._write(header_line(header))

    @property
    def has_failed(self) -> bool:
        """Return whether nothing is written any more: a write failed, or the file is closed."""
        return self._descriptor < 0

    def elapsed_seconds(self) -> float:
        """Return seconds since the recording began."""
        return time.monotonic() - self._start

    def next_seq(self) -> int:
        """Count one more frame and return its number, from 0."""
        self._seq += 1
        return self._seq - 1

    def write_frame(self, frame: Frame) -> None:
        """Write a frame, whose number is from `next_seq` and whose secrets the caller masked."""
        self._write(frame_line(frame))

    def write_mark(self, body: MarkBody) -> None:
        """Write a mark with the current time; its secrets are masked."""
        self._write(
            self._masker.mask_text(mark_line(Mark(self.elapsed_seconds(), self._seq - 1, body)))
        )

    def close(self, end: End) -> None:
        """Write the end and close the file. Idempotent."""
        self._write(end_line(end))
        if not self.has_failed:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextlib.contextmanager
    def close_with(self, end: Callable[[], End]) -> Generator[None]:
        """Run a block, then write the end that `end` returns and close the file.

        If the block raises `UsageError` and no message was recorded, remove the file instead, so
        that the same command can be repeated.
        """
        try:
            yield
        except UsageError:
            if self.is_empty:
                self._remove()
            raise
        finally:
            self.close(end())

    def _remove(self) -> None:
        """Close the file, and remove it unless it is a pipe or another special file."""
        if not self.has_failed:
            os.close(self._descriptor)
            self._descriptor = -1
        if self.path.is_file():
            self.path.unlink(missing_ok=True)

    @property
    def is_empty(self) -> bool:
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
        """Cut the file after its last whole line, close it, and report the error."""
        descriptor, self._descriptor = self._descriptor, -1
        # A pipe cannot be truncated: its last line stays partial.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, self._length)
        os.close(descriptor)
        self._report(
            f"{self.path}: {error.strerror}: the recording ends after {self._seq} messages; "
            "the session goes on"
        )


def next_numbered_path(folder: Path) -> Path:
    """Return the first unused path of `1.jsonl`, `2.jsonl`, …; create the folder if needed.

    A client may start its server, or an agent, many times. Raises `UsageError` if the folder cannot
    be created or read.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        existing = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise UsageError(
            f"{folder}: {error.strerror}; no recording can be written there"
        ) from error
    return folder / next(f"{n}.jsonl" for n in itertools.count(1) if f"{n}.jsonl" not in existing)


def _open_file(path: Path, *, force: bool) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    flags |= os.O_TRUNC if force else 0
    special = path.exists() and not path.is_file()
    if not force and not special:
        flags |= os.O_EXCL
    try:
        # It may hold unmasked secrets.
        return os.open(path, flags, 0o600)
    except FileExistsError as error:
        raise UsageError(
            f"{path} is there already; name another file, or --force to write over it"
        ) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; no recording can be written there") from error
