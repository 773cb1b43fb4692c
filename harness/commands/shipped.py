"""Documents and example servers that ship with the harness.

Here: where they are (in the wheel, or in a checkout), finding one by the name that a report or a
reader uses, and writing an example to a file. Not here: bundled scenarios (scenario.bundled).
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import harness
from harness.errors import UsageError
from harness.scenario.bundled import bundled_files, bundled_folder
from harness.scenario.explain import unknown
from harness.scenario.families import load_family
from harness.scenario.identity import FAMILY, SUFFIX, row_of_path
from harness.scenario.written import as_text

_PACKAGE = Path(harness.__file__).parent
_TOP = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")
EXAMPLES = ("minimal", "listening", "twice")

_HEADING = re.compile(r"(#+) (.+)")
_WRITTEN = re.compile(r'<a id="([^"]+)">')


def documents() -> dict[str, Path]:
    """The pages by name: `profiles`, `adr/0001-double-entry`, `README`."""
    shipped = _PACKAGE / "bundled_docs"
    root = shipped if shipped.is_dir() else _PACKAGE.parent
    found = {Path(name).stem: root / name for name in _TOP}
    below = root / "docs"
    for path in sorted(below.rglob("*.md"), key=lambda path: (len(path.parts), path)):
        found[path.relative_to(below).with_suffix("").as_posix()] = path
    return found


def document_lines() -> Iterator[str]:
    """The list of pages: name and title."""
    pages = documents()
    width = max(map(len, pages))
    for name, path in pages.items():
        with path.open(encoding="utf-8") as lines:
            title = next((line for line in lines if line.startswith("# ")), "# ")
        yield f"{name:{width}}  {title[2:].strip()}"


def find_document(asked: str) -> tuple[Path, str]:
    """The page that `asked` names, with the anchor after `#`, "" for none.

    All of these work: `profiles`, `docs/profiles.md`, `docs/protocol.md#turn.completes`.
    """
    name, _, anchor = asked.partition("#")
    pages = documents()
    plain = name.removeprefix("./").removeprefix("docs/").removesuffix(".md")
    by_name = {one.lower(): path for one, path in pages.items()}
    path = by_name.get(plain.lower())
    if path is None:
        raise UsageError(unknown("page", name, pages))
    return path, anchor


def document_text(asked: str) -> str:
    """A page, or the part of it that an anchor names. Raises `UsageError`."""
    path, anchor = find_document(asked)
    text = path.read_text("utf-8")
    if not anchor:
        return text
    lines = text.splitlines()
    headings = _headings(lines)
    anchors = {_slug(title): at for at, (_, title) in headings.items()}
    anchors |= {name: at for at, line in enumerate(lines) for name in _WRITTEN.findall(line)}
    start = anchors.get(anchor)
    if start is None:
        raise UsageError(f"{asked}: {unknown('anchor', anchor, anchors)}")
    return "\n".join(_part(lines, start, headings)).rstrip() + "\n"


def _headings(lines: list[str]) -> dict[int, tuple[int, str]]:
    """Line -> level and title of each heading outside of fenced blocks."""
    found: dict[int, tuple[int, str]] = {}
    fenced = False
    for at, line in enumerate(lines):
        fenced ^= line.startswith("```")
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading:
            found[at] = len(heading[1]), heading[2]
    return found


def _slug(title: str) -> str:
    """The anchor that code hosting sites make from a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def _part(lines: list[str], start: int, headings: dict[int, tuple[int, str]]) -> Iterator[str]:
    """A heading with all text below it, or a list entry with the heading above it."""
    if start in headings:
        level = headings[start][0]
        ends = (at for at, (other, _) in headings.items() if at > start and other <= level)
        yield from lines[start : next(ends, len(lines))]
        return
    above = [at for at in headings if at < start]
    yield from ([lines[above[-1]], ""] if above else [])
    yield lines[start]
    yield from itertools.takewhile(lambda line: line.startswith("  "), lines[start + 1 :])


def example_lines() -> Iterator[str]:
    """The list of example servers, and how to get one."""
    width = max(map(len, EXAMPLES))
    for name in EXAMPLES:
        about = example_text(name).split('"""', 2)[1].splitlines()[0]
        yield f"{name:{width}}  {about}"
    yield ""
    yield f"harness example {EXAMPLES[0]} --to server.py   writes one"


def example_text(name: str) -> str:
    """The source of an example server. Raises `UsageError`."""
    plain = name.removesuffix(".py")
    if plain not in EXAMPLES:
        raise UsageError(unknown("example", name, EXAMPLES))
    shipped = _PACKAGE / "bundled_examples"
    folder = shipped if shipped.is_dir() else _PACKAGE.parent / "fixtures" / "servers"
    return (folder / f"{plain}.py").read_text("utf-8")


def write_example(name: str, to: Path, *, force: bool = False) -> Path:
    """Write an example to a file, or into a folder under its own name. Raises `UsageError`."""
    text = example_text(name)
    path = to / f"{name.removesuffix('.py')}.py" if to.is_dir() else to
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"{path}: there is such a file; give another name, or --force to write over it"
        ) from error
    return path


def scenario_text(name: str) -> str:
    """The file of a bundled scenario, by its id; for a row of a family, the file it stands for.

    A family's own file is given by its id, `lasting/overrides`. Raises `UsageError`.
    """
    plain = name.removesuffix(SUFFIX).removesuffix(FAMILY)
    paths = bundled_files()
    family = bundled_folder() / f"{plain}{FAMILY}"
    if family.is_file():
        return family.read_text("utf-8")
    if plain not in paths:
        raise UsageError(unknown("scenario", name, paths))
    row = row_of_path(paths[plain])
    if row is None:
        return paths[plain].read_text("utf-8")
    made = load_family(row[0])
    origin = f"{made.told(row[1])} of {row[0].relative_to(bundled_folder())}"
    return as_text(made.scenario(row[1]).value, origin)
