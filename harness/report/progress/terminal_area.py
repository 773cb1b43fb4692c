"""Lines at the bottom of a terminal that change, below those that stay."""

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO

from rich.console import Console, ConsoleDimensions, RenderableType
from rich.live import Live
from rich.text import Text

from harness.protocol.escapes import visible

SECONDS_BETWEEN_REFRESHES: Final = 0.25
_DEFAULT_SIZE: Final = ConsoleDimensions(80, 24)


class _Descriptor:
    """A text file over a descriptor; a signal handler may write to it during another write."""

    def __init__(self, descriptor: int, encoding: str) -> None:
        self._descriptor = descriptor
        self.encoding = encoding

    def write(self, text: str) -> int:
        try:
            data = text.encode(self.encoding, "backslashreplace")
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            pass  # The terminal is gone; the run goes on.
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor


class _Console(Console):
    """A console whose cursor stays visible: a killed process could not bring it back."""

    def show_cursor(self, show: bool = True) -> bool:
        """Leave the cursor as it is."""
        return False


class TerminalArea:
    """Area of a terminal with one changing `view`; what is printed meanwhile stays above it.

    `poll` is called before each refresh. `descriptor` is duplicated: others may redirect it
    meanwhile.
    """

    def __init__(
        self,
        view: RenderableType,
        poll: Callable[[], None],
        descriptor: int,
        encoding: str = "utf-8",
    ) -> None:
        self._poll = poll
        self._descriptor = os.dup(descriptor)
        file: Any = _Descriptor(self._descriptor, encoding)
        self._console = _Console(
            file=file, force_terminal=True, highlight=False, markup=False, emoji=False
        )
        self._live = Live(
            view,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._lock = threading.RLock()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Show the view, and refresh it until `stop`."""
        self._console.size = self._size()
        self._live.start(refresh=True)
        threading.Thread(target=self._refresh, daemon=True).start()

    def print(self, line: Text | str) -> None:
        """Print a line above the view; one that must not wrap is cut, a `str` is made visible."""
        line = Text(visible(line)) if isinstance(line, str) else line
        with self._lock:
            if line.no_wrap:
                self._console.print(line, no_wrap=True, overflow="crop")
            else:
                self._console.print(line, soft_wrap=True)

    def update(self) -> None:
        """Poll, and draw the view again."""
        with self._lock:
            if not self._stopped.is_set():
                self._poll()
                self._console.size = self._size()
                self._live.refresh()

    def stop(self) -> None:
        """Erase the view; also from a signal handler, and twice."""
        with self._lock:
            if not self._stopped.is_set():
                self._stopped.set()
                self._live.stop()

    def _size(self) -> ConsoleDimensions:
        """Return the columns and rows of the terminal; COLUMNS and LINES come first."""
        try:
            columns, rows = os.get_terminal_size(self._descriptor)
        except OSError:
            columns, rows = 0, 0
        return ConsoleDimensions(
            _number("COLUMNS") or columns or _DEFAULT_SIZE.width,
            _number("LINES") or rows or _DEFAULT_SIZE.height,
        )

    def _refresh(self) -> None:
        while not self._stopped.wait(SECONDS_BETWEEN_REFRESHES):
            self.update()


class OutputAbove:
    """A text file whose whole lines are printed above an area; the rest is kept until `close`."""

    def __init__(self, area: TerminalArea, file: TextIO) -> None:
        self._area, self._file = area, file
        self._rest = ""

    def write(self, text: str) -> int:
        """Print the lines that are complete by now."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._area.print(Text.from_ansi(line.rpartition("\r")[2]))
        return len(text)

    def close(self) -> TextIO:
        """Write the incomplete line to the file itself, and return the file."""
        self._file.write(self._rest.rpartition("\r")[2])
        self._rest = ""
        return self._file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def can_show_area(descriptor: int, environment: Mapping[str, str]) -> bool:
    """Return whether a descriptor is a terminal whose cursor can be moved."""
    return os.isatty(descriptor) and environment.get("TERM", "dumb") not in ("dumb", "unknown", "")


def _number(variable: str) -> int:
    word = os.environ.get(variable, "")
    return int(word) if word.isdecimal() else 0
