"""Standard output that may lose its reader, so that `harness list | head` ends quietly.

It is imported before any other module of the harness, so it imports none of them.
"""

import io
import os
import signal
import sys
from types import FrameType

READER_GONE_STATUS = 141
"""The exit status after writing to a pipe without a reader: 128 + SIGPIPE, as in a shell."""


class _Output(io.RawIOBase):
    """File descriptor 1. When its reader is gone, end the command, or discard what is written."""

    gone = False

    def __init__(self, *, ends: bool) -> None:
        super().__init__()
        self._exits = ends

    def write(self, data: object, /) -> int:
        view = memoryview(data)  # pyright: ignore[reportArgumentType]
        if not self.gone:
            try:
                return os.write(1, view)
            except BrokenPipeError:
                self.gone = True
                # Later flushes must not meet the closed pipe.
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1)
                os.close(nowhere)
                if self._exits:
                    raise SystemExit(READER_GONE_STATUS) from None
        return len(view)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1

    def isatty(self) -> bool:
        return os.isatty(1)


_outputs: list[_Output] = []


def guard_output(*, exits: bool) -> None:
    """Discard output once its reader is gone; with `exits`, raise `SystemExit` at that moment."""
    out = sys.stdout
    if _outputs or out is None or not _is_descriptor_1(out):
        return
    output = _Output(ends=exits)
    _outputs.append(output)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=out.encoding,
        # A folder's name, or a locale without the character, costs no line of a report.
        errors="backslashreplace",
        line_buffering=os.isatty(1),
    )


def reader_is_gone() -> bool:
    """Return whether the reader of standard output is gone."""
    return any(output.gone for output in _outputs)


def _is_descriptor_1(stream: object) -> bool:
    try:
        return stream.fileno() == 1  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


def exit_quietly(number: int, frame: FrameType | None) -> None:
    """Exit from a signal handler, when nothing that was started needs cleaning up."""
    os._exit(128 + number)


def exit_quietly_on_interrupt() -> None:
    """Exit at once on Ctrl-C, without a traceback of imports, until there is a run."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_quietly)


def restore_interrupt() -> None:
    """Raise KeyboardInterrupt on Ctrl-C again, for code that cleans up."""
    if signal.getsignal(signal.SIGINT) is exit_quietly:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def block_interrupt(*, blocked: bool) -> None:
    """Block Ctrl-C while this process becomes another, or unblock it."""
    how = signal.SIG_BLOCK if blocked else signal.SIG_UNBLOCK
    signal.pthread_sigmask(how, [signal.SIGINT])
