"""A stand-alone program: holds the process tree of each command, and ends all of it.

It imports the standard library only, since it runs in a bare interpreter (`python -I -S`), and is
never imported by the server. It has two roles:

- the **launcher** is started once by the server (`launcher.py`) and forks a warden per command, so
  that starting a command neither forks the large server nor starts an interpreter;
- a **warden** starts one command in a session of its own and is the reaper of everything below it
  (Linux: PR_SET_CHILD_SUBREAPER). A process that leaves the group or the session, or forks twice,
  becomes the warden's child, not init's. So the kernel itself shows when the tree is gone: the
  warden has no child any more. When the server ends, even by KILL, its sockets close, and each
  warden ends its command.

The channel to the launcher carries one byte and two descriptors per command: the warden's control
socket and the command's output; or four, for a program that is spoken with: also its input and its
standard error. On the control socket the server sends a length (4 bytes, big
endian) and a marshalled dict (`REQUEST`), later `END_BYTE`; the warden answers in lines:
`failed STEP ERRNO`, `started PID`, `exited STATUS` (negative: by that signal), `gone [PID…]`
(what could not be ended within `KILL_BOUND`).

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

`wrapped`: the first process is a sandbox around the command. TERM would end it, and with it all
inside at once; so TERM goes to the processes inside, and the sandbox ends after them.

`mounts`: what the sandbox must have mounted, as pairs of a path and its source (empty: a folder in
memory). The sandbox resolves the paths itself, and another command may have made a link meanwhile.
So its first process writes a byte to descriptor `WAITING` and reads a line from it: "." if the
mounts are right, else the reason why it must not go on.
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
    """Give this process a keyring of its own: the server's has keys that are not for commands.

    On a kernel without keyrings there is nothing to do.
    """
    number = _KEYCTL.get(os.uname().machine) if _LINUX else None
    if number is not None:
        _LIBC.syscall(number, _JOIN_SESSION_KEYRING, None)


def _leave_mounts() -> None:
    """Keep mounts that are made later from appearing in the sandbox, where they would be writable.

    Only root may do so; for an ordinary user nothing changes.
    """
    if _LINUX and _LIBC.unshare(_CLONE_NEWNS) == 0:
        _LIBC.mount(b"none", b"/", None, _MS_PRIVATE_AND_BELOW, None)


class _Mounts:
    """The mounts of a process by their ids: (device, path on it, file system)."""

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
        """Return the device at a path, the path on it, and the kind of file system.

        Raises OSError, also if the path contains a link.
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
        """Say how the mounts that a process sees differ from these; empty if they do not."""
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
    """Write a path as the kernel's tables of mounts do."""
    for character in b"\\ \t\n":
        path = path.replace(b"%c" % character, b"\\%03o" % character)
    return path


def _provide(inputs: dict[int, bytes]) -> None:
    """Make each of these descriptors a file in memory, to be read from its beginning.

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
    """Return the parent of every living process."""
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
    """Return the living descendants of a process, without those `spared` and their own descendants.

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
    """Stop every descendant until none runs, so that none can fork any more; then kill them all."""
    stopped: set[int] = set()
    while new := set(below(ancestor, spared)) - stopped:
        for pid in new:
            _send(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        _send(pid, signal.SIGKILL)


class Warden:
    """One command from its start until nothing of it is left."""

    def __init__(self, control: socket.socket, request: dict[str, object]) -> None:
        self._control = control
        self._request = request
        self._grace = float(request["grace"])  # type: ignore[arg-type]
        self._main = 0
        self._ending = False
        self._deadline = 0.0
        self._waiting: socket.socket | None = None

    def run(self, streams: tuple[int, ...]) -> None:
        """Start it, follow it, end it; the module's docstring has its account and its streams."""
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
        # The server may have ended: then nobody reads this, but the tree must still be ended.
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
        """Tell the first process in the sandbox whether it may become the command."""
        with waiting, contextlib.suppress(OSError):
            byte, ancillary, _, _ = waiting.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
            # Without a byte it has ended: the sandbox could not be made.
            if byte and ancillary:
                pid: int = _CREDENTIALS.unpack(ancillary[0][2])[0]
                fault = _Mounts.fault(pid, self._request["mounts"])  # type: ignore[arg-type]
                waiting.sendall((fault.replace(b"\n", b"?") or b".") + b"\n")
        self._waiting = None

    def _poll_timeout(self, now: float, killing: bool) -> float | None:
        """Return milliseconds until the warden must act by itself; None: not before an event."""
        if not self._ending:
            return None
        if killing or not _LINUX:
            return _TICK * 1000
        return max(0.0, self._deadline - now) * 1000

    def _reap(self) -> bool:
        """Collect ended processes and report them; True when nothing of the tree is left."""
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
    """Become the command, in the child; on failure, write the step and the errno."""
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
        os._exit(0)  # The server went away in the middle of its request: nothing was started.
    return b"".join(parts)


def _guard(control_fd: int, *streams: int) -> None:
    for fd in (control_fd, *streams):
        os.set_inheritable(fd, False)
    control = socket.socket(fileno=control_fd)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    size = int.from_bytes(_read_exactly(control, 4), "big")
    Warden(control, marshal.loads(_read_exactly(control, size))).run(streams)


class Launcher:
    """Forks a warden per command, and ends the processes of a killed warden."""

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
            pid = -1  # The server sees its control socket close without a word.
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
            # A command killed its warden: what was below it is a child of this process now.
            kill_below(os.getpid(), frozenset(self._wardens))


if __name__ == "__main__":
    # What is never collected is not touched, and pages that are not touched stay shared.
    gc.disable()
    gc.freeze()
    Launcher(socket.socket(fileno=int(sys.argv[1]))).serve()
