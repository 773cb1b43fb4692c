"""Pages from templates: every text escaped, and a policy that lets nothing else run.

A server's text may hold HTML, script URLs, control characters and bidirectional marks. Jinja
escapes HTML in each value, `visible` writes characters that are not printable as escapes, and the
Content-Security-Policy names the page's own script and style by their hashes and forbids the rest.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.protocol.escapes import visible, visible_lines
from harness.report.results.rerun_command import near_path

MAX_TEXT_CHARACTERS: Final = 4000
_SCRIPTS: Final = ("report.js", "diagram.js")
_STYLES: Final = ("report.css",)


def render(template: str, **values: Any) -> str:
    """Return a page of a template, with its style, its script and its policy."""
    return _render(template, _SCRIPTS, _STYLES, "", **values)


def render_live(template: str, scripts: tuple[str, ...], **values: Any) -> str:
    """Return a page of a template that also asks its own server, by further scripts."""
    styles = (*_STYLES, "live.css")
    scripts = (*_SCRIPTS, "live.js", *scripts)
    return _render(template, scripts, styles, "; connect-src 'self'", **values)


def _render(
    template: str, scripts: tuple[str, ...], styles: tuple[str, ...], more: str, **values: Any
) -> str:
    style, script = _read_joined(styles), _read_joined(scripts)
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        f"img-src data:; base-uri 'none'; form-action 'none'{more}"
    )
    page = _environment().get_template(template)
    return page.render(style=Markup(style), script=Markup(script), policy=policy, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("harness.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_show,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"lines": _show_lines, "anchor": anchor, "near": near_path, "slug": slug}
    return environment


def _show(value: Any) -> Any:
    """Return a value with escapes for what is not printable, shortened; markup as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(shorten(value))
    return value


def _show_lines(text: str) -> Markup:
    """Return a text of several lines, for an element that keeps line breaks."""
    return escape(visible_lines(shorten(text, 5 * MAX_TEXT_CHARACTERS)))


def shorten(text: str, limit: int = MAX_TEXT_CHARACTERS) -> str:
    """Return a text of at most `limit` characters, and how many were left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} … {len(text) - limit:,} more characters"


def anchor(name: str) -> str:
    """Return the fragment of an id such as `scenario/turns/plain-turn`, for a link."""
    return "#" + quote(visible(name), safe="/.@:-_")


def slug(word: str) -> str:
    """Return a verdict or level as the name of a style's class."""
    return word.lower().replace("_", "-")


@cache
def _read_joined(names: tuple[str, ...]) -> str:
    folder = files("harness.report.html") / "static"
    return "\n".join((folder / name).read_text("utf-8") for name in names)


@cache
def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
