"""Places of keys and values in the text of config.toml.

`tomllib` gives values without their places. The text must be valid TOML, accepted by `tomllib`: it
is parsed only as far as needed to find the next key. Messages name these places, and
`config.text_edits` changes the text there. Source: TOML 1.0, "Keys", "Table", "Inline Table",
"Array of Tables".
"""

import re
import tomllib
from dataclasses import dataclass, field

Steps = tuple[int | str, ...]
"""The path to a value: keys, and indices of arrays."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BASIC = r'"(?:[^"\\\n]|\\.)*"'
_LITERAL = r"'[^'\n]*'"
_KEY = re.compile(rf"{_BASIC}|{_LITERAL}|[A-Za-z0-9_-]+")
# Up to two quotes may precede the three that end a multi-line string.
_STRING = re.compile(
    rf'"""(?:[^\\]|\\.)*?"""(?!")|\'\'\'.*?\'\'\'(?!\')|{_BASIC}|{_LITERAL}', re.DOTALL
)
_PLAIN = re.compile(r"[^,\]}#\r\n]*")


@dataclass(frozen=True, slots=True)
class Place:
    """Offsets, in characters, of a key and its value; in an array both are the value's.

    `end`: offset after the value; of a table with a heading, after the heading.
    """

    key: int
    value: int
    end: int


Pair = tuple[Steps, Place]
"""A `key = value` of the text: the steps to the value, and its place."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the pairs below it; the first section of a text has no heading.

    `start` and `end` are the offsets of the heading's first bracket and after its last one.
    """

    steps: Steps
    start: int
    end: int
    pairs: list[Pair] = field(default_factory=list[Pair])


class Places:
    """Places of all keys and values of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[Steps, Place] = {}
        self._last: dict[Steps, int] = {}
        self.sections = [Section((), 0, 0)]
        """Sections in the order of the text."""
        self.inline: dict[Steps, list[Pair]] = {}
        """Pairs of each inline table, by its steps."""
        self._walk()

    def __getitem__(self, steps: Steps) -> Place:
        """Return the place of a value. Raises KeyError if the text has no value there."""
        return self._places[steps]

    def __contains__(self, steps: Steps) -> bool:
        return steps in self._places

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both counted from 1, columns in characters."""
        return line_and_column(self._text, offset)

    def _walk(self) -> None:
        offset = self._skip_blank(0)
        while offset < len(self._text):
            if self._text[offset] == "[":
                start = offset
                steps, offset = self._heading(offset)
                self.sections.append(Section(steps, start, offset))
            else:
                section = self.sections[-1]
                offset = self._pair(section.steps, offset, section.pairs)
            offset = self._skip_blank(offset)

    def _heading(self, offset: int) -> tuple[Steps, int]:
        """Parse `[a.b]` or `[[a.b]]`; return the steps to its table and the offset after it."""
        is_array = self._text.startswith("[[", offset)
        keys, offset = self._keys(offset + 1 + is_array)
        end = offset + 1 + is_array
        steps: Steps = ()
        for place, name in keys[:-1]:
            steps = self._table(steps, name, Place(place, place, end))
        place, name = keys[-1]
        if is_array:
            array = (*steps, name)
            self._places.setdefault(array, Place(place, place, end))
            self._last[array] = self._last.get(array, -1) + 1
            steps = (*array, self._last[array])
        else:
            steps = (*steps, name)
        self._places[steps] = Place(place, place, end)
        return steps, end

    def _table(self, outer: Steps, name: str, place: Place) -> Steps:
        """Return the steps to a table in `outer`, of an array of tables to the last one."""
        steps = (*outer, name)
        self._places.setdefault(steps, place)
        return (*steps, self._last[steps]) if steps in self._last else steps

    def _pair(self, table: Steps, offset: int, pairs: list[Pair]) -> int:
        """Parse `key = value`, add it to `pairs`, and return the offset after it."""
        keys, offset = self._keys(offset)
        start = self._skip_space(offset + 1)
        steps = (*table, *(name for _, name in keys))
        end = self._value(steps, start)
        for length, (place, _) in enumerate(keys[:-1], len(table) + 1):
            self._places.setdefault(steps[:length], Place(place, place, end))
        self._places[steps] = Place(keys[-1][0], start, end)
        # A pair with a dotted key begins at the first part of the key.
        pairs.append((steps, Place(keys[0][0], start, end)))
        return end

    def _keys(self, offset: int) -> tuple[list[tuple[int, str]], int]:
        """Parse a dotted key; return (offset, name) of each part and the offset after them."""
        parts: list[tuple[int, str]] = []
        while True:
            offset = self._skip_space(offset)
            match = _KEY.match(self._text, offset)
            assert match, "the text is no TOML"
            parts.append((offset, _unquote(match[0])))
            offset = self._skip_space(match.end())
            if self._text[offset] != ".":
                return parts, offset
            offset += 1

    def _value(self, steps: Steps, offset: int) -> int:
        if self._text[offset] == "{":
            return self._inline_table(steps, offset + 1)
        if self._text[offset] == "[":
            return self._array(steps, offset + 1)
        match = _STRING.match(self._text, offset)
        return match.end() if match else self._plain(offset)

    def _plain(self, offset: int) -> int:
        match = _PLAIN.match(self._text, offset)
        assert match
        # A date can hold a space.
        return offset + len(match[0].rstrip(" \t"))

    def _inline_table(self, steps: Steps, offset: int) -> int:
        pairs = self.inline.setdefault(steps, [])
        offset = self._skip_blank(offset)
        while self._text[offset] != "}":
            offset = self._skip_blank(self._pair(steps, offset, pairs))
            if self._text[offset] == ",":
                offset = self._skip_blank(offset + 1)
        return offset + 1

    def _array(self, steps: Steps, offset: int) -> int:
        index = 0
        offset = self._skip_blank(offset)
        while self._text[offset] != "]":
            end = self._value((*steps, index), offset)
            self._places[(*steps, index)] = Place(offset, offset, end)
            offset = self._skip_blank(end)
            if self._text[offset] == ",":
                offset = self._skip_blank(offset + 1)
            index += 1
        return offset + 1

    def _skip_blank(self, offset: int) -> int:
        """Return the offset after any whitespace and comments at `offset`."""
        match = _BLANK.match(self._text, offset)
        assert match
        return match.end()

    def _skip_space(self, offset: int) -> int:
        match = _SPACE.match(self._text, offset)
        assert match
        return match.end()


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset, both counted from 1, columns in characters."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _unquote(key: str) -> str:
    return next(iter(tomllib.loads(f"{key} = 0"))) if key[0] in "\"'" else key
