"""A check that a report file can be written, made before anything is played."""

import os
from pathlib import Path


def write_problem(path: str, *, makes_folder: bool = False) -> str:
    """Return why a file cannot be written, in a few words; "" if it can.

    With `makes_folder` the writer creates the folder, so a missing one is not a problem. A pipe or
    a device is not checked.
    """
    try:
        return _problem(Path(path).expanduser().absolute(), makes_folder)
    except (OSError, ValueError, RuntimeError) as error:
        return f"it cannot be written: {getattr(error, 'strerror', None) or error}"


def _problem(file: Path, makes_folder: bool) -> str:
    if file.is_dir():
        return "it is a folder; name a file"
    if os.path.lexists(file) and not file.is_file():
        return ""  # A pipe or a device: opening it may block.
    folder = file.parent
    if not folder.is_dir():
        if os.path.lexists(folder):
            return f"{folder.name} is not a folder"
        if not makes_folder:
            return "its folder does not exist"
        return _cannot_make(folder)
    exists = file.exists()
    os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666))
    if not exists:
        file.unlink()
    return ""


def _cannot_make(folder: Path) -> str:
    missing = [parent for parent in (folder, *folder.parents) if not os.path.lexists(parent)]
    above = missing[-1].parent
    if not above.is_dir():
        return f"{above.name} is not a folder"
    try:
        missing[-1].mkdir()
    except OSError as error:
        return f"its folder cannot be made: {error.strerror}"
    missing[-1].rmdir()
    return ""
