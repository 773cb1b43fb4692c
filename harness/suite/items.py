"""What pytest collects: one item per scenario file.

Here: the collector and the item, and how an outcome becomes passed, failed, skipped or xfailed.
Not here: options and hooks (plugin), playing and judging (session).
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.rules.verdict import Verdict
from harness.scenario.loader import Loaded, ScenarioError, load
from harness.suite.outcome import ScenarioOutcome
from harness.suite.session import Config

Play = Callable[[Loaded], ScenarioOutcome]
Tell = Callable[[ScenarioOutcome], str]


class ScenarioFailed(Exception):
    """A scenario's own verdict is not a pass; the text is its story."""


class ScenarioFile(pytest.File):
    """A `*.scenario.yaml` file."""

    config_of: Config
    root: Path
    play: Play
    tell: Tell

    def collect(self) -> Iterable[pytest.Item]:
        """One item; a file that cannot be used is a collection error in one line."""
        try:
            loaded = load(
                self.path,
                root=self.root,
                rules=self.known_rules,
                capabilities=[one.id for one in self.config_of.book.capabilities],
            )
        except ScenarioError as error:
            raise self.CollectError(str(error)) from error
        only = self.config_of.only_rule
        if only and self.covered and only not in loaded.scenario.covers:
            return
        item: ScenarioItem = ScenarioItem.from_parent(self, name=loaded.id)  # pyright: ignore[reportUnknownMemberType]
        item.loaded, item.play, item.tell = loaded, self.play, self.tell
        yield item

    known_rules: tuple[str, ...] = ()
    covered: bool = True


class ScenarioItem(pytest.Item):
    """One scenario on the target of the run."""

    loaded: Loaded
    play: Play
    tell: Tell
    outcome: ScenarioOutcome | None = None

    def runtest(self) -> None:
        """Play and judge it."""
        outcome = self.outcome = self.play(self.loaded)
        match outcome.verdict:
            case Verdict.PASS:
                return
            case Verdict.KNOWN:
                pytest.xfail(outcome.reason)
            case Verdict.NOT_EXERCISED | Verdict.NOT_APPLICABLE:
                pytest.skip(f"{outcome.verdict}: {outcome.reason}")
            case _:
                raise ScenarioFailed(self.tell(outcome))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """The story instead of a traceback of ours."""
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it stands, for reports."""
        return self.path, 0, self.loaded.id
