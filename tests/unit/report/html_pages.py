"""A page read as a browser reads it: elements, attributes, texts."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.resources import files

from harness.report.html.page import run_page
from harness.report.html.scenario_facts import ScenarioFacts
from harness.report.results.report import Report
from tests.unit.results.outcomes import BOOK

VOID = {"meta", "link", "input", "br"}
STATIC = files("harness.report.html") / "static"


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parts: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.parts)


@dataclass
class Page(HTMLParser):
    """The elements of a page in their order; `text` of an element has that of its children."""

    source: str
    elements: list[Element] = field(default_factory=list[Element])
    _open: list[Element] = field(default_factory=list[Element])

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.source)
        self.close()
        assert not self._open, "an element is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.parts.append(data)

    def named(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    def with_id(self, name: str) -> Element:
        return next(one for one in self.elements if one.attributes.get("id") == name)

    @property
    def ids(self) -> list[str]:
        return [one.attributes["id"] for one in self.elements if "id" in one.attributes]


def page_of(report: Report, **facts: ScenarioFacts) -> Page:
    return Page(run_page(report, BOOK, "1.2.3", facts))


def assert_only_own_code(page: Page) -> None:
    """Check that a browser runs the page's own script and style, and nothing else."""
    policies = [
        one.attributes["content"]
        for one in page.named("meta")
        if one.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    allowed = dict(part.split(" ", 1) for part in policies[0].split("; "))
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == "'none'"
    assert allowed.keys() <= {
        *("default-src", "script-src", "style-src", "img-src", "base-uri", "form-action")
    }
    assert allowed["img-src"] == "data:"
    active = [one for one in page.named("script") if "type" not in one.attributes]
    for kind, elements in (("script-src", active), ("style-src", page.named("style"))):
        assert [_digest(one.text) for one in elements] == [allowed[kind]]
        assert all(line in elements[0].text for line in _own_lines(kind))
    types = {one.attributes.get("type", "") for one in page.named("script")}
    assert types <= {"", "application/json", "text/plain"}
    for element in page.elements:
        for name, value in element.attributes.items():
            assert not name.startswith("on")
            assert name not in ("style", "src", "srcdoc", "srcset", "action", "formaction", "ping")
            if name == "href":
                assert value == "data:," or re.fullmatch(r"#[\w%./@:~-]+", value), value


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _own_lines(kind: str) -> list[str]:
    name = "report.js" if kind == "script-src" else "report.css"
    return (STATIC / name).read_text("utf-8").splitlines()
