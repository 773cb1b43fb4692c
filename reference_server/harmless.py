"""Words of others for a terminal: what they hold must not change what it shows.

Imported where something is written for people, so it imports nothing of this package.
"""

import re

# The control characters but line end and tab, and those that change the direction of writing.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """Make the control characters of others visible, which could change what a terminal shows."""
    return _UNSAFE.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
