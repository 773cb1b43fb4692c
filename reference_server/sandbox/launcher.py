"""Server's side of the helper process, which forks a warden for each command.

`warden.py` is the helper itself; `process.py` runs commands with it.
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
"""Arguments of an interpreter that waits for the first command, then runs the helper's byte code.

Most servers start no command, and loading the helper is half of its cost. `_signal` stands for
`signal`, which imports too much.
"""
_END_BOUND = 5.0
_OF_THE_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")


class LaunchFailed(Exception):
    """The helper process cannot be started, or has gone away; str() is one line for the user."""


class Launcher:
    """Helper process of one server. It ends with `close`, or when the server's process ends.

    `start` blocks the event loop for about 2 ms, once. If nothing calls it before, the first
    command does.
    """

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The helper's process id; None before `start` and after `close`."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the helper unless it runs. Raises LaunchFailed if it cannot be started."""
        if self._process is not None:
            if self._process.poll() is None:
                return
            self.close()
        server_end, helper_end = socket.socketpair()
        with helper_end:
            try:
                # It must not keep a folder busy as its working directory, nor a pipe open.
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
        """Pass a command's output descriptor to a new warden; return the warden's control socket.

        `streams` is that descriptor; or for a program with piped input and separate errors: output,
        input, standard error. The caller closes its own copies. Raises LaunchFailed.
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
                # The helper was killed: retry once with a new one.
                self.close()
                if attempt == 2:
                    raise LaunchFailed("the helper that starts commands went away") from error
            else:
                return

    def close(self) -> None:
        """End the helper. Running commands continue until their control sockets close."""
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
    """Return the variables that the interpreter needs and no more: commands can read them."""
    return {name: os.environ[name] for name in _OF_THE_LOADER if name in os.environ}


SHARED = Launcher()
"""The launcher of this process; its helper ends when the interpreter does."""
atexit.register(SHARED.close)
