"""Parser of patches, as models write them, without I/O.

Tolerated are white space around the whole and around the markers, CR LF, a heredoc's markers around
the patch, a missing newline at the end, a blank context line without its space, blank lines between
sections, a first hunk without `@@`. Everything else is an error, such as a line without its mark, a
patch without its end (it may be cut off), line numbers after `@@`. `plan` reads the files.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from reference_server.limits import LimitExceeded, check_path
from reference_server.patch.heredoc import heredoc_patch

__all__ = [
    "AddFile",
    "DeleteFile",
    "FilePatch",
    "Hunk",
    "Patch",
    "PatchError",
    "UpdateFile",
    "heredoc_patch",
    "parse_patch",
]

BEGIN = "*** Begin Patch"
END = "*** End Patch"
END_OF_FILE = "*** End of File"
_FILE = re.compile(r"\*\*\* (Add|Delete|Update) File:(.*)", re.DOTALL)
_MOVE = re.compile(r"\*\*\* Move to:(.*)", re.DOTALL)
_WRAPPING = re.compile(r"<<[ \t]*['\"]?(\w+)['\"]?")
_LINE_NUMBERS = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)? @@")
_SECTIONS = "`*** Add File: path`, `*** Delete File: path` or `*** Update File: path`"
_SHOWN = 80
MAX_FILES = 2_000
"""Maximum files of a patch: each needs an open folder, a temporary file and a change in the item.
"""
MAX_PATCH_CHARACTERS = 2 * 2**20
"""Maximum characters of a patch, more than models write; each is held in memory several times."""


class PatchError(Exception):
    """The patch is not applied; str() says where, why and what to do. `line` counts from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line} of the patch: {message}")
        self.line = line


@dataclass(frozen=True, slots=True)
class AddFile:
    """Add a file, with its whole content."""

    line: int
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Delete a file."""

    line: int
    path: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines to find and change: pairs of a mark (` `, `-` or `+`) and the text.

    `headers` are lines to find first, one after the other. The last `loose` lines are blank without
    a mark: they may be context, or only blank lines of the patch. `at_end`: at the file's end.
    """

    line: int
    headers: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]
    loose: int = 0
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class UpdateFile:
    """Change a file, move it, or both."""

    line: int
    path: str
    move_to: str | None
    hunks: tuple[Hunk, ...]


FilePatch = AddFile | DeleteFile | UpdateFile


@dataclass(frozen=True, slots=True)
class Patch:
    """Files of a patch, at least one, in its order."""

    files: tuple[FilePatch, ...]


def parse_patch(text: str) -> Patch:
    """Parse a patch. Raises PatchError and nothing else."""
    if len(text) > MAX_PATCH_CHARACTERS:
        words = f"the patch is longer than {MAX_PATCH_CHARACTERS // 2**20} MiB"
        raise PatchError(f"{words}; make it in several smaller ones")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise PatchError("half of a surrogate pair is not text", line) from None
    files = tuple(islice(_Reader(text).files(), MAX_FILES + 1))
    if len(files) > MAX_FILES:
        raise PatchError(f"the patch has more than {MAX_FILES:,} files; make it in several")
    return Patch(files)


class _Reader:
    """Parser of the lines between the first marker and the last."""

    def __init__(self, text: str) -> None:
        lines = text.split("\n")
        if all(line.endswith("\r") for line in lines[:-1]):
            lines = [line.removesuffix("\r") for line in lines]
        filled = [at for at, line in enumerate(lines) if line.strip()]
        if len(filled) > 1:
            wrapping = _WRAPPING.fullmatch(lines[filled[0]].strip())
            if wrapping and lines[filled[-1]].strip() == wrapping[1]:
                filled = filled[1:-1]
        if not filled:
            raise PatchError(f"the patch is empty; it begins with `{BEGIN}`")
        first, last = filled[0], filled[-1]
        if lines[first].strip() != BEGIN:
            raise PatchError(f"expected `{BEGIN}`, found {_excerpt(lines[first])}", first + 1)
        if lines[last].strip() != END:
            words = f"expected `{END}` at the end, found {_excerpt(lines[last])}; is it cut off?"
            raise PatchError(words, last + 1)
        self._lines = lines
        self._at = first + 1
        self._end = last

    def files(self) -> Iterator[FilePatch]:
        """Yield the sections. Raises PatchError."""
        if self._skip_blank():
            raise PatchError(f"the patch has no files; expected {_SECTIONS}", self._at + 1)
        while not self._skip_blank():
            line = self._at + 1
            match = _FILE.fullmatch(self._lines[self._at].strip())
            if match is None:
                raise self._unexpected_line(_SECTIONS)
            path = self._path(match[2])
            match match[1]:
                case "Add":
                    yield AddFile(line, path, self._content())
                case "Delete":
                    yield DeleteFile(line, path)
                case _:
                    yield self._update(line, path)

    def _skip_blank(self) -> bool:
        """Skip blank lines and return whether the end is reached."""
        while self._at < self._end and not self._lines[self._at].strip():
            self._at += 1
        return self._at == self._end

    def _path(self, text: str) -> str:
        path = text.strip()
        if not path or "\0" in path:
            raise PatchError("a path is missing after the colon", self._at + 1)
        try:
            check_path(path)
        except LimitExceeded as error:
            raise PatchError(str(error), self._at + 1) from None
        self._at += 1
        return path

    def _unexpected_line(self, expected: str) -> PatchError:
        return PatchError(
            f"expected {expected}, found {_excerpt(self._lines[self._at])}", self._at + 1
        )

    def _content(self) -> str:
        start = self._at
        while self._at < self._end and self._lines[self._at].startswith("+"):
            self._at += 1
        content = "".join(f"{line[1:]}\n" for line in self._lines[start : self._at])
        blank = self._at
        if not self._skip_blank() and not self._lines[self._at].lstrip().startswith("***"):
            if blank < self._at:
                raise PatchError("an empty line of a new file is written `+`", blank + 1)
            raise self._unexpected_line("each line of a new file to begin with `+`")
        return content

    def _update(self, line: int, path: str) -> UpdateFile:
        move_to = None
        if self._at < self._end and (move := _MOVE.fullmatch(self._lines[self._at].strip())):
            move_to = self._path(move[1])
        hunks: list[Hunk] = []
        while not self._skip_blank() and not self._lines[self._at].startswith("***"):
            hunks.append(self._hunk())
        if not hunks and move_to is None:
            raise PatchError(f"the update of {path} has no hunks: `@@`, then its lines", line)
        return UpdateFile(line, path, move_to, tuple(hunks))

    def _hunk(self) -> Hunk:
        start = self._at
        headers: list[str] = []
        while self._at < self._end and self._lines[self._at].startswith("@@"):
            headers += self._header()
        lines: list[tuple[str, str]] = []
        loose = 0
        at_end = False
        while self._at < self._end and not at_end:
            line = self._lines[self._at]
            if line.rstrip() == END_OF_FILE:
                at_end = True
            elif line.startswith(("@@", "***")):
                break
            elif line and line[0] not in " +-":
                raise self._unexpected_line(
                    "a line of a hunk to begin with ` ` (context), `-` (removed) or `+` (added)"
                )
            else:
                lines.append((line[0], line[1:]) if line else (" ", ""))
                loose = 0 if line else loose + 1
            self._at += 1
        if len(lines) == loose:
            raise PatchError("the hunk has no lines: it needs ` `, `-` or `+` lines", start + 1)
        return Hunk(start + 1, tuple(headers), tuple(lines), loose, at_end)

    def _header(self) -> Iterator[str]:
        text = self._lines[self._at][2:]
        if text.strip() and not text.startswith((" ", "\t")):
            raise self._unexpected_line("a space after `@@`")
        if _LINE_NUMBERS.match(text.strip()):
            raise self._unexpected_line(
                "`@@` alone or with a line of the file that comes before the hunk (line numbers "
                "are not read)"
            )
        self._at += 1
        if text.strip():
            yield text[1:]


def _excerpt(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "…")
