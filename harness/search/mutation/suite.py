"""Scenarios of a mutation run (the bundled ones, on each surface), and its folder."""

from collections.abc import Collection
from pathlib import Path

from harness.judge.rules.discovery import all_rules
from harness.play.config import Config
from harness.play.lexicon import protocol_lexicon
from harness.scenario.bundled import bundled_files, bundled_folder
from harness.scenario.loader import Loaded, load
from harness.trace.surfaces import scenario_of, surface_id, surface_of


class Suite:
    """The bundled scenarios, each loaded when it is first asked for."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._rules = tuple(all_rules())
        self._capabilities = [capability.id for capability in config.book.capabilities]
        self._loaded: dict[str, Loaded] = {}

    def ids(self, names: Collection[str] | None = None) -> list[str]:
        """Return the ids on all surfaces, those of the session's surface first.

        Only those of the scenarios `names`, without loading others; None for all.
        """
        surfaces = self._config.surfaces
        ids = [
            surface_id(name, surface)
            for name in bundled_files()
            if names is None or name in names
            for surface in self._config.surfaces_of(self._load(name).scenario)
        ]
        return sorted(ids, key=lambda name: surfaces.index(surface_of(name)))

    def scenario(self, name: str) -> Loaded:
        """Return the scenario with this id on its surface. Raises `KeyError` for an unknown id."""
        return self._load(scenario_of(name)).on_surface(surface_of(name))

    def _load(self, name: str) -> Loaded:
        if name not in self._loaded:
            self._loaded[name] = load(
                bundled_files()[name],
                root=bundled_folder(),
                rules=self._rules,
                capabilities=self._capabilities,
                lexicon=protocol_lexicon(),
            )
        return self._loaded[name]


def base_of(config: Config) -> Path:
    """Create and return the folder of mutation runs, which keeps traces of other runs intact."""
    base = config.base / "mutation"
    base.mkdir(exist_ok=True)
    return base
