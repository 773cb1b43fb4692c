"""The end of a confined server as its first process reports it, through a pipe."""

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass

from harness.client.target.process_tree import first_grandchild_of

# The first descriptor of the report: lower ones are taken on the way to the server.
_MIN_DESCRIPTOR = 20
_MAX_REPORT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Report:
    status: int
    survivors: tuple[str, ...] = ()


class ConfinedEnd:
    """The reading end of the report; `writer` is the descriptor that the confined side gets."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        self.writer = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, _MIN_DESCRIPTOR)
        os.close(writer)
        self._server: int | None = None
        self._report: _Report | None = None

    def close_writer(self) -> None:
        """Close our copy of `writer`, so that the report ends with its writer."""
        os.close(self.writer)

    def find_server(self, bubblewrap: int) -> int:
        """Return the server's process id; that of bubblewrap while the server is not there yet."""
        if self._server is None:
            self._server = first_grandchild_of(bubblewrap)
        return bubblewrap if self._server is None else self._server

    def status(self, bubblewrap_status: int) -> int:
        """Return the server's exit status, negative for a signal, after bubblewrap has ended."""
        return self._read(bubblewrap_status).status

    def survivors(self, bubblewrap_status: int | None) -> tuple[str, ...]:
        """Return the names of processes that outlived the server, and were ended with its end."""
        return () if bubblewrap_status is None else self._read(bubblewrap_status).survivors

    def _read(self, bubblewrap_status: int) -> _Report:
        if self._report is None:
            text = b""
            os.set_blocking(self._reader, False)
            with suppress(BlockingIOError):
                text = os.read(self._reader, _MAX_REPORT_BYTES)
            os.close(self._reader)
            self._report = _parse(text) or _Report(bubblewrap_status)
        return self._report


def _parse(text: bytes) -> _Report | None:
    status, *survivors = text.decode("utf-8", "replace").splitlines() or [""]
    try:
        return _Report(int(status), tuple(survivors))
    except ValueError:
        return None
