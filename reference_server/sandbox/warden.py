"""Stand-alone program that holds the process tree of each command, and ends all of it.

It imports the standard library only, since it runs in a bare interpreter (`python -I -S`), and is
never imported by the server. It has two roles:

- the **launcher** is started once by the server (`launcher.py`) and forks a warden per command, so
  that starting a command neither forks the large server nor starts an interpreter;
- a **warden** starts one command in a new session and reaps everything below it (Linux:
  PR_SET_CHILD_SUBREAPER). A process that leaves the group or the session, or forks twice, becomes
  the warden's child, not init's. So the kernel itself shows when the tree is gone: the warden has
  no child left. When the server ends, even by SIGKILL, its sockets close, and each warden ends its
  command.

The channel to the launcher carries one byte and two descriptors per command: the warden's control
socket and the command's output; or four, for a program with piped input: also its input and its
standard error. On the control socket the server sends a length (4 bytes, big endian) and a
marshalled dict (`REQUEST`), later `END_BYTE`; the warden answers in lines: `failed STEP ERRNO`,
`started PID`, `exited STATUS` (negative: ended by that signal), `gone [PID…]` (processes that did
not end within `KILL_BOUND`).

On systems without a subreaper (macOS) the tree is the command's process group, which is best
effort: processes that left the group are not found.
"""

import contextlib
import ctypes
import errno
import fcntl
import gc
import marshal
import os
import select
import signal
import socket
import struct
import sys
import termios
import time

REQUEST = ("program", "argv", "cwd", "env", "tty", "wrapped", "grace", "inputs", "mounts")
"""Keys of a request. Texts are bytes; `program` is a path, found by the server; `grace` is in
seconds; `inputs` are bytes, by the number of the descriptor from which the first process reads.

`wrapped`: the first process is a sandbox around the command. SIGTERM would end it, and with it at
once all inside; so SIGTERM goes to the processes inside, and the sandbox ends after them.

`mounts`: the sandbox's expected mounts, as pairs of a path and its source (empty: a folder in
memory). The sandbox resolves the paths itself, and another command may have made a link meanwhile.
So its first process writes a byte to descriptor `WAITING` and reads a line from it: "." if the
mounts are right, else the reason why it must end.
"""
WAITING = 9
END_BYTE = b"T"
KILL_BOUND = 5.0
"""Seconds in which killed processes must be gone; those that are not are reported."""
_TICK = 0.02
_LINUX = sys.platform.startswith("linux")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1
_CLONE_NEWNS = 0x20000
_MS_PRIVATE_AND_BELOW = 1 << 18 | 1 << 14
_CREDENTIALS = struct.Struct("3i")
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
_LIBC = ctypes.CDLL(None)


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        _LIBC.prctl(option, value, 0, 0, 0)


def _leave_keyring() -> None:
    """Give this process a new keyring: the server's has keys that are not for commands.

    Does nothing on a kernel without keyrings.
    """
    number = _KEYCTL.get(os.uname().machine) if _LINUX else None
    if number is not None:
        _LIBC.syscall(number, _JOIN_SESSION_KEYRING, None)


def _leave_mounts() -> None:
    """Keep later mounts from appearing in the sandbox, where they would be writable.

    Works only for root; for an ordinary user nothing changes.
    """
    if _LINUX and _LIBC.unshare(_CLONE_NEWNS) == 0:
        _LIBC.mount(b"none", b"/", None, _MS_PRIVATE_AND_BELOW, None)


class _Mounts:
    """Mounts of a process by id: (device, path on it, type of file system)."""

    def __init__(self, process: str) -> None:
        self._root = b"" if process == "self" else f"/proc/{process}/root".encode()
        self._known: dict[bytes, tuple[bytes, bytes, bytes]] = {}
        self._points: dict[bytes, bytes] = {}
        with open(f"/proc/{process}/mountinfo", "rb") as source:
            for line in source:
                words = line.split()
                kind = words[words.index(b"-") + 1]
                self._known[words[0]] = (words[2], words[3], kind)
                self._points[words[0]] = words[4]

    def at(self, path: bytes) -> tuple[bytes, bytes, bytes]:
        """Return the device at a path, the path on it, and the type of file system.

        Raises OSError, also if the path contains a link or, in another process, is no mount point.
        """
        descriptor = os.open(self._root + path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not self._root and os.readlink(b"/proc/self/fd/%d" % descriptor) != path:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            with open(f"/proc/self/fdinfo/{descriptor}", "rb") as source:
                [mount] = [line.split()[1] for line in source if line.startswith(b"mnt_id:")]
        finally:
            os.close(descriptor)
        if mount not in self._known:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        device, root, kind = self._known[mount]
        point = self._points[mount]
        if self._root and point != _escape(path):
            raise OSError(errno.ENOENT, "nothing is mounted there")
        rest = _escape(path)[len(point.rstrip(b"/")) :]
        return device, root.rstrip(b"/") + rest or b"/", kind

    @staticmethod
    def fault(pid: int, mounts: list[tuple[bytes, bytes]]) -> bytes:
        """Return how the mounts that a process sees differ from these, b"" if they do not."""
        path = b"/"
        try:
            inside, outside = _Mounts(str(pid)), _Mounts("self")
            for path, source in mounts:
                device, root, kind = inside.at(path)
                if not source:
                    is_right = kind == b"tmpfs" and root == b"/"
                else:
                    is_right = outside.at(source)[:2] == (device, root)
                if not is_right:
                    return b"something else than was planned is mounted at " + path
        except OSError as error:
            return b"the mount at %s is not as planned: %s" % (
                path,
                (error.strerror or "").encode(),
            )
        return b""


def _escape(path: bytes) -> bytes:
    """Return a path as the kernel writes it in its tables of mounts."""
    for character in b"\\ \t\n":
        path = path.replace(b"%c" % character, b"\\%03o" % character)
    return path


def _provide(inputs: dict[int, bytes]) -> None:
    """Make each of these descriptors a file in memory with the bytes, at its beginning.

    The numbers are high, so that none is in use.
    """
    for number, data in inputs.items():
        file = os.memfd_create(f"input {number}")
        with open(file, "wb", closefd=False) as writing:
            writing.write(data)
        os.lseek(file, 0, os.SEEK_SET)
        os.dup2(file, number)
        os.close(file)


def _on_child(*_: object) -> None:
    """Do nothing: having a handler makes the wake-up descriptor readable."""


def _parents() -> dict[int, int]:
    """Return the parent's id by the id of every living process. Raises OSError without /proc."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as source:
                fields = source.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            parents[int(name)] = int(fields[1])
    return parents


def below(ancestor: int, spared: frozenset[int] = frozenset()) -> list[int]:
    """Return the living descendants of a process, without those `spared` and their descendants.

    Empty if there is no /proc.
    """
    try:
        parents = _parents()
    except OSError:
        return []
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    descendants: list[int] = []
    level = [ancestor]
    while level:
        level = [child for pid in level for child in children.get(pid, ()) if child not in spared]
        descendants += level
    return descendants


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _send_group(group: int, number: int) -> bool:
    """Send a signal to a process group and return whether there was such a group."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def kill_below(ancestor: int, spared: frozenset[int] = frozenset()) -> None:
    """Kill all descendants; SIGSTOP comes first, until none runs that could still fork."""
    stopped: set[int] = set()
    while new := set(below(ancestor, spared)) - stopped:
        for pid in new:
            _send(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        _send(pid, signal.SIGKILL)


class Warden:
    """Warden of one command, from its start until none of its processes is left."""

    def __init__(self, control: socket.socket, request: dict[str, object]) -> None:
        self._control = control
        self._request = request
        self._grace = float(request["grace"])  # type: ignore[arg-type]
        self._main = 0
        self._ending = False
        self._deadline = 0.0
        self._waiting: socket.socket | None = None

    def run(self, streams: tuple[int, ...]) -> None:
        """Start the command, report on it, end it; the module docstring has reports and streams."""
        wake, waker = os.pipe()
        for end in (wake, waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _on_child)
        failed, failing = os.pipe()
        child_end: socket.socket | None = None
        if self._request["mounts"]:
            self._waiting, child_end = socket.socketpair()
            self._waiting.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._main = os.fork()
        if self._main == 0:
            _exec_command(self._request, streams, failing, child_end)
        for stream in streams:
            os.close(stream)
        os.close(failing)
        if child_end is not None:
            child_end.close()
        failure = os.read(failed, 100)
        os.close(failed)
        if failure:
            self._say(f"failed {failure.decode()}")
            return
        self._say(f"started {self._main}")
        self._follow(wake)

    def _say(self, line: str) -> None:
        # The server may have ended and read nothing; the tree must still be ended.
        with contextlib.suppress(OSError):
            self._control.sendall(line.encode() + b"\n")

    def _follow(self, wake: int) -> None:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        if self._waiting is not None:
            poll.register(self._waiting, select.POLLIN)
        killing = False
        while True:
            if self._reap():
                return
            now = time.monotonic()
            if self._ending and now >= self._deadline:
                if killing and now >= self._deadline + KILL_BOUND:
                    self._say(" ".join(["gone", *map(str, below(os.getpid()))]))
                    return
                killing = True
                self._kill()
            for fd, _ in poll.poll(self._poll_timeout(now, killing)):
                if fd == wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                    continue
                if self._waiting is not None and fd == self._waiting.fileno():
                    poll.unregister(fd)
                    self._look_at_mounts(self._waiting)
                    continue
                # END_BYTE, or the end of the socket: the server ends the command, or has ended.
                poll.unregister(fd)
                self._terminate()

    def _look_at_mounts(self, waiting: socket.socket) -> None:
        """Check the mounts and answer the first process in the sandbox, which waits to go on."""
        with waiting, contextlib.suppress(OSError):
            byte, ancillary, _, _ = waiting.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
            # Without a byte it has ended, since the sandbox could not be made.
            if byte and ancillary:
                pid: int = _CREDENTIALS.unpack(ancillary[0][2])[0]
                fault = _Mounts.fault(pid, self._request["mounts"])  # type: ignore[arg-type]
                waiting.sendall((fault.replace(b"\n", b"?") or b".") + b"\n")
        self._waiting = None

    def _poll_timeout(self, now: float, killing: bool) -> float | None:
        """Return the milliseconds until the warden must act; None to wait for an event."""
        if not self._ending:
            return None
        if killing or not _LINUX:
            return _TICK * 1000
        return max(0.0, self._deadline - now) * 1000

    def _reap(self) -> bool:
        """Reap ended processes and report them; return True if none of the tree is left."""
        messages: list[str] = []
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return False
                if pid == self._main:
                    messages.append(f"exited {os.waitstatus_to_exitcode(status)}")
        except ChildProcessError:
            is_gone = _LINUX or not _send_group(self._main, 0)
            if is_gone:
                messages.append("gone")
            return is_gone
        finally:
            if messages:
                self._say("\n".join(messages))

    def _terminate(self) -> None:
        self._ending = True
        self._deadline = time.monotonic() + self._grace
        spared = self._main if self._request["wrapped"] else 0
        for pid in below(os.getpid()):
            if pid != spared:
                _send(pid, signal.SIGTERM)
                _send(pid, signal.SIGCONT)
        if not _LINUX:
            _send_group(self._main, signal.SIGTERM)
            _send_group(self._main, signal.SIGCONT)

    def _kill(self) -> None:
        kill_below(os.getpid())
        if not _LINUX:
            _send_group(self._main, signal.SIGKILL)


def _exec_command(
    request: dict[str, object],
    streams: tuple[int, ...],
    failing: int,
    waiting: socket.socket | None,
) -> None:
    """Become the command, in the child; on failure, write step and errno to `failing` and exit."""
    argv: list[bytes] = request["argv"]  # type: ignore[assignment]
    output, step = streams[0], "start"
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in signal.valid_signals():
            # Also signals that the server's own parent ignored: a command must end by them.
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.setsid()
        if request["tty"]:
            fcntl.ioctl(output, termios.TIOCSCTTY, 0)
            os.dup2(output, 0)
        else:
            os.dup2(streams[1] if streams[1:] else os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(streams[2] if streams[1:] else output, 2)
        _leave_keyring()
        _provide(request["inputs"])  # type: ignore[arg-type]
        if waiting is not None:
            failing = fcntl.fcntl(failing, fcntl.F_DUPFD_CLOEXEC, WAITING + 1)
            os.dup2(waiting.fileno(), WAITING)
            os.set_inheritable(WAITING, True)
        if request["wrapped"]:
            _leave_mounts()
        step = "cwd"
        os.chdir(request["cwd"])  # type: ignore[arg-type]
        step = "exec"
        os.execve(request["program"], argv, request["env"])  # type: ignore[arg-type]
    except OSError as error:
        os.write(failing, f"{step} {error.errno or errno.EIO}".encode())
    finally:
        os._exit(127)


def _read_exactly(source: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size and (part := source.recv(min(size, 1 << 16))):
        parts.append(part)
        size -= len(part)
    if size:
        os._exit(0)  # The server has gone in the middle of its request: nothing was started.
    return b"".join(parts)


def _guard(control_fd: int, *streams: int) -> None:
    for fd in (control_fd, *streams):
        os.set_inheritable(fd, False)
    control = socket.socket(fileno=control_fd)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    size = int.from_bytes(_read_exactly(control, 4), "big")
    Warden(control, marshal.loads(_read_exactly(control, size))).run(streams)


class Launcher:
    """Launcher, which forks a warden per command and ends the processes of a killed warden."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._wardens: set[int] = set()

    def serve(self) -> None:
        """Serve until the server closes the channel or ends."""
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        wake, waker = os.pipe()
        for end in (wake, waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _on_child)
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._channel, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                    self._reap()
                elif not self._launch():
                    return

    def _launch(self) -> bool:
        byte, fds, _, _ = socket.recv_fds(self._channel, 1, 4)
        if not byte:
            return False
        try:
            pid = os.fork()
        except OSError:
            pid = -1  # The server sees its control socket close without a report.
        if pid == 0:
            self._channel.close()
            status = 1
            try:
                _guard(*fds)
                status = 0
            finally:
                os._exit(status)
        self._wardens.add(pid)
        for fd in fds:
            os.close(fd)
        return True

    def _reap(self) -> None:
        failed = False
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                failed = failed or status != 0
                self._wardens.discard(pid)
        if failed:
            # A command killed its warden, whose children are this process's now.
            kill_below(os.getpid(), frozenset(self._wardens))


if __name__ == "__main__":
    # The garbage collector writes to objects; memory pages without writes stay shared after a fork.
    gc.disable()
    gc.freeze()
    Launcher(socket.socket(fileno=int(sys.argv[1]))).serve()
