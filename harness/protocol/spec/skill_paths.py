"""The paths of skills in a request, and whether each is valid."""

import posixpath
from collections.abc import Iterator
from typing import Any, Final

from harness.protocol.values import Path, arr, obj

SKILL_FILE: Final = "SKILL.md"
"""The name of a skill's own file."""


def skill_paths(method: str, params: Any) -> Iterator[tuple[Path, bool]]:
    """Yield the places of skill paths in the params, and whether each is valid.

    A skill's path is the absolute path of its SKILL.md; an extra root is absolute.
    """
    members = obj(params)
    if method == "skills/config/write":
        yield ("path",), _is_file(members.get("path"))
    for index, part in enumerate(arr(members.get("input"))):
        if obj(part).get("type") == "skill":
            yield ("input", index, "path"), _is_file(obj(part).get("path"))
    for index, entry in enumerate(arr(members.get("perCwdExtraUserRoots"))):
        for number, root in enumerate(arr(obj(entry).get("extraUserRoots"))):
            yield ("perCwdExtraUserRoots", index, "extraUserRoots", number), _is_absolute(root)


def _is_file(path: Any) -> bool:
    return _is_absolute(path) and posixpath.basename(path) == SKILL_FILE


def _is_absolute(path: Any) -> bool:
    return isinstance(path, str) and posixpath.isabs(path)
