"""Escaping of control characters in text of models, clients and files, for a terminal.

Imported by everything that prints, so it imports nothing of this package.
"""

import re

# Control characters except line end and tab, and those that change the direction of writing.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """Return the text with visible escapes in place of control characters."""
    return _UNSAFE.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
