"""Images of the local disk, as the model is sent them.

Here lives the reading of one file into a content part of the Responses API; it blocks.
"""

import base64
import mimetypes
from pathlib import Path
from typing import Any

IMAGE_LIMIT = 20 * 1024 * 1024
"""Bytes of the largest local image that is sent."""


def image_part(path: Path) -> dict[str, Any]:
    """Give an image as an input_image part. Raises OSError, ValueError."""
    kind = mimetypes.guess_type(path.name)[0] or "image/png"
    if not kind.startswith("image/"):
        raise OSError(f"it is no image but {kind}")
    data = base64.b64encode(_content(path)).decode()
    return {"type": "input_image", "image_url": f"data:{kind};base64,{data}"}


def _content(path: Path) -> bytes:
    # A device or a pipe might never end, or never begin.
    if not path.is_file():
        raise OSError("it is not a file")
    if path.stat().st_size > IMAGE_LIMIT:
        raise OSError(f"it is larger than {IMAGE_LIMIT} bytes")
    return path.read_bytes()
