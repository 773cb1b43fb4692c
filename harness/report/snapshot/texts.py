"""Parts of a text that depend on the machine or the moment, and the names that replace them."""

import hashlib
import re
import tempfile
from pathlib import Path
from typing import Any, Final

MAX_TEXT_CHARACTERS: Final = 2000
"""Longer texts are shortened to half of this, with a digest of the whole."""
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b[0-9a-f]{32,64}\b")
_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?![\d-])"
)
_ROLLOUT = re.compile(r"\d{4}/\d\d/\d\d/rollout-[0-9T:.Z_-]+")
_ADDRESS = re.compile(r"\b(127\.0\.0\.1|localhost|\[::1\]):\d{2,5}\b")
_PROGRAM = re.compile(r"(?<![\w/.])/(?:usr/)?(?:local/)?bin/(bash|dash|sh|zsh)\b")
_MOMENT = re.compile(
    r"(?:.*(?:At|AtMs|_at|_at_ms|[dD]urationMs|duration_ms|[eE]lapsedMs|[lL]atencyMs|[tT]imestamp))"
    r"|duration|elapsed|time|ts"
)
# Seconds, milliseconds, microseconds and nanoseconds since 1970, between 2017 and 2049.
_UNITS = (1, 1_000, 1_000_000, 1_000_000_000)
_SINCE, _UNTIL = 1_500_000_000, 2_500_000_000


def is_moment(value: Any, member: str) -> bool:
    """Return whether a number is a time, by the name of its member or as a date of our years."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if _MOMENT.fullmatch(member):
        return True
    return any(_SINCE * unit <= value <= _UNTIL * unit for unit in _UNITS)


class Texts:
    """The names for one transcript; random ids are numbered in the order of their appearance."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        machine = {
            str(Path(folder)): name
            for path, name in ((Path.home(), "<user>"), (Path(tempfile.gettempdir()), "<tmp>"))
            for folder in (path, path.resolve())
            if len(str(folder)) > 1
        }
        self._folders = sorted(machine.items(), key=lambda item: -len(item[0]))

    def replace_names(self, text: str) -> str:
        """Return the text with names for parts that depend on the machine or the moment."""
        text = _ROLLOUT.sub("<date>/rollout-", text)
        for folder, name in self._folders:
            if folder in text:
                text = re.sub(rf"(?<![\w/]){re.escape(folder)}(?![\w.-])", name, text)
        text = _UUID.sub(lambda match: self._id_name(match[0]), text)
        text = _TIME.sub("<time>", text)
        text = _ADDRESS.sub(r"\1:<port>", text)
        return _PROGRAM.sub(r"\1", text)

    def _id_name(self, uuid: str) -> str:
        return self._ids.setdefault(uuid.lower(), f"<id {len(self._ids) + 1}>")


def shorten(text: str) -> str:
    """Return the text, or of a very long one its beginning, its length and a digest."""
    if len(text) <= MAX_TEXT_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[: MAX_TEXT_CHARACTERS // 2]}<{len(text)} characters in all, digest {digest}>"
