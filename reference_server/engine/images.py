"""Images of the local disk for the model.

A file, whether the model or the client names it, is read only if the sandbox policy lets a command
read it, and sent only if its first bytes are those of an image. Files of the kernel (/proc, /sys,
/dev) are never read.
"""

import base64
import os
import stat
from dataclasses import dataclass
from threading import Event
from typing import Any

import anyio
from anyio import to_thread

from harness.protocol.wire.input import LocalImageInput, UserInput
from reference_server.limits import LimitExceeded, check_path
from reference_server.safe_files import open_checked
from reference_server.sandbox.mounts import Plan, Refused
from reference_server.sandbox.permissions import may_read
from reference_server.sandbox.places import is_kernel_path
from reference_server.sandbox.sandbox import Sandbox
from reference_server.settings import ThreadSettings
from reference_server.words import unread_image

Fields = dict[str, Any]

IMAGE_LIMIT = 20 * 1024 * 1024
"""Maximum bytes of an image."""
IMAGES_LIMIT = 50 * 1024 * 1024
"""Maximum bytes of the images of one input together, and of those of one turn's tools."""
MAX_IMAGES = 50
"""Maximum local images of one input."""
READING_TIME = 5.0
"""Seconds that reading a file may take: a network disk may never answer."""
READERS = 4
"""Files that are read at a time; one whose disk does not answer keeps its place."""
SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_PIECE = 1024 * 1024
_KINDS = "PNG, JPEG, GIF or WebP"


class ImageError(Exception):
    """The file is not sent to the model; str() says why."""


@dataclass(slots=True)
class ImageBudget:
    """Bytes left for the images of one turn or input."""

    bytes_left: int = IMAGES_LIMIT

    def take(self, size: int) -> None:
        """Use up the bytes of an image. Raises ImageError if too few are left."""
        if size > self.bytes_left:
            raise ImageError(
                f"with it the images would be larger than {IMAGES_LIMIT} bytes together"
            )
        self.bytes_left -= size


class LocalImages:
    """Reader of local images, one for the whole server."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._readers = anyio.CapacityLimiter(READERS)

    async def image_part(self, path: str, settings: ThreadSettings, budget: ImageBudget) -> Fields:
        """Return an image as an input_image part. Raises ImageError if it is not sent.

        A relative path starts at the thread's working directory. A cancelled call does not wait
        for the disk.
        """
        try:
            plan = self._sandbox.view(settings.sandbox, workspace=settings.cwd)
        except (Refused, ValueError) as error:
            raise ImageError(str(error)) from None
        try:
            check_path(path)
        except LimitExceeded as error:
            raise ImageError(str(error)) from None
        reading = _Reading(absolute_path(settings.cwd, path), plan)
        try:
            with anyio.fail_after(READING_TIME):
                content = await to_thread.run_sync(
                    reading.content, abandon_on_cancel=True, limiter=self._readers
                )
        except TimeoutError:
            raise ImageError(f"it was not read within {READING_TIME:g} s") from None
        except OSError as error:
            raise ImageError(error.strerror or str(error)) from None
        except ValueError as error:
            raise ImageError(str(error)) from None
        finally:
            reading.end.set()
        kind = media_type(content)
        if kind is None:
            raise ImageError(f"it is no {_KINDS}")
        budget.take(len(content))
        data = base64.b64encode(content).decode()
        return {"type": "input_image", "image_url": f"data:{kind};base64,{data}"}

    async def image_parts(self, content: list[UserInput], settings: ThreadSettings) -> list[Fields]:
        """Return the local images of an input, in order; a note replaces one that is not sent."""
        budget = ImageBudget()
        parts: list[Fields] = []
        for item in content:
            if isinstance(item, LocalImageInput):
                try:
                    if len(parts) >= MAX_IMAGES:
                        raise ImageError(f"one input has at most {MAX_IMAGES} images of the disk")
                    parts.append(await self.image_part(item.path, settings, budget))
                except ImageError as error:
                    parts.append(unread_image(item.path, str(error)))
        return parts


def absolute_path(cwd: str, path: str) -> str:
    """Return a path relative to `cwd` as a normalized absolute one, as items show it."""
    return os.path.normpath(os.path.join(cwd, path))


def media_type(content: bytes) -> str | None:
    """Return the media type of an image by its first bytes; None if it is not a supported one."""
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for mark, kind in SIGNATURES.items() if content.startswith(mark)), None)


class _Reading:
    """A reading of one file, in a worker thread; `end`, if set, ends an abandoned one early."""

    def __init__(self, path: str, plan: Plan | None) -> None:
        self._path = path
        self._plan = plan
        self.end = Event()

    def content(self) -> bytes:
        """Return the file's bytes. Raises OSError, ValueError, ImageError."""
        descriptor = open_checked(self._path, self._check)
        with open(descriptor, "rb", buffering=0) as file:
            pieces: list[bytes] = []
            size = 0
            while not self.end.is_set() and (piece := file.read(_PIECE)):
                pieces.append(piece)
                size += len(piece)
                _check_size(size)
        return b"".join(pieces)

    def _check(self, real: str, status: os.stat_result) -> None:
        if is_kernel_path(real) or not stat.S_ISREG(status.st_mode):
            raise ImageError("it is not a file of a disk")
        if self._plan is not None and not (self._plan.readable(real) and may_read(real, status)):
            raise ImageError("the sandbox hides it")
        _check_size(status.st_size)


def _check_size(size: int) -> None:
    if size > IMAGE_LIMIT:
        raise ImageError(f"it is larger than {IMAGE_LIMIT} bytes")
