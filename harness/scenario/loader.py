"""Loader of scenario files; a mistake is one line, `path:line:column: mistake, advice`."""

import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.protocol.escapes import is_utf8
from harness.protocol.values import obj
from harness.scenario.client_tests import find_client_test_mistake
from harness.scenario.explain import add_mistakes, unknown_name
from harness.scenario.families import load_family, scenario_paths_in
from harness.scenario.faults import find_fault_mistake
from harness.scenario.filling import Filling
from harness.scenario.identity import (
    FAMILY,
    SUFFIX,
    SUFFIXES,
    root_of,
    row_of_path,
    scenario_id,
)
from harness.scenario.lexicon import Lexicon
from harness.scenario.mended import mended_scenario
from harness.scenario.model import Scenario
from harness.scenario.name_checks import NameChecker
from harness.scenario.spelling_checks import SpellingChecker
from harness.scenario.surfaces import commands_needed, find_unplayable
from harness.scenario.workspace import CopiedFile
from harness.scenario.yaml12 import Document, Mistakes, ScenarioError, parse, parse_file
from harness.trace.surfaces import SESSION, surface_id

__all__ = [
    "SUFFIX",
    "Loaded",
    "ScenarioError",
    "check_id",
    "describe_empty_folders",
    "fill_in_filler",
    "find_scenarios",
    "load",
    "load_all",
    "load_scenario",
    "load_text",
    "scenario_id",
]


NO_TURN = "no-turn"
"""The tag of scenarios that start no turn, and so need no model behind the server."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded scenario with its file, the place of each value, and the surface to play it on."""

    id: str
    path: Path
    scenario: Scenario
    document: Document
    surface: str = SESSION

    def on_surface(self, surface: str) -> "Loaded":
        """Return the scenario for another surface, with an id such as `turns/plain-turn@exec`.

        It also needs the capability of that surface's command.
        """
        needs = [*commands_needed(self.scenario, surface), *self.scenario.needs]
        scenario = self.scenario.model_copy(update={"needs": list(dict.fromkeys(needs))})
        return replace(self, id=surface_id(self.id, surface), surface=surface, scenario=scenario)

    def thread_markers(self) -> dict[str, str]:
        """Return alias -> unique marker for each thread's first text; {} for a single thread."""
        aliases = list(self.scenario.scripts())
        if len(aliases) < 2:
            return {}
        return {alias: f"[thread {alias} {zlib.crc32(self.id.encode()):08x}]" for alias in aliases}

    def line_of(self, *loc: str | int) -> int:
        """Return the line number of a part of the file, given by its path."""
        return self.document.place(loc)[0]

    @property
    def tags(self) -> frozenset[str]:
        """Return its tags, its needs, its area (the first folder of its id), and its surface.

        The session is not a tag.
        """
        area = [self.id.split("/", 1)[0]] if "/" in self.id else []
        surface = [self.surface] if self.surface != SESSION else []
        turnless = [] if self.scenario.starts_turns else [NO_TURN]
        return frozenset([*area, *surface, *turnless, *self.scenario.needs, *self.scenario.tags])


def load_scenario(path: Path | str) -> Scenario:
    """Load a scenario whose client's side is not played. Raises `ScenarioError` for a mistake.

    The client's side may be missing, and its filler texts are not made.
    """
    return load(Path(path), clientless=True, client_texts=False).scenario


def load(
    path: Path,
    *,
    root: Path | None = None,
    rules: Collection[str] | None = None,
    capabilities: Collection[str] | None = None,
    lexicon: Lexicon | None = None,
    clientless: bool = False,
    client_texts: bool = True,
) -> Loaded:
    """Load and check one file. Its id is relative to `root`, or to the root of the file.

    The path may be that of a family's row, which is not a file: the scenario then has the path of
    its family, and places there. `rules` and `capabilities` are the names that `covers` and `needs`
    may hold, `lexicon` has the protocol's names; None leaves them unchecked. A file without
    `client` is rejected unless the caller does not play that side (`clientless`); without
    `client_texts` that side has no filler texts. Raises `ScenarioError` for a mistake.
    """
    identity, row = scenario_id(path, root), row_of_path(path)
    if not is_utf8(identity):
        raise ScenarioError(path, (1, 1), "the id is not UTF-8; rename the file, or its folder")
    if path.name.endswith(FAMILY):
        names = ", ".join(load_family(path).names())
        message = f"a family of scenarios; name one of them, or their folder of ids: {names}"
        raise ScenarioError(path, (1, 1), message)
    if row is None:
        document = parse_file(path)
        loaded = _check_document(
            document, path, identity, rules, capabilities, lexicon, client_texts
        )
        return loaded if clientless else _require_client(loaded)
    family, name = load_family(row[0]), row[1]
    try:
        document = family.scenario(name)
        loaded = _check_document(
            document, family.path, identity, rules, capabilities, lexicon, client_texts
        )
        return loaded if clientless else _require_client(loaded)
    except ScenarioError as error:
        raise error.in_row(family.describe_row(name)) from error


def load_all(
    files: Iterable[Path],
    *,
    rules: Collection[str] | None = None,
    capabilities: Collection[str] | None = None,
    lexicon: Lexicon | None = None,
    clientless: bool = False,
) -> Iterator[Loaded | ScenarioError]:
    """Yield each file's scenario, or its error; a second file with the same id is an error.

    A mistake that several rows of a family share is yielded once.
    """
    paths_by_id: dict[str, Path] = {}
    reported: set[tuple[str, tuple[int, int], str]] = set()
    for file in files:
        try:
            loaded = load(
                file,
                rules=rules,
                capabilities=capabilities,
                lexicon=lexicon,
                clientless=clientless,
            )
            check_id(loaded, paths_by_id)
        except ScenarioError as error:
            new = [
                mistake
                for mistake in error.all_mistakes()
                if (mistake.path, mistake.place, mistake.message) not in reported
            ]
            reported |= {(mistake.path, mistake.place, mistake.message) for mistake in new}
            if new:
                first, *others = new
                yield ScenarioError(
                    first.path, first.place, first.message, first.row, tuple(others)
                )
        else:
            yield loaded


def check_id(loaded: Loaded, paths_by_id: dict[str, Path]) -> None:
    """Add the id of a file to `paths_by_id`. Raises `ScenarioError` if another file has it."""
    path = loaded.path.resolve()
    other = paths_by_id.setdefault(loaded.id, path)
    if other != path:
        message = f"its id {loaded.id} is that of {other} too; rename one, or use them apart"
        raise ScenarioError(loaded.path, (1, 1), message)


def load_text(text: str, *, name: str = "scenario", lexicon: Lexicon | None = None) -> Loaded:
    """Load a scenario from a text, for tests and tools. Raises `ScenarioError` for a mistake."""
    return _require_client(
        _check_document(parse(text.encode(), name), Path(name), name, None, None, lexicon)
    )


def _require_client(loaded: Loaded) -> Loaded:
    """Return the scenario. Raises `ScenarioError` if it has no client's side."""
    if loaded.scenario.is_clientless:
        document = loaded.document
        message = (
            "it has no client, so it can only be played to a client of yours: agent app-server "
            f"--listen ws://127.0.0.1:0 --scenario {loaded.path}; or add client: with its steps"
        )
        raise ScenarioError(loaded.path, document.place(()), message)
    return loaded


def find_scenarios(paths: Iterable[Path]) -> list[tuple[Path, Path]]:
    """Return all scenario files below the paths, as (root, file), without duplicates.

    Files of a folder are sorted. The root is the folder that the file's id is relative to, whatever
    path led to it. A family yields the paths of its rows, in the order of its table.
    """
    paths_found: dict[Path, None] = {}
    for path in paths:
        files = sorted(_scenario_files_below(path)) if path.is_dir() else [path]
        for file in files:
            paths_found |= dict.fromkeys(scenario_paths_in(file))
    return [(root_of(file), file) for file in paths_found]


def describe_empty_folders(paths: Iterable[Path]) -> list[str]:
    """Return a message for each folder without a scenario."""
    return [
        f"{path}: no file below this folder has a name that ends in {SUFFIX} or {FAMILY}"
        for path in paths
        if path.is_dir() and next(_scenario_files_below(path), None) is None
    ]


def _scenario_files_below(folder: Path) -> Iterator[Path]:
    return (file for suffix in SUFFIXES for file in folder.rglob(f"*{suffix}"))


def _check_document(
    document: Document,
    path: Path,
    identity: str,
    rules: Collection[str] | None,
    capabilities: Collection[str] | None,
    lexicon: Lexicon | None,
    client_texts: bool = True,
) -> Loaded:
    if not obj(document.value):
        message = "expected a mapping with title, model, client; found no mapping"
        raise ScenarioError(path, document.place(()), message)
    value = Filling(document, path, identity, client=client_texts).filled_value()
    mistakes = Mistakes(path, document)
    try:
        scenario = Scenario.model_validate(value)
    except ValidationError as error:
        add_mistakes(error, document, mistakes)
        scenario = mended_scenario(value, error)
    if scenario is not None:
        _check_scenario(scenario, path, rules, capabilities, lexicon, mistakes)
    found = mistakes.error
    if scenario is None or found is not None:
        assert found is not None, "a scenario that is not valid has a mistake"
        raise found
    return Loaded(identity, path, scenario, document)


def _check_scenario(
    scenario: Scenario,
    path: Path,
    rules: Collection[str] | None,
    capabilities: Collection[str] | None,
    lexicon: Lexicon | None,
    mistakes: Mistakes,
) -> None:
    """Add mistakes that only show in a scenario of valid types."""
    NameChecker(scenario, mistakes).check()
    problem = (
        find_unplayable(scenario)
        or find_fault_mistake(scenario.faults, scenario.surfaces, bool(scenario.race_actions))
        or find_client_test_mistake(scenario)
    )
    if problem is not None:
        mistakes.add(*problem)
    _check_copied_files(scenario, path, mistakes)
    if scenario.expect.violations and not scenario.faults:
        message = "violations goes with faults: a server is expected to break no rule"
        mistakes.add(("expect", "violations"), message, key=True)
    for loc, names, valid in (
        (("covers",), scenario.covers, rules),
        (("expect", "violations"), scenario.expect.violations, rules),
        (("needs",), scenario.needs, capabilities),
    ):
        key, kind = loc[-1], "capability" if loc == ("needs",) else "rule id"
        for index, name in enumerate(names):
            if valid is not None and name not in valid:
                message = unknown_name(kind, name, valid)
                if any(mark in name for mark in "*?["):
                    message = f"{name!r} is a pattern, and {key} takes none: name each {kind}"
                mistakes.add((*loc, index), message)
    if lexicon is not None:
        SpellingChecker(scenario, lexicon, mistakes).check()


def _check_copied_files(scenario: Scenario, path: Path, mistakes: Mistakes) -> None:
    """Check that files to be copied into the workspace lie beside the scenario's file."""
    for name, content in scenario.workspace.files.items():
        if isinstance(content, CopiedFile) and not (path.parent / content.source).is_file():
            message = f"there is no file {content.source!r} beside this one"
            mistakes.add(("workspace", "files", name, "from"), message)


def fill_in_filler(document: Document, path: Path, identity: str) -> Any:
    """Return a document's value, fillers replaced. Raises `ScenarioError` for an invalid filler."""
    return Filling(document, path, identity).filled_value()
