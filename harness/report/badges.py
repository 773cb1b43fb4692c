"""Badges of targets: the JSON of a shields endpoint, and a picture that needs no service."""

from typing import Any
from xml.sax.saxutils import escape

from harness.protocol.spec.loading import load_book
from harness.report.matrix import Column
from harness.report.requirements import judged_requirements

_COLOURS = {"GREEN": "#4c1", "RED": "#e05d44", "not judged": "#9f9f9f"}
# Pixels: a character of the font, around each text, and the height.
_CHARACTER, _MARGIN, _HEIGHT = 6.6, 6, 20


def endpoint(column: Column) -> dict[str, Any]:
    """Return the badge of a target as shields.io reads it from an address."""
    return {
        "schemaVersion": 1,
        "label": column.name,
        "message": _message(column),
        "color": _COLOURS[column.verdict],
    }


def picture(column: Column) -> str:
    """Return the badge of a target as SVG."""
    label, message = column.name, _message(column)
    left, right = (round(len(text) * _CHARACTER) + 2 * _MARGIN for text in (label, message))
    texts = [
        f'<text x="{x + width / 2:g}" y="14" textLength="{width - 2 * _MARGIN}">'
        f"{escape(text)}</text>"
        for x, width, text in ((0, left, label), (left, right, message))
    ]
    title = f"{label}: {message}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" '
            f'role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{left + right}" height="{_HEIGHT}" rx="3" fill="#555"/>',
            f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" '
            f'fill="{_COLOURS[column.verdict]}"/>',
            '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">',
            *texts,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _message(column: Column) -> str:
    """Return the requirements that are kept, of those that were judged."""
    if column.report is None or column.problem:
        return column.verdict
    counts = judged_requirements(column.report, load_book())
    kept = sum(counts.counts[name] for name in ("PASS", "PARTLY", "INFO"))
    return f"{kept} of {counts.judged_count} requirements"
