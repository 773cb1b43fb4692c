"""An option parser that reports a mistake in one message, not after ten lines of usage."""

import argparse
import difflib
from typing import NoReturn

from reference_server.cli.surroundings import UsageError

_UNKNOWN = "unrecognized arguments: "


_WITHOUT_EFFECT = {
    "--stdio": "the same as --listen stdio://",
    "--strict-config": "taken, without effect",
    "--analytics-default-enabled": "taken, without effect",
}
"""Options that clients pass to a release of Codex."""


class OneMessageParser(argparse.ArgumentParser):
    """A parser that reports mistakes as a `UsageError`."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError; for an unknown option it suggests the most similar one."""
        if message.startswith(_UNKNOWN):
            message = self._unknown_option(message.removeprefix(_UNKNOWN))
        text = message.removeprefix("argument ")
        raise UsageError(f"{self.prog}: {text}; see {self.prog} --help")

    def _unknown_option(self, words: str) -> str:
        first = words.split(" ", 1)[0].partition("=")[0]
        if not first.startswith("-"):
            return f"{words}: it takes options alone"
        matches = difflib.get_close_matches(first, self._option_string_actions, 1)
        return f"there is no option {first}{f'; did you mean {matches[0]}?' if matches else ''}"


def whole_number(text: str) -> int:
    """Parse a whole number of at least 1. Raises ArgumentTypeError."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number greater than 0, not {text}")
    return number


def seconds(text: str) -> float:
    """Parse a time in seconds, greater than 0. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    # NaN is not greater than 0 either.
    if not number > 0:
        raise argparse.ArgumentTypeError(f"must be seconds, greater than 0, not {text}")
    return number


def add_options_without_effect(parser: argparse.ArgumentParser) -> None:
    """Add the options that clients of Codex pass to its `app-server` and that change nothing."""
    for option, words in _WITHOUT_EFFECT.items():
        parser.add_argument(option, action="store_true", help=words)
