"""Standard output that may lose its reader: `harness list | head` ends quietly.

Imported before anything else of the harness, so it imports nothing of ours.
"""

import io
import os
import signal
import sys
from types import FrameType

READER_GONE_STATUS = 141
"""The exit status of whoever wrote into a pipe that nobody reads: 128 + SIGPIPE, as of a shell."""


class _Output(io.RawIOBase):
    """File descriptor 1. Without a reader it ends the command, or goes on writing to nowhere."""

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
                # Whatever is flushed later, by whomever, meets no closed pipe.
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
    """Make standard output bear the loss of its reader. With `ends` the command ends then."""
    out = sys.stdout
    if _outputs or out is None or not _is_descriptor_1(out):
        return
    output = _Output(ends=exits)
    _outputs.append(output)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=out.encoding,
        errors=out.errors,
        line_buffering=os.isatty(1),
    )


def reader_is_gone() -> bool:
    """Return whether what is printed is read by nobody any more."""
    return any(one.gone for one in _outputs)


def _is_descriptor_1(stream: object) -> bool:
    try:
        return stream.fileno() == 1  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


def exit_quietly(number: int, frame: FrameType | None) -> None:
    """A signal handler where nothing was started that would have to be ended."""
    os._exit(128 + number)


def exit_quietly_on_interrupt() -> None:
    """Until there is a run, Ctrl-C ends this process at once, without a traceback of imports."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_quietly)


def restore_interrupt() -> None:
    """Ctrl-C is an exception again, for what cleans up behind itself."""
    if signal.getsignal(signal.SIGINT) is exit_quietly:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def hold_interrupt(*, blocked: bool) -> None:
    """Keep Ctrl-C waiting, while this process becomes another, or take it now."""
    how = signal.SIG_BLOCK if blocked else signal.SIG_UNBLOCK
    signal.pthread_sigmask(how, [signal.SIGINT])
