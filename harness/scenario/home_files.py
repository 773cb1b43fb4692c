"""Marks about a server's files: whether one exists, and which ones contain a text."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.trace.marks import FileMatch, FileSeen, FileWritten, HomeSearched

# A home has a few hundred files. A search stops at these limits.
MAX_FILES: Final = 20_000
MAX_BYTES: Final = 64 * 1024 * 1024


def look_at_file(path: str, last_seen: FileSeen | None, home: Path | None) -> FileSeen:
    """Return the mark for a path; if the file of `last_seen` is gone, with its copies in `home`."""
    folder = os.path.isdir(os.path.dirname(path))
    content = _read_file(path)
    if content is not None:
        digest = hashlib.sha256(content).hexdigest()
        return FileSeen(path=path, exists=True, size=len(content), sha256=digest, folder=folder)
    if last_seen is None or home is None:
        return FileSeen(path=path, exists=False, folder=folder)
    copies = tuple(
        file
        for file in _regular_files(home)
        if _size_of(file) == last_seen.size
        and hashlib.sha256(_read_file(file) or b"").hexdigest() == last_seen.sha256
    )
    return FileSeen(path=path, exists=False, folder=folder, elsewhere=copies)


def written_file_mark(path: str, content: bytes) -> FileWritten:
    """Return the mark of a written file; without its text if it is not UTF-8."""
    try:
        return FileWritten(path=path, text=content.decode())
    except UnicodeDecodeError:
        return FileWritten(path=path)


def search_home(home: Path, texts: tuple[str, ...]) -> HomeSearched:
    """Return the files below `home` with any of the texts in their path or content."""
    matches: list[FileMatch] = []
    count, bytes_left = 0, MAX_BYTES
    for path in _regular_files(home):
        count += 1
        relative = os.path.relpath(path, home)
        size = _size_of(path)
        content = (_read_file(path) or b"") if size <= bytes_left else b""
        bytes_left -= size
        in_path = tuple(text for text in texts if text in relative)
        in_content = tuple(text for text in texts if text.encode() in content)
        if in_path or in_content:
            matches.append(FileMatch(path, in_path, in_content))
    is_complete = count < MAX_FILES and bytes_left >= 0
    return HomeSearched(texts=texts, found=tuple(matches), files=count, whole=is_complete)


def _regular_files(home: Path) -> Iterator[str]:
    """Yield the regular files below a folder, in order; links are not followed."""
    count = 0
    for folder, folders, names in os.walk(home):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if count < MAX_FILES and os.path.isfile(path) and not os.path.islink(path):
                count += 1
                yield path


def _size_of(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _read_file(path: str) -> bytes | None:
    """Return the bytes of a regular file, None if it cannot be read."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
