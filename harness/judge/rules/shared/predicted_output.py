"""Output of a command, predicted from the command line alone.

Supported are `echo`, `printf`, `seq`, loops over plain words, commands that print nothing, and
redirections to files. Anything else makes the output uncertain.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

# Longer number sequences, and output of 30 times as many bytes, are not predicted.
MAX_OUTPUT: Final = 100_000

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_QUOTED = r"'[^'\\]*'|\"[^\"\\$`!]*\""
_WORD = rf"(?:[\w.,:/@%+-]+|{_QUOTED})"
_TO_FILE = re.compile(rf"(?: +1|(?<!\d) *)>>? *{_WORD}$")
_TO_ERROR = re.compile(r"(?: +1|(?<!\d) *)>& *2$")
_ECHO = re.compile(rf"echo(?P<words>(?: +{_WORD})+)")
_PRINTF = re.compile(r"printf +(?:'(?P<single>[^'%]*)'|\"(?P<double>[^\"%$`!]*)\")")
_SEQ = re.compile(r"seq +(?P<first>\d{1,6})(?: +(?P<last>\d{1,6}))?")
_FILL = re.compile(r"head +-c +(?P<size>\d{1,7}) +/dev/zero *\| *tr +'\\0' +'?(?P<character>\w)'?")
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
class Output:
    """The output of a command on its two streams."""

    stdout: str
    stderr: str = ""

    @property
    def stdout_lines(self) -> Counter[str]:
        """Return the lines of standard output, counted."""
        return count_lines(self.stdout)

    @property
    def stderr_lines(self) -> Counter[str]:
        """Return the lines of standard error, counted."""
        return count_lines(self.stderr)

    @property
    def lines(self) -> Counter[str]:
        """Return the lines of both streams, counted."""
        return self.stdout_lines + self.stderr_lines

    def __len__(self) -> int:
        return len(self.stdout) + len(self.stderr)


def count_lines(output: str) -> Counter[str]:
    """Return how often each stripped, nonempty line is in an output."""
    return Counter(line.strip() for line in re.split(r"\r?\n|\r", output) if line.strip())


def script_of(command: str) -> str:
    """Return the script of `sh -c SCRIPT`, as servers show commands, else the command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    around = len(words) == 3 and PurePosixPath(words[0]).name in _SHELLS
    return words[2] if around and re.fullmatch(r"-[a-z]*c", words[1]) else command


def predict_output(command: str) -> Output | None:
    """Return the output of a command that ended with exit code 0; None if it is not predictable."""
    try:
        return _predict_streams(_unroll_loops(script_of(command).strip()))
    except (_Uncertain, UnicodeDecodeError):
        return None


def _predict_streams(script: str) -> Output:
    streams = (bytearray(), bytearray())
    parts = _statements(script)
    chained = all(joint == "&&" for _, joint in parts[:-1])
    has_exited = False
    for index, (statement, joint) in enumerate(parts):
        last = index == len(parts) - 1
        # Success is known only if the exit code of the whole command depends on this statement.
        if not (_SURE.match(statement) or chained or last) and (
            joint == "&&" or not _SILENT.fullmatch(statement)
        ):
            raise _Uncertain
        number, written = _writes(statement)
        other = streams[1 - number]
        if written and other and not other.endswith(b"\n"):
            # One stream has an unfinished line: the interleaving of the two is unknown.
            raise _Uncertain
        streams[number].extend(written)
        if len(streams[number]) > MAX_OUTPUT * 30 or has_exited:
            raise _Uncertain
        has_exited = statement == "exit 0"
    return Output(streams[0].decode(), streams[1].decode())


def _unroll_loops(script: str) -> str:
    """Return the script with loops over plain words unrolled."""

    def written_out(loop: re.Match[str]) -> str:
        words = loop["words"].strip()
        if words.startswith("$("):
            first, last = _range(words[2:-1])
            values = [str(number) for number in range(first, last + 1)]
        else:
            values = shlex.split(words)
        if len(values) > 1000 or not all(re.fullmatch(r"[\w.-]+", word) for word in values):
            raise _Uncertain
        name = re.compile(rf"\$(?:{{{loop['name']}}}|{loop['name']}\b)")
        return "; ".join(name.sub(word, loop["body"]) for word in values)

    return _LOOP.sub(written_out, script)


def _statements(script: str) -> list[tuple[str, str]]:
    """Return the statements with the operator that follows each; quoted operators do not count."""
    parts = re.split(r"((?:'[^']*'|\"[^\"]*\"|[^;&\n'\"]|&(?!&)|>&)+|;|&&|\n)", script)
    statements: list[tuple[str, str]] = []
    for part in (part_text for part_text in parts if part_text.strip() or part_text == "\n"):
        if part not in (";", "&&", "\n"):
            statements.append((part.strip(), ""))
        elif statements and not statements[-1][1]:
            statements[-1] = (statements[-1][0], part)
        elif part != "\n":
            raise _Uncertain
    if not statements:
        raise _Uncertain
    return statements


def _writes(statement: str) -> tuple[int, bytes]:
    """Return the stream that a statement writes to (0 stdout, 1 stderr), and its output."""
    number, command = 0, statement
    if _TO_ERROR.search(command):
        number, command = 1, _TO_ERROR.sub("", command).rstrip()
    elif _TO_FILE.search(command):
        command = _TO_FILE.sub("", command).rstrip()
        _output_of(command)
        return 0, b""
    return number, _output_of(command)


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
    text = match["single"] if match["single"] is not None else match["double"]
    if text.startswith("-") or (match["double"] is not None and "\\\\" in text):
        raise _Uncertain
    output, end = bytearray(), 0
    for escape in _ESCAPE.finditer(text):
        output += text[end : escape.start()].encode()
        if escape["octal"]:
            output.append(int(escape["octal"], 8) & 0xFF)
        elif escape["other"] in _ESCAPES:
            output += _ESCAPES[escape["other"]].encode()
        else:
            raise _Uncertain
        end = escape.end()
    return bytes(output + text[end:].encode())


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
    return match["character"].encode() * int(match["size"])


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], bytes]], ...]] = (
    (_ECHO, _echo),
    (_PRINTF, _printf),
    (_SEQ, _seq),
    (_FILL, _fill),
    (_SILENT, lambda _: b""),
)
