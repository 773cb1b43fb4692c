"""Collection of a run with a target: scenarios, and the user's own tests."""

import argparse
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli.suite.arguments import RunArguments, deselected_ids, parse_arguments
from harness.cli.suite.failures import Failing
from harness.cli.suite.fuzz_items import FuzzItem
from harness.cli.suite.item_selection import (
    choose_items,
    drop_later_items,
    unique_items,
    unknown_tag,
    unplayed_by_sdk,
    why_nothing_played,
)
from harness.cli.suite.items import RaceItem, ScenarioFile, ScenarioItem
from harness.cli.suite.selection import Selection, selection, tags
from harness.cli.suite.sharding import Sharding
from harness.cli.suite.unused_words import unused_word
from harness.judge.rules.discovery import all_rules
from harness.play.config import Config
from harness.scenario.bundled import bundled_files, bundled_ids
from harness.scenario.identity import FAMILY, SUFFIX, SUFFIXES, scenario_id
from harness.scenario.race_id import RaceId

Playable = ScenarioItem | RaceItem


def read_arguments(config: pytest.Config) -> RunArguments:
    """Return the arguments of the run; leave pytest only the paths and the ids to deselect.

    Raises `UsageError` if a word names no scenario, race or rule.
    """
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        arguments = parse_arguments(config.args, scenarios_only=config.option.harness_run)
        arguments.plays_everything = not (arguments.paths or arguments.picks)
    else:
        arguments = RunArguments(list(config.args), plays_everything=True)
    if arguments.plays_everything and (arguments.rules or config.option.harness_run):
        arguments.paths.clear()
    config.args = arguments.paths
    config.option.deselect = deselected_ids(config.option.deselect or ())
    return arguments


class Collecting:
    """Pytest plugin that collects scenarios.

    `unplayed` is the reason why nothing is played, if that ends the run with exit status `status`;
    `note` is a message for a run that goes on.
    """

    def __init__(
        self,
        pytest_config: pytest.Config,
        option: argparse.Namespace,
        config: Config,
        arguments: RunArguments,
        failing: Failing,
        furnish: Callable[[ScenarioFile], None],
        is_interrupted: Callable[[], bool],
        sharding: Sharding | None = None,
    ) -> None:
        self._option = option
        self.unplayed = self.note = ""
        self.status = pytest.ExitCode.OK
        self._pytest = pytest_config
        self._config = config
        self._arguments = arguments
        self._failing = failing
        self._furnish = furnish
        self._is_interrupted = is_interrupted
        self._sharding = sharding
        self._is_worker = hasattr(pytest_config, "workerinput")
        self._selection = selection(option.race, option.markexpr)
        self._tags = tags(option.tag)
        self._known_rules = tuple(all_rules())
        self._ids: dict[str, Path] = {}
        self._has_own = False
        self._seen_tags: set[str] = set()

    @pytest.hookimpl
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Collect scenario files below the given paths."""
        if not file_path.name.endswith(SUFFIXES):
            return None
        self._has_own = True
        return self._file(file_path, parent, self._selection)

    def _file(self, path: Path, parent: pytest.Collector, chosen: Selection) -> ScenarioFile:
        identity = scenario_id(path).removesuffix(FAMILY)
        name = identity + (FAMILY if path.name.endswith(FAMILY) else SUFFIX)
        file: ScenarioFile = ScenarioFile.from_parent(parent, path=path, nodeid=name)  # pyright: ignore[reportUnknownMemberType]
        file.config_of, file.selection, file.ids = self._config, chosen, self._ids
        file.known_rules = self._known_rules
        self._furnish(file)
        return file

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> pytest.CollectReport | None:
        """Collect every scenario file even with `--lf`, which then chooses among its items.

        pytest would skip files that are not the path of a failed node; our ids are not paths.
        """
        if not isinstance(collector, ScenarioFile):
            return None
        runner: Any = self._pytest.pluginmanager.get_plugin("runner")
        return runner.pytest_make_collect_report(collector)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Add the scenarios named by id and the bundled ones; drop those not selected.

        This runs first, so that `-k`, `-m`, `--deselect` and `--lf` see all of them.
        """
        for path, chosen in self._arguments.picks.items():
            items += self._items(session, path, chosen or self._selection)
        if self._adds_bundled():
            for path in bundled_files().values():
                items += self._items(session, path, self._selection)
        items[:] = unique_items(items)
        self._seen_tags.update(*(item.loaded.tags for item in items if isinstance(item, Playable)))
        dropped = drop_later_items(items, self._config.suite)
        dropped += choose_items(items, self._config.only_rules, self._tags)
        if dropped:
            config.hook.pytest_deselected(items=dropped)

    def _items(
        self, session: pytest.Session, path: Path, chosen: Selection
    ) -> Iterator[pytest.Item]:
        return session.genitems(self._file(path, session, chosen))

    def _adds_bundled(self) -> bool:
        """Return whether to add the bundled scenarios, because the arguments name none."""
        option = self._option
        if option.no_bundled:
            return False
        if self._arguments.plays_everything:
            return True
        return not (option.harness_run or self._has_own or self._arguments.picks)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Explain the problem of a file name that nothing collects."""
        try:
            return (yield)
        except pytest.UsageError as error:
            self.unplayed = ""  # The error below is a better reason.
            if self._arguments.odd:
                raise pytest.UsageError(*self._arguments.odd) from error
            raise

    @pytest.hookimpl
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """End a run that has a server but nothing to play on it; run no tests either."""
        if self._is_worker or self._failing.distributes:
            return  # Workers report their items to the controller.
        playable = [item for item in session.items if isinstance(item, Playable | FuzzItem)]
        sharding = self._sharding
        self._check_played(sharding.ids if sharding else [item.nodeid for item in playable])
        if self.unplayed:
            session.items.clear()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """End a run with nothing to play if workers collect; only ids of tests have colons.

        A shard is checked when its workers have ended: only they know the scenarios of the others.
        """
        if self._sharding is not None:
            return
        self._check_played([node_id for node_id in ids if "::" not in node_id])
        if self.unplayed:
            self._failing.interrupt("nothing to play on the server")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Check a shard that workers played."""
        try:
            return (yield)
        finally:
            if self._sharding is not None and self._failing.distributes:
                self._check_played(self._sharding.ids)

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """End the run before it begins if a scenario file is invalid, with workers too."""
        is_scenario = report.failed and report.nodeid.endswith(SUFFIXES)
        if is_scenario and not self._option.continue_on_collection_errors:
            self._failing.interrupt("a scenario file cannot be used")

    def _check_played(self, ids: list[str]) -> None:
        option = self._option
        broken_off = self._failing.failed_count or self._is_interrupted()
        if option.collectonly or broken_off:
            return
        if ids:
            played = bundled_files().values() if self._adds_bundled() else self._arguments.picks
            notes = (self._without_bundled(ids), unplayed_by_sdk(self._config, played))
            promised = self._config.profile.capabilities
            unused = unused_word(option, ids, self._own_paths(), self._config.rules, promised)
            if unused.startswith("--tag"):
                unused = unknown_tag(option, self._seen_tags) or unused
            if unused and not option.no_bundled:
                self.status, self.unplayed = pytest.ExitCode.USAGE_ERROR, unused
                return
            # The options may be in the user's addopts, and so in every run.
            self.note = "\n".join(filter(None, (*notes, unused)))
            return
        odd_tag = unknown_tag(option, self._seen_tags)
        reason = odd_tag or why_nothing_played(option, self._arguments)
        if option.no_bundled and not odd_tag:
            self.note = f"no scenario was played on the server: {reason}"
            return
        self.status = pytest.ExitCode.USAGE_ERROR if odd_tag else pytest.ExitCode.NO_TESTS_COLLECTED
        nothing = "a server was given, and no scenario is left to play on it"
        self.unplayed = f"{nothing}: {reason}" if reason else nothing

    def _own_paths(self) -> list[Path]:
        """Return the files and folders in which the user's own scenarios may be."""
        return [
            *self._arguments.named_paths(),
            *(Path(word.split("::", 1)[0]) for word in self._pytest.args),
        ]

    def _without_bundled(self, ids: list[str]) -> str:
        """Return a note that the user's own scenarios are played instead of the bundled ones."""
        is_chosen = self._option.no_bundled or self._option.harness_run or self._arguments.picks
        if is_chosen or self._arguments.plays_everything:
            return ""
        own_ids = [
            node_id for node_id in ids if RaceId.parse(node_id).scenario not in bundled_ids()
        ]
        first = f"bundled scenarios were not added, since {own_ids[0]} was found" if own_ids else ""
        return f"{first}; name `bundled` to add them" if own_ids else ""
