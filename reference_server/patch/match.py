"""New content out of old content and hunks, without I/O.

Here lives where a hunk's lines are found in a text and how they are replaced. A hunk is looked for
after the one before it and after the lines of its `@@`, first as it stands, then without white
space at the ends of lines, then with all white space alike; the first place is taken. Lines that
are only added go below the line of `@@`, without one to the end of the file. Kept as the file has
them: its context lines, its line endings (added lines get the one that most lines have), a byte
order mark, and whether the last line ends.
"""

import codecs
from collections.abc import Callable, Iterator, Sequence

from reference_server.patch.parse import Hunk, PatchError

_FORMS: tuple[Callable[[str], str], ...] = (
    str,
    str.rstrip,
    lambda line: " ".join(line.split()),
)
_SHOWN_LINES = 12


def is_text(content: bytes) -> bool:
    """Whether a patch can edit it: UTF-8 without NUL."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def edited(content: bytes, hunks: Sequence[Hunk], name: str) -> bytes:
    """Make the hunks in a text. Raises PatchError, which names `name`; `is_text` holds."""
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    text = _Text(content[len(mark) :].decode(), name)
    return mark + "".join(text.edited(hunks)).encode()


class _Text:
    """A file's lines, each with how it ends, and where the hunks so far have come to."""

    def __init__(self, text: str, name: str) -> None:
        pieces = text.split("\n")
        last = pieces.pop()
        windows = sum(piece.endswith("\r") for piece in pieces)
        self._ending = "\r\n" if windows * 2 > len(pieces) else "\n"
        self._lines = [
            (piece[:-1], "\r\n") if piece.endswith("\r") else (piece, "\n") for piece in pieces
        ]
        self._ends = not last
        if last:
            self._lines.append((last, ""))
        self._name = name
        self._forms: list[list[str]] = [[line for line, _ in self._lines]]
        self._at = 0

    def edited(self, hunks: Sequence[Hunk]) -> Iterator[str]:
        """Give the new text in pieces."""
        result: list[tuple[str, str]] = []
        appended: list[tuple[str, str]] = []
        for hunk in hunks:
            lines, place = self._place(hunk)
            if place == len(self._lines):
                # Nothing of the file is passed by: the next hunk may still be about any of it.
                appended += [(text.removesuffix("\r"), self._ending) for _, text in lines]
                continue
            result += self._lines[self._at : place]
            for mark, text in lines:
                if mark == "+":
                    # A patch does not choose line endings.
                    result.append((text.removesuffix("\r"), self._ending))
                else:
                    result += self._lines[place : place + 1] if mark == " " else ()
                    place += 1
            self._at = place
        result += self._lines[self._at :] + appended
        for text, ending in result[:-1]:
            yield text + (ending or self._ending)
        if result:
            text, ending = result[-1]
            yield text + ((ending or self._ending) if self._ends else "")

    def _place(self, hunk: Hunk) -> tuple[Sequence[tuple[str, str]], int]:
        """The hunk's lines, perhaps without its loose ones, and where the file has them."""
        start, header = self._start(hunk)
        firm = hunk.lines[: len(hunk.lines) - hunk.loose]
        if all(mark == "+" for mark, _ in firm):
            return firm, self._place_to_add(hunk, header)
        for loose in dict.fromkeys((0, hunk.loose)):
            lines = hunk.lines[: len(hunk.lines) - loose]
            block = [text.removesuffix("\r") for mark, text in lines if mark != "+"]
            place = self._find_at_end(block) if hunk.at_end else self._find(block, start)
            if place is None and header is not None and not hunk.at_end:
                # Models also repeat the header's line as the first one of the hunk.
                place = self._find(block, header, header)
            if place is not None:
                return lines, place
        raise self._not_found(hunk, start)

    def _place_to_add(self, hunk: Hunk, header: int | None) -> int:
        """Nothing is to be found: below the header's line, else at the end of the file."""
        if hunk.at_end or not hunk.headers:
            return len(self._lines)
        if header is None:
            words = f"{self._name}: the line {hunk.headers[-1]!r} of `@@` is above the hunk before"
            raise PatchError(f"{words}; write the hunks in the order of the file", hunk.line)
        return header + 1

    def _start(self, hunk: Hunk) -> tuple[int, int | None]:
        """Where to look from, and the line of the last header if it is not above that."""
        start, found = self._at, None
        for header in hunk.headers:
            found = self._find([header.removesuffix("\r")], start)
            if found is not None:
                start = found + 1
            # Several hunks below one header's line may each name it.
            elif self._find([header.removesuffix("\r")], 0) is None:
                words = f"{self._name} has no line {header!r} for `@@`"
                raise PatchError(f"{words}; copy it from the file, or write `@@` alone", hunk.line)
        return start, found

    def _find_at_end(self, block: list[str]) -> int | None:
        last = len(self._lines) - len(block)
        return self._find(block, last, last) if last >= self._at else None

    def _find(self, block: list[str], start: int, last: int | None = None) -> int | None:
        """The first place of the lines from `start` on, up to `last`."""
        fitting = len(self._lines) - len(block)
        last = fitting if last is None else min(last, fitting)
        for level, form in enumerate(_FORMS):
            if level == len(self._forms):
                self._forms.append([form(line) for line in self._forms[0]])
            have, want = self._forms[level], [form(line) for line in block]
            at = start
            while at <= last:
                if have[at : at + len(want)] == want:
                    return at
                try:
                    at = have.index(want[0], at + 1, last + 1)
                except ValueError:
                    break
        return None

    def _not_found(self, hunk: Hunk, start: int) -> PatchError:
        block = [text for mark, text in hunk.lines[: len(hunk.lines) - hunk.loose] if mark != "+"]
        anywhere = self._find(block, 0)
        if anywhere is None:
            why, todo = "are not in it", "read the file and copy its lines as they are"
        elif hunk.at_end:
            why = f"are not at its end (they are at line {anywhere + 1})"
            todo = "leave out `*** End of File`"
        else:
            why = f"are at line {anywhere + 1}, but not after line {start}"
            todo = "write the hunks in the order of the file, below the `@@` lines they name"
        shown = block[:_SHOWN_LINES] + ["…"] * (len(block) > _SHOWN_LINES)
        lines = "\n".join(f"  {line}" for line in shown)
        return PatchError(f"{self._name}: lines to change {why}; {todo}:\n{lines}", hunk.line)
