"""The file of durations by which scenarios are divided into shards."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from harness.errors import UsageError
from harness.protocol.escapes import json_text
from harness.protocol.values import obj
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome, seconds_of

VERSION: Final = 1


def read_durations(path: Path) -> dict[str, float]:
    """Return seconds by the id of a scenario or race. Raises `UsageError` if they are unusable."""
    try:
        plain = obj(json.loads(path.read_bytes()))
    except OSError as error:
        raise UsageError(f"--durations {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        plain = {}
    seconds: dict[Any, Any] = obj(plain.get("seconds"))
    if plain.get("durations") != VERSION or not all(map(_is_duration, seconds.values())):
        advice = "harness merge … --write-durations FILE writes one"
        raise UsageError(f"--durations {path}: not a file of durations of version 1; {advice}")
    return seconds


def _is_duration(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9


def durations_of(outcomes: Iterable[ScenarioOutcome | RaceOutcome]) -> dict[str, float]:
    """Return the seconds of what was played."""
    seconds = {outcome.id: round(seconds_of(outcome), 2) for outcome in outcomes}
    return {name: seconds[name] for name in sorted(seconds) if seconds[name] > 0}


def durations_text(seconds: Mapping[str, float]) -> str:
    """Return the text of a file of durations, one a line, so that its changes are short."""
    return json_text({"durations": VERSION, "seconds": dict(seconds)}, indent=1) + "\n"
