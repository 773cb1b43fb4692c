"""Parser for the project's Markdown: fenced blocks with their info strings, links, headings."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests/README.md"])

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.M | re.S)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_WRITTEN_ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: `info` is the text after the fence, `line` that of the body's beginning."""

    page: Path
    line: int
    info: str
    body: str

    @property
    def place(self) -> str:
        """Return the place of the block, as `README.md:40`."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def language(self) -> str:
        """Return the first word of the info string."""
        return self.info.split(" ", 1)[0]

    @property
    def runnable(self) -> bool:
        """Return whether a test runs the block: the info string begins with `sh run`."""
        return self.info.split()[:2] == ["sh", "run"]

    @property
    def times(self) -> int:
        """Return how often to run the block in the same folder: N of `times=N`, else 1."""
        found = re.search(r"times=(\d+)", self.info)
        return int(found[1]) if found else 1

    @property
    def status(self) -> int:
        """Return the expected exit status: N of `status=N`, else 0."""
        found = re.search(r"status=(\d+)", self.info)
        return int(found[1]) if found else 0


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 2, found["info"].strip(), found["body"])
        for found in _FENCE.finditer(text)
    ]


def links(page: Path) -> list[str]:
    """Return the targets of a page's links, except those in code."""
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text("utf-8")))
    return [found["target"] for found in _LINK.finditer(text)]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: explicit ones, and those that GitHub gives to headings."""
    text = _FENCE.sub("", page.read_text("utf-8"))
    words = (found["text"].lower().replace("`", "") for found in _HEADING.finditer(text))
    of_headings = {re.sub(r"[^\w\- ]", "", word).strip().replace(" ", "-") for word in words}
    return of_headings | set(_WRITTEN_ANCHOR.findall(text))
