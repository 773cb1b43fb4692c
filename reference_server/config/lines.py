"""Where a key stands in the text of config.toml.

Here lives the search for its line: a TOML parser gives values without their places.
"""

import re
import tomllib


def line_of(lines: list[str], key: str, value: object) -> int:
    """Find the line of a key, counted from 1; of several of that name the one with this value."""
    pattern = re.compile(rf"""^\s*(?:[\w."'-]+\.)?["']?{re.escape(key)}["']?\s*=\s*(.*)$""")
    found = [
        (number, match[1])
        for number, line in enumerate(lines, start=1)
        if (match := pattern.match(line))
    ]
    for number, rest in found:
        if _reads_as(rest, value):
            return number
    return found[0][0] if found else _line_of_table(lines, key)


def _line_of_table(lines: list[str], key: str) -> int:
    """Find the line of a table's heading, `[key]`, or of a key within it, `key.other = 1`."""
    name = rf"""["']?{re.escape(key)}["']?"""
    pattern = re.compile(rf"^\s*(?:\[\[?\s*(?:.*\.\s*)?)?{name}\s*[.\]]")
    return next((number for number, line in enumerate(lines, 1) if pattern.match(line)), 1)


def _reads_as(text: str, value: object) -> bool:
    try:
        return tomllib.loads(f"it = {text}")["it"] == value
    except tomllib.TOMLDecodeError:
        return False
