"""Making a plan true: all of its files, or none.

Here lives writing. New contents are written to temporary files beside their targets; then nothing
may have changed since the plan was made; then each is renamed into place, the old file kept under
a temporary name until all are done. A failure undoes every step, in reverse, made folders too.

Folders are opened one by one from the root, never through a link, and every name is used from its
open folder: a link that was swapped in after the plan was checked leads nowhere. Renaming gives the
file a new inode, so other hard links keep the old content. Nothing is synced to the disk itself.
"""

import contextlib
import errno
import os
import secrets
from collections.abc import Callable

from reference_server.patch.files import read_file
from reference_server.patch.parse import PatchError
from reference_server.patch.plan import Plan, Write

# Walking needs no right to list a folder where the system has this.
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV)


class HalfMade(PatchError):
    """A patch that failed, some of whose changes could not be taken back."""


def apply_plan(plan: Plan) -> None:
    """Write every change. Blocks.

    Raises PatchError when nothing has changed; HalfMade, whose words name what could not be
    restored.
    """
    with contextlib.ExitStack() as closing:
        run = _Run(closing)
        try:
            run.carry_out(plan.writes())
        except BaseException as error:
            lost = run.undo()
            if not lost and not isinstance(error, OSError):
                raise
            words = f"{run.doing}: {error.strerror}" if isinstance(error, OSError) else str(error)
            if lost:
                raise HalfMade(f"{words} ({'; '.join(lost)})") from error
            raise PatchError(f"{words} (nothing was changed)") from error


class _Target:
    """A write with its open folder and the names that it uses there."""

    def __init__(self, write: Write, folder: int) -> None:
        self.write = write
        self.folder = folder
        self.name = os.path.basename(write.real)
        self.fresh = _temporary_name()
        self.old = _temporary_name()


class _Run:
    """One application of a plan: its open folders and the way back."""

    def __init__(self, closing: contextlib.ExitStack) -> None:
        self._closing = closing
        self._folders: dict[str, int] = {}
        self._undo: list[tuple[str, Callable[[], None]]] = []
        self.doing = "cannot apply the patch"

    def carry_out(self, writes: list[Write]) -> None:
        """Do every step. Raises OSError or PatchError; `undo` is the caller's."""
        targets = [self._staged(write) for write in writes]
        for target in targets:
            self._check(target)
        for target in targets:
            self._commit(target)
        self._forget([target for target in targets if target.write.before is not None])

    def undo(self) -> list[str]:
        """Take every step back; gives what could not be."""
        lost: list[str] = []
        for words, step in reversed(self._undo):
            try:
                step()
            except OSError as error:
                lost.append(f"{words}: {error.strerror}")
        self._undo.clear()
        return lost

    def _staged(self, write: Write) -> _Target:
        self.doing = f"cannot write {write.real}"
        make = write.before is None
        target = _Target(write, self._folder(os.path.dirname(write.real), make=make))
        if write.after is not None:
            self._write_fresh(target, write.after)
        return target

    def _write_fresh(self, target: _Target, content: bytes) -> None:
        write, folder, fresh = target.write, target.folder, target.fresh
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        # What was private is not open to others for a moment.
        descriptor = os.open(fresh, flags, 0o666 if write.mode is None else 0o600, dir_fd=folder)
        self._on_undo(f"{fresh} could not be removed", lambda: _remove(fresh, folder))
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if write.owner is not None and write.owner != (os.geteuid(), os.getegid()):
                # Only root may give a file away; a file of another's becomes ours otherwise.
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, *write.owner)
            if write.mode is not None:
                os.fchmod(descriptor, write.mode)
        finally:
            os.close(descriptor)

    def _check(self, target: _Target) -> None:
        write = target.write
        self.doing = f"cannot read {write.real}"
        found = read_file(target.name, target.folder)
        same = found.content == write.before if found else write.before is None
        if not same or (found and found.mode != write.mode):
            raise PatchError(
                f"{write.real} has changed since the patch was checked, so nothing was changed; "
                "read it again and write a new patch"
            )

    def _commit(self, target: _Target) -> None:
        write, folder, name, old = target.write, target.folder, target.name, target.old
        self.doing = f"cannot {'remove' if write.after is None else 'replace'} {write.real}"

        def restore() -> None:
            os.replace(old, name, src_dir_fd=folder, dst_dir_fd=folder)

        kept = f"{write.real} could not be restored, its content is in {old} beside it"
        linked = write.before is not None and write.after is not None and self._linked(target)
        if write.before is not None and not linked:
            os.replace(name, old, src_dir_fd=folder, dst_dir_fd=folder)
            self._on_undo(kept, restore)
        if write.after is not None:
            os.replace(target.fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        if write.before is None:
            self._on_undo(f"{write.real} stays", lambda: _remove(name, folder))
        elif linked:
            # From now on the second name is the old content's only one: never just removed.
            self._undo[-1] = (kept, restore)

    def _linked(self, target: _Target) -> bool:
        """Give the old file a second name, so that its own is never missing; whether it can be."""
        folder, old = target.folder, target.old
        try:
            os.link(target.name, old, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise
        self._on_undo(f"{old} could not be removed", lambda: _remove(old, folder))
        return True

    def _forget(self, targets: list[_Target]) -> None:
        """Remove the old files. While all of them are there, all can still be taken back."""
        removed = False
        for target in targets:
            self.doing = f"cannot remove the old {target.write.real}"
            try:
                os.unlink(target.old, dir_fd=target.folder)
            except OSError:
                if not removed:
                    raise
            removed = True

    def _folder(self, path: str, *, make: bool) -> int:
        """Open a folder, through open folders only; made if it may be."""
        if path in self._folders:
            return self._folders[path]
        above, name = os.path.split(path)
        if not name:
            return self._opened(path, path, None)
        folder = self._folder(above, make=make)
        if make:
            # Asked first: a folder that cannot be written to is no obstacle when nothing is made.
            try:
                os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                os.mkdir(name, dir_fd=folder)
                self._on_undo(f"{path} could not be removed", lambda: os.rmdir(name, dir_fd=folder))
        return self._opened(path, name, folder)

    def _opened(self, path: str, name: str, above: int | None) -> int:
        try:
            descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=above)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise PatchError(
                f"{path} is no longer the folder that it was when the patch was checked; nothing "
                "was changed"
            ) from None
        self._closing.callback(os.close, descriptor)
        self._folders[path] = descriptor
        return descriptor

    def _on_undo(self, words: str, step: Callable[[], None]) -> None:
        """Remember how to take a step back, and what to say if that fails."""
        self._undo.append((words, step))


def _remove(name: str, folder: int) -> None:
    """Remove a file that may have been renamed since."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _temporary_name() -> str:
    return f".patch-{secrets.token_hex(8)}.tmp"
