"""Atomic changes of config.toml on disk, by one writer at a time.

Every part of the agent that writes the file uses this module, under a lock. Callers edit the text.
The file belongs to its user: it keeps its permissions, owner and place behind a link, and if
another program saves it meanwhile, the change is made again on the new text.
"""

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

from reference_server.config.text import BYTE_ORDER_MARK, CONFIG_LIMIT, ConfigTextError, read_text
from reference_server.patch.attributes import copy_attributes
from reference_server.safe_files import lock, make_private, open_regular

LOCK_FILE = "config.lock"
"""Lock file beside config.toml. It is never removed: another process may hold its lock."""
_TRIES = 5
"""Attempts at a change while another program saves the file."""
_PREFIX = ".config.toml.agent-"


class Unwritable(Exception):
    """The file cannot be changed; str() names it, and says why and what to do."""


def change_config(file: Path, edit: Callable[[str], str], *, patience: float | None = None) -> None:
    """Replace the text of config.toml by `edit(text)`; a missing file counts as empty.

    Nothing is written if the text stays the same or `edit` raises. `edit` may be called several
    times. `patience`: seconds to wait for the lock. Raises Unwritable, OSError. Blocks.
    """
    make_private(file.parent)
    with _config_lock(file, patience):
        for _ in range(_TRIES):
            if _try_change(file, edit):
                return
    raise Unwritable(f"{file}: is being saved by another program; try again")


@contextlib.contextmanager
def _config_lock(file: Path, patience: float | None) -> Generator[None]:
    path = file.with_name(LOCK_FILE)
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        _give_to_owner(descriptor, file.parent)
        lock(descriptor, path, patience)
        yield
    finally:
        # Closing the descriptor releases the lock, also when its holder is killed.
        os.close(descriptor)


def _try_change(file: Path, edit: Callable[[str], str]) -> bool:
    """Make the change; return False if the file has changed meanwhile. Raises Unwritable, OSError.

    Any error of `edit` is passed on.
    """
    try:
        before = os.stat(file)
        text = read_text(file, keep_mark=True)
    except FileNotFoundError:
        before, text = None, ""
    except ConfigTextError as error:
        raise Unwritable(f"{file}: {error}") from None
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    new_text = mark + edit(text.removeprefix(mark))
    return new_text == text or _replace(file, new_text, before)


def _replace(file: Path, text: str, before: os.stat_result | None) -> bool:
    # A symbolic link to the user's file stays a link.
    target = Path(os.path.realpath(file))
    if before is not None and not before.st_mode & stat.S_IWUSR:
        raise Unwritable(f"{file}: is write-protected; chmod u+w {target}")
    if len(text.encode()) > CONFIG_LIMIT:
        # Readers reject a larger file.
        raise Unwritable(f"{file}: would be larger than {CONFIG_LIMIT // 1024} KiB; shorten it")
    _remove_left_over(target.parent)
    try:
        return _exchange(file, target, text, before)
    except OSError as error:
        # Name the target, not the temporary file.
        words = f"cannot be written: {error.strerror or error}"
        raise Unwritable(f"{target}: {words}; it is as it was") from error


def _exchange(file: Path, target: Path, text: str, before: os.stat_result | None) -> bool:
    """Replace the file by a new one; return False if it has changed meanwhile."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=_PREFIX)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as opened:
            opened.write(text)
            opened.flush()
            if before is not None:
                _keep_rights(target, opened.fileno(), before)
            else:
                _give_to_owner(opened.fileno(), target.parent)
            os.fsync(opened.fileno())
        if not _is_unchanged(file, before):
            return False
        os.replace(name, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    _sync_folder(target.parent)
    return True


def _give_to_owner(descriptor: int, folder: Path) -> None:
    """Give a file that root made in another user's folder (`sudo`) to that user."""
    owner = os.stat(folder)
    if os.geteuid() == 0 and os.fstat(descriptor).st_uid == 0 != owner.st_uid:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _keep_rights(target: Path, descriptor: int, before: os.stat_result) -> None:
    """Copy owner, rights and access list to the new file. Raises Unwritable for another user's."""
    status = os.fstat(descriptor)
    mode = stat.S_IMODE(before.st_mode) & 0o777
    if status.st_uid != before.st_uid:
        try:
            os.fchown(descriptor, before.st_uid, -1)
        except OSError:
            raise Unwritable(f"{target}: belongs to another user; change it as that user") from None
    if status.st_gid != before.st_gid:
        try:
            os.fchown(descriptor, -1, before.st_gid)
        except OSError:
            # The new file's group must not get the rights of the old group.
            mode &= ~stat.S_IRWXG
    os.fchmod(descriptor, mode)
    with contextlib.suppress(OSError), open(target, "rb") as old:
        copy_attributes(old.fileno(), descriptor)


def _is_unchanged(file: Path, before: os.stat_result | None) -> bool:
    try:
        now = os.stat(file)
    except FileNotFoundError:
        return before is None
    return before is not None and _identity(now) == _identity(before)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _remove_left_over(folder: Path) -> None:
    """Remove the files of a killed writer, which can hold secrets."""
    for leftover in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            leftover.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the replacement durable, if the file system allows it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
