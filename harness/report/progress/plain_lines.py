"""Lines of progress where there is no terminal: one block in each half minute."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from typing import Final

SECONDS_BETWEEN_BLOCKS: Final = 30.0
MAX_LINE_CHARACTERS: Final = 300


class PlainLines:
    """Writes the lines that `lines` returns to a descriptor, again and again until `stop`.

    `lines` is called in a thread of its own. `descriptor` is duplicated: others may redirect it
    meanwhile.
    """

    def __init__(
        self, lines: Callable[[], Iterable[str]], descriptor: int, encoding: str = "utf-8"
    ) -> None:
        self._lines = lines
        self._descriptor = os.dup(descriptor)
        self._encoding = encoding
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def start(self) -> None:
        """Write the first block after `SECONDS_BETWEEN_BLOCKS`."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more; also from a signal handler, and twice."""
        self._stopped.set()

    def _write(self) -> None:
        with open(self._descriptor, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while not self._stopped.wait(SECONDS_BETWEEN_BLOCKS):
                text = "".join(f"{line[:MAX_LINE_CHARACTERS]}\n" for line in self._lines())
                file.write(text.encode(self._encoding, "backslashreplace"))
