"""Items of pytest: one per scenario, and one per action that is raced in it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.cli.suite.selection import Selection
from harness.judge.verdict import Verdict
from harness.play.config import Config
from harness.play.lexicon import protocol_lexicon
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome
from harness.scenario.families import scenario_paths_in
from harness.scenario.loader import Loaded, ScenarioError, check_id, load
from harness.scenario.model import Action
from harness.scenario.race_id import RaceId
from harness.scenario.races import placements
from harness.trace.surfaces import SESSION

Play = Callable[[Loaded], ScenarioOutcome]
Tell = Callable[[ScenarioOutcome], str]
PlayRace = Callable[[Loaded, Action, str], RaceOutcome]
TellRace = Callable[[RaceOutcome], str]


class _ScenarioFailed(Exception):
    """Error for a scenario or a race that did not pass; the text is its story."""


class ScenarioFile(pytest.File):
    """A `*.scenario.yaml` file, a `*.family.yaml` file with all its rows, or one of its rows."""

    config_of: Config
    play: Play
    tell: Tell
    race: PlayRace
    tell_race: TellRace
    selection: Selection
    ids: dict[str, Path]
    known_rules: tuple[str, ...] = ()
    # Whether failures go into a baseline.
    accepts: bool = False

    def collect(self) -> Iterable[pytest.Item]:
        """Collect the selected scenarios and races.

        An invalid file, or one whose id is taken, is a collection error of one line.
        """
        for path in scenario_paths_in(self.path):
            yield from self._items(path)

    def _items(self, path: Path) -> Iterable[pytest.Item]:
        try:
            loaded = load(
                path,
                rules=self.known_rules,
                capabilities=[capability.id for capability in self.config_of.book.capabilities],
                lexicon=protocol_lexicon(),
            )
            check_id(loaded, self.ids)
        except ScenarioError as error:
            raise self.CollectError(str(error)) from error
        surfaces = self.config_of.surfaces_of(loaded.scenario)
        for surface in surfaces if self.selection.scenarios else ():
            yield self._item(loaded.on_surface(surface))
        for action in loaded.scenario.race_actions if SESSION in surfaces else ():
            yield from self._races(loaded, action)

    def _item(self, loaded: Loaded) -> "ScenarioItem":
        # The node id is the scenario's id, so that it can be copied from pytest's output.
        item: ScenarioItem = ScenarioItem.from_parent(self, name=loaded.id, nodeid=loaded.id)  # pyright: ignore[reportUnknownMemberType]
        item.loaded, item.play, item.tell = loaded, self.play, self.tell
        item.accepts = self.accepts
        item.extra_keyword_matches.update(loaded.tags, loaded.scenario.covers)
        return item

    def _races(self, loaded: Loaded, action: Action) -> Iterable[pytest.Item]:
        positions = self.selection.positions(action)
        names = (
            [placement.position.name for placement in placements(loaded.scenario, action)]
            if positions
            else []
        )
        for position in positions:
            if not names or position not in ("", *names):
                continue
            name = str(RaceId(loaded.id, action, position))
            race: RaceItem = RaceItem.from_parent(self, name=name, nodeid=name)  # pyright: ignore[reportUnknownMemberType]
            race.loaded, race.action, race.only = loaded, action, position
            race.play, race.tell = self.race, self.tell_race
            race.accepts = self.accepts
            race.extra_keyword_matches.update(loaded.tags, loaded.scenario.covers)
            race.add_marker("race")
            yield race


class ScenarioItem(pytest.Item):
    """One scenario on the target of the run."""

    loaded: Loaded
    play: Play
    tell: Tell
    outcome: ScenarioOutcome | None = None
    accepts: bool = False

    def runtest(self) -> None:
        """Play and judge the scenario, and raise its outcome for pytest unless it passed."""
        outcome = self.outcome = self.play(self.loaded)
        reason = outcome.reason
        _raise_outcome(outcome.verdict, reason, lambda: self.tell(outcome), accepts=self.accepts)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Return the story instead of a traceback."""
        return _story(excinfo) or super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the item's place, for reports."""
        return self.loaded.path, 0, self.loaded.id


class RaceItem(pytest.Item):
    """One action at every position of a scenario's turn, or at the one named `only`."""

    loaded: Loaded
    action: Action
    only: str
    play: PlayRace
    tell: TellRace
    outcome: RaceOutcome | None = None
    accepts: bool = False

    def runtest(self) -> None:
        """Play and judge every placement, and raise the outcome for pytest unless all passed."""
        outcome = self.outcome = self.play(self.loaded, self.action, self.only)
        reason = outcome.reason
        _raise_outcome(outcome.verdict, reason, lambda: self.tell(outcome), accepts=self.accepts)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Return the story instead of a traceback."""
        return _story(excinfo) or super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the item's place, for reports."""
        return self.loaded.path, 0, self.name


def _raise_outcome(
    verdict: Verdict, reason: str, story: Callable[[], str], *, accepts: bool
) -> None:
    """Raise pytest's outcome for a verdict; return for PASS.

    With `accepts` a FAIL is an xfail: the end of the run decides what goes into the baseline.
    """
    match verdict:
        case Verdict.PASS:
            return
        case Verdict.KNOWN:
            pytest.xfail(reason)
        case Verdict.FAIL if accepts:
            pytest.xfail(f"for the baseline: {reason}")
        case Verdict.NOT_EXERCISED | Verdict.NOT_APPLICABLE:
            pytest.skip(f"{verdict}: {reason}")
        case _:
            raise _ScenarioFailed(story())


def _story(excinfo: Any) -> str:
    # pytest prints only the reason of an expected failure; its traceback would take 0.1 s to make.
    with_text = (_ScenarioFailed, pytest.xfail.Exception)
    return str(excinfo.value) if isinstance(excinfo.value, with_text) else ""
