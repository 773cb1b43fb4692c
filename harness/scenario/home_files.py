"""Looking at the files of a server: is one there, and which of them hold a text."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.trace.marks import FileSeen, FileWritten, HomeSearched, TextsFound

# A home has a few hundred files. Of more, or of larger ones, only so many are looked at.
MAX_FILES: Final = 20_000
MAX_BYTES: Final = 64 * 1024 * 1024


def look(path: str, former: FileSeen | None, home: Path | None) -> FileSeen:
    """Look at an absolute path; `former` is what was there when somebody last saw it."""
    folder = os.path.isdir(os.path.dirname(path))
    content = _read(path)
    if content is not None:
        digest = hashlib.sha256(content).hexdigest()
        return FileSeen(path=path, exists=True, size=len(content), sha256=digest, folder=folder)
    if former is None or home is None:
        return FileSeen(path=path, exists=False, folder=folder)
    moved = tuple(
        one
        for one in _files(home)
        if _size(one) == former.size
        and hashlib.sha256(_read(one) or b"").hexdigest() == former.sha256
    )
    return FileSeen(path=path, exists=False, folder=folder, elsewhere=moved)


def written(path: str, content: bytes) -> FileWritten:
    """Return the mark of a file that was written at an absolute path."""
    try:
        return FileWritten(path=path, text=content.decode())
    except UnicodeDecodeError:
        return FileWritten(path=path)


def search(home: Path, texts: tuple[str, ...]) -> HomeSearched:
    """The files below a folder that have some of the texts, in their paths or in their bytes."""
    found: list[TextsFound] = []
    count, left = 0, MAX_BYTES
    for path in _files(home):
        count += 1
        below = os.path.relpath(path, home)
        size = _size(path)
        content = (_read(path) or b"") if size <= left else b""
        left -= size
        named = tuple(one for one in texts if one in below)
        held = tuple(one for one in texts if one.encode() in content)
        if named or held:
            found.append(TextsFound(path, named, held))
    whole = count < MAX_FILES and left >= 0
    return HomeSearched(texts=texts, found=tuple(found), files=count, whole=whole)


def _files(home: Path) -> Iterator[str]:
    """The regular files below a folder, in order; links are not followed."""
    count = 0
    for folder, folders, names in os.walk(home):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if count < MAX_FILES and os.path.isfile(path) and not os.path.islink(path):
                count += 1
                yield path


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _read(path: str) -> bytes | None:
    """The bytes of a regular file, None where there is none that can be read."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
