"""Parser of shell text into simple commands and the operators that join them.

Only plain text is parsed; nothing is expanded or run. Anything more than simple commands
(substitutions, here-documents, subshells, loops, functions) is `NotSimple`, and so is a list that
is too long, or ambiguous text: parsed text means the same to every common shell.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

SHELLS = frozenset({"bash", "dash", "ksh", "sh", "zsh"})
_SCRIPT_OPTIONS = frozenset({"-c", "-lc", "-cl"})
_RESERVED_WORDS = """
! { } [[ ]] if then elif else fi for while until do done case esac in select function time coproc
nocorrect noglob repeat foreach end
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
_OPERATOR = re.compile(r"&&|\|\||\|&|;;|[|;&\n]")
_REDIRECT = re.compile(r"(?:\d*(?:<<<|<<-?|>>|>&|<&|<>|>\||[<>])|&>>?)")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]|\{[A-Za-z_]\w*\})", re.ASCII)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=", re.ASCII)
_ESCAPABLE = ("$", "`", '"', "\\", "\n")
_EXPANDING = "*?[]{}"
MAX_WORD_BYTES = 128 * 1024 - 1
"""Maximum bytes of a process's argument on Linux (MAX_ARG_STRLEN, without the NUL at its end)."""
MAX_COMMANDS = 200
"""Maximum simple commands in one text: the checks compare each with all others."""


class NotSimple(ValueError):
    """The text is more than simple commands, or incomplete; str() names the offending part."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word, as the program gets it if nothing in it is expanded.

    `varies`: the shell may expand a variable, a pattern or a tilde in it to an unknown text.
    """

    text: str
    varies: bool = False


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A simple command. `joiner` is the operator after it: `|`, `&&`, `||`, `;`, `&` or "".

    `redirects` are its redirections as pairs of operator and target; `assigns`: assignments precede
    it; `source` is its text.
    """

    words: tuple[Word, ...]
    source: str
    redirects: tuple[tuple[str, Word], ...] = ()
    assigns: bool = False
    joiner: str = ""


class _Reader:
    """Parser of one text; `position` is the offset of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def commands(self) -> list[SimpleCommand]:
        commands: list[SimpleCommand] = []
        while self.position < len(self.text):
            start = self.position
            words, redirects = self._words()
            source = self.text[start : self.position].strip()
            then = self._operator()
            if not words and not redirects:
                # Lines may be empty, and a list may end in its operator; nothing else may.
                if then not in ("\n", "") or (
                    commands and commands[-1].joiner in ("|", "&&", "||")
                ):
                    if then in ("\n", "") and self.position < len(self.text):
                        continue
                    raise NotSimple("an operator without a command")
                continue
            assigns = 0
            while assigns < len(words) and words[assigns][1]:
                assigns += 1
            command = tuple(word for word, _ in words[assigns:])
            if command and command[0].text in _RESERVED and words[assigns][0] == command[0]:
                raise NotSimple(f"the reserved word {command[0].text}")
            joined = ";" if then == "\n" else then
            commands.append(SimpleCommand(command, source, tuple(redirects), assigns > 0, joined))
            if len(commands) > MAX_COMMANDS:
                raise NotSimple(f"more than {MAX_COMMANDS} commands")
        if commands and commands[-1].joiner in ("|", "&&", "||"):
            raise NotSimple("a command is missing at the end")
        return commands

    def _operator(self) -> str:
        if self.position == len(self.text):
            return ""
        match = _OPERATOR.match(self.text, self.position)
        if match is None or match[0] == ";;":
            raise NotSimple(f"{self.text[self.position]!r} at {self.position}")
        self.position = match.end()
        return "|" if match[0] == "|&" else match[0]

    def _words(self) -> tuple[list[tuple[Word, bool]], list[tuple[str, Word]]]:
        """Return the words up to an operator, each with True for a leading assignment, and the
        redirections.
        """
        words: list[tuple[Word, bool]] = []
        redirects: list[tuple[str, Word]] = []
        leading = True
        while True:
            self._skip_blanks()
            redirect = _REDIRECT.match(self.text, self.position)
            if redirect:
                self.position = redirect.end()
                operator = redirect[0]
                if operator.lstrip("0123456789") in ("<<", "<<-"):
                    raise NotSimple("a here-document")
                self._skip_blanks()
                redirects.append((operator, self._needed_word()))
                continue
            start = self.position
            word = self._word()
            if word is None:
                return words, redirects
            raw = self.text[start : self.position]
            leading = leading and _ASSIGNMENT.match(raw) is not None
            words.append((word, leading))

    def _needed_word(self) -> Word:
        word = self._word()
        if word is None:
            raise NotSimple("a redirection without a target")
        return word

    def _skip_blanks(self) -> None:
        while self.position < len(self.text):
            if self.text[self.position] in " \t":
                self.position += 1
            elif self.text.startswith("\\\n", self.position):
                self.position += 2
            elif self.text[self.position] == "#":
                end = self.text.find("\n", self.position)
                self.position = len(self.text) if end < 0 else end
            else:
                return

    def _word(self) -> Word | None:
        """Return the word that begins here; None at an operator, a redirection or the end."""
        parts: list[str] = []
        varies = False
        start = self.position
        while self.position < len(self.text):
            char = self.text[self.position]
            if char in " \t\n|&;<>":
                break
            if char in "()`":
                raise NotSimple(f"{char} at {self.position}")
            if char == "'":
                parts.append(self._read_quoted())
            elif char == '"':
                part, replaced = self._double_quoted()
                parts.append(part)
                varies = varies or replaced
            elif char == "\\":
                parts.append(self._read_escaped())
            elif char == "$":
                parts.append(self._variable())
                varies = True
            else:
                # A tilde expands at the start of a word or of an entry of a path list; zsh also
                # expands =name.
                first = self.position == start
                tilde = char == "~" and (first or self.text[self.position - 1] in ":=")
                varies = varies or char in _EXPANDING or tilde or (char == "=" and first)
                parts.append(char)
                self.position += 1
        if self.position == start:
            return None
        return Word("".join(parts), varies)

    def _read_quoted(self) -> str:
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise NotSimple("a quotation without its end")
        part = self.text[self.position + 1 : end]
        self.position = end + 1
        return part

    def _read_escaped(self) -> str:
        if self.position + 1 == len(self.text):
            raise NotSimple("a backslash at the end")
        char = self.text[self.position + 1]
        self.position += 2
        return "" if char == "\n" else char

    def _variable(self) -> str:
        match = _VARIABLE.match(self.text, self.position)
        if match is None:
            raise NotSimple(f"$ at {self.position}")
        self.position = match.end()
        return match[0]

    def _double_quoted(self) -> tuple[str, bool]:
        parts: list[str] = []
        varies = False
        self.position += 1
        while self.position < len(self.text):
            char = self.text[self.position]
            if char == '"':
                self.position += 1
                return "".join(parts), varies
            if char == "`":
                raise NotSimple(f"` at {self.position}")
            if char == "$":
                parts.append(self._variable())
                varies = True
            elif char == "\\" and self.text[self.position + 1 : self.position + 2] in (
                "$",
                "`",
                '"',
                "\\",
                "\n",
            ):
                parts.append(self._read_escaped())
            else:
                parts.append(char)
                self.position += 1
        raise NotSimple("a quotation without its end")


def simple_commands(text: str) -> list[SimpleCommand]:
    """Return the simple commands of a shell text. Raises NotSimple if it has anything else."""
    if "\0" in text:
        raise NotSimple("a NUL character")
    return _Reader(text).commands()


def is_too_long(word: str) -> bool:
    """Return whether a word is too long for an argument of a process."""
    return len(word) > MAX_WORD_BYTES or len(word.encode("utf-8", "replace")) > MAX_WORD_BYTES


def script_of(argv: Sequence[str]) -> str | None:
    """Return the shell text of an argv such as `bash -lc TEXT`, else None."""
    if len(argv) != 3 or argv[1] not in _SCRIPT_OPTIONS:
        return None
    return argv[2] if PurePosixPath(argv[0]).name in SHELLS else None


def commands_of(argv: Sequence[str]) -> list[SimpleCommand]:
    """Return the commands of an argv, or of its shell text. Raises NotSimple if it has others."""
    script = script_of(argv)
    if script is not None:
        return simple_commands(script)
    if not argv:
        return []
    return [SimpleCommand(tuple(Word(one) for one in argv), shlex.join(argv))]
