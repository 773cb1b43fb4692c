"""A parser of options that tells a mistake in one message, not behind ten lines of usage."""

import argparse
import difflib
from typing import NoReturn

from reference_server.cli.surroundings import UsageError

_UNKNOWN = "unrecognized arguments: "


class OneMessageParser(argparse.ArgumentParser):
    """A parser that tells mistakes by a `UsageError`."""

    def error(self, message: str) -> NoReturn:
        """Raise it, with the option that was meant where one was mistyped."""
        if message.startswith(_UNKNOWN):
            message = self._unknown(message.removeprefix(_UNKNOWN))
        told = message.removeprefix("argument ")
        raise UsageError(f"{self.prog}: {told}; see {self.prog} --help")

    def _unknown(self, words: str) -> str:
        first = words.split(" ", 1)[0].partition("=")[0]
        if not first.startswith("-"):
            return f"{words}: it takes options alone"
        near = difflib.get_close_matches(first, self._option_string_actions, 1)
        return f"there is no option {first}{f'; did you mean {near[0]}?' if near else ''}"


def whole_number(text: str) -> int:
    """A number of things, at least one."""
    try:
        found = int(text)
    except ValueError:
        found = 0
    if found < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number greater than 0, not {text}")
    return found


def seconds(text: str) -> float:
    """A time, greater than nothing."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    # NaN is greater than nothing no more than it is less.
    if not found > 0:
        raise argparse.ArgumentTypeError(f"must be seconds, greater than 0, not {text}")
    return found
