"""Application of hunks to a text, without I/O.

A hunk is searched below the previous hunk and below the lines of its `@@`: first exactly, then
without trailing white space, then with all white space taken as equal; the first match counts. A
hunk that only adds lines adds them below the line of its `@@`, or without one at the end of the
file. Context lines, line endings, a byte order mark, and a missing last line end stay unchanged;
added lines get the line ending that most lines have.
"""

import codecs
from collections.abc import Sequence

from reference_server.patch.find import Lines, TooMuchWork
from reference_server.patch.parse import Hunk, PatchError

MAX_TEXT_BYTES = 8 * 2**20
MAX_TEXT_LINES = 2_500_000
"""Maximum bytes and lines of a text that hunks can change."""
_SHOWN_LINES = 12
_SHOWN_WIDTH = 200


def is_text(content: bytes) -> bool:
    """Return whether hunks can change a content: UTF-8 without NUL."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def apply_hunks(content: bytes, hunks: Sequence[Hunk], name: str) -> bytes:
    """Return a text (see `is_text`) with hunks applied. Raises PatchError, which names `name`."""
    if len(content) > MAX_TEXT_BYTES or content.count(b"\n") > MAX_TEXT_LINES:
        limit = f"{MAX_TEXT_BYTES // 2**20} MiB or {MAX_TEXT_LINES:,} lines"
        words = f"{name}: is too long for hunks (more than {limit})"
        raise PatchError(f"{words}; change it with a command")
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        return mark + _Text(content[len(mark) :], name).apply(hunks)
    except TooMuchWork:
        words = f"{name}: so many hunks in so long a file take too long to find"
        raise PatchError(f"{words}; make them in several smaller patches") from None


class _Text:
    """Lines of a file; `_at` is the line after the previous hunk."""

    def __init__(self, content: bytes, name: str) -> None:
        self._lines = Lines(content)
        self._find = self._lines.find
        windows, newlines = content.count(b"\r\n"), content.count(b"\n")
        self._ending = b"\r\n" if windows * 2 > newlines else b"\n"
        self._ends = not content or content.endswith(b"\n")
        self._name = name
        self._at = 0

    def apply(self, hunks: Sequence[Hunk]) -> bytes:
        """Return the text with the hunks applied. Raises PatchError, TooMuchWork."""
        result = _Result(self._ending)
        appended: list[str] = []
        for hunk in hunks:
            lines, place = self._place(hunk)
            if place == len(self._lines):
                # Lines added at the end do not restrict the place of the next hunk.
                appended += [text for _, text in lines]
                continue
            result.keep(self._lines.raw(self._at, place))
            for mark, text in lines:
                if mark == "+":
                    result.add(text)
                else:
                    if mark == " ":
                        result.keep(self._lines.raw(place, place + 1))
                    place += 1
            self._at = place
        result.keep(self._lines.raw(self._at, len(self._lines)))
        for text in appended:
            result.add(text)
        return result.text(ends=self._ends)

    def _place(self, hunk: Hunk) -> tuple[Sequence[tuple[str, str]], int]:
        """Return the hunk's lines, perhaps without the loose ones, and their line in the file.

        Raises PatchError if they are not found.
        """
        start, header = self._start(hunk)
        firm = hunk.lines[: len(hunk.lines) - hunk.loose]
        if all(mark == "+" for mark, _ in firm):
            return firm, self._place_to_add(hunk, header)
        for loose in dict.fromkeys((0, hunk.loose)):
            lines = hunk.lines[: len(hunk.lines) - loose]
            block = [text.removesuffix("\r") for mark, text in lines if mark != "+"]
            place = self._find_at_end(block) if hunk.at_end else self._find(block, start)
            if place is None and header is not None and not hunk.at_end:
                # Models sometimes repeat the line of the header as the first line of the hunk.
                place = self._find(block, header, header)
            if place is not None:
                return lines, place
        raise self._not_found(hunk, start)

    def _place_to_add(self, hunk: Hunk, header: int | None) -> int:
        """Return the line at which to add lines without context: below the header, or the end."""
        if hunk.at_end or not hunk.headers:
            return len(self._lines)
        if header is None:
            line = _quote(hunk.headers[-1])
            words = f"{self._name}: the line {line} of `@@` is above the hunk before"
            raise PatchError(f"{words}; write the hunks in the order of the file", hunk.line)
        return header + 1

    def _start(self, hunk: Hunk) -> tuple[int, int | None]:
        """Return the line to search from, and that of the last header, None if it is above.

        Raises PatchError if the file has no line of a header.
        """
        start, header_line = self._at, None
        for header in hunk.headers:
            header_line = self._find([header.removesuffix("\r")], start)
            if header_line is not None:
                start = header_line + 1
            # Several hunks may repeat the same header.
            elif self._find([header.removesuffix("\r")], 0) is None:
                words = f"{self._name} has no line {_quote(header)} for `@@`"
                raise PatchError(f"{words}; copy it from the file, or write `@@` alone", hunk.line)
        return start, header_line

    def _find_at_end(self, block: list[str]) -> int | None:
        last = len(self._lines) - len(block)
        return self._find(block, last, last) if last >= self._at else None

    def _not_found(self, hunk: Hunk, start: int) -> PatchError:
        block = [text for mark, text in hunk.lines[: len(hunk.lines) - hunk.loose] if mark != "+"]
        anywhere = self._find(block, 0)
        if anywhere is None:
            reason, todo = "are not in it", "read the file and copy its lines as they are"
        elif hunk.at_end:
            reason = f"are not at its end (they are at line {anywhere + 1})"
            todo = "leave out `*** End of File`"
        else:
            reason = f"are at line {anywhere + 1}, but not after line {start}"
            todo = "write the hunks in the order of the file, below the `@@` lines they name"
        excerpt = [line[:_SHOWN_WIDTH] for line in block[:_SHOWN_LINES]]
        excerpt += ["…"] * (len(block) > _SHOWN_LINES)
        lines = "\n".join(f"  {line}" for line in excerpt)
        return PatchError(f"{self._name}: lines to change {reason}; {todo}:\n{lines}", hunk.line)


def _quote(header: str) -> str:
    return repr(header[:_SHOWN_WIDTH])


class _Result:
    """The new text, in pieces; every line except the last has an end."""

    def __init__(self, ending: bytes) -> None:
        self._ending = ending
        self._pieces: list[bytes] = []
        self._last_end = b""

    def keep(self, lines: bytes) -> None:
        """Add lines of the file with their ends, which the last line may lack."""
        if lines:
            end = b"\r\n" if lines.endswith(b"\r\n") else b"\n" if lines.endswith(b"\n") else b""
            self._take(lines, end)

    def add(self, line: str) -> None:
        """Add a line of the patch, with the line ending of the file."""
        self._take(line.removesuffix("\r").encode() + self._ending, self._ending)

    def text(self, *, ends: bool) -> bytes:
        """Return the whole text; `ends`: its last line has an end."""
        if self._pieces and not ends:
            self._pieces[-1] = self._pieces[-1].removesuffix(self._last_end)
        elif self._pieces and not self._last_end:
            self._pieces.append(self._ending)
        return b"".join(self._pieces)

    def _take(self, lines: bytes, end: bytes) -> None:
        if self._pieces and not self._last_end:
            self._pieces.append(self._ending)
        self._pieces.append(lines)
        self._last_end = end
