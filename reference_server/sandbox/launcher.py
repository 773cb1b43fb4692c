"""The server's side of the helper process, which forks a warden for each command.

The helper itself is in `warden.py`, commands are in `process.py`.
"""

import atexit
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

_PROGRAM = Path(__file__).with_name("warden.py")
_AS_COMPILED = (
    "-I",
    "-S",
    "-c",
    "import _signal, select, sys\n"
    "for name in ('INT', 'TERM', 'HUP', 'QUIT', 'USR1'):\n"
    " _signal.signal(getattr(_signal, 'SIG' + name), _signal.SIG_IGN)\n"
    "poll = select.poll()\n"
    "poll.register(int(sys.argv[2]), select.POLLIN)\n"
    "if not any(events & select.POLLHUP for _, events in poll.poll()):\n"
    " from importlib.machinery import SourceFileLoader\n"
    " exec(SourceFileLoader('__main__', sys.argv.pop(1)).get_code('__main__'))\n",
)
"""A bare interpreter that waits for the first command, then runs the byte code of the helper.

Most servers start no command, and loading the helper is half of what it costs. Not `signal`: it
imports too much.
"""
_END_BOUND = 5.0
_OF_THE_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")


class LaunchFailed(Exception):
    """The helper process cannot be started, or does not answer; str() says what was tried."""


class Launcher:
    """The helper process of one server. It ends with `close`, or when the server's process ends.

    `start` blocks the event loop for about 2 ms, once. If it is called as the server starts, the
    helper is a child of the server from its first answer on; else the first command starts it.
    """

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The helper's process id while it is there."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the helper unless it runs. Raises LaunchFailed."""
        if self._process is not None:
            if self._process.poll() is None:
                return
            self.close()
        server_end, helper_end = socket.socketpair()
        with helper_end:
            try:
                # Its working directory must keep no folder busy, and its streams no reader waiting.
                self._process = subprocess.Popen(
                    [sys.executable, *_AS_COMPILED, str(_PROGRAM), str(helper_end.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env=_environment(),
                    pass_fds=[helper_end.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                server_end.close()
                raise LaunchFailed(
                    f"the helper that starts commands ({sys.executable}) cannot be started: "
                    f"{error.strerror}"
                ) from error
        self._channel = server_end

    def hand_over(self, *streams: int) -> socket.socket:
        """Hand a command's output descriptor to a new warden; return the warden's control socket.

        For a program that is spoken with: of its output, its input and its standard error. The
        caller keeps its own copies to close. Raises LaunchFailed.
        """
        server_end, warden_end = socket.socketpair()
        try:
            with warden_end:
                self._send(warden_end.fileno(), *streams)
        except LaunchFailed:
            server_end.close()
            raise
        server_end.setblocking(False)
        return server_end

    def _send(self, *fds: int) -> None:
        for attempt in (1, 2):
            self.start()
            assert self._channel is not None
            try:
                socket.send_fds(self._channel, [b"!"], fds)
            except OSError as error:
                # The helper was killed from outside: try once more with a new one.
                self.close()
                if attempt == 2:
                    raise LaunchFailed("the helper that starts commands went away") from error
            else:
                return

    def close(self) -> None:
        """End the helper. Running commands do not end with it, but when their sockets close."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_BOUND)
            if self._process.returncode is None:
                self._process.kill()
                self._process.wait()
            self._process = None


def _environment() -> dict[str, str]:
    """Return only what the interpreter needs: commands can read the variables of their parent."""
    return {name: os.environ[name] for name in _OF_THE_LOADER if name in os.environ}


SHARED = Launcher()
"""The helper of this process; it ends when the interpreter does."""
atexit.register(SHARED.close)
