"""The text of config.toml, as it is on disk.

A pipe or a device is never opened: reading it could last for ever.
"""

import os
import stat
from codecs import BOM_UTF8
from pathlib import Path

CONFIG_LIMIT = 1024 * 1024
"""Bytes of a config.toml: whoever has a larger one did not write it by hand."""


class NoText(Exception):
    """The file holds no text that can be settings; str() says why, and what to do."""


def read_text(file: Path) -> str:
    """Return the text with its line ends as they are; a link is followed.

    Raises NoText, and OSError (FileNotFoundError where no file is, nor a link to none).
    """
    _check(os.stat(file))
    # Not blocking: a pipe may have taken the file's place since.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:
        _check(os.fstat(descriptor))
        content = opened.read(CONFIG_LIMIT + 1)
    if len(content) > CONFIG_LIMIT:
        raise NoText(f"is larger than {CONFIG_LIMIT // 1024} KiB; shorten it")
    if content.startswith(BOM_UTF8):
        raise NoText("begins with a byte order mark; save it without")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise NoText("is not UTF-8; save it in that encoding") from None


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NoText("is not a file; remove it, or put a file in its place")
