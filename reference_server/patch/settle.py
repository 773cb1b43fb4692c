"""Settlement of a patch whose server was killed while it applied it.

A committed patch is completed, any other is undone. Only files of the patch are touched. A file
with neither its old nor its new content was changed by another program since, and stays; its old
content then stays beside it, and a message to the user names the place.
"""

import contextlib
import errno
import os
import stat

from reference_server.patch.files import open_folder, read_file
from reference_server.patch.journal import Entry, JournaledWrite, State, digest


def settle(entry: Entry) -> list[str]:
    """Settle a patch and return messages for the user. Raises OSError; it can be retried then."""
    messages: list[str] = []
    for write in reversed(entry.writes):
        try:
            folder = open_folder(write.folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
            # The server may have been killed before it made this folder.
            if write.folder not in entry.made_folders:
                messages.append(f"{write.folder} is no longer the folder that it was")
            continue
        try:
            _settle_write(write, folder, entry.state, messages)
        finally:
            os.close(folder)
    if entry.state is State.PREPARED:
        for path in entry.made_folders:
            # It may have been removed or filled since.
            with contextlib.suppress(OSError):
                os.rmdir(path)
    return messages


def _settle_write(write: JournaledWrite, folder: int, state: State, messages: list[str]) -> None:
    if state is State.COMMITTED:
        _remove(write.old, folder)
    elif state is State.PREPARED:
        _undo_write(write, folder, messages)
    _remove(write.fresh, folder)


def _undo_write(write: JournaledWrite, folder: int, messages: list[str]) -> None:
    name, old = write.name, write.old
    path = os.path.join(write.folder, name)
    now, old_status = _status(name, folder), _status(old, folder)
    fresh = _status(write.fresh, folder)
    # The new file has its temporary name until it is renamed; for a moment it may have both names.
    both = now is not None and fresh is not None and os.path.samestat(now, fresh)
    replaced = write.after is not None and (fresh is None or both)
    is_new_content = replaced and now is not None and _digest(name, folder) == write.after
    # An empty file of mode 0 reserves the name.
    is_new_content = is_new_content or (
        now is not None and fresh is not None and _keeps_a_name(now)
    )
    if old_status is not None:
        if now is not None and os.path.samestat(now, old_status):
            os.unlink(old, dir_fd=folder)
        elif now is None or is_new_content:
            os.replace(old, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            messages.append(
                f"{path} was changed by somebody else since, and stays; its content before the "
                f"patch is in {old} beside it"
            )
    elif write.before is None and is_new_content:
        os.unlink(name, dir_fd=folder)
    elif write.before is None and replaced and now is not None:
        messages.append(f"{path} was made or changed by somebody else since, and stays")


def _keeps_a_name(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and not stat.S_IMODE(status.st_mode) and not status.st_size


def _digest(name: str, folder: int) -> str | None:
    """Return the digest of a file; None if it is missing or not a readable regular file."""
    try:
        file = read_file(name, folder)
    except OSError:
        return None
    return digest(file.content) if file else None


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _remove(name: str, folder: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
