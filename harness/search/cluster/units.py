"""Units of `harness run` on a cluster, and their results, as values."""

import base64
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from harness.play.config import Config
from harness.play.trace_header import files_beside
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome
from harness.report.results.server_starts import ServerStart
from harness.scenario.bundled import bundled_folder
from harness.scenario.identity import is_bundled
from harness.scenario.loader import Loaded
from harness.search.worker_processes import encode_config

PLAYER = "harness.search.cluster.player"
Outcome = ScenarioOutcome | RaceOutcome
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlayUnit:
    """A scenario to play, or one of its races if there is an `action`.

    `files` are those beside the scenario's own that it uses. The path of a bundled scenario is
    relative to their folder.
    """

    loaded: Loaded
    files: Mapping[str, bytes]
    confirms: bool
    earlier: ScenarioOutcome | None = None
    action: Any = ""
    only: str = ""

    @classmethod
    def of(cls, loaded: Loaded, **more: Any) -> "PlayUnit":
        """Return the unit of a scenario on this machine. Raises `OSError` if a file is missing."""
        if is_bundled(loaded.path):
            path = loaded.path.resolve().relative_to(bundled_folder())
            return cls(replace(loaded, path=path), {}, **more)
        beside = loaded.path.parent
        files = {name: (beside / name).read_bytes() for name in files_beside(loaded.scenario)}
        return cls(replace(loaded, path=loaded.path.absolute()), files, **more)


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a unit, or of the end of a program, which has no outcome.

    `traces` has the compressed file of each play by its id. `findings` outside any scenario, and
    `starts` of servers, are those since the result before. The seconds are a `WorkerSession`'s.
    """

    outcome: Outcome | None = None
    traces: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    findings: list[Finding] = field(default_factory=list[Finding])
    starts: list[ServerStart] = field(default_factory=list[ServerStart])
    start_seconds: float = 0.0
    answer_seconds: float = 0.0


def first_message(config: Config) -> dict[str, Any]:
    """Return the first line for a program."""
    # The controller keeps the traces and the deadline, whose clock is its own.
    plays = replace(config.plays, max_time=None, deadline=None)
    return {"config": encode_config(replace(config, run="", plays=plays))}


def encode(value: object) -> dict[str, Any]:
    """Return a unit or a result as a line for, or of, a program of the same version."""
    return {"value": base64.b64encode(pickle.dumps(value)).decode()}


def decode(line: Mapping[str, Any], kind: type[T]) -> T:
    """Return the value that `encode` encoded. Raises `TypeError` if it is of another kind."""
    value = pickle.loads(base64.b64decode(line["value"]))
    if not isinstance(value, kind):
        raise TypeError(f"expected a {kind.__name__}, got {type(value).__name__}")
    return value


def plays_of(outcome: Outcome) -> Iterator[ScenarioOutcome]:
    """Yield each play of an outcome that may have a trace."""
    yield from outcome.before
    yield from outcome.placements if isinstance(outcome, RaceOutcome) else [outcome]
