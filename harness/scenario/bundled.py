"""Where the scenarios that ship with the harness lie: in the wheel, or beside it in a checkout."""

from pathlib import Path

import harness
from harness.scenario.loader import find, scenario_id


def bundled_folder() -> Path:
    """The folder of the bundled scenarios."""
    package = Path(harness.__file__).parent
    shipped = package / "bundled_scenarios"
    return shipped if shipped.is_dir() else package.parent / "scenarios"


def bundled_ids() -> set[str]:
    """The ids of the bundled scenarios, by their files' names alone."""
    root = bundled_folder()
    return {scenario_id(file, root) for _, file in find([root])}
