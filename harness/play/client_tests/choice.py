"""The scenario of a connection: the one that it names by its path, else the next."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.errors import UsageError
from harness.judge.rules.discovery import all_rules
from harness.play.lexicon import protocol_lexicon
from harness.protocol.spec.loading import load_book
from harness.scenario.loader import Loaded, ScenarioError, load_all
from harness.scenario.named import named_files
from harness.trace.nearest import unknown
from harness.trace.surfaces import SESSION


class Choice:
    """The scenarios of one server, in the order of their names.

    One alone is for every connection. Of several, each is for one connection that names none;
    by its name a scenario can be had any number of times.
    """

    def __init__(self, scenarios: Sequence[Loaded]) -> None:
        self._scenarios = {one.id: one for one in sorted(scenarios, key=lambda one: one.id)}
        self._begun: set[str] = set()

    @property
    def alone(self) -> bool:
        """Return whether there is one scenario only."""
        return len(self._scenarios) == 1

    @property
    def unused(self) -> list[str]:
        """The ids of the scenarios that no connection has begun, in order."""
        return [name for name in self._scenarios if name not in self._begun]

    @property
    def example(self) -> str:
        """The id of one of them."""
        return next(iter(self._scenarios))

    def missing(self, path: str) -> str | None:
        """Return the error for a path without a scenario, else None.

        `path` is that of a request for a WebSocket: `/turns/plain-turn`, or `/` for the next.
        """
        name = _named(path)
        if not name or name in self._scenarios:
            return None
        return unknown("scenario", name, self._scenarios)

    def take(self, path: str) -> Loaded | None:
        """The scenario of a connection that asks for this path; None where all were begun."""
        name = _named(path)
        if not name:
            left = list(self._scenarios) if self.alone else self.unused
            if not left:
                return None
            name = left[0]
        self._begun.add(name)
        return self._scenarios[name]


def _named(path: str) -> str:
    return unquote(urlsplit(path).path).strip("/")


def load_choice(words: Sequence[str]) -> Choice:
    """The scenarios of these files, folders and ids. Raises `UsageError` with one line."""
    book = load_book()
    loaded: list[Loaded] = []
    for one in load_all(
        _files(words),
        rules=set(all_rules()),
        capabilities=[capability.id for capability in book.capabilities],
        lexicon=protocol_lexicon(),
        clientless=True,
    ):
        if isinstance(one, ScenarioError):
            raise UsageError(str(one))
        loaded.append(one)
    played = [one for one in loaded if SESSION in one.scenario.surfaces]
    if not played:
        surfaces = sorted({name for one in loaded for name in one.scenario.surfaces})
        raise UsageError(
            f"--scenario {' '.join(words)}: of {', '.join(surfaces)} only; a server plays "
            f"scenarios of the {SESSION}"
        )
    return Choice(played)


def _files(words: Sequence[str]) -> list[Path]:
    try:
        return named_files(words)
    except UsageError as error:
        raise UsageError(f"--scenario {error}") from None
    except OSError as error:
        raise UsageError(f"--scenario {error.filename}: {error.strerror}") from error
