"""Check of a built site: links, anchors and pictures are there, and nothing outside is loaded.

A link that a reader may follow to another site (`<a href>`) is not tried: no network.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes by which a browser loads something; `href` of a link that is followed is none.
_LOADING = {"src", "srcset", "data", "poster", "href", "xlink:href"}
_STYLE_URL = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)""")
_FOLLOWED = ("a", "area")


@dataclass
class _Page(HTMLParser):
    """A page: its anchors, and what it refers to as (tag, address)."""

    anchors: set[str] = field(default_factory=set[str])
    references: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            elif name in _LOADING and value is not None:
                parts = value.split(",") if name == "srcset" else [value or "."]
                self.references += [(tag, part.split()[0]) for part in parts]
            elif name == "style" and value:
                self.references += [("style", url) for url in _STYLE_URL.findall(value)]

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "style":
            self.references += [("style", url) for url in _STYLE_URL.findall(data)]


def faults(site: Path) -> Iterator[str]:
    """Yield a line for each dead link, anchor or picture, and for each resource from outside."""
    pages = sorted(site.rglob("*.html"))
    if not pages:
        yield f"{site}: there is no page"
    for page in pages:
        for tag, address in dict.fromkeys(_read(page).references):
            reason = _fault(site, page, tag, address)
            if reason:
                yield f"{page.relative_to(site)}: {address}: {reason}"
    for sheet in sorted([*site.rglob("*.css"), *site.rglob("*.svg")]):
        for url in _STYLE_URL.findall(sheet.read_text("utf-8")):
            reason = _fault(site, sheet, "style", url)
            if reason:
                yield f"{sheet.relative_to(site)}: {url}: {reason}"


def _fault(site: Path, page: Path, tag: str, address: str) -> str | None:
    """Return what is wrong with a reference, None if nothing is."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        followed = tag in _FOLLOWED and parts.scheme in ("http", "https")
        return None if followed or parts.scheme == "data" else "is loaded from outside of the site"
    # The page for addresses that are not there is served at any depth, so its own are absolute.
    start = site if parts.path.startswith("/") else page.parent
    target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site.resolve()) or not target.is_file():
        return "is not there"
    anchor = unquote(parts.fragment)
    if anchor and target.suffix == ".html" and anchor not in _read(target).anchors:
        return "has no such anchor"
    return None


@cache
def _read(page: Path) -> _Page:
    parsed = _Page()
    parsed.feed(page.read_text("utf-8"))
    return parsed
