"""Reading of one file of a skill.

Only regular files are read (a pipe would wait for its writer, a device may never end), not too
large ones, and no links to a file of another name, by which a project could have a key read as a
skill.
"""

import os
import stat
from collections.abc import Callable

from reference_server.safe_files import open_checked
from reference_server.sandbox.places import is_kernel_path
from reference_server.skills.skill import SkillError

Check = Callable[[str, os.stat_result], None]
"""A function of a file's real path and status; raises SkillError if it must not be read."""


def _accept_any(_real: str, _status: os.stat_result) -> None:
    pass


def read_file(path: str, limit: int, check: Check = _accept_any) -> tuple[str, str]:
    """Return the text of a file, and its path with all links followed. Blocks.

    Raises SkillError if it is not a readable UTF-8 file of at most `limit` bytes.
    """
    real_paths: list[str] = []

    def judge(real: str, status: os.stat_result) -> None:
        name = os.path.basename(path)
        if not stat.S_ISREG(status.st_mode) or is_kernel_path(real):
            raise SkillError("is not a regular file; put one in its place")
        if os.path.basename(real) != name:
            raise SkillError(f"is a link to {real}, which is not called {name}; copy the file")
        _check_size(status.st_size, limit)
        check(real, status)
        real_paths.append(real)

    try:
        with open(open_checked(path, judge), "rb") as file:
            content = file.read(limit + 1)
        _check_size(len(content), limit)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise SkillError(f"cannot be read: {error.strerror or error}; {_remedy(error)}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SkillError(f"line {line}: is not UTF-8; save the file in that encoding") from None
    except ValueError as error:
        raise SkillError(f"cannot be read: {error}; choose another name") from None
    return text, real_paths[0]


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise SkillError(f"is larger than {limit // 1024} KiB; move parts of it to other files")


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "change its permissions"
    return "make it a readable file, or remove it"
