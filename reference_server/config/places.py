"""Places of keys and values in the text of config.toml.

The text is one that `tomllib` has accepted: a TOML parser gives values without their places. It
looks at no more than it needs to find the next key, and must not be given text that is no TOML.
Messages name these places; `config.text_edits` changes the text there. Source: TOML 1.0, "Keys",
"Table", "Inline Table", "Array of Tables".
"""

import re
import tomllib
from dataclasses import dataclass, field

Steps = tuple[int | str, ...]
"""The way to a value: keys, and indices of arrays."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BASIC = r'"(?:[^"\\\n]|\\.)*"'
_LITERAL = r"'[^'\n]*'"
_KEY = re.compile(rf"{_BASIC}|{_LITERAL}|[A-Za-z0-9_-]+")
# Up to two quotes may stand before the three that end a string of several lines.
_STRING = re.compile(
    rf'"""(?:[^\\]|\\.)*?"""(?!")|\'\'\'.*?\'\'\'(?!\')|{_BASIC}|{_LITERAL}', re.DOTALL
)
_PLAIN = re.compile(r"[^,\]}#\r\n]*")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value and its key: offsets in characters. A value in an array has no key.

    `end` is where the value ends; of a table with a heading, where the heading ends.
    """

    key: int
    value: int
    end: int


Pair = tuple[Steps, Place]
"""A `key = value` of the text: the way to the value, and where it stands."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it; the first one of a text has no heading.

    `start` and `end` are offsets of the heading: its first bracket, and behind its last one.
    """

    steps: Steps
    start: int
    end: int
    pairs: list[Pair] = field(default_factory=list[Pair])


class Places:
    """The places of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[Steps, Place] = {}
        self._last: dict[Steps, int] = {}
        self.sections = [Section((), 0, 0)]
        """In the order of the text."""
        self.inline: dict[Steps, list[Pair]] = {}
        """What stands in the braces of each inline table."""
        self._walk()

    def __getitem__(self, steps: Steps) -> Place:
        """Return the place of a value. Raises KeyError."""
        return self._found[steps]

    def __contains__(self, steps: Steps) -> bool:
        return steps in self._found

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both counted from 1, columns in characters."""
        return line_and_column(self._text, offset)

    def _walk(self) -> None:
        at = self._blank(0)
        while at < len(self._text):
            if self._text[at] == "[":
                start = at
                steps, at = self._heading(at)
                self.sections.append(Section(steps, start, at))
            else:
                section = self.sections[-1]
                at = self._pair(section.steps, at, section.pairs)
            at = self._blank(at)

    def _heading(self, at: int) -> tuple[Steps, int]:
        """Read `[a.b]` or `[[a.b]]`; give the table that follows, and where the heading ends."""
        is_array = self._text.startswith("[[", at)
        keys, at = self._keys(at + 1 + is_array)
        end = at + 1 + is_array
        steps: Steps = ()
        for place, name in keys[:-1]:
            steps = self._table(steps, name, Place(place, place, end))
        place, name = keys[-1]
        if is_array:
            array = (*steps, name)
            self._found.setdefault(array, Place(place, place, end))
            self._last[array] = self._last.get(array, -1) + 1
            steps = (*array, self._last[array])
        else:
            steps = (*steps, name)
        self._found[steps] = Place(place, place, end)
        return steps, end

    def _table(self, outer: Steps, name: str, place: Place) -> Steps:
        """Step into a table; into the last one, if the name is that of an array of tables."""
        steps = (*outer, name)
        self._found.setdefault(steps, place)
        return (*steps, self._last[steps]) if steps in self._last else steps

    def _pair(self, table: Steps, at: int, pairs: list[Pair]) -> int:
        """Read `key = value` and add it to these; give where it ends."""
        keys, at = self._keys(at)
        start = self._space(at + 1)
        steps = (*table, *(name for _, name in keys))
        end = self._value(steps, start)
        for length, (place, _) in enumerate(keys[:-1], len(table) + 1):
            self._found.setdefault(steps[:length], Place(place, place, end))
        self._found[steps] = Place(keys[-1][0], start, end)
        # A pair begins with its first key, which is not the last one if it is dotted.
        pairs.append((steps, Place(keys[0][0], start, end)))
        return end

    def _keys(self, at: int) -> tuple[list[tuple[int, str]], int]:
        """Read a dotted key; give each part with its place, and where it ends, blanks included."""
        parts: list[tuple[int, str]] = []
        while True:
            at = self._space(at)
            match = _KEY.match(self._text, at)
            assert match, "the text is no TOML"
            parts.append((at, _unquoted(match[0])))
            at = self._space(match.end())
            if self._text[at] != ".":
                return parts, at
            at += 1

    def _value(self, steps: Steps, at: int) -> int:
        if self._text[at] == "{":
            return self._inline_table(steps, at + 1)
        if self._text[at] == "[":
            return self._array(steps, at + 1)
        found = _STRING.match(self._text, at)
        return found.end() if found else self._plain(at)

    def _plain(self, at: int) -> int:
        match = _PLAIN.match(self._text, at)
        assert match
        # A date can hold a space.
        return at + len(match[0].rstrip(" \t"))

    def _inline_table(self, steps: Steps, at: int) -> int:
        pairs = self.inline.setdefault(steps, [])
        at = self._blank(at)
        while self._text[at] != "}":
            at = self._blank(self._pair(steps, at, pairs))
            if self._text[at] == ",":
                at = self._blank(at + 1)
        return at + 1

    def _array(self, steps: Steps, at: int) -> int:
        index = 0
        at = self._blank(at)
        while self._text[at] != "]":
            end = self._value((*steps, index), at)
            self._found[(*steps, index)] = Place(at, at, end)
            at = self._blank(end)
            if self._text[at] == ",":
                at = self._blank(at + 1)
            index += 1
        return at + 1

    def _blank(self, at: int) -> int:
        """Return where blanks, ends of lines and comments end."""
        match = _BLANK.match(self._text, at)
        assert match
        return match.end()

    def _space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        assert match
        return match.end()


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset, both counted from 1, columns in characters."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _unquoted(key: str) -> str:
    return next(iter(tomllib.loads(f"{key} = 0"))) if key[0] in "\"'" else key
