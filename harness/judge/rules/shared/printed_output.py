"""The certain output of a command, predicted from its text alone.

Known are `echo`, `printf`, `seq`, loops over plain words, commands that print nothing, and
redirections to files. Anything else makes the output uncertain.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

# More output than this is not predicted; a server may truncate what it shows well before.
MAX_OUTPUT: Final = 100_000

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_QUOTED = r"'[^'\\]*'|\"[^\"\\$`!]*\""
_WORD = rf"(?:[\w.,:/@%+-]+|{_QUOTED})"
_TO_FILE = re.compile(rf"(?: +1|(?<!\d) *)>>? *{_WORD}$")
_TO_ERROR = re.compile(r"(?: +1|(?<!\d) *)>& *2$")
_ECHO = re.compile(rf"echo(?P<words>(?: +{_WORD})+)")
_PRINTF = re.compile(r"printf +(?:'(?P<one>[^'%]*)'|\"(?P<two>[^\"%$`!]*)\")")
_SEQ = re.compile(r"seq +(?P<first>\d{1,6})(?: +(?P<last>\d{1,6}))?")
_FILL = re.compile(r"head +-c +(?P<size>\d{1,7}) +/dev/zero *\| *tr +'\\0' +'?(?P<what>\w)'?")
_SILENT = re.compile(
    rf"sleep +[0-9.]+|true|:|exit 0|(?:touch|mkdir|rm|cd|chmod|export)(?: +{_WORD})+"
)
_SURE = re.compile(r"sleep|true|:|echo|printf")
_LOOP = re.compile(
    rf"for +(?P<name>\w+) +in(?P<words>(?: +{_WORD})+| +\$\(seq [\d ]+\)) *[;\n] *do\s+"
    r"(?P<body>(?:(?!\bfor\b|\bdone\b).)+?);? *[;\n] *done",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_ESCAPE = re.compile(r"\\(?P<octal>[0-7]{1,3})|\\(?P<other>.)")


class _Uncertain(Exception):
    """The output cannot be predicted."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The output of a command on its two streams."""

    stdout: str
    stderr: str = ""

    @property
    def out(self) -> Counter[str]:
        """The lines of standard output."""
        return lines_of(self.stdout)

    @property
    def error(self) -> Counter[str]:
        """The lines of standard error."""
        return lines_of(self.stderr)

    @property
    def lines(self) -> Counter[str]:
        """All of them."""
        return self.out + self.error

    def __len__(self) -> int:
        return len(self.stdout) + len(self.stderr)


def lines_of(output: str) -> Counter[str]:
    """The lines of an output, stripped."""
    return Counter(line.strip() for line in re.split(r"\r?\n|\r", output) if line.strip())


def script_of(command: str) -> str:
    """The script of `sh -c SCRIPT`, as servers show commands; otherwise the command itself."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    around = len(words) == 3 and PurePosixPath(words[0]).name in _SHELLS
    return words[2] if around and re.fullmatch(r"-[a-z]*c", words[1]) else command


def printed_by(command: str) -> Printed | None:
    """Return the output of a command that ended with exit code 0; None if it is not predictable."""
    try:
        return _printed(_unrolled(script_of(command).strip()))
    except (_Uncertain, UnicodeDecodeError):
        return None


def _printed(script: str) -> Printed:
    streams = (bytearray(), bytearray())
    parts = _statements(script)
    chained = all(joint == "&&" for _, joint in parts[:-1])
    left = False
    for at, (statement, joint) in enumerate(parts):
        last = at == len(parts) - 1
        # Success is known only where the exit code of the whole command depends on this statement.
        if not (_SURE.match(statement) or chained or last) and (
            joint == "&&" or not _SILENT.fullmatch(statement)
        ):
            raise _Uncertain
        number, written = _writes(statement)
        other = streams[1 - number]
        if written and other and not other.endswith(b"\n"):
            # An unfinished line of one stream: how the two streams interleave is not known.
            raise _Uncertain
        streams[number].extend(written)
        if len(streams[number]) > MAX_OUTPUT * 30 or left:
            raise _Uncertain
        left = statement == "exit 0"
    return Printed(streams[0].decode(), streams[1].decode())


def _unrolled(script: str) -> str:
    """The script with loops over plain words unrolled."""

    def written_out(loop: re.Match[str]) -> str:
        words = loop["words"].strip()
        if words.startswith("$("):
            first, last = _range(words[2:-1])
            given = [str(number) for number in range(first, last + 1)]
        else:
            given = shlex.split(words)
        if len(given) > 1000 or not all(re.fullmatch(r"[\w.-]+", word) for word in given):
            raise _Uncertain
        name = re.compile(rf"\$(?:{{{loop['name']}}}|{loop['name']}\b)")
        return "; ".join(name.sub(word, loop["body"]) for word in given)

    return _LOOP.sub(written_out, script)


def _statements(script: str) -> list[tuple[str, str]]:
    """The statements, each with the operator that follows it; quoted operators do not count."""
    parts = re.split(r"((?:'[^']*'|\"[^\"]*\"|[^;&\n'\"]|&(?!&)|>&)+|;|&&|\n)", script)
    found: list[tuple[str, str]] = []
    for part in (one for one in parts if one.strip() or one == "\n"):
        if part not in (";", "&&", "\n"):
            found.append((part.strip(), ""))
        elif found and not found[-1][1]:
            found[-1] = (found[-1][0], part)
        elif part != "\n":
            raise _Uncertain
    if not found:
        raise _Uncertain
    return found


def _writes(statement: str) -> tuple[int, bytes]:
    """Return the stream that a statement writes to, and its output."""
    number, kept = 0, statement
    if _TO_ERROR.search(kept):
        number, kept = 1, _TO_ERROR.sub("", kept).rstrip()
    elif _TO_FILE.search(kept):
        kept = _TO_FILE.sub("", kept).rstrip()
        _output_of(kept)
        return 0, b""
    return number, _output_of(kept)


def _output_of(statement: str) -> bytes:
    for form, output in _FORMS:
        match = form.fullmatch(statement)
        if match is not None:
            return output(match)
    raise _Uncertain


def _echo(match: re.Match[str]) -> bytes:
    words = shlex.split(match["words"])
    if words[0].startswith("-"):
        raise _Uncertain
    return (" ".join(words) + "\n").encode()


def _printf(match: re.Match[str]) -> bytes:
    text = match["one"] if match["one"] is not None else match["two"]
    if text.startswith("-") or (match["two"] is not None and "\\\\" in text):
        raise _Uncertain
    found, at = bytearray(), 0
    for escape in _ESCAPE.finditer(text):
        found += text[at : escape.start()].encode()
        if escape["octal"]:
            found.append(int(escape["octal"], 8) & 0xFF)
        elif escape["other"] in _ESCAPES:
            found += _ESCAPES[escape["other"]].encode()
        else:
            raise _Uncertain
        at = escape.end()
    return bytes(found + text[at:].encode())


def _range(words: str) -> tuple[int, int]:
    match = _SEQ.fullmatch(words.strip())
    if match is None:
        raise _Uncertain
    first, last = match["first"], match["last"]
    return (1, int(first)) if last is None else (int(first), int(last))


def _seq(match: re.Match[str]) -> bytes:
    first, last = _range(match[0])
    if last - first > MAX_OUTPUT:
        raise _Uncertain
    return "".join(f"{number}\n" for number in range(first, last + 1)).encode()


def _fill(match: re.Match[str]) -> bytes:
    return match["what"].encode() * int(match["size"])


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], bytes]], ...]] = (
    (_ECHO, _echo),
    (_PRINTF, _printf),
    (_SEQ, _seq),
    (_FILL, _fill),
    (_SILENT, lambda _: b""),
)
