"""A comparison of the files of a workspace with those that a scenario expects, to the byte."""

import difflib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from harness.scenario.workspace import EncodedFile, LinkedFile, bytes_of
from harness.trace.difference import MAX_SHOWN_CHARACTERS, difference, literal

# Limits of a difference between two files that is shown.
MAX_DIFF_LINES, MAX_DIFF_WIDTH = 20, 160
# Files that have more bytes are not compared line by line.
MAX_BYTES_COMPARED = 200_000
# Bytes shown of a file that is not UTF-8, and how many of them precede the difference.
MAX_BYTES_SHOWN, MAX_BYTES_BEFORE = 16, 4


def file_difference(
    path: Path, name: str, expected: str | EncodedFile | LinkedFile
) -> tuple[str, tuple[str, ...]] | None:
    """Return a message and further lines for a file that is not as `expected`, else None."""
    try:
        if isinstance(expected, LinkedFile):
            return _link_difference(path, name, expected.link)
        if path.exists() and not path.is_file():
            return f"{name} is not a regular file", ()
        content = path.read_bytes()
    except FileNotFoundError:
        if expected == "absent" and not path.is_symlink():
            return None
        if expected == "absent":
            return f"{name} exists; expected absent; it is a link to {os.readlink(path)}", ()
        return f"{name} is absent; expected {_show_file(expected)}", ()
    except OSError as error:
        return f"{name} cannot be read: {error}", ()
    if expected == "absent":
        return f"{name} exists; expected absent; it has {_show(content)}", ()
    return _content_difference(bytes_of(expected), content, name)


def mode_difference(path: Path, name: str, expected: str) -> str | None:
    """Return a message for a file whose mode is not as `expected`, else None."""
    try:
        mode = f"{stat.S_IMODE(path.stat().st_mode):03o}"
    except OSError as error:
        return f"{name} has no mode: {error.strerror}; expected {expected}"
    return None if mode == expected else f"{name}: mode: expected {expected}; found {mode}"


def _link_difference(path: Path, name: str, target: str) -> tuple[str, tuple[str, ...]] | None:
    expected = f"expected a link to {target}"
    if not path.is_symlink():
        kind = "a file of its own" if path.exists() else "absent"
        return f"{name} is {kind}; {expected}", ()
    found = os.readlink(path)
    return None if found == target else (f"{name} is a link to {found}; {expected}", ())


def _content_difference(
    expected: bytes, content: bytes, name: str
) -> tuple[str, tuple[str, ...]] | None:
    """Return how the bytes of two files differ, as texts if both are UTF-8."""
    if expected == content:
        return None
    pairs = enumerate(zip(expected, content, strict=False))
    shorter = min(len(expected), len(content))
    offset = next((index for index, (left, right) in pairs if left != right), shorter)
    line = expected.count(b"\n", 0, offset) + 1
    try:
        first = difference(expected.decode(), content.decode())
        left, right, lines = first.expected, first.actual, tuple(_diff(expected, content, name))
    except UnicodeDecodeError:
        left, right, lines = _show_bytes(expected, offset), _show_bytes(content, offset), ()
    return f"{name}: line {line}, byte {offset}: expected {left}; found {right}", lines


def _show_file(expected: str | EncodedFile | LinkedFile) -> str:
    if isinstance(expected, LinkedFile):
        return f"a link to {expected.link}"
    return _show(bytes_of(expected))


def _show(content: bytes) -> str:
    try:
        return literal(content[: 4 * MAX_SHOWN_CHARACTERS].decode())
    except UnicodeDecodeError:
        return _show_bytes(content, 0)


def _show_bytes(content: bytes, offset: int) -> str:
    """Return the bytes around an offset in hexadecimal digits; omissions are marked."""
    start = max(0, offset - MAX_BYTES_BEFORE)
    shown = content[start : start + MAX_BYTES_SHOWN]
    head = f"…{start} more… " if start else ""
    rest = len(content) - start - len(shown)
    tail = f" …{rest} more…" if rest else ""
    return f"{head}bytes {shown.hex(' ')}{tail}" if shown else f"{head}no further bytes"


def _diff(expected: bytes, content: bytes, name: str) -> Iterator[str]:
    """Yield a bounded unified diff of two texts, control characters escaped; none if too large."""
    if len(expected) + len(content) > MAX_BYTES_COMPARED:
        return
    before, after = _lines(expected), _lines(content)
    names = f"{name} (expected)", f"{name} (found)"
    lines = list(difflib.unified_diff(before, after, *names, lineterm=""))
    for line in lines[:MAX_DIFF_LINES]:
        printable = "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)
        yield printable if len(printable) <= MAX_DIFF_WIDTH else f"{printable[:MAX_DIFF_WIDTH]}…"
    if len(lines) > MAX_DIFF_LINES:
        yield f"… {len(lines) - MAX_DIFF_LINES} more line(s)"


def _lines(content: bytes) -> list[str]:
    """Return the lines of a text; a last line without a line feed is marked."""
    *lines, last = content.decode().split("\n")
    return [*lines, f"{last} (no newline at the end)"] if last else lines
