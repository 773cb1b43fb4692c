"""From a file to a scenario: every mistake is one line, `path:line:column: what, what to do`.

Here: the order of checks, and filler texts. Not here: YAML (yaml12), wording (explain), what types
cannot say (names), words of the protocol (spelling), playing.
"""

import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from harness.scenario.explain import sentence, unknown
from harness.scenario.identity import SUFFIX, root_of, scenario_id
from harness.scenario.lexicon import Lexicon
from harness.scenario.model import CopiedFile, Scenario
from harness.scenario.names import Names
from harness.scenario.spelling import Spelling
from harness.scenario.yaml12 import Document, Loc, ScenarioError, parse, parse_file
from harness.trace.values import obj

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
    "without",
]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A scenario, where it came from, and where each of its steps stands."""

    id: str
    path: Path
    scenario: Scenario
    document: Document

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
        """Its own tags, what it needs, and its area, the first folder of its id."""
        area = [self.id.split("/", 1)[0]] if "/" in self.id else []
        return frozenset([*area, *self.scenario.needs, *self.scenario.tags])


def load_scenario(path: Path | str) -> Scenario:
    """The scenario in a file. Raises `ScenarioError`."""
    return load(Path(path)).scenario


def load(
    path: Path,
    *,
    root: Path | None = None,
    rules: Collection[str] | None = None,
    capabilities: Collection[str] | None = None,
    lexicon: Lexicon | None = None,
) -> Loaded:
    """Load and check one file. Its id is told below `root`, or below the folder of its kind.

    `rules` and `capabilities` are the names that `covers` and `needs` may hold, `lexicon` has the
    words of the protocol; None leaves them unchecked (the loader knows none of them). Raises
    `ScenarioError`.
    """
    document = parse_file(path)
    return _checked(document, path, scenario_id(path, root), rules, capabilities, lexicon)


def load_all(
    files: Iterable[Path],
    *,
    rules: Collection[str] | None = None,
    capabilities: Collection[str] | None = None,
    lexicon: Lexicon | None = None,
) -> Iterator[Loaded | ScenarioError]:
    """Each file's scenario, or what is wrong with it; two with one id are wrong too."""
    taken: dict[str, Path] = {}
    for file in files:
        try:
            loaded = load(file, rules=rules, capabilities=capabilities, lexicon=lexicon)
            check_id(loaded, taken)
        except ScenarioError as error:
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
    return _checked(parse(text.encode(), name), Path(name), name, None, None, lexicon)


def find(paths: Iterable[Path]) -> list[tuple[Path, Path]]:
    """All scenario files below the paths, as (root, file), sorted and without repetition.

    The root is the folder below which the file's id is told, whatever path led to it.
    """
    found: dict[Path, None] = {}
    for path in paths:
        found |= dict.fromkeys(sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path])
    return [(root_of(file), file) for file in found]


def without(paths: Iterable[Path]) -> list[str]:
    """What to say of each folder that holds no scenario."""
    return [
        f"{path}: no file below this folder has a name that ends in {SUFFIX}"
        for path in paths
        if path.is_dir() and next(path.rglob(f"*{SUFFIX}"), None) is None
    ]


def _checked(
    document: Document,
    path: Path,
    identity: str,
    rules: Collection[str] | None,
    capabilities: Collection[str] | None,
    lexicon: Lexicon | None,
) -> Loaded:
    if not obj(document.value):
        message = "expected a mapping with title, model, client; found no mapping"
        raise ScenarioError(path, document.place(()), message)
    value = _filled(document.value, identity, path, document, ())
    try:
        scenario = Scenario.model_validate(value)
    except ValidationError as error:
        raise _first(error, document, path) from error
    Names(scenario, document, path).check()
    _beside(scenario, document, path)
    for key, names, valid in (
        ("covers", scenario.covers, rules),
        ("needs", scenario.needs, capabilities),
    ):
        what = "rule id" if key == "covers" else "capability"
        for index, name in enumerate(names):
            if valid is not None and name not in valid:
                place = document.place((key, index))
                message = unknown(what, name, valid)
                if any(mark in name for mark in "*?["):
                    message = f"{name!r} is a pattern, and {key} takes none: name each {what}"
                raise ScenarioError(path, place, message)
    if lexicon is not None:
        Spelling(scenario, document, path, lexicon).check()
    return Loaded(identity, path, scenario, document)


def _beside(scenario: Scenario, document: Document, path: Path) -> None:
    """What is copied into the workspace lies beside the scenario's file."""
    for name, content in scenario.workspace.files.items():
        if isinstance(content, CopiedFile) and not (path.parent / content.source).is_file():
            place = document.place(("workspace", "files", name, "from"))
            message = f"there is no file {content.source!r} beside this one"
            raise ScenarioError(path, place, message)


def _first(error: ValidationError, document: Document, path: Path) -> ScenarioError:
    """The first mistake in the order of the file."""
    details = error.errors(include_url=False)
    # A misspelt key is also a missing one: the misspelling is the mistake.
    if any(detail["type"] == "extra_forbidden" for detail in details):
        details = [detail for detail in details if detail["type"] != "missing"]
    mistakes: dict[tuple[int, int], list[ErrorDetails]] = {}
    for detail in details:
        is_key = detail["type"] == "extra_forbidden" or detail["loc"][-1:] == ("[key]",)
        mistakes.setdefault(document.place(detail["loc"], key=is_key), []).append(detail)
    place = min(mistakes)
    message = sentence(*mistakes[place])
    more = f" ({len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
    return ScenarioError(path, place, message + more)


def _filled(value: Any, identity: str, path: Path, document: Document, loc: Loc) -> Any:
    """Replace `{fake: kind}` by filler text, the same each time for one scenario and number."""
    if isinstance(value, list):
        return [
            _filled(item, identity, path, document, (*loc, index))
            for index, item in enumerate(list[Any](value))  # pyright: ignore[reportUnknownArgumentType]
        ]
    members = obj(value)
    if not members:
        return value
    if "fake" in members and set(members) <= {"fake", "n"}:
        return _fake(members, identity, path, document, loc)
    return {
        key: _filled(item, identity, path, document, (*loc, key)) for key, item in members.items()
    }


def _fake(members: dict[str, Any], identity: str, path: Path, document: Document, loc: Loc) -> str:
    # Faker takes long to import; most scenarios do without.
    from harness.scenario.filler import KINDS, filler

    kind, number = members["fake"], members.get("n", 0)
    if kind not in KINDS:
        message = unknown("filler", str(kind), KINDS)
        raise ScenarioError(path, document.place((*loc, "fake")), message)
    if not isinstance(number, int):
        message = f"found {number!r}; expected a whole number"
        raise ScenarioError(path, document.place((*loc, "n")), message)
    return filler(kind, seed=zlib.crc32(f"{identity}\0{kind}\0{number}".encode()))
