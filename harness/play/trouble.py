"""Messages for errors of the harness itself, in one line: what happened, where, what to do.

They are never a verdict on the server. The traceback, which only a developer needs, goes to a file.
"""

import contextlib
import errno
import os
import traceback
from pathlib import Path
from typing import cast

from harness.protocol.escapes import visible

_ADVICE = {
    errno.EROFS: "name a folder that can be written by --dir",
    errno.EACCES: "name a folder that can be written by --dir",
    errno.EPERM: "name a folder that can be written by --dir",
    errno.ENOSPC: "free some space, or name a folder on another disk by --dir",
    errno.EDQUOT: "free some space, or name a folder on another disk by --dir",
    errno.EMFILE: "raise the limit of open files (ulimit -n), or play fewer at once (--lanes)",
    errno.ENFILE: "play fewer scenarios at once (--lanes)",
    errno.EAGAIN: "raise the limit of processes (ulimit -u), or play fewer at once (--lanes)",
    errno.ENOMEM: "free some memory, or play fewer scenarios at once (--lanes)",
    errno.ENAMETOOLONG: "name a folder with a shorter path by --dir",
}
_HERE = Path(__file__).parents[1]


def describe_trouble(error: BaseException, base: Path | None = None) -> str:
    """Return a message for an error of the harness; store the traceback of an unexpected one."""
    cause = _first_cause(error)
    if isinstance(cause, OSError) and cause.errno in _ADVICE:
        where = cause.filename
        if where is None and base is not None and "--dir" in _ADVICE[cause.errno]:
            where = str(base)
        place = f"{_name(where)}: " if where is not None else ""
        return visible(f"not judged: {place}{cause.strerror}; {_ADVICE[cause.errno]}")
    words = visible(_first_line(str(cause)))
    kept = _keep_traceback(error, base) if base is not None else ""
    advice = f"please report it, with {visible(kept)}" if kept else "please report it"
    return f"the harness broke: {type(cause).__name__}: {words}{_place(cause)}; {advice}"


def _first_cause(error: BaseException) -> BaseException:
    """Return the first error of a group, since the others follow from it; else the error itself."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = group.exceptions[0]
    return error


def _name(file: str | bytes | int) -> str:
    return os.fsdecode(file) if isinstance(file, str | bytes) else f"descriptor {file}"


def _place(error: BaseException) -> str:
    """Return the line of the harness at which it was raised: ` (play/bench.py:12)`, "" if none."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_HERE)]
    if not ours:
        return ""
    return f" ({Path(ours[-1].filename).relative_to(_HERE)}:{ours[-1].lineno})"


def _keep_traceback(error: BaseException, base: Path) -> str:
    """Write the traceback to a file, and return its path; "" if it cannot be written."""
    path = base / "reports" / f"traceback-{os.getpid()}.txt"
    with contextlib.suppress(OSError):
        text = "".join(traceback.format_exception(error))
        path.write_text(text, "utf-8", "backslashreplace")
        return str(path)
    return ""


def _first_line(text: str) -> str:
    """Return the first line of a text; the last if it is the traceback of another process."""
    lines = [line.strip("| \t") for line in text.strip().splitlines()]
    lines = [line for line in lines if line.strip("+- ")]
    return lines[-1 if "Traceback (" in text else 0] if lines else ""
