"""Parts of messages about mistakes in the settings: place, suggestion, valid names.

A place is `path:line:column` in `config.toml`, or `--config key=value` of the command line.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reference_server.brief import brief

if TYPE_CHECKING:
    from reference_server.config.places import Places

Table = Mapping[str, Any]
Steps = tuple[int | str, ...]
MAX_NAMES_LISTED = 20
"""Maximum valid names in a message; if there are more, none is listed."""


class ConfigError(Exception):
    """The settings cannot be used; str() is one line that begins with the place of the mistake."""


class Source:
    """Text of the file and options of the command line, to name the place of a value.

    `argument_of` maps the steps to each value of the command line to its argument.
    """

    def __init__(self, path: Path, text: str, argument_of: Mapping[Steps, str]) -> None:
        self._path = path
        self._text = text
        self._argument_of = argument_of

    @cached_property
    def _places(self) -> "Places | None":
        from reference_server.config.places import Places

        try:
            return Places(self._text)
        except RecursionError:
            return None  # brackets nested more deeply than anything that has an effect

    def place(self, steps: Steps, *, of_key: bool = False) -> str:
        """Return the place of the value at `steps`, or of its key, as text.

        If the text lacks the value, it is the place of the nearest table around it.
        """
        for length in range(len(steps), 0, -1):
            known_steps = steps[:length]
            if argument := self._argument(known_steps):
                return f"--config {brief(argument)}"
            if self._places is not None and known_steps in self._places:
                place = self._places[known_steps]
                offset = place.key if of_key or length < len(steps) else place.value
                line, column = self._places.line_and_column(offset)
                return f"{self._path}:{line}:{column}"
        return f"{self._path}:1:1"

    def _argument(self, steps: Steps) -> str | None:
        """Return the argument that set the value at `steps`, None if the file did."""
        ways = (steps[:length] for length in range(len(steps), 0, -1))
        return next((self._argument_of[way] for way in ways if way in self._argument_of), None)


def suggestion(name: str, valid: Iterable[str]) -> str:
    """Return `; did you mean x?` with the most similar valid name; "" if none is similar."""
    import difflib  # slow to import, and needed only after a mistake

    names = list(valid)
    matches = difflib.get_close_matches(name[:100].lower(), names, 1)
    return f"; did you mean `{matches[0]}`?" if matches else ""


def choices(names: Iterable[str]) -> str:
    """Return `; there are: a, b` with the valid names; "" if they are none or too many."""
    sorted_names = sorted(names)
    return (
        f"; there are: {', '.join(sorted_names)}"
        if 0 < len(sorted_names) <= MAX_NAMES_LISTED
        else ""
    )
