"""`pytest -m fuzz`: an item for each kind of generated case, all of them within `--max-time`.

`--sequences` adds the item of the covering sequences, whose plan has an end and no time. Failures
fail the item, with the text of `harness fuzz`.
"""

import argparse
import os
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.run_folders import failures_folder
from harness.errors import TargetError, UsageError
from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.report.results.rerun_command import Programs
from harness.report.sequence_coverage import coverage_lines
from harness.trace.surfaces import SESSION

MARK = "fuzz"
DEFAULT_SECONDS = 60.0
KINDS = ("inputs", "frames", "sessions")
SEQUENCES = "sequences"
Guard = Callable[[Callable[[str], None]], Callable[[str], None]]


class _FuzzFailed(Exception):
    """Error for a search that found failures; the text describes them."""


class FuzzItem(pytest.Item):
    """One kind of case, on the target of the run."""

    play: Callable[[str], None]

    def runtest(self) -> None:
        """Play generated cases of this kind; raise `_FuzzFailed` if the server goes wrong."""
        self.play(self.name.removeprefix(f"{MARK}/"))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Return the story instead of a traceback."""
        is_story = isinstance(excinfo.value, _FuzzFailed | UsageError)
        return str(excinfo.value) if is_story else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the item's place, for reports."""
        return Path(MARK), 0, self.name


class Fuzzing:
    """Pytest plugin that adds the items if `-m` names them.

    `results` are their results, each as `harness fuzz --json` prints it.
    """

    def __init__(
        self,
        pytest_config: pytest.Config,
        option: argparse.Namespace,
        config: Config,
        interruption: Interruption,
        guarded: Guard,
    ) -> None:
        wanted = KINDS if MARK in option.markexpr else ()
        wanted = (*wanted, SEQUENCES) if option.sequences is not None else wanted
        self._kinds = wanted if SESSION in config.surfaces else ()
        self._option = option
        self._config = config
        self._interruption = interruption
        self._play = guarded(self._search)
        self._sessions_follow = False
        self._spare_seconds = 0.0
        self.results: list[dict[str, Any]] = []
        pytest_config.addinivalue_line("markers", f"{MARK}: generated cases on the server")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add an item for each kind."""
        for kind in self._kinds:
            name = f"{MARK}/{kind}"
            item: FuzzItem = FuzzItem.from_parent(session, name=name, nodeid=name)  # pyright: ignore[reportUnknownMemberType]
            item.play = self._play
            item.add_marker(MARK)
            items.append(item)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note whether sessions follow the other kinds in this process, not in another worker."""
        names = {item.name for item in session.items}
        is_worker = hasattr(session.config, "workerinput")
        self._sessions_follow = f"{MARK}/sessions" in names and not is_worker

    def coverage_lines(self) -> Iterator[str]:
        """Yield what the sequences covered, as `harness fuzz` prints it."""
        for result in self.results:
            for search in result["searches"]:
                yield from coverage_lines(search.get("coverage", ()))

    def _search(self, kind: str) -> None:
        from harness.search.fuzz import result_text
        from harness.search.fuzz.case import RANDOM_KINDS, SHARES, kinds_of
        from harness.search.fuzz.run import Bounds, fuzz
        from harness.search.fuzz.run import FuzzResult as Result
        from harness.search.fuzz.store import open_store

        config, option = self._config, self._option
        # By default hypothesis would create a folder beside the user's files.
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(config.base / "hypothesis"))
        kinds = kinds_of(kind)
        total = DEFAULT_SECONDS if option.max_time is None else option.max_time
        seconds = self._spare_seconds + total * SHARES[kinds[0]] / sum(
            SHARES[other] for other in RANDOM_KINDS
        )
        bounds = Bounds(kinds, option.fuzz_seed, seconds, may_end_early=self._sessions_follow)
        if option.fuzz_conversations is not None:
            bounds = Bounds(kinds, option.fuzz_seed, None, option.fuzz_conversations)
        if kind == SEQUENCES:
            bounds = Bounds(kinds, seconds=option.max_time, ways=option.sequences)
        began = time.monotonic()
        # Workers may play several kinds at once, each with the files of its own kind.
        with open_store(failures_folder(), kinds) as store:
            try:
                result = fuzz(config, bounds, store, self._interruption)
            except TargetError as failed:
                note = f"{failed}; ask harness doctor what to do"
                result = Result(bounds, notes=[note], broke_off=True)
        self._spare_seconds = max(0.0, seconds - (time.monotonic() - began))
        target = Programs(config.option or config.profile.name, shlex.join(config.profile.command))
        words = target.options(SESSION)
        self.results.append(result_text.plain(result, store, words))
        story = "\n".join(result_text.lines(result, store, words))
        if result.red:
            raise _FuzzFailed(story)
        if result.interrupted_by:
            raise Interrupted(result.interrupted_by)
