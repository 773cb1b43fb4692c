"""Scenarios of a mutation run (the bundled ones, on each surface), and its folder."""

from pathlib import Path

from harness.judge.rules.discovery import all_rules
from harness.play.config import Config
from harness.play.lexicon import protocol_lexicon
from harness.scenario.bundled import bundled_files, bundled_folder
from harness.scenario.loader import Loaded, load


def scenarios_of(config: Config) -> dict[str, Loaded]:
    """Return the bundled scenarios by id, those of the session's surface first."""
    scenarios: dict[str, Loaded] = {}
    rules, words = tuple(all_rules()), protocol_lexicon()
    capabilities = [capability.id for capability in config.book.capabilities]
    for path in bundled_files().values():
        loaded = load(
            path, root=bundled_folder(), rules=rules, capabilities=capabilities, lexicon=words
        )
        for surface in config.surfaces_of(loaded.scenario):
            on_surface = loaded.on_surface(surface)
            scenarios[on_surface.id] = on_surface
    return dict(sorted(scenarios.items(), key=lambda item: config.surfaces.index(item[1].surface)))


def base_of(config: Config) -> Path:
    """Create and return the folder of mutation runs, which keeps traces of other runs intact."""
    base = config.base / "mutation"
    base.mkdir(exist_ok=True)
    return base
