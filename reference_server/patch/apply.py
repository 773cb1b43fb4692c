"""Application of a plan: all of its files are changed, or none.

1. New contents are written to temporary files beside their targets.
2. The targets are compared with the plan: nothing may have changed since it was made.
3. Each new file is renamed to its place. The old one keeps a temporary name until all are done and
   each old file has been checked again to be unchanged since the plan.

A failure undoes every step in reverse order, including folders that were made. A file that another
program has made or saved meanwhile is never overwritten, neither by a step nor by undoing one.

Folders are opened one by one from the root, never through a link, and names are relative to their
open folder, so a link made after the plan has no effect. Renaming gives the file a new inode, so
other hard links keep the old content. Extended attributes and access lists are copied, setuid and
setgid bits are not. There is no fsync.

With a journal, a later server completes or undoes the patch if this one is killed meanwhile.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable

from reference_server.patch.attributes import copy_attributes
from reference_server.patch.files import FOLDER_FLAGS, read_file
from reference_server.patch.journal import Journal, JournaledWrite, State, digest
from reference_server.patch.parse import PatchError
from reference_server.patch.plan import Plan, Write

_NO_LINKS = (errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV)


class PartlyApplied(PatchError):
    """The patch failed, and some of its changes could not be undone; str() names them."""


def apply_plan(plan: Plan, journal: Journal | None = None) -> None:
    """Write every change. Blocks.

    Raises PatchError if nothing was changed, PartlyApplied if some files could not be restored.
    """
    with contextlib.ExitStack() as closing:
        run = _Run(closing, journal)
        try:
            run.carry_out(_targets(plan))
        except BaseException as error:
            lost = run.undo()
            if not lost and not isinstance(error, OSError):
                raise
            words = f"{run.doing}: {error.strerror}" if isinstance(error, OSError) else str(error)
            if lost:
                raise PartlyApplied(f"{words} ({'; '.join(lost)})") from error
            raise PatchError(f"{words} (nothing was changed)") from error


class _Target:
    """A write and its names: `fresh` for the new file, `old` for the old one, both temporary.

    `folder` is the descriptor of its folder, -1 until it is open; `source` the file whose
    attributes are copied; `new_status` the status of the new file.
    """

    def __init__(self, write: Write, source: str) -> None:
        self.write = write
        self.source = source
        self.folder = -1
        self.name = os.path.basename(write.real)
        self.fresh = _temporary_name()
        self.old = _temporary_name()
        self.new_status: os.stat_result | None = None

    def journal_entry(self) -> JournaledWrite:
        """Return the journal's entry of this write."""
        write = self.write
        return JournaledWrite(
            folder=os.path.dirname(write.real),
            name=self.name,
            fresh=self.fresh,
            old=self.old,
            before=digest(write.before),
            after=digest(write.after),
        )


def _targets(plan: Plan) -> list[_Target]:
    sources = {
        change.moved_place.real: change.place.real for change in plan.changes if change.moved_place
    }
    return [_Target(write, sources.get(write.real, write.real)) for write in plan.writes()]


class _Run:
    """An application of a plan, with its open folders and the steps that undo it."""

    def __init__(self, closing: contextlib.ExitStack, journal: Journal | None) -> None:
        self._closing = closing
        self._journal = journal
        self._folders: dict[str, int] = {}
        self._undo: list[tuple[str, Callable[[], None]]] = []
        self.doing = "cannot apply the patch"

    def carry_out(self, targets: list[_Target]) -> None:
        """Do every step. Raises OSError or PatchError; then the caller must call `undo`."""
        self.doing = "cannot write the journal of the patch in the server's home"
        if self._journal is not None:
            self._journal.begin(
                [target.journal_entry() for target in targets], _missing_folders(targets)
            )
        for target in targets:
            self._open(target)
        # Checked before any file is written, so that a bad patch leaves no temporary files.
        for target in targets:
            self._check(target, target.name)
        for target in targets:
            self._stage(target)
        for target in targets:
            self._check(target, target.name)
        for target in targets:
            self._commit(target)
        for target in targets:
            if target.write.before is not None:
                # A file that another program saved meanwhile has the temporary name now.
                self._check(target, target.old)
        self._mark(State.COMMITTED)
        self._forget([target for target in targets if target.write.before is not None])

    def undo(self) -> list[str]:
        """Undo every step and return what could not be undone."""
        lost: list[str] = []
        for words, step in reversed(self._undo):
            try:
                step()
            except OSError as error:
                lost.append(f"{words}: {error.strerror}")
        self._undo.clear()
        # The message names the files that could not be restored; no later server retries.
        with contextlib.suppress(OSError):
            self._mark(State.UNDONE)
        return lost

    def _mark(self, state: State) -> None:
        if self._journal is not None:
            self._journal.mark(state)

    def _open(self, target: _Target) -> None:
        write = target.write
        self.doing = f"cannot write {write.real}"
        target.folder = self._folder(os.path.dirname(write.real), make=write.before is None)

    def _stage(self, target: _Target) -> None:
        if target.write.after is not None:
            self.doing = f"cannot write {target.write.real}"
            self._write_fresh(target, target.write.after)

    def _write_fresh(self, target: _Target, content: bytes) -> None:
        write, folder, fresh = target.write, target.folder, target.fresh
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        # Never readable by others, not even for a moment.
        descriptor = os.open(fresh, flags, 0o666 if write.mode is None else 0o600, dir_fd=folder)
        self._on_undo(f"{fresh} could not be removed", lambda: _remove(fresh, folder))
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if write.owner is not None and write.owner != (os.geteuid(), os.getegid()):
                # Only root may change the owner; otherwise the new file belongs to this user.
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, *write.owner)
            if write.mode is not None:
                # Setuid and setgid were granted to the old content.
                os.fchmod(descriptor, write.mode & ~(stat.S_ISUID | stat.S_ISGID))
                self._take_attributes_over(target, descriptor)
        finally:
            os.close(descriptor)
        # Some file systems set the time only when a file is closed.
        target.new_status = os.stat(fresh, dir_fd=folder, follow_symlinks=False)

    def _take_attributes_over(self, target: _Target, descriptor: int) -> None:
        folder, name = os.path.split(target.source)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            source = os.open(name, flags, dir_fd=self._folder(folder, make=False))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):
                # It has changed since the plan; the check of all targets will find that.
                return
            raise
        try:
            copy_attributes(source, descriptor)
        finally:
            os.close(source)

    def _check(self, target: _Target, name: str) -> None:
        write = target.write
        self.doing = f"cannot read {write.real}"
        current = read_file(name, target.folder)
        is_same = current.content == write.before if current else write.before is None
        if not is_same or (current and current.mode != write.mode):
            raise _changed_error(write)

    def _commit(self, target: _Target) -> None:
        write, folder, name, old = target.write, target.folder, target.name, target.old
        self.doing = f"cannot {'remove' if write.after is None else 'replace'} {write.real}"

        def restore() -> None:
            _check_unchanged(target, folder)
            os.replace(old, name, src_dir_fd=folder, dst_dir_fd=folder)

        restore_failed = f"{write.real} could not be restored, its content is in {old} beside it"
        was_linked = (
            write.before is not None and write.after is not None and self._link_old_file(target)
        )
        if write.before is not None and not was_linked:
            os.replace(name, old, src_dir_fd=folder, dst_dir_fd=folder)
            self._on_undo(restore_failed, restore)
        if was_linked:
            os.replace(target.fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            # Now the old content has only its second name, so undoing must restore it.
            self._undo[-1] = (restore_failed, restore)
        elif write.after is not None:
            self._add_new_file(target)

    def _add_new_file(self, target: _Target) -> None:
        """Give the new file its name. Raises PatchError if the name is taken now."""
        folder, fresh, name = target.folder, target.fresh, target.name
        try:
            os.link(fresh, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise _changed_error(target.write) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            new_status = target.new_status
            self._reserve_name(target)
            os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            target.new_status = new_status
        else:
            self._remove_on_undo(target)
            os.unlink(fresh, dir_fd=folder)

    def _reserve_name(self, target: _Target) -> None:
        """Reserve the name with an empty file of mode 0, for file systems without hard links."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(target.name, flags, 0, dir_fd=target.folder)
        except FileExistsError:
            raise _changed_error(target.write) from None
        target.new_status = os.fstat(descriptor)
        self._remove_on_undo(target)
        os.close(descriptor)

    def _remove_on_undo(self, target: _Target) -> None:
        def remove() -> None:
            _check_unchanged(target, target.folder)
            _remove(target.name, target.folder)

        # If there was a file before, another step restores that instead.
        if target.write.before is None:
            self._on_undo(f"{target.write.real} stays", remove)

    def _link_old_file(self, target: _Target) -> bool:
        """Link the old file to its temporary name, so that its own name is never missing.

        Return False if the file system has no hard links.
        """
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
        """Remove the old files. Raises OSError only if none was removed, so that undo works."""
        removed = False
        for target in targets:
            self.doing = f"cannot remove the old {target.write.real}"
            try:
                os.unlink(target.old, dir_fd=target.folder)
            except OSError:
                if not removed:
                    # Everything can still be undone; if this server is killed meanwhile, a later
                    # one must undo the rest.
                    self._mark(State.PREPARED)
                    raise
            removed = True

    def _folder(self, path: str, *, make: bool) -> int:
        """Return the descriptor of a folder, opened through its parents; `make` a missing one."""
        if path in self._folders:
            return self._folders[path]
        parent, name = os.path.split(path)
        if not name:
            return self._open_folder(path, path, None)
        folder = self._folder(parent, make=make)
        if make:
            # Looked up first: making an existing one may fail in a read-only parent.
            try:
                os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                os.mkdir(name, dir_fd=folder)
                self._on_undo(f"{path} could not be removed", lambda: os.rmdir(name, dir_fd=folder))
        return self._open_folder(path, name, folder)

    def _open_folder(self, path: str, name: str, parent: int | None) -> int:
        try:
            descriptor = os.open(name, FOLDER_FLAGS, dir_fd=parent)
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
        """Remember a function that undoes a step, and the message if that fails."""
        self._undo.append((words, step))


def _missing_folders(targets: list[_Target]) -> list[str]:
    """Return the folders that the patch has to make, the innermost first."""
    missing: set[str] = set()
    for target in targets:
        folder = os.path.dirname(target.write.real)
        while target.write.before is None and not os.path.lexists(folder):
            missing.add(folder)
            folder = os.path.dirname(folder)
    return sorted(missing, key=len, reverse=True)


def _changed_error(write: Write) -> PatchError:
    return PatchError(
        f"{write.real} has changed since the patch was checked, so nothing was changed; "
        "read it again and write a new patch"
    )


def _check_unchanged(target: _Target, folder: int) -> None:
    """Raise OSError if a target's name has another file than the one that this run made."""
    try:
        now = os.stat(target.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    new_status = target.new_status
    if (
        new_status is None
        or not os.path.samestat(now, new_status)
        or _save_stamp(now) != _save_stamp(new_status)
    ):
        raise OSError(errno.EEXIST, "somebody has made or changed it since")


def _save_stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _remove(name: str, folder: int) -> None:
    """Remove a file, unless it is gone, as after a rename."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _temporary_name() -> str:
    return f".patch-{secrets.token_hex(8)}.tmp"
