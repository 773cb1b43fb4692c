"""Front matter of a SKILL.md: YAML between two lines `---` at its beginning.

It must be a mapping with texts under the requested keys; other keys may have any value without
aliases and deep nesting. It is parsed as events, so no objects are built from it. The specification
does not show front matter; real skills have it.
"""

import re
from collections.abc import Callable, Iterable
from typing import cast

import yaml

from reference_server.skills.skill import SkillError

FRONT_MATTER_LIMIT = 16 * 1024
"""Maximum characters of a front matter."""
_DEPTH = 16
_OPENS = re.compile(r"---[ \t]*\r?\n")
_CLOSES = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_NO_KEYS = "the front matter holds no keys; write `name: …`"
_NOTHING = ("", "~", "null", "Null", "NULL")


def split(text: str) -> tuple[str | None, str]:
    """Return the front matter, or None, and the rest. Raises SkillError if unclosed or too long."""
    begins = _OPENS.match(text)
    if begins is None:
        return None, text
    ends = _CLOSES.search(text, begins.end())
    if ends is None:
        raise SkillError("line 1: the front matter is not closed; end it with a line `---`")
    if ends.start() - begins.end() > FRONT_MATTER_LIMIT:
        raise SkillError(
            f"line 1: the front matter has more than {FRONT_MATTER_LIMIT // 1024} KiB; "
            "move its text below"
        )
    return text[begins.end() : ends.start()], text[ends.end() :].lstrip("\r\n")


def read(text: str, keys: Iterable[str]) -> dict[str, str]:
    """Return the texts of those `keys` that are not null. Raises SkillError if it is not valid."""
    try:
        return _Reader(set(keys)).read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = f"{error.problem or error.context}; mend the front matter"
        raise SkillError(_with_place(mark, words)) from None
    except yaml.YAMLError as error:
        problem = str(error).splitlines()[0]
        raise SkillError(f"the front matter is not YAML: {problem}; mend it") from None


def _with_place(mark: "yaml.Mark | None", words: str) -> str:
    if mark is None:
        return words
    # Marks count from 0, and the front matter begins in line 2 of the file.
    return f"line {mark.line + 2}, column {mark.column + 1}: {words}"


class _Reader:
    """Parser of one front matter's events, which keeps the texts of `keys`."""

    def __init__(self, keys: set[str]) -> None:
        self._keys = keys
        self._found: dict[str, str] = {}
        self._seen_keys: set[str] = set()
        self._key: str | None = None
        self._depth = 0

    def read(self, text: str) -> dict[str, str]:
        # The type stubs do not have `parse`.
        parse = cast("Callable[..., Iterable[yaml.Event]]", vars(yaml)["parse"])
        for event in parse(text, Loader=yaml.CSafeLoader):
            match event:
                case yaml.AliasEvent():
                    words = "aliases (`*name`) are not taken; write it out"
                    raise SkillError(_with_place(event.start_mark, words))
                case yaml.ScalarEvent():
                    self._take(event)
                case yaml.CollectionStartEvent():
                    self._open(event)
                case yaml.CollectionEndEvent():
                    self._depth -= 1
                    if self._depth == 1:
                        self._key = None
                case _:
                    pass
        return self._found

    def _open(self, event: "yaml.CollectionStartEvent") -> None:
        mark = event.start_mark
        if self._depth == 0 and not isinstance(event, yaml.MappingStartEvent):
            raise SkillError(_with_place(mark, _NO_KEYS))
        if self._depth == 1:
            if self._key is None:
                raise SkillError(_with_place(mark, "a key must be a text"))
            self._check_text(self._key, mark)
        self._depth += 1
        if self._depth > _DEPTH:
            raise SkillError(
                _with_place(mark, f"is nested more than {_DEPTH} deep; write it flatter")
            )

    def _take(self, event: "yaml.ScalarEvent") -> None:
        if self._depth == 0 and event.value:
            raise SkillError(_with_place(event.start_mark, _NO_KEYS))
        if self._depth != 1:
            return
        if self._key is None:
            if event.value in self._seen_keys:
                raise SkillError(
                    _with_place(event.start_mark, f"`{event.value[:40]}` is there twice")
                )
            self._seen_keys.add(event.value)
            self._key = event.value
            return
        key, self._key = self._key, None
        is_null = event.implicit[0] and event.value in _NOTHING
        if key in self._keys and not is_null:
            self._found[key] = event.value

    def _check_text(self, key: str, mark: "yaml.Mark") -> None:
        if key in self._keys:
            raise SkillError(_with_place(mark, f"`{key}` must be a text; put it in quotes"))
