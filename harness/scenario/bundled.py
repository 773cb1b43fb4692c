"""Where the scenarios that ship with the harness lie: in the wheel, or beside it in a checkout."""

from pathlib import Path

import harness


def bundled_folder() -> Path:
    """The folder of the bundled scenarios."""
    package = Path(harness.__file__).parent
    shipped = package / "bundled_scenarios"
    return shipped if shipped.is_dir() else package.parent / "scenarios"
