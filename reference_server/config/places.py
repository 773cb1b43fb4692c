"""Where keys and values stand in the text of config.toml.

Here lives a walk through the text of a file that `tomllib` has accepted: a TOML parser gives values
without their places. It looks at no more than it needs to find the next key, and must not be
given text that is no TOML. Source: TOML 1.0, "Keys", "Table", "Inline Table", "Array of Tables".
"""

import re
import tomllib
from dataclasses import dataclass

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
    """Where a value and its key stand: offsets in characters. A value in an array has no key."""

    key: int
    value: int


class Places:
    """The places of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[Steps, Place] = {}
        self._last: dict[Steps, int] = {}
        self._walk()

    def __getitem__(self, steps: Steps) -> Place:
        """Give the place of a value. Raises KeyError."""
        return self._found[steps]

    def __contains__(self, steps: Steps) -> bool:
        return steps in self._found

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Give line and column of an offset, both counted from 1, columns in characters."""
        return line_and_column(self._text, offset)

    def _walk(self) -> None:
        here: Steps = ()
        at = self._blank(0)
        while at < len(self._text):
            here, at = self._heading(at) if self._text[at] == "[" else (here, self._pair(here, at))
            at = self._blank(at)

    def _heading(self, at: int) -> tuple[Steps, int]:
        """Read `[a.b]` or `[[a.b]]`; give the table that follows, and where the heading ends."""
        is_array = self._text.startswith("[[", at)
        keys, at = self._keys(at + 1 + is_array)
        steps: Steps = ()
        for place, name in keys[:-1]:
            steps = self._table(steps, name, place)
        place, name = keys[-1]
        if is_array:
            array = (*steps, name)
            self._found.setdefault(array, Place(place, place))
            self._last[array] = self._last.get(array, -1) + 1
            steps = (*array, self._last[array])
            self._found[steps] = Place(place, place)
        else:
            steps = (*steps, name)
            self._found[steps] = Place(place, place)
        return steps, at + 1 + is_array

    def _table(self, outer: Steps, name: str, place: int) -> Steps:
        """Step into a table; into the last one, if the name is that of an array of tables."""
        steps = (*outer, name)
        self._found.setdefault(steps, Place(place, place))
        return (*steps, self._last[steps]) if steps in self._last else steps

    def _pair(self, table: Steps, at: int) -> int:
        """Read `key = value`; give where it ends."""
        keys, at = self._keys(at)
        for place, name in keys[:-1]:
            table = (*table, name)
            self._found.setdefault(table, Place(place, place))
        place, name = keys[-1]
        at = self._space(at + 1)
        self._found[(*table, name)] = Place(place, at)
        return self._value((*table, name), at)

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
        return (_STRING.match(self._text, at) or self._plain(at)).end()

    def _plain(self, at: int) -> re.Match[str]:
        match = _PLAIN.match(self._text, at)
        assert match
        return match

    def _inline_table(self, steps: Steps, at: int) -> int:
        at = self._blank(at)
        while self._text[at] != "}":
            at = self._blank(self._pair(steps, at))
            if self._text[at] == ",":
                at = self._blank(at + 1)
        return at + 1

    def _array(self, steps: Steps, at: int) -> int:
        index = 0
        at = self._blank(at)
        while self._text[at] != "]":
            self._found[(*steps, index)] = Place(at, at)
            at = self._blank(self._value((*steps, index), at))
            if self._text[at] == ",":
                at = self._blank(at + 1)
            index += 1
        return at + 1

    def _blank(self, at: int) -> int:
        """Give where blanks, ends of lines and comments end."""
        match = _BLANK.match(self._text, at)
        assert match
        return match.end()

    def _space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        assert match
        return match.end()


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Give line and column of an offset, both counted from 1, columns in characters."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _unquoted(key: str) -> str:
    return next(iter(tomllib.loads(f"{key} = 0"))) if key[0] in "\"'" else key
