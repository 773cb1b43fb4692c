"""Replay of a stored failure: fixed, still failing, or flaky."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from harness.errors import UsageError
from harness.judge.verdict import Level
from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.play.lexicon import protocol_lexicon
from harness.play.session.servers import SetupFailed
from harness.scenario.loader import Loaded, load
from harness.scenario.yaml12 import ScenarioError
from harness.search.fuzz.sessions.play import Played, play_loaded
from harness.search.fuzz.sessions.search import open_search_bench
from harness.search.fuzz.store import SCENARIO, Store
from harness.trace.trace import Trace

Verdict = Literal["fixed", "fails", "flaky"]
REPLAYS = 3


@dataclass(frozen=True, slots=True)
class Case:
    """A case to replay. `cause` is the problem that must be gone; "" means any problem."""

    name: str
    loaded: Loaded
    cause: str = ""


@dataclass(slots=True)
class ReplayResult:
    """Results of all plays: `problems` has a line for each, "" for a play without the problem."""

    name: str
    cause: str
    problems: list[str] = field(default_factory=list[str])
    trace: Trace | None = None
    interrupted_by: str = ""

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of all plays together."""
        wrong = sum(1 for problem in self.problems if problem)
        return "fixed" if not wrong else "fails" if wrong == len(self.problems) else "flaky"


def case_of(word: str, store: Path, config: Config) -> Case:
    """Return the case of a failure's id in the store, or of a scenario file.

    Raises `UsageError` if there is none, or the scenario has a mistake.
    """
    path = Path(word)
    if not word.endswith(SCENARIO):
        path = store / f"{word}{SCENARIO}"
        if Path(word).name != word or not path.is_file():
            raise UsageError(f"{word} is neither a *{SCENARIO} file nor a failure in {store}")
    if not path.is_file():
        raise UsageError(f"{path} is no file")
    identity = path.name.removesuffix(SCENARIO)
    stored = Store(path.parent).find(identity)
    try:
        loaded = load(
            path,
            rules=list(config.rules),
            capabilities=[capability.id for capability in config.book.capabilities],
            lexicon=protocol_lexicon() if stored is None else None,
        )
    except ScenarioError as error:
        raise UsageError(str(error)) from error
    return Case(identity, loaded, stored.cause if stored else "")


def replay(config: Config, case: Case, interruption: Interruption) -> ReplayResult:
    """Play a case several times, each on a new process; a signal ends it early.

    Raises `SetupFailed` if the server is unusable.
    """
    result = ReplayResult(case.name, case.cause)
    gone: SetupFailed | None = None
    with interruption.defer_signals(), open_search_bench(config, "replay") as (portal, bench):
        # An exception raised within the block would be wrapped in an exception group.
        try:
            while len(result.problems) < REPLAYS:
                portal.call(bench.servers.retire_all)
                document = cast("dict[str, Any]", case.loaded.document.value)
                # The extra checks are for causes of sessions, which send nothing invalid.
                looks = case.cause.startswith("fuzz.")
                once = partial(play_loaded, bench, config, case.loaded, document, looks=looks)
                played = interruption.wait(portal.start_task_soon(once))
                problem = problem_in(played, case.cause)
                result.problems.append(problem)
                if problem or result.trace is None:
                    result.trace = played.run.trace
        except Interrupted as signal:
            result.interrupted_by = str(signal)
        except SetupFailed as failed:
            gone = failed
    if gone is not None:
        raise gone
    return result


def problem_in(played: Played, cause: str) -> str:
    """Return a play's problem on one line: that of the cause, without a cause any MUST; else ""."""
    for problem in played.problems:
        if problem.habit and not played.unmet:
            continue  # Legal: the server chose otherwise than the document expects.
        if problem.cause == cause or (not cause and problem.level is Level.MUST):
            return problem.text
    return played.unmet if not cause else ""
