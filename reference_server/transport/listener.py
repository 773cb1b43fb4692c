"""Listening sockets: opening, accepting connections, removing the socket's file at the end."""

import contextlib
import errno
import logging
import os
import socket
import stat

import anyio

from reference_server.transport.addresses import Address, TcpAddress

_log = logging.getLogger(__name__)

BACKLOG = 128
_MAX_PATH_BYTES = 107
"""Bytes of the path of a Unix socket (`sun_path`), without the null byte at its end."""
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class CannotListen(Exception):
    """The socket cannot be opened; str() is one line that says why."""


class Listener:
    """A listening socket; whoever opens it must close it."""

    def __init__(self, listening: socket.socket, address: Address) -> None:
        self._socket = listening
        self.address = address
        self._spare = _spare_descriptor()
        self._file = None if isinstance(address, TcpAddress) else _identity(address.path)

    async def accept(self) -> socket.socket:
        """Return the next connection; if no descriptor is free, connections are closed."""
        while True:
            await anyio.wait_readable(self._socket)
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    self._turn_away()
                continue
            connection.setblocking(False)
            if isinstance(self.address, TcpAddress):
                # Otherwise a second short write waits 40 ms for the client's acknowledgement.
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                # A client whose machine is gone is noticed in some hours at the latest.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return connection

    def _turn_away(self) -> None:
        """Accept the next connection with the spare descriptor, and close it.

        Left in the queue, it would be reported again and again without a pause.
        """
        _log.warning("a connection was refused: this process has too many files open")
        if self._spare is not None:
            os.close(self._spare)
        with contextlib.suppress(OSError):
            self._socket.accept()[0].close()
        self._spare = _spare_descriptor()

    def close(self) -> None:
        """Stop listening and remove the socket's file, unless another file has taken its place."""
        self._socket.close()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        # Once: a later file may have the same number.
        identity, self._file = self._file, None
        if isinstance(self.address, TcpAddress) or identity is None:
            return
        if _identity(self.address.path) == identity:
            with contextlib.suppress(OSError):
                os.unlink(self.address.path)


def open_listener(address: Address) -> Listener:
    """Open a socket that listens at the address. Raises CannotListen."""
    if isinstance(address, TcpAddress):
        return _open_tcp(address)
    path = os.path.abspath(address.path)
    # A relative path may be shorter; the working directory of the server never changes.
    if len(os.fsencode(address.path)) > _MAX_PATH_BYTES:
        raise CannotListen(
            f"{address}: the path of a socket has at most {_MAX_PATH_BYTES} bytes, and this one "
            f"has {len(os.fsencode(address.path))}"
        )
    _remove_stale_socket(address.path, f"{address}")
    listening = socket.socket(socket.AF_UNIX)
    try:
        mask = os.umask(0o177)
        try:
            listening.bind(address.path)
        finally:
            os.umask(mask)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise CannotListen(f"{address}: {_bind_error(error, os.path.dirname(path))}") from None
    return Listener(listening, address)


def _open_tcp(address: TcpAddress) -> Listener:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family)
    try:
        # A port that an ended server used is free at once, not a minute later.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(BACKLOG)
        listening.setblocking(False)
        port: int = listening.getsockname()[1]
    except (OSError, OverflowError) as error:
        listening.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            reason = "another program listens there"
        raise CannotListen(f"{address}: {reason}") from None
    return Listener(listening, TcpAddress(address.host, port))


def _remove_stale_socket(path: str, name: str) -> None:
    """Remove the socket file of a dead server. Raises CannotListen for anything else there."""
    try:
        status = os.lstat(path)
    except OSError:
        return  # Nothing there; any other problem shows when it is bound.
    if not stat.S_ISSOCK(status.st_mode):
        raise CannotListen(f"{name}: there is a file that is no socket")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            with contextlib.suppress(OSError):
                os.unlink(path)
            return
        except BlockingIOError:
            pass  # Its queue of connections is full, so a server listens.
        except OSError as error:
            raise CannotListen(f"{name}: {error.strerror}") from None
    raise CannotListen(f"{name}: another server listens there")


def _bind_error(error: OSError, folder: str) -> str:
    if error.errno == errno.ENOENT:
        return f"there is no folder {folder}"
    if error.errno == errno.EADDRINUSE:
        return "another server listens there"
    return error.strerror or str(error)


def _spare_descriptor() -> int | None:
    try:
        return os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
