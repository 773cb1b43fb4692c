"""Scan of one folder of skills.

A folder with a SKILL.md is a skill, one without may hold others. The scan is limited in entries,
depth and time, so that no folder can block a listing; unreadable files are reported and the scan
continues.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from reference_server.skills.companions import read_companions
from reference_server.skills.document import read_document
from reference_server.skills.files import read_file
from reference_server.skills.skill import SKILL_FILE, Problem, Scope, Skill, SkillError

FILE_LIMIT = 128 * 1024
"""Maximum bytes of a SKILL.md."""
MAX_ENTRIES = 5000
"""Maximum files and folders examined in one folder of skills."""
MAX_SKILLS = 500
"""Maximum skills of one folder of skills."""
MAX_PROBLEMS = 100
"""Maximum problems reported for one folder of skills."""
DEPTH = 4
"""Maximum depth of a skill's folder below the folder of skills."""
SCAN_TIME = 3.0
"""Maximum seconds of the scan of one folder of skills."""
_UNDESCRIBED = (
    "has no description, so it is listed without; write one below the title, or "
    "`description: …` in a front matter"
)


@dataclass(slots=True)
class ScanResult:
    """Skills and problems of one folder of skills."""

    skills: list[Skill] = field(default_factory=list[Skill])
    problems: list[Problem] = field(default_factory=list[Problem])


def scan(root: str, scope: Scope, clock: Callable[[], float] = time.monotonic) -> ScanResult:
    """Return the skills of a folder of skills, in the order of their folders' names.

    A missing folder has none. Blocks. Never raises; `result.problems` has the errors.
    """
    walk = _Walk(root, scope, clock)
    try:
        walk.enter(root, 0)
    except _ScanStopped as error:
        walk.result.problems.append(Problem(root, str(error)))
    return walk.result


class _ScanStopped(Exception):
    """A limit ends the scan; str() says which."""


class _Walk:
    def __init__(self, root: str, scope: Scope, clock: Callable[[], float]) -> None:
        self.result = ScanResult()
        self._root = root
        self._scope: Scope = scope
        self._clock = clock
        self._end = clock() + SCAN_TIME
        self._entries = 0
        self._visited: set[tuple[int, int]] = set()

    def enter(self, folder: str, depth: int) -> None:
        """Add the skills in a folder to the result. Raises _ScanStopped."""
        self._check_bounds()
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in self._visited:
                return
            self._visited.add((status.st_dev, status.st_ino))
            names, folders = self._content(folder)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            self._add_problem(folder, "is not a folder; put the folder of a skill there")
            return
        except OSError as error:
            self._add_problem(folder, f"cannot be read: {error.strerror}; change its permissions")
            return
        if SKILL_FILE in names:
            self._read(folder)
            if depth:
                return
        elif wrong := next((name for name in names if name.lower() == "skill.md"), None):
            path = os.path.join(folder, wrong)
            self._add_problem(path, f"is not called {SKILL_FILE}, so it is no skill; rename it")
        if depth < DEPTH:
            for name in folders:
                self.enter(os.path.join(folder, name), depth + 1)

    def _content(self, folder: str) -> tuple[list[str], list[str]]:
        """Return names of all entries, and of folders to enter. Raises OSError, _ScanStopped."""
        names: list[str] = []
        folders: list[str] = []
        with os.scandir(folder) as entries:
            for entry in self._count_entries(entries):
                try:
                    entry.name.encode()
                except UnicodeError:
                    name = os.fsencode(entry.name).decode("utf-8", "backslashreplace")
                    path = os.path.join(folder, name)
                    self._add_problem(path, "has a name that is not UTF-8; rename it")
                    continue
                names.append(entry.name)
                try:
                    # Folders whose name begins with a dot belong to other programs.
                    if entry.is_dir() and not entry.name.startswith("."):
                        folders.append(entry.name)
                except OSError as error:
                    if entry.name == SKILL_FILE:
                        # Reported when it is read.
                        continue
                    self._add_problem(
                        entry.path, f"cannot be followed: {error.strerror}; remove it"
                    )
        return names, sorted(folders)

    def _count_entries(self, entries: "Iterator[os.DirEntry[str]]") -> "Iterator[os.DirEntry[str]]":
        for entry in entries:
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                raise _ScanStopped(
                    f"holds more than {MAX_ENTRIES:,} files and folders, of which the rest is "
                    "not looked at; move away what is no skill"
                )
            yield entry

    def _read(self, folder: str) -> None:
        path = os.path.join(folder, SKILL_FILE)
        try:
            text, real = read_file(path, FILE_LIMIT)
            document = read_document(text)
        except SkillError as error:
            self._add_problem(path, str(error))
            return
        if len(self.result.skills) == MAX_SKILLS:
            raise _ScanStopped(
                f"holds more than {MAX_SKILLS} skills; the rest is left out; move some elsewhere"
            )
        if not document.description:
            self._add_problem(path, _UNDESCRIBED)
        interface, problems = read_companions(folder)
        for problem in problems:
            self._add_problem(problem.path, problem.message)
        self.result.skills.append(
            Skill(document.name, document.description, path, real, self._scope, interface)
        )

    def _add_problem(self, path: str, message: str) -> None:
        if len(self.result.problems) >= MAX_PROBLEMS:
            raise _ScanStopped("holds more mistakes than are told here; mend these first")
        self.result.problems.append(Problem(path, message))

    def _check_bounds(self) -> None:
        if self._clock() > self._end:
            raise _ScanStopped(
                f"was not read to its end within {SCAN_TIME:g} s; what is missing is listed when "
                "fewer or smaller files are there"
            )
