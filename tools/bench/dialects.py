"""The cost of a dialect on a turn: the same turns with and without it, by turns in rounds."""

from pathlib import Path

from tools.bench import measures
from tools.bench.client import MeasurementFailed
from tools.bench.stats import Absent, Cell, Figure, median
from tools.bench.targets import Target

KEYS = ("dialect-turn", "dialect-turn-cpu")
DIALECT = "codex"
ROUNDS = 5


def all_of(reference: Target, model_url: str, folder: Path) -> dict[str, Cell]:
    """Return what the newest dialect adds to a trivial turn, in per cent of its time and CPU."""
    profile = reference.profile
    words = [*profile.command, "--dialect", DIALECT]
    dialect = Target(DIALECT, profile.model_copy(update={"command": words}), folder / DIALECT)
    dialect.folder.mkdir()
    shares: dict[str, list[float]] = {"turn-p50": [], "turn-cpu": []}
    try:
        for _ in range(ROUNDS):
            plain = measures.trivial_turns(reference, model_url, measures.FULL)
            spoken = measures.trivial_turns(dialect, model_url, measures.FULL)
            for key, values in shares.items():
                before, after = plain[key], spoken[key]
                if isinstance(before, Figure) and isinstance(after, Figure):
                    values.append((after.value / before.value - 1) * 100)
        figures = [median(values) for values in shares.values()]
    except (MeasurementFailed, OSError, ValueError, ZeroDivisionError) as error:
        return dict.fromkeys(KEYS, Absent(f"failed: {error}"))
    return dict(zip(KEYS, figures, strict=True))
