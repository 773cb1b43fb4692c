"""Reading of config.toml. A pipe or a device is never opened: reading could last for ever."""

import os
import stat
from pathlib import Path

CONFIG_LIMIT = 1024 * 1024
"""Maximum bytes of a config.toml; a larger one was not written by hand."""


class ConfigTextError(Exception):
    """The file is not a text of settings; str() says why, and what to do."""


BYTE_ORDER_MARK = "\ufeff"
"""Mark that editors on Windows write at the start of a file; it is ignored."""


def read_text(file: Path, *, keep_mark: bool = False) -> str:
    """Return the text of a file, which may be a link, with its line ends unchanged.

    A byte order mark at its beginning is removed unless `keep_mark`. Raises ConfigTextError for a
    file that is not UTF-8, too large or not regular, and OSError.
    """
    _check_regular(os.stat(file))
    # Not blocking: a pipe may have replaced the file meanwhile.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file_object:
        _check_regular(os.fstat(descriptor))
        content = file_object.read(CONFIG_LIMIT + 1)
    if len(content) > CONFIG_LIMIT:
        raise ConfigTextError(f"is larger than {CONFIG_LIMIT // 1024} KiB; shorten it")
    try:
        text = content.decode()
        return text if keep_mark else text.removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError:
        raise ConfigTextError("is not UTF-8; save it in that encoding") from None


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigTextError("is not a file; remove it, or put a file in its place")
