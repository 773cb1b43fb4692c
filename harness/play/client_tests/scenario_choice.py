"""Choice of a connection's scenario: the one that its path names, else the next."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.errors import UsageError
from harness.judge.rules.discovery import all_rules
from harness.play.lexicon import protocol_lexicon
from harness.protocol.spec.loading import load_book
from harness.scenario.loader import Loaded, ScenarioError, load_all
from harness.scenario.scenario_names import named_files
from harness.trace.nearest import unknown_name
from harness.trace.surfaces import SESSION


class Choice:
    """Scenarios of one server, in the order of their ids.

    A single scenario is for every connection. Of several, each is used once for connections that
    name none; a connection that names a scenario always gets it.
    """

    def __init__(self, scenarios: Sequence[Loaded]) -> None:
        self._scenarios = {
            scenario.id: scenario for scenario in sorted(scenarios, key=lambda loaded: loaded.id)
        }
        self._begun: set[str] = set()

    @property
    def is_single(self) -> bool:
        """Return whether there is only one scenario."""
        return len(self._scenarios) == 1

    @property
    def unused_ids(self) -> list[str]:
        """Return the ids of the scenarios that no connection has begun, in order."""
        return [name for name in self._scenarios if name not in self._begun]

    @property
    def example_id(self) -> str:
        """Return the id of the first scenario."""
        return next(iter(self._scenarios))

    def error_for(self, path: str) -> str | None:
        """Return the error for a path without a scenario, else None.

        `path` is that of a WebSocket handshake: `/turns/plain-turn`, or `/` for the next scenario.
        """
        name = _name_in(path)
        if not name or name in self._scenarios:
            return None
        return unknown_name("scenario", name, self._scenarios)

    def take(self, path: str) -> Loaded | None:
        """Return the scenario for a connection to this path, now begun; None if none is left."""
        name = _name_in(path)
        if not name:
            remaining = list(self._scenarios) if self.is_single else self.unused_ids
            if not remaining:
                return None
            name = remaining[0]
        self._begun.add(name)
        return self._scenarios[name]


def _name_in(path: str) -> str:
    return unquote(urlsplit(path).path).strip("/")


def load_choice(words: Sequence[str]) -> Choice:
    """Return the session scenarios that the words name. Raises `UsageError` if one is wrong."""
    book = load_book()
    loaded: list[Loaded] = []
    for result in load_all(
        _files(words),
        rules=set(all_rules()),
        capabilities=[capability.id for capability in book.capabilities],
        lexicon=protocol_lexicon(),
        clientless=True,
    ):
        if isinstance(result, ScenarioError):
            raise UsageError(str(result))
        loaded.append(result)
    played = [scenario for scenario in loaded if SESSION in scenario.scenario.surfaces]
    if not played:
        surfaces = sorted({name for scenario in loaded for name in scenario.scenario.surfaces})
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
