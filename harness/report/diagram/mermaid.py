"""A diagram as Mermaid text, for Markdown pages that draw it (GitHub, GitLab, many editors).

Whatever could mean something to Mermaid (`;` ends a line, `#` begins a character code, `<` HTML,
`%%` a comment, `:` the text of a message) is written as a character code, so no text of a server
can add a line or an element.
"""

import re
import textwrap
from collections.abc import Iterator
from typing import Final

from harness.protocol.escapes import visible
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
    Row,
    Silence,
)

# Mermaid rejects longer texts unless a page configures it.
MAX_CHARACTERS: Final = 50_000
MAX_ROWS: Final = 500
# The width of notes, which Mermaid does not break itself.
NOTE_CHARACTERS: Final = 72
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9 _./,()+=…-]")
# Characters by which Mermaid marks codes within its parser.
_CODE_MARKS: Final = frozenset("ﬂ°¶ß")
_ARROWS: Final = {
    MessageKind.REQUEST: "->>",
    MessageKind.RESPONSE: "-->>",
    MessageKind.ERROR: "-->>",
    MessageKind.NOTIFICATION: "-)",
    MessageKind.MALFORMED: "-)",
}
_MISSING_ARROW: Final = "--x"
_WRONG: Final = "rect rgba(220, 38, 38, 0.18)"


def mermaid_text(diagram: Diagram) -> str:
    """Return a diagram as a `sequenceDiagram` of at most `MAX_CHARACTERS`, with a line end."""
    max_rows = MAX_ROWS
    while len(text := _text_of(limit_rows(diagram, max_rows))) > MAX_CHARACTERS and max_rows:
        max_rows = max_rows * 3 // 4
    return text


def escape_mermaid(words: str) -> str:
    """Return a text as one line that Mermaid shows as it is."""
    return _NOT_PLAIN.sub(_code_of, visible(words)).strip() or "#32;"


def _code_of(match: re.Match[str]) -> str:
    character = match[0]
    is_letter = character.isalpha() and character not in _CODE_MARKS
    return character if is_letter else f"#{ord(character)};"


def _text_of(diagram: Diagram) -> str:
    lines = [
        f"title {escape_mermaid(diagram.title)}",
        *(f"participant {one.id} as {escape_mermaid(one.label)}" for one in diagram.participants),
    ]
    whole = _span([participant.id for participant in diagram.participants])
    for row in diagram.rows:
        lines += _row_lines(row, whole)
    return "\n".join(["sequenceDiagram", *(f"    {line}" for line in lines), ""])


def _span(participants: list[str] | tuple[str, ...]) -> str:
    return ",".join(dict.fromkeys((participants[0], participants[-1])))


def _row_lines(row: Row, whole: str) -> Iterator[str]:
    words = row_label(row)
    match row:
        case Message():
            number = "" if row.frame is None else f"#{row.frame} "
            line = _arrow_line(row, _ARROWS[row.kind], f"{number}{words}")
        case Folded():
            line = _arrow_line(row, "-)", f"#{row.first}-{row.last} {words}")
        case Missing():
            line = _arrow_line(row, _MISSING_ARROW, words)
        case Silence():
            line = _note_line(whole, words)
        case Note():
            line = _note_line(_span(row.over) if row.over else whole, words)
    if not has_finding(row):
        yield line
        return
    yield _WRONG
    if not isinstance(row, Note):  # The note of a finding has the same words.
        yield line
    yield from (_note_line(whole, words) for words in _mark_words(row))
    yield "end"


def _arrow_line(row: Message | Folded | Missing, arrow: str, words: str) -> str:
    return f"{row.source}{arrow}{row.target}: {escape_mermaid(words)}"


def _note_line(over: str, words: str) -> str:
    lines = textwrap.wrap(visible(words), NOTE_CHARACTERS) or [""]
    return f"Note over {over}: {'<br/>'.join(map(escape_mermaid, lines))}"


def _mark_words(row: Row) -> Iterator[str]:
    marks: tuple[FindingMark, ...] = getattr(row, "marks", ())
    for mark in marks:
        if not mark.in_proof:
            at = f" at {mark.path}" if mark.path else ""
            yield f"{mark.level} {mark.rule}{at}: {mark.text}"
