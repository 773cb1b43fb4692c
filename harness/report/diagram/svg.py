"""A diagram as one SVG file: no script, no network, light or dark as the reader's system is.

Texts are cut to their place; the whole text is shown when the pointer rests on the row.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

from harness.protocol.escapes import visible
from harness.report.diagram.columns import MODEL
from harness.report.diagram.labels import row_label
from harness.report.diagram.limit import has_finding, limit_rows
from harness.report.diagram.model import (
    Diagram,
    FindingMark,
    Folded,
    Message,
    MessageKind,
    Missing,
    Note,
    NoteKind,
    ParticipantKind,
    Row,
    Silence,
)
from harness.report.diagram.svg_layout import (
    GUTTER,
    HEAD_HALF_WIDTH,
    MARGIN,
    Layout,
    fit_text,
    layout_of,
    text_width,
    wrap_text,
)
from harness.report.diagram.svg_style import LABEL_FONT_PIXELS, STYLE

# A file of more rows is slow to open, and nobody scrolls through it.
MAX_ROWS: Final = 1000
# Pixels from one row to the next; closer together if there are many rows.
ROW_HEIGHT: Final = 34
CLOSE_ROW_HEIGHT: Final = 28
MAX_WIDE_ROWS: Final = 60
# Rows after which the names of the columns are repeated.
ROWS_BETWEEN_NAMES: Final = 30
MAX_REASON_LINES: Final = 4
MAX_MARKS_SHOWN: Final = 3
MAX_TOOLTIP_CHARACTERS: Final = 600
# The part of its way that the arrow of a missing message goes.
MISSING_PART: Final = 0.72
# Levels in the colour of failures; the others are mild.
GRAVE_LEVELS: Final = ("MUST", "ERROR")
MILD: Final = " mild"
_LINE: Final = 15
_HEAD_TOP: Final = 62
_HEAD_HEIGHT: Final = 28
_LEGEND: Final = (
    ("request", "request"),
    ("response", "result"),
    ("error", "error"),
    ("notification", "notification"),
    ("folded", "deltas, folded"),
    ("missing", "never came"),
)


def svg_text(diagram: Diagram, max_rows: int = MAX_ROWS) -> str:
    """Return a diagram as an SVG file with at most `max_rows` rows, and notes on the others."""
    return _Drawing(limit_rows(diagram, max_rows)).draw()


class _Drawing:
    """The elements of one file, from top to bottom; `y` is the top of the next row."""

    def __init__(self, diagram: Diagram) -> None:
        self._diagram = diagram
        self._layout: Layout = layout_of(diagram)
        self._row_height = ROW_HEIGHT if len(diagram.rows) <= MAX_WIDE_ROWS else CLOSE_ROW_HEIGHT
        self._below: list[str] = []
        self._above: list[str] = []
        self._y = float(_HEAD_TOP + _HEAD_HEIGHT + 12)
        self._busy_since: float | None = None

    def draw(self) -> str:
        for number, row in enumerate(self._diagram.rows):
            if number and number % ROWS_BETWEEN_NAMES == 0:
                self._names_again()
            self._row(row)
        bottom = self._y + 6
        if self._busy_since is not None:
            self._busy_bar(self._busy_since, bottom)
        return self._file(bottom)

    def _file(self, bottom: float) -> str:
        layout, heads = self._layout, [*self._heads(_HEAD_TOP)]
        if len(self._diagram.rows) > ROWS_BETWEEN_NAMES // 2:
            heads += self._heads(bottom)
            end = bottom + _HEAD_HEIGHT
        else:
            end = bottom
        height = end + 44
        lines = [
            f'<path class="life" d="M{x:.1f} {_HEAD_TOP + _HEAD_HEIGHT}V{bottom:.1f}"/>'
            for x in layout.x.values()
        ]
        title = fit_text(visible(self._diagram.title), layout.right - MARGIN, 15)
        words = self._summary()
        size = f'width="{layout.width:.0f}" height="{height:.0f}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
                f'viewBox="0 0 {layout.width:.0f} {height:.0f}" role="img" '
                'aria-labelledby="title desc">',
                f'<title id="title">{_safe(self._diagram.title)}</title>',
                f'<desc id="desc">{_safe(words)}</desc>',
                f"<style>{STYLE}</style>",
                '<rect class="page" width="100%" height="100%"/>',
                _text(MARGIN, 28, title, "title"),
                _text(
                    MARGIN, 47, fit_text(words, layout.right - MARGIN, LABEL_FONT_PIXELS), "muted"
                ),
                _text(72, _HEAD_TOP + 18, "ms", "muted", anchor="end"),
                _text(82, _HEAD_TOP + 18, "message", "muted"),
                *lines,
                *self._below,
                *heads,
                *self._above,
                *self._legend(end + 26),
                "</svg>",
                "",
            ]
        )

    def _summary(self) -> str:
        rows = self._diagram.rows
        count = sum(
            row.count if isinstance(row, Folded) else isinstance(row, Message) for row in rows
        )
        marks = [mark for row in rows for mark in getattr(row, "marks", ()) if not mark.in_proof]
        rules = ", ".join(dict.fromkeys(f"{mark.rule} ({mark.level})" for mark in marks))
        found = f"{len(marks)} finding(s): {rules}" if marks else "no findings"
        return visible(f"{count} message(s), {found}")

    def _heads(self, y: float) -> Iterator[str]:
        for participant in self._diagram.participants:
            x = self._layout.x[participant.id]
            rounded = 14 if participant.kind is ParticipantKind.CLIENT else 4
            label = fit_text(visible(participant.label), 2 * HEAD_HALF_WIDTH - 10)
            yield (
                f'<g><title>{_safe(participant.label)}</title><rect class="head" '
                f'x="{x - HEAD_HALF_WIDTH:.1f}" y="{y:.1f}" width="{2 * HEAD_HALF_WIDTH}" '
                f'height="{_HEAD_HEIGHT}" rx="{rounded}"/>'
                f"{_text(x, y + 18.5, label, 'name', anchor='middle')}</g>"
            )

    def _names_again(self) -> None:
        for participant in self._diagram.participants:
            x = self._layout.x[participant.id]
            label = fit_text(visible(participant.label), 2 * HEAD_HALF_WIDTH, LABEL_FONT_PIXELS)
            self._above.append(_text(x, self._y + 12, label, "muted over", anchor="middle"))
        self._y += 20

    def _row(self, row: Row) -> None:
        top = self._y
        match row:
            case Message() | Folded() | Missing():
                self._arrow_row(row)
            case Silence():
                self._silence(row)
            case Note():
                self._note(row)
        if not has_finding(row):
            return
        self._reasons(row)
        self._y += 4
        height, mild = self._y - top, _mildness(row)
        self._below.append(
            f'<rect class="band{mild}" x="0" y="{top:.1f}" width="100%" height="{height:.1f}"/>'
            f'<rect class="edge{mild}" x="0" y="{top:.1f}" width="4" height="{height:.1f}"/>'
        )
        self._y += 4

    def _arrow_row(self, row: Message | Folded | Missing) -> None:
        self._y += self._row_height
        y, layout = self._y - 8, self._layout
        start, end = layout.x[row.source], layout.x[row.target]
        self._gutter(row, y)
        if MODEL in (row.source, row.target):
            start, end = self._mark_busy(row, start, end, y)
        direction = 1 if end > start else -1
        style = _style_of(row)
        low, high = sorted((start, end))
        label = fit_text(visible(row_label(row)), high - low - 18)
        tip, center = end - direction * 3, (start + end) / 2
        if isinstance(row, Missing):
            tip = start + (end - start) * MISSING_PART
            half = text_width(label) / 2 + 8
            center = max(low + half, min(high - half, (start + tip) / 2))
        emphasis = f"bad{_mildness(row)}" if has_finding(row) else "over"
        self._above.append(
            f"<g><title>{_safe(_tooltip(row))}</title>"
            f'<path class="arrow {style}" d="M{start:.1f} {y:.1f}H{tip:.1f}"/>'
            f"{_tip(row, style, tip, y, direction)}"
            f"{_text(center, y - 6, label, emphasis, anchor='middle')}</g>"
        )

    def _gutter(self, row: Message | Folded | Missing, y: float) -> None:
        self._above.append(_text(72, y + 4, _time_words(row.time), "time", anchor="end"))
        match row:
            case Message():
                number = "" if row.frame is None else f"#{row.frame}"
                if any(mark.in_proof for mark in row.marks) and not has_finding(row):
                    words = ["part of the proof of a finding", *map(_mark_words, row.marks)]
                    title = f"<title>{_safe(chr(10).join(words))}</title>"
                    self._above.append(
                        f'<g>{title}<circle class="dot" cx="14" cy="{y:.1f}" r="4"/></g>'
                    )
            case Folded():
                number = f"#{row.first}-{row.last}"
            case Missing():
                number = "" if row.because is None else f"see #{row.because}"
        self._above.append(_text(82, y + 4, number, "time"))

    def _mark_busy(
        self, row: Message | Folded | Missing, start: float, end: float, y: float
    ) -> tuple[float, float]:
        """Draw the bar of a model's call when it ends; return the arrow's ends beside the bar."""
        if row.target == MODEL:
            self._busy_since = y if self._busy_since is None else self._busy_since
            return start, end - 5
        if self._busy_since is not None:
            self._busy_bar(self._busy_since, y)
        self._busy_since = None
        return start - 5, end

    def _busy_bar(self, since: float, until: float) -> None:
        x = self._layout.x[MODEL] - 5
        self._below.append(
            f'<rect class="busy" x="{x:.1f}" y="{since:.1f}" width="10" '
            f'height="{max(2.0, until - since):.1f}"/>'
        )

    def _reasons(self, row: Row) -> None:
        marks: tuple[FindingMark, ...] = getattr(row, "marks", ())
        wrong = [mark for mark in marks if not mark.in_proof]
        width = self._layout.right - GUTTER
        for mark in wrong[:MAX_MARKS_SHOWN]:
            head = fit_text(visible(f"{mark.level} {mark.rule}  {mark.path}".rstrip()), width)
            self._y += _LINE + 2
            mild = "" if mark.level in GRAVE_LEVELS else MILD
            self._above.append(_text(GUTTER, self._y, head, f"bad{mild}"))
            for line in wrap_text(visible(mark.text), width, LABEL_FONT_PIXELS, MAX_REASON_LINES):
                self._y += _LINE
                self._above.append(_text(GUTTER, self._y, line, "why"))
        if len(wrong) > MAX_MARKS_SHOWN:
            self._y += _LINE
            words = f"and {len(wrong) - MAX_MARKS_SHOWN} more finding(s)"
            self._above.append(_text(GUTTER, self._y, words, "why"))
        self._y += 4

    def _silence(self, row: Silence) -> None:
        layout, words = self._layout, visible(row_label(row))
        top, height = self._y + 8, 30.0
        self._below.append(
            f'<rect class="silence" x="0" y="{top:.1f}" width="100%" height="{height:.1f}"/>'
        )
        self._below += [
            f'<path class="gap" d="M{x:.1f} {top:.1f}v{height:.1f}"/>' for x in layout.x.values()
        ]
        self._above.append(_text(72, top + 19, _time_words(row.time), "time", anchor="end"))
        self._box(words, (GUTTER + layout.right) / 2, top + 4, "silence", "still")
        self._y = top + height + 4

    def _note(self, row: Note) -> None:
        layout, words = self._layout, visible(row_label(row))
        if row.kind is NoteKind.FINDING:
            return  # Its finding has the same words.
        if row.kind in (NoteKind.STEP, NoteKind.END, NoteKind.LEFT_OUT):
            self._y += 24
            y = self._y - 6
            label = fit_text(words, layout.right - GUTTER, LABEL_FONT_PIXELS)
            end = GUTTER + text_width(label, LABEL_FONT_PIXELS) + 8
            self._below.append(
                f'<path class="rule" d="M{end:.1f} {y - 3:.1f}H{layout.right:.1f}"/>'
            )
            self._above.append(
                f"<g><title>{_safe(words)}</title>{_text(GUTTER, y, label, 'muted over')}</g>"
            )
            return
        over = row.over or tuple(layout.x)
        center = sum(layout.x[name] for name in over) / len(over)
        self._box(words, center, self._y + 6, "note", "muted")
        self._y += 32

    def _box(self, words: str, center: float, y: float, style: str, text_style: str) -> None:
        layout = self._layout
        label = fit_text(words, layout.right - GUTTER - 20, LABEL_FONT_PIXELS)
        width = text_width(label, LABEL_FONT_PIXELS) + 18
        x = min(max(center - width / 2, GUTTER), layout.right - width)
        self._above.append(
            f'<g><title>{_safe(words)}</title><rect class="{style}" x="{x:.1f}" y="{y:.1f}" '
            f'width="{width:.1f}" height="22" rx="3"/>'
            f"{_text(x + 9, y + 15, label, text_style)}</g>"
        )

    def _legend(self, y: float) -> Iterator[str]:
        x = float(MARGIN)
        for style, words in _LEGEND:
            yield f'<path class="arrow {style}" d="M{x:.1f} {y - 4:.1f}h26"/>'
            yield _text(x + 32, y, words, "muted")
            x += 32 + text_width(words, LABEL_FONT_PIXELS) + 20


def _style_of(row: Message | Folded | Missing) -> str:
    if isinstance(row, Message):
        return row.kind.value
    if isinstance(row, Folded):
        return "folded"
    return "missing" if row.marks else "missing owed"


def _tip(row: Message | Folded | Missing, style: str, x: float, y: float, direction: int) -> str:
    """Return the end of an arrow: filled for a request, open for others, a cross if it is lost."""
    if isinstance(row, Missing) or style == MessageKind.MALFORMED:
        return (
            f'<path class="arrow cross {style}" d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10"/>'
        )
    back = x - direction * 9
    shape = f"M{back:.1f} {y - 4.5:.1f}L{x:.1f} {y:.1f}L{back:.1f} {y + 4.5:.1f}"
    if style == MessageKind.REQUEST:
        return f'<path class="tip {style}" d="{shape}Z"/>'
    return f'<path class="arrow tip {style}" d="{shape}"/>'


def _mildness(row: Row) -> str:
    """Return the class of a row whose findings do not make a run fail, "" for any other."""
    marks: tuple[FindingMark, ...] = getattr(row, "marks", ())
    grave = any(mark.level in GRAVE_LEVELS for mark in marks if not mark.in_proof)
    return "" if grave else MILD


def _mark_words(mark: FindingMark) -> str:
    return f"{mark.level} {mark.rule}: {mark.text}"


def _tooltip(row: Message | Folded | Missing) -> str:
    detail = row.detail if isinstance(row, Message) else row.text if isinstance(row, Folded) else ""
    return "\n".join(part for part in (row_label(row), detail[:MAX_TOOLTIP_CHARACTERS]) if part)


def _time_words(seconds: float) -> str:
    """Return a time as in `harness show`: milliseconds, or seconds from a minute on."""
    return f"{seconds * 1000:.1f}" if seconds < 60 else f"{seconds:.1f} s"


def _text(x: float, y: float, words: str, style: str = "", *, anchor: str = "") -> str:
    if not words:
        return ""
    more = (f' class="{style}"' if style else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{_safe(words)}</text>'


def _safe(words: str) -> str:
    """Return a text as content of an XML element; what XML cannot hold becomes visible."""
    return escape("\n".join(map(visible, words.split("\n"))))
