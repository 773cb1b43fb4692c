"""Remote skills, from a folder of this machine: `[skills] catalogue` in config.toml.

A skill's id is the name of its folder, and the copy keeps that name. The specification marks the
two methods as under development and does not show where skills come from.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from reference_server.safe_files import make_private, open_checked
from reference_server.skills.document import read_document
from reference_server.skills.files import read_file
from reference_server.skills.scan import FILE_LIMIT, MAX_ENTRIES, MAX_SKILLS
from reference_server.skills.skill import SKILL_FILE, Skill, SkillError

MAX_FILES = 1000
"""Maximum files and folders of a copied skill."""
SIZE_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of a copied skill."""
DEPTH = 8
"""Maximum depth of folders in a copied skill."""
_NAME_LIMIT = 255


class Catalogue:
    """Skills of one catalogue. Its methods block."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def skills(self) -> list[tuple[str, Skill]]:
        """Return each usable skill with its id. Raises SkillError for a bad catalogue, OSError."""
        skills: list[tuple[str, Skill]] = []
        for name in sorted(os.listdir(self._check_folder()))[:MAX_ENTRIES]:
            if name.startswith(".") or len(skills) == MAX_SKILLS:
                continue
            with contextlib.suppress(SkillError, UnicodeError):
                name.encode()
                skills.append((name, self._skill(name)))
        return skills

    def export(self, skill_id: str, into: Path) -> Path:
        """Copy a skill into a folder of skills, completely or not at all; return the new folder.

        Raises SkillError for an unknown or unusable skill, or if it exists there; OSError.
        """
        if not _is_name(skill_id):
            raise SkillError("is no id of a skill; skills/remote/list gives the ids")
        source = os.path.join(self._check_folder(), skill_id)
        if not os.path.lexists(source):
            raise SkillError("is not in the catalogue; skills/remote/list gives the ids")
        self._skill(skill_id)
        target = into / skill_id
        if os.path.lexists(target):
            raise SkillError(f"is there already: {target}; remove or rename it first")
        make_private(into)
        # Scans for skills skip folders whose name begins with a dot.
        working = Path(tempfile.mkdtemp(prefix=".export-", dir=into))
        try:
            copy = working / skill_id
            _Copy().copy_folder(source, copy, DEPTH)
            _rename_into_place(copy, target)
        finally:
            shutil.rmtree(working, ignore_errors=True)
        return target

    def _check_folder(self) -> str:
        if not os.path.isabs(self._folder):
            raise SkillError(f"{self._folder}: must be an absolute path; mend `catalogue`")
        if not os.path.isdir(self._folder):
            raise SkillError(f"{self._folder}: is not a folder; make it, or mend `catalogue`")
        return self._folder

    def _skill(self, skill_id: str) -> Skill:
        folder = os.path.join(self._folder, skill_id)
        if os.path.islink(folder) or not os.path.isdir(folder):
            raise SkillError("is no folder of a skill")
        path = os.path.join(folder, SKILL_FILE)
        text, real = read_file(path, FILE_LIMIT)
        document = read_document(text)
        return Skill(document.name, document.description, path, real, "user")


def _is_name(skill_id: str) -> bool:
    return (
        0 < len(skill_id.encode("utf-8", "replace")) <= _NAME_LIMIT
        and not skill_id.startswith(".")
        and not any(one in "/\\\0" or ord(one) < 32 for one in skill_id)
    )


def _rename_into_place(copy: Path, target: Path) -> None:
    """Rename the copy to `target`. Raises SkillError if that exists."""
    try:
        # Renaming replaces an empty folder, so one is made for it: no other can be replaced.
        target.mkdir(0o700)
    except FileExistsError:
        raise SkillError(f"is there already: {target}; remove or rename it first") from None
    try:
        copy.rename(target)
    except OSError:
        with contextlib.suppress(OSError):
            target.rmdir()
        raise


class _Copy:
    """Copy of a folder of regular files and folders, with its limits."""

    def __init__(self) -> None:
        self._files = 0
        self._size = 0

    def copy_folder(self, source: str, target: Path, depth: int) -> None:
        """Copy a folder and its content.

        Raises SkillError for links, special files, and beyond the limits; OSError.
        """
        if depth < 0:
            raise SkillError(f"has folders more than {DEPTH} deep: {source}")
        target.mkdir(0o700)
        with os.scandir(source) as entries:
            for entry in entries:
                self._files += 1
                if self._files > MAX_FILES:
                    raise SkillError(f"has more than {MAX_FILES:,} files and folders")
                if entry.is_symlink():
                    raise SkillError(f"holds a link, which is not copied: {entry.path}")
                if entry.is_dir():
                    self.copy_folder(entry.path, target / entry.name, depth - 1)
                else:
                    self._copy_file(entry.path, target / entry.name)

    def _copy_file(self, source: str, target: Path) -> None:
        def judge(real: str, status: os.stat_result) -> None:
            # Another name means that a link has replaced the file.
            if not stat.S_ISREG(status.st_mode) or os.path.basename(real) != target.name:
                raise SkillError(f"holds what is no plain file: {source}")
            self._count_size(status.st_size)
            statuses.append(status)

        statuses: list[os.stat_result] = []
        with open(open_checked(source, judge), "rb") as file:
            # Data appended meanwhile is not copied.
            target.write_bytes(file.read(statuses[0].st_size))
        target.chmod(0o700 if statuses[0].st_mode & stat.S_IXUSR else 0o600)

    def _count_size(self, size: int) -> None:
        self._size += size
        if self._size > SIZE_LIMIT:
            raise SkillError(f"is larger than {SIZE_LIMIT // 2**20} MiB")
