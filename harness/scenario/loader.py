"""From a file to a scenario: every mistake is one line, `path:line:column: what, what to do`."""

import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.protocol.values import obj
from harness.scenario.explain import first_mistake, unknown
from harness.scenario.families import load_family, scenarios_in
from harness.scenario.faults import mistake_in
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
from harness.scenario.model import CopiedFile, Scenario
from harness.scenario.names import Names
from harness.scenario.spelling import Spelling
from harness.scenario.surfaces import commands_needed, unplayable
from harness.scenario.yaml12 import Document, ScenarioError, parse, parse_file
from harness.trace.surfaces import SESSION, surface_id

__all__ = [
    "SUFFIX",
    "Loaded",
    "ScenarioError",
    "check_id",
    "find",
    "load",
    "load_all",
    "load_scenario",
    "load_text",
    "scenario_id",
    "with_filler",
    "without",
]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A scenario, where it came from, and where each of its steps stands.

    `surface` is the one on which it is played.
    """

    id: str
    path: Path
    scenario: Scenario
    document: Document
    surface: str = SESSION

    def on(self, surface: str) -> "Loaded":
        """The scenario as it is played on another surface: `turns/plain-turn@exec`.

        It needs the command that it is played by too.
        """
        needs = [*commands_needed(self.scenario, surface), *self.scenario.needs]
        scenario = self.scenario.model_copy(update={"needs": list(dict.fromkeys(needs))})
        return replace(self, id=surface_id(self.id, surface), surface=surface, scenario=scenario)

    def markers(self) -> dict[str, str]:
        """With several scripted threads, a nonce for each thread's first user text."""
        aliases = list(self.scenario.scripts())
        if len(aliases) < 2:
            return {}
        return {alias: f"[thread {alias} {zlib.crc32(self.id.encode()):08x}]" for alias in aliases}

    def line(self, *loc: str | int) -> int:
        """The line of a part of the file."""
        return self.document.place(loc)[0]

    @property
    def tags(self) -> frozenset[str]:
        """Its own tags, what it needs, its area, the first folder of its id, and its surface, where
        that is not the session.
        """
        area = [self.id.split("/", 1)[0]] if "/" in self.id else []
        surface = [self.surface] if self.surface != SESSION else []
        return frozenset([*area, *surface, *self.scenario.needs, *self.scenario.tags])


def load_scenario(path: Path | str) -> Scenario:
    """The scenario in a file, for its model's side alone. Raises `ScenarioError`.

    It may be without a client's side, which has no filler texts here.
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
    """Load and check one file. Its id is told below `root`, or below the folder of its kind.

    The path may be that of a family's row, which is no file: the scenario has the path of its
    family then, and its places there. `rules` and `capabilities` are the names that `covers` and
    `needs` may hold, `lexicon` has the words of the protocol; None leaves them unchecked (the
    loader knows none of them). A file without `client` is refused unless `clientless` says that
    the caller does not play that side; without `client_texts` that side has no filler texts.
    Raises `ScenarioError`.
    """
    identity, row = scenario_id(path, root), row_of_path(path)
    if path.name.endswith(FAMILY):
        names = ", ".join(load_family(path).names())
        message = f"a family of scenarios; name one of them, or their folder of ids: {names}"
        raise ScenarioError(path, (1, 1), message)
    if row is None:
        document = parse_file(path)
        loaded = _checked(document, path, identity, rules, capabilities, lexicon, client_texts)
        return loaded if clientless else _with_client(loaded)
    family, name = load_family(row[0]), row[1]
    try:
        document = family.scenario(name)
        loaded = _checked(
            document, family.path, identity, rules, capabilities, lexicon, client_texts
        )
        return loaded if clientless else _with_client(loaded)
    except ScenarioError as error:
        told = family.told(name)
        raise ScenarioError(error.path, error.place, error.message, told) from error


def load_all(
    files: Iterable[Path],
    *,
    rules: Collection[str] | None = None,
    capabilities: Collection[str] | None = None,
    lexicon: Lexicon | None = None,
    clientless: bool = False,
) -> Iterator[Loaded | ScenarioError]:
    """Each file's scenario, or what is wrong with it; two with one id are wrong too.

    What is wrong in the same way with several rows of a family is told once.
    """
    taken: dict[str, Path] = {}
    told: set[tuple[str, tuple[int, int], str]] = set()
    for file in files:
        try:
            loaded = load(
                file,
                rules=rules,
                capabilities=capabilities,
                lexicon=lexicon,
                clientless=clientless,
            )
            check_id(loaded, taken)
        except ScenarioError as error:
            mistake = error.path, error.place, error.message
            if mistake not in told:
                told.add(mistake)
                yield error
        else:
            yield loaded


def check_id(loaded: Loaded, taken: dict[str, Path]) -> None:
    """Note the id of a file among those that are `taken`. Raises `ScenarioError` for another's."""
    real = loaded.path.resolve()
    other = taken.setdefault(loaded.id, real)
    if other != real:
        message = f"its id {loaded.id} is that of {other} too; rename one, or use them apart"
        raise ScenarioError(loaded.path, (1, 1), message)


def load_text(text: str, *, name: str = "scenario", lexicon: Lexicon | None = None) -> Loaded:
    """Load a scenario from a text, for tests and tools."""
    return _with_client(_checked(parse(text.encode(), name), Path(name), name, None, None, lexicon))


def _with_client(loaded: Loaded) -> Loaded:
    """The scenario, if it has a client's side. Raises `ScenarioError`."""
    if loaded.scenario.is_clientless:
        document = loaded.document
        message = (
            "it has no client, so it can only be played to a client of yours: agent app-server "
            f"--listen ws://127.0.0.1:0 --scenario {loaded.path}; or add client: with its steps"
        )
        raise ScenarioError(loaded.path, document.place(()), message)
    return loaded


def find(paths: Iterable[Path]) -> list[tuple[Path, Path]]:
    """All scenario files below the paths, as (root, file), sorted and without repetition.

    The root is the folder below which the file's id is told, whatever path led to it. A family is
    found as the paths of its rows, in the order of its table.
    """
    found: dict[Path, None] = {}
    for path in paths:
        files = sorted(_below(path)) if path.is_dir() else [path]
        for file in files:
            found |= dict.fromkeys(scenarios_in(file))
    return [(root_of(file), file) for file in found]


def without(paths: Iterable[Path]) -> list[str]:
    """Return a message for each folder that holds no scenario."""
    return [
        f"{path}: no file below this folder has a name that ends in {SUFFIX} or {FAMILY}"
        for path in paths
        if path.is_dir() and next(_below(path), None) is None
    ]


def _below(folder: Path) -> Iterator[Path]:
    return (file for suffix in SUFFIXES for file in folder.rglob(f"*{suffix}"))


def _checked(
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
    value = Filling(document, path, identity, client=client_texts).value()
    try:
        scenario = Scenario.model_validate(value)
    except ValidationError as error:
        raise first_mistake(error, document, path) from error
    Names(scenario, document, path).check()
    problem = unplayable(scenario) or mistake_in(
        scenario.faults, scenario.surfaces, bool(scenario.raced)
    )
    if problem is not None:
        raise ScenarioError(path, document.place(problem[0]), problem[1])
    _beside(scenario, document, path)
    if scenario.expect.violations and not scenario.faults:
        message = "violations goes with faults: a server is expected to break no rule"
        raise ScenarioError(path, document.place(("expect", "violations"), key=True), message)
    for loc, names, valid in (
        (("covers",), scenario.covers, rules),
        (("expect", "violations"), scenario.expect.violations, rules),
        (("needs",), scenario.needs, capabilities),
    ):
        key, what = loc[-1], "capability" if loc == ("needs",) else "rule id"
        for index, name in enumerate(names):
            if valid is not None and name not in valid:
                place = document.place((*loc, index))
                message = unknown(what, name, valid)
                if any(mark in name for mark in "*?["):
                    message = f"{name!r} is a pattern, and {key} takes none: name each {what}"
                raise ScenarioError(path, place, message)
    if lexicon is not None:
        Spelling(scenario, document, path, lexicon).check()
    return Loaded(identity, path, scenario, document)


def _beside(scenario: Scenario, document: Document, path: Path) -> None:
    """Check that files to be copied into the workspace lie beside the scenario's file."""
    for name, content in scenario.workspace.files.items():
        if isinstance(content, CopiedFile) and not (path.parent / content.source).is_file():
            place = document.place(("workspace", "files", name, "from"))
            message = f"there is no file {content.source!r} beside this one"
            raise ScenarioError(path, place, message)


def with_filler(document: Document, path: Path, identity: str) -> Any:
    """The value of a file, with its `{fake: kind}` replaced. Raises `ScenarioError`."""
    return Filling(document, path, identity).value()
