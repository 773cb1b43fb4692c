"""Files of the command line: images and the schema of the final message.

Only regular files are opened: a pipe would wait for a writer, a device may never end. Mistakes
raise NotBegun with one line.
"""

import json
import os
import stat
from collections.abc import Sequence
from typing import Any, NoReturn, cast

from reference_server.agent_exec.ending import NotBegun
from reference_server.brief import brief
from reference_server.engine.images import IMAGE_LIMIT, IMAGES_LIMIT, MAX_IMAGES, media_type
from reference_server.engine.start import SCHEMA_LIMIT
from reference_server.safe_files import open_checked

Fields = dict[str, Any]
_SIGNATURE_BYTES = 16
"""Bytes that show the media type of an image."""


def check_images(paths: Sequence[str], folder: str) -> tuple[str, ...]:
    """Return the images as absolute paths, after checking type, sizes and number.

    A relative path starts at the current folder, or at the thread's `folder` if only that has it.
    Raises NotBegun.
    """
    if len(paths) > MAX_IMAGES:
        raise NotBegun(f"agent exec: --image: at most {MAX_IMAGES} images can be sent")
    total = 0
    found = [_find(path, folder) for path in paths]
    for path, file in zip(paths, found, strict=True):
        size, beginning = _read(file, f"--image {path}", _SIGNATURE_BYTES, IMAGE_LIMIT)
        if media_type(beginning) is None:
            raise NotBegun(f"agent exec: --image {path}: it is no PNG, JPEG, GIF or WebP")
        total += size
    if total > IMAGES_LIMIT:
        raise NotBegun(f"agent exec: --image: together they are larger than {IMAGES_LIMIT} bytes")
    return tuple(found)


def _find(path: str, folder: str) -> str:
    """Return an absolute path: in the current folder, or in `folder` if it exists only there."""
    own, below = os.path.abspath(path), os.path.join(folder, path)
    return below if os.path.lexists(below) and not os.path.lexists(own) else own


def load_schema(path: str | None) -> Fields | None:
    """Return the JSON object in a file, None without a path; the schema is checked later.

    Raises NotBegun.
    """
    if path is None:
        return None
    option = f"--output-schema {path}"
    _, data = _read(path, option, SCHEMA_LIMIT, SCHEMA_LIMIT)
    try:
        schema: Any = json.loads(data, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise NotBegun(f"agent exec: --output-schema {place}: is no JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise NotBegun(f"agent exec: {option}: is no JSON: {brief(str(error))}") from None
    if not isinstance(schema, dict):
        raise NotBegun(f"agent exec: {option}: a schema is a JSON object")
    return cast("Fields", schema)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no value of JSON")


def _read(path: str, option: str, head_size: int, limit: int) -> tuple[int, bytes]:
    """Return the size of a file and its first bytes. Raises NotBegun; `option` is for messages."""

    def check(_real: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise NotBegun(f"agent exec: {option}: it is not a file")
        if status.st_size > limit:
            raise NotBegun(f"agent exec: {option}: it is larger than {limit:,} bytes")

    try:
        descriptor = open_checked(path, check)
        with open(descriptor, "rb") as file:
            return os.fstat(descriptor).st_size, file.read(head_size)
    except OSError as error:
        raise NotBegun(f"agent exec: {option}: {error.strerror}; name a file that exists") from None
