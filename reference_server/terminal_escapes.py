"""Foreign text for a terminal, whose control characters must not take effect.

Imported where something is written for people, so it imports nothing of this package.
"""

import re

# The control characters but line end and tab, and those that change the direction of writing.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """Replace control characters by visible escapes."""
    return _UNSAFE.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
