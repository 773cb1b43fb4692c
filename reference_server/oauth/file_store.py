"""A private file of the home with JSON entries.

The file is a JSON object of entries, mode 0600, replaced as a whole under a lock, so that neither a
crash nor a second process damages it or loses an entry. It is removed with its last entry. `store`
interprets the entries.
"""

import contextlib
import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from reference_server.oauth.credentials import parse_json
from reference_server.oauth.failure import OAuthFailure
from reference_server.safe_files import lock, make_private, open_for_reading, open_regular

MAX_FILE_BYTES = 16 * 2**20
"""Maximum bytes of the file."""
Entries = dict[str, Any]


class FileStore:
    """The file. All methods block for a moment, and raise OAuthFailure for errors of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Entries:
        """Return all entries; {} if there is no file."""
        try:
            with open_for_reading(self._path) as file:
                text = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise OAuthFailure(f"{self._path}: cannot be read: {_error_text(error)}") from None
        if len(text) > MAX_FILE_BYTES:
            raise OAuthFailure(
                f"{self._path}: is larger than {MAX_FILE_BYTES // 2**20} MiB; remove it"
            )
        try:
            entries = parse_json(text)
        except OAuthFailure as error:
            raise OAuthFailure(f"{self._path}: {error}; remove it, and log in again") from None
        if not isinstance(entries, dict):
            raise OAuthFailure(f"{self._path}: is no JSON object; remove it, and log in again")
        return cast("Entries", entries)

    def change(self, change: Callable[[Entries], None]) -> None:
        """Let `change` modify the entries under a lock, and write them if they have changed."""
        try:
            with file_lock(self._path.with_name(f"{self._path.name}.lock")):
                # A process that was killed while it wrote has left this file.
                self._new_path.unlink(missing_ok=True)
                before = self.read()
                entries = dict(before)
                change(entries)
                if entries == before:
                    return
                if entries:
                    self._write(json.dumps(entries, indent=1).encode())
                else:
                    self._path.unlink(missing_ok=True)
        except OSError as error:
            raise OAuthFailure(f"{self._path}: cannot be written: {_error_text(error)}") from None

    @property
    def _new_path(self) -> Path:
        """Return the path for the next content; used only under the lock."""
        return self._path.with_name(f"{self._path.name}.new")

    def _write(self, content: bytes) -> None:
        new_path = self._new_path
        descriptor = open_regular(new_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new_path, self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                new_path.unlink()
            raise
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def file_lock(path: Path) -> Generator[None]:
    """Hold a lock against other processes for the block. Blocks. Raises OSError."""
    make_private(path.parent)
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _error_text(error: OSError) -> str:
    return error.strerror or str(error)
