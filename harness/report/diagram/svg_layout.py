"""Measures of the SVG of a diagram: widths of texts, places of columns."""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from harness.report.diagram.labels import row_label
from harness.report.diagram.model import Diagram, Folded, Message, Missing, Row
from harness.report.diagram.svg_style import CHARACTER_WIDTH, FONT_PIXELS

# Pixels. The gutter holds times and numbers of messages.
GUTTER: Final = 138
MARGIN: Final = 28
MIN_COLUMN_WIDTH: Final = 170
MAX_COLUMN_WIDTH: Final = 520
# The legend is as wide.
MIN_WIDTH: Final = 720
HEAD_HALF_WIDTH: Final = 64
_LABEL_PADDING: Final = 40


@dataclass(frozen=True, slots=True)
class Layout:
    """The x of each participant's line, and the width of the whole, in pixels."""

    x: Mapping[str, float]
    width: float

    @property
    def right(self) -> float:
        """The right end of the drawing."""
        return self.width - MARGIN


def text_width(text: str, size: float = FONT_PIXELS) -> float:
    """Return about the width in pixels of a text in the diagram's font."""
    return sum(map(_cells, text)) * CHARACTER_WIDTH * size


def _cells(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit_text(text: str, width: float, size: float = FONT_PIXELS) -> str:
    """Return a text cut to a width in pixels, with an ellipsis if it is cut."""
    if text_width(text, size) <= width:
        return text
    room = int(width / (CHARACTER_WIDTH * size)) - 1
    end = 0
    for end, character in enumerate(text):  # noqa: B007 - the end is used below.
        room -= _cells(character)
        if room < 0:
            break
    return f"{text[:end]}…"


def wrap_text(text: str, width: float, size: float, max_lines: int) -> list[str]:
    """Return a text as at most `max_lines` lines of a width in pixels, broken at spaces."""
    lines: list[str] = []
    while text and len(lines) < max_lines - 1:
        line = fit_text(text, width, size)
        if line == text:
            break
        end = len(line) - 1
        space = text.rfind(" ", end // 2, end + 1)
        cut = space if space > 0 else max(1, end)
        lines.append(text[:cut])
        text = text[cut:].lstrip(" ")
    return [*lines, fit_text(text, width, size)] if text else lines


def layout_of(diagram: Diagram) -> Layout:
    """Return the places of the columns, wide enough for most labels between them."""
    names = [participant.id for participant in diagram.participants]
    gaps = [float(MIN_COLUMN_WIDTH)] * max(0, len(names) - 1)
    for row in diagram.rows:
        for first, last, needed in _needs(row, names):
            between = range(first, last)
            lacking = min(needed, MAX_COLUMN_WIDTH) - sum(gaps[gap] for gap in between)
            if lacking > 0 and len(between) == 1:
                gaps[first] += lacking
    x = GUTTER + HEAD_HALF_WIDTH + 6.0
    unused = max(0.0, MIN_WIDTH - x - sum(gaps) - HEAD_HALF_WIDTH - MARGIN)
    gaps = [gap + unused / len(gaps) for gap in gaps]
    places = {names[0]: x} if names else {}
    for name, gap in zip(names[1:], gaps, strict=True):
        x += gap
        places[name] = x
    return Layout(places, max(MIN_WIDTH, x + HEAD_HALF_WIDTH + MARGIN))


def _needs(row: Row, names: list[str]) -> Iterator[tuple[int, int, float]]:
    """Yield the columns between which a label stands, and the width that it needs."""
    if isinstance(row, Message | Folded | Missing):
        first, last = sorted((names.index(row.source), names.index(row.target)))
        yield first, last, text_width(row_label(row)) + _LABEL_PADDING
