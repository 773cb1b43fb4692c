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
    """A fenced block: `info` is what follows the fence, `line` where its body begins."""

    page: Path
    line: int
    info: str
    body: str

    @property
    def place(self) -> str:
        """`README.md:40`."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def language(self) -> str:
        """The first word of the info string."""
        return self.info.split(" ", 1)[0]

    @property
    def runnable(self) -> bool:
        """True if a test runs the block: the info string is `sh run`, or `sh run status=N`."""
        return self.info.split()[:2] == ["sh", "run"]

    @property
    def times(self) -> int:
        """The number of runs in the same folder that the text promises: 1, or N of `times=N`."""
        found = re.search(r"times=(\d+)", self.info)
        return int(found[1]) if found else 1

    @property
    def status(self) -> int:
        """The exit status that the text promises."""
        found = re.search(r"status=(\d+)", self.info)
        return int(found[1]) if found else 0


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 2, found["info"].strip(), found["body"])
        for found in _FENCE.finditer(text)
    ]


def links(page: Path) -> list[str]:
    """The targets of a page's links, those in code left out."""
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text("utf-8")))
    return [found["target"] for found in _LINK.finditer(text)]


def anchors(page: Path) -> set[str]:
    """The anchors of a page: those written, and those of headings as the forges make them."""
    text = _FENCE.sub("", page.read_text("utf-8"))
    words = (found["text"].lower().replace("`", "") for found in _HEADING.finditer(text))
    of_headings = {re.sub(r"[^\w\- ]", "", word).strip().replace(" ", "-") for word in words}
    return of_headings | set(_WRITTEN_ANCHOR.findall(text))
