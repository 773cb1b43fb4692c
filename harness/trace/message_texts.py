"""Recognition of a message in the texts of a model call.

A server may put other words around a message, so a long one may be a part of a text. A short one
may be in another text by chance, and must be the whole text.
"""

from typing import Final

MIN_PART_CHARACTERS: Final = 12


def is_in_text(message: str, text: str) -> bool:
    """Return whether a text contains a message; both without white space around them."""
    return message in text if len(message) >= MIN_PART_CHARACTERS else message == text
