"""Runner of a command in a pseudo-terminal, with its output and key presses."""

import contextlib
import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import BOUND, COMMANDS
from tests.terminal_screen import screen


class Terminal:
    """A terminal in which a command runs; `raw` is all its output so far."""

    def __init__(self, master: int, process: "subprocess.Popen[bytes]") -> None:
        self._master = master
        self.process = process
        self._new = ""
        self.raw = ""

    def until(self, words: str) -> str:
        """Wait until the words were printed, in this order; return the output up to there."""
        end = time.monotonic() + BOUND
        pattern = re.compile(r"[\s\S]*?".join(map(re.escape, words.split())))
        while (found := pattern.search(self._new)) is None:
            ready, _, _ = select.select([self._master], [], [], max(0, end - time.monotonic()))
            assert ready, f"{words!r} was never shown: {self._new[-2000:]!r}"
            chunk = b""
            with contextlib.suppress(OSError):  # On Linux, the other end is closed.
                chunk = os.read(self._master, 65536)
            assert chunk, f"it ended before {words!r}: {self._new[-2000:]!r}"
            self.raw += chunk.decode("utf-8", "replace")
            self._new += re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", chunk.decode("utf-8", "replace"))
        seen, self._new = self._new[: found.end()], self._new[found.end() :]
        return seen

    def press(self, keys: str) -> None:
        """Send keys to the command."""
        os.write(self._master, keys.encode())

    def drain(self) -> list[str]:
        """Read to the end; return what the screen shows of all output, without empty lines."""
        with contextlib.suppress(OSError):  # On Linux, the other end is closed.
            while chunk := os.read(self._master, 65536):
                self.raw += chunk.decode("utf-8", "replace")
        return [line for line in screen(self.raw) if line]

    def status(self) -> int:
        """Wait for the command to end; return its exit status."""
        return self.process.wait(BOUND)


@contextmanager
def in_terminal(*words: str, cwd: Path, **variables: str) -> Generator[Terminal]:
    """Run `harness …` in a terminal of 130 columns, with `variables`, while the block runs."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
    environment |= {"COLUMNS": "130", "LINES": "50"}
    environment.pop("NO_COLOR", None)
    environment |= variables
    process = subprocess.Popen(
        [COMMANDS / "harness", *words],
        cwd=cwd,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # As in a shell.
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)
