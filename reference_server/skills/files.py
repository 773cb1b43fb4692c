"""Reading one file of a skill.

Refused are files that are none (a pipe would wait for its writer, a device may never end), files
that are too large, and links that lead to a file of another name, which is how somebody's project
would have a key read as a skill.
"""

import os
import stat
from collections.abc import Callable

from reference_server.safe_files import open_judged
from reference_server.sandbox.places import of_kernel
from reference_server.skills.skill import NoSkill

Check = Callable[[str, os.stat_result], None]
"""Given the real path of a file and its status; raises NoSkill if it must not be read."""


def _anything(_real: str, _status: os.stat_result) -> None:
    pass


def read_file(path: str, limit: int, check: Check = _anything) -> tuple[str, str]:
    """Return the text of a file, and its path with all links followed. Raises NoSkill.

    May take as long as the disk does.
    """
    real_paths: list[str] = []

    def judge(real: str, status: os.stat_result) -> None:
        name = os.path.basename(path)
        if not stat.S_ISREG(status.st_mode) or of_kernel(real):
            raise NoSkill("is not a regular file; put one in its place")
        if os.path.basename(real) != name:
            raise NoSkill(f"is a link to {real}, which is not called {name}; copy the file")
        _check_size(status.st_size, limit)
        check(real, status)
        real_paths.append(real)

    try:
        with open(open_judged(path, judge), "rb") as file:
            content = file.read(limit + 1)
        _check_size(len(content), limit)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise NoSkill(f"cannot be read: {error.strerror or error}; {_remedy(error)}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise NoSkill(f"line {line}: is not UTF-8; save the file in that encoding") from None
    except ValueError as error:
        raise NoSkill(f"cannot be read: {error}; choose another name") from None
    return text, real_paths[0]


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise NoSkill(f"is larger than {limit // 1024} KiB; move parts of it to other files")


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "change its permissions"
    return "make it a readable file, or remove it"
