"""Documents and example servers that ship with the harness."""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import harness
from harness.errors import UsageError
from harness.protocol.spec.loading import load_book
from harness.scenario.bundled import bundled_files, bundled_folder
from harness.scenario.explain import unknown_name
from harness.scenario.families import load_family
from harness.scenario.identity import FAMILY, SUFFIX, row_of_path
from harness.scenario.scenario_text import scenario_text

_PACKAGE = Path(harness.__file__).parent
_TOP = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")
EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "minimal": ("minimal.py",),
    "listening": ("listening.py",),
    "twice": ("twice.py",),
    "foreign": ("foreign.py",),
    "python-client": ("python-client/test_client.py",),
    "node-client": tuple(
        f"node-client/{name}" for name in ("package.json", "agentServer.mjs", "client.test.mjs")
    ),
}
"""The files of each example: servers, and client tests, each in its own folder."""

SDKS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "python-sdk": ("sdk/python", ("agent_sdk", "pyproject.toml", "README.md", "LICENSE")),
    "typescript-sdk": (
        "sdk/typescript",
        ("src", "package.json", "tsconfig.json", "README.md", "LICENSE"),
    ),
}
"""The folder of each SDK and what is in it: a package that pip or npm installs from a folder."""

_HEADING = re.compile(r"(#+) (.+)")
_WRITTEN = re.compile(r'<a id="([^"]+)">')


def documents() -> dict[str, Path]:
    """Return page name -> file; names are `profiles`, `adr/0001-double-entry`, `README`."""
    shipped = _PACKAGE / "bundled_docs"
    root = shipped if shipped.is_dir() else _PACKAGE.parent
    pages = {Path(name).stem: root / name for name in _TOP}
    pages |= {folder: _sdk_root() / folder / "README.md" for folder, _ in SDKS.values()}
    below = root / "docs"
    for path in sorted(below.rglob("*.md"), key=lambda path: (len(path.parts), path)):
        pages[path.relative_to(below).with_suffix("").as_posix()] = path
    return pages


def document_lines() -> Iterator[str]:
    """Yield the list of pages: name and title."""
    pages = documents()
    width = max(map(len, pages))
    for name, path in pages.items():
        with path.open(encoding="utf-8") as lines:
            title = next((line for line in lines if line.startswith("# ")), "# ")
        yield f"{name:{width}}  {title[2:].strip()}"


def find_document(reference: str) -> tuple[Path, str]:
    """Return the page that `reference` names, and the anchor after `#` ("" for none).

    All of these work: `profiles`, `docs/profiles.md`, `docs/protocol.md#turn.completes`. Raises
    `UsageError` if no page has the name.
    """
    name, _, anchor = reference.partition("#")
    pages = documents()
    plain = re.sub(r"^(\.{1,2}/)*(docs/)?|(/README)?(\.md)?$", "", name) or name
    by_name = {page.lower(): path for page, path in pages.items()}
    path = by_name.get(plain.lower())
    if path is None and plain.lower() in {document.name for document in load_book().documents}:
        raise UsageError(
            f"{name} is the specification, which is not shipped; harness docs protocol has its "
            "requirements, and protocol#ID one of them"
        )
    if path is None:
        raise UsageError(unknown_name("page", name, pages, listed="harness docs"))
    return path, anchor


def document_text(reference: str) -> str:
    """Return a page, or its part at the anchor. Raises `UsageError` if either is unknown."""
    path, anchor = find_document(reference)
    text = path.read_text("utf-8")
    if not anchor:
        return text
    lines = text.splitlines()
    headings = _headings(lines)
    anchors = {_slug(title): line_number for line_number, (_, title) in headings.items()}
    anchors |= {
        name: line_number
        for line_number, line in enumerate(lines)
        for name in _WRITTEN.findall(line)
    }
    start = anchors.get(anchor)
    if start is None:
        raise UsageError(f"{reference}: {unknown_name('anchor', anchor, anchors)}")
    return "\n".join(_part(lines, start, headings)).rstrip() + "\n"


def _headings(lines: list[str]) -> dict[int, tuple[int, str]]:
    """Return line -> (level, title) of each heading outside of fenced blocks."""
    headings: dict[int, tuple[int, str]] = {}
    fenced = False
    for number, line in enumerate(lines):
        fenced ^= line.startswith("```")
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading:
            headings[number] = len(heading[1]), heading[2]
    return headings


def _slug(title: str) -> str:
    """Return the anchor that code hosting sites generate for a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def _part(lines: list[str], start: int, headings: dict[int, tuple[int, str]]) -> Iterator[str]:
    """Yield a heading with all text below it, or a list entry with the heading above it."""
    if start in headings:
        level = headings[start][0]
        ends = (
            number for number, (other, _) in headings.items() if number > start and other <= level
        )
        yield from lines[start : next(ends, len(lines))]
        return
    above = [number for number in headings if number < start]
    yield from ([lines[above[-1]], ""] if above else [])
    yield lines[start]
    yield from itertools.takewhile(lambda line: line.startswith("  "), lines[start + 1 :])


def example_lines() -> Iterator[str]:
    """Yield the list of examples, and how to get one."""
    width = max(map(len, [*EXAMPLES, *SDKS]))
    for name in EXAMPLES:
        yield f"{name:{width}}  {_example_title(name)}"
    for name in SDKS:
        yield f"{name:{width}}  The package of an SDK, to install from the folder it is written to"
    yield ""
    yield f"harness example {next(iter(EXAMPLES))} -o server.py   writes one"


def _example_title(name: str) -> str:
    """Return the first line of the docstring or comment that begins the example's last file."""
    text = _example_files(name)[-1].read_text("utf-8")
    return re.split(r'"""|/\*\*\s*\*?\s*', text, maxsplit=2)[1].splitlines()[0].removesuffix(" */")


def _example_files(example_name: str) -> list[Path]:
    """Return the files of an example in the wheel or a checkout; `UsageError` if it is unknown."""
    name = example_name.removesuffix(".py")
    if name not in EXAMPLES:
        names = [*EXAMPLES, *SDKS]
        raise UsageError(unknown_name("example", example_name, names, listed="harness example"))
    shipped, root = _PACKAGE / "bundled_examples", _PACKAGE.parent
    if shipped.is_dir():
        return [shipped / file_name for file_name in EXAMPLES[name]]
    servers = root / "fixtures" / "servers"
    return [
        (root / "examples" if "/" in file_name else servers) / file_name
        for file_name in EXAMPLES[name]
    ]


def example_text(name: str) -> str:
    """Return the source of an example, several files joined, each below its name.

    For an SDK, return its README. Raises `UsageError` if the name is unknown.
    """
    if name in SDKS:
        return document_text(SDKS[name][0])
    files = _example_files(name)
    if len(files) == 1:
        return files[0].read_text("utf-8")
    return "\n".join(f"// {file.name}\n{file.read_text('utf-8')}" for file in files)


def write_example(name: str, to: Path, *, force: bool = False) -> list[Path]:
    """Write an example to a file or into a folder, and return the files written.

    An example of several files goes into a folder, which is created. Raises `UsageError` if the
    name is unknown, or a file exists and `force` is not given.
    """
    if name in SDKS:
        pairs = [(file, to / place) for file, place in _sdk_files(name)]
    else:
        files = _example_files(name)
        into = len(files) > 1 or to.is_dir()
        pairs = [(file, to / file.name if into else to) for file in files]
    if len(pairs) > 1:
        try:
            for folder in {path.parent for _, path in pairs}:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{to}: the folder cannot be made: {error.strerror}") from error
    existing = [path for _, path in pairs if path.exists()]
    if existing and not force:
        raise UsageError(
            f"{existing[0]}: there is such a file; give another name, or --force to write over it"
        )
    for file, path in pairs:
        path.write_text(file.read_text("utf-8"), "utf-8")
    return [path for _, path in pairs]


def _sdk_root() -> Path:
    shipped = _PACKAGE / "bundled_examples"
    return shipped if shipped.is_dir() else _PACKAGE.parent


def _sdk_files(name: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of an SDK, each with its path relative to the SDK's folder."""
    folder, parts = SDKS[name]
    base = _sdk_root() / folder
    for part in parts:
        tree = base / part
        for file in sorted(tree.rglob("*")) if tree.is_dir() else [tree]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield file, file.relative_to(base).as_posix()


def bundled_scenario_text(name: str) -> str:
    """Return the file of a bundled scenario by its id; for a row of a family, the expanded file.

    A family's own id, such as `lasting/overrides`, names the family's file. Raises `UsageError` if
    the id is unknown.
    """
    plain = name.removesuffix(SUFFIX).removesuffix(FAMILY)
    paths = bundled_files()
    family = bundled_folder() / f"{plain}{FAMILY}"
    if family.is_file():
        return family.read_text("utf-8")
    if plain not in paths:
        raise UsageError(unknown_name("scenario", name, paths, listed="harness scenario list"))
    row = row_of_path(paths[plain])
    if row is None:
        return paths[plain].read_text("utf-8")
    loaded_family = load_family(row[0])
    origin = f"{loaded_family.describe_row(row[1])} of {row[0].relative_to(bundled_folder())}"
    return scenario_text(loaded_family.scenario(row[1]).value, origin)
