"""A failure, played again: fixed, still there, or there only sometimes."""

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
from harness.search.fuzz.sessions.search import opened
from harness.search.fuzz.store import SCENARIO, Store
from harness.trace.trace import Trace

Verdict = Literal["fixed", "fails", "flaky"]
PLAYS = 3


@dataclass(frozen=True, slots=True)
class Case:
    """A case to play again. `cause` is what must not show; "" for anything that is wrong."""

    name: str
    loaded: Loaded
    cause: str = ""


@dataclass(slots=True)
class Replayed:
    """The results of all plays: in each the line that tells what was wrong, "" for nothing."""

    name: str
    cause: str
    told: list[str] = field(default_factory=list[str])
    trace: Trace | None = None
    interrupted: str = ""

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of all plays together."""
        wrong = sum(1 for problem in self.told if problem)
        return "fixed" if not wrong else "fails" if wrong == len(self.told) else "flaky"


def case_of(word: str, store: Path, config: Config) -> Case:
    """A failure by its id in the store, or a scenario's file. Raises `UsageError`."""
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


def replay(config: Config, case: Case, interruption: Interruption) -> Replayed:
    """Play it, each time on a new process. Raises `SetupFailed` where the server cannot be used."""
    result = Replayed(case.name, case.cause)
    gone: SetupFailed | None = None
    with interruption.defer_signals(), opened(config, "replay") as (portal, bench):
        # Raised within the block, it would come out as a group of errors.
        try:
            while len(result.told) < PLAYS:
                portal.call(bench.servers.retire_all)
                document = cast("dict[str, Any]", case.loaded.document.value)
                # Only a session that sends nothing wrong was looked at for what no rule judges.
                looks = case.cause.startswith("fuzz.")
                once = partial(play_loaded, bench, config, case.loaded, document, looks=looks)
                played = interruption.wait(portal.start_task_soon(once))
                problem = wrong_in(played, case.cause)
                result.told.append(problem)
                if problem or result.trace is None:
                    result.trace = played.run.trace
        except Interrupted as signal:
            result.interrupted = str(signal)
        except SetupFailed as failed:
            gone = failed
    if gone is not None:
        raise gone
    return result


def wrong_in(played: Played, cause: str) -> str:
    """Return what is wrong in a play, in a line: the cause, or without one any that must not be."""
    for problem in played.problems:
        if problem.habit and not played.unmet:
            continue  # What it did is its choice; the document demands what it mostly does.
        if problem.cause == cause or (not cause and problem.level is Level.MUST):
            return problem.text
    return played.unmet if not cause else ""
