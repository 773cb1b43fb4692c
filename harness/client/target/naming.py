"""Valid names in a profile: its own name, names of files, names of variables.

No file that a profile names may be outside the folder that it belongs in.
"""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def _check_profile_name(value: str) -> str:
    if not _NAME.fullmatch(value) or ".." in value or value == ".":
        raise ValueError(
            f"{value!r} is no name of a profile; use letters, digits, '.', '_' and '-', and no '..'"
        )
    return value


def is_inside(path: str) -> bool:
    """Return whether a relative path stays below the folder in which it starts."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


def _check_file_in_home(value: str) -> str:
    if not is_inside(value) or value.endswith("/"):
        raise ValueError(f"{value!r} is not inside the home; expected the relative path of a file")
    return value


def _check_folder_in_project(value: str) -> str:
    if not is_inside(value):
        raise ValueError(f"{value!r} is not inside the project; expected the name of a folder")
    return value


def _check_no_file_is_a_folder(value: dict[str, Any]) -> dict[str, Any]:
    for name in value:
        folder = next(
            (parent for parent in map(str, PurePosixPath(name).parents) if parent in value), ""
        )
        if folder:
            raise ValueError(f"{folder!r} is a file and the folder of {name!r}; rename one")
    return value


def _check_variable_name(value: str) -> str:
    if not value or "=" in value or "\0" in value:
        raise ValueError(f"{value!r} is no name of a variable; expected a text without '='")
    return value


def _check_no_zero_character(value: str) -> str:
    if "\0" in value:
        raise ValueError("a variable cannot hold the character U+0000; leave it out")
    return value


def _check_program_name(value: str) -> str:
    if not value or value in (".", "..") or "/" in value or "\0" in value:
        raise ValueError(f"{value!r} is not the name of a program on PATH; expected one word")
    return value


ProgramName = Annotated[str, AfterValidator(_check_program_name)]
ProfileName = Annotated[str, AfterValidator(_check_profile_name)]
FileInHome = Annotated[str, AfterValidator(_check_file_in_home)]
FolderInProject = Annotated[str, AfterValidator(_check_folder_in_project)]
Variable = Annotated[str, AfterValidator(_check_variable_name)]
VariableValue = Annotated[str, AfterValidator(_check_no_zero_character)]
HomeFiles = Annotated[
    dict[FileInHome, dict[str, Any] | str], AfterValidator(_check_no_file_is_a_folder)
]
