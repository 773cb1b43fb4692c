"""What the user allowed for good: the rules of an agent's home.

Here lives the file `rules/default.rules`: one rule a line, the word `allow` and a JSON array of the
words that a command begins with. `#` begins a comment.

    # made by acceptWithExecpolicyAmendment
    allow ["npm", "run", "build"]

A command is allowed where it is one or more simple commands, joined by `|`, `&&`, `||` or `;`, each
of which begins with the words of a rule; so `npm run build; rm x` is not, nor is anything with a
redirection or substitution. Whatever it is, a command whose whole argv is a rule is allowed. A line
that is no rule is reported and has no effect.

A rule spares a question, nothing else: what it allows runs within the sandbox, and where a command
is to run outside of it, no rule counts. Source: session-protocol "Approval sequence",
acceptWithExecpolicyAmendment.
"""

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from reference_server.exec.trust import JOINS, only_reads, program_name
from reference_server.exec.words import SHELLS, NotSimple, Simple, commands_of, script_of

FILE = "rules/default.rules"
NETWORK_FILE = "rules/network.rules"
"""What may also reach the network (applyNetworkPolicyAmendment), in the same form."""
_WORD = "allow "
_WIDE = """
sudo su doas env nohup nice timeout xargs eval exec command python python3 perl ruby node php
osascript git npm npx pip docker ssh rm
"""
TOO_WIDE = SHELLS | frozenset(_WIDE.split())
"""Programs that do anything: one of them alone, or with one option, is no rule."""


class BadRule(ValueError):
    """These words cannot be a rule; str() says why."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules as they stood in the file, and the lines that were none, `file:line: why`."""

    prefixes: tuple[tuple[str, ...], ...] = ()
    damaged: tuple[str, ...] = ()

    def allow(self, argv: Sequence[str], *, trusting: bool = False) -> bool:
        """Whether a command was allowed for good.

        `trusting`: the rest of a list or pipe in which a rule allows some may be trusted ones
        (`trust.py`); so a trusted command alone is allowed then.
        """
        if tuple(argv) in self.prefixes:
            return True
        try:
            commands = commands_of(argv)
        except NotSimple:
            return False
        if not commands or (script_of(argv) is not None and program_name(argv[0]) is None):
            return False
        return all(
            self._covers(command) or (trusting and only_reads(command, commands))
            for command in commands
        )

    def _covers(self, command: Simple) -> bool:
        if command.redirects or command.assigns or not command.words or command.then not in JOINS:
            return False
        words = tuple(word.text for word in command.words)
        # What a variable or a pattern stands for was not seen by who allowed it.
        plain = not any(word.varies for word in command.words)
        return plain and any(words[: len(prefix)] == prefix for prefix in self.prefixes)


def checked(words: object) -> tuple[str, ...]:
    """The words of a rule. Raises BadRule."""
    listed = cast("list[Any]", words) if isinstance(words, list | tuple) else []
    if not listed or not all(isinstance(word, str) and word for word in listed):
        raise BadRule("a rule is an array of one or more words that are not empty")
    prefix = tuple(cast("list[str]", listed))
    if any("\0" in word or _unwritable(word) for word in prefix):
        raise BadRule("a word of the rule holds what no command can")
    name = PurePosixPath(prefix[0]).name
    alone = len(prefix) == 1 or (len(prefix) == 2 and prefix[1].startswith("-"))
    if name in TOO_WIDE and alone:
        raise BadRule(f"a rule that begins with {' '.join(prefix)} alone would allow anything")
    return prefix


def _unwritable(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return True
    return False


def proposal(argv: Sequence[str]) -> tuple[str, ...] | None:
    """The rule to offer for a command; None where none would do.

    Its words, where it is one simple command that nothing varies; else the whole argv, which
    allows that very command.
    """
    words = list(argv)
    try:
        [command] = commands_of(argv)
    except ValueError:
        pass
    else:
        plain = not (command.redirects or command.assigns or command.then)
        if plain and not any(word.varies for word in command.words):
            words = [word.text for word in command.words]
    try:
        return checked(words)
    except BadRule:
        return None


class RulesFile:
    """A rules file of a home. It is read at every use, so that a user's edit counts at once."""

    def __init__(self, home: Path, name: str = FILE) -> None:
        self.path = home / name

    def read(self) -> Rules:
        """The rules that are in force; never raises."""
        try:
            text = self.path.read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            return Rules()
        except OSError as error:
            return Rules(damaged=(f"{self.path}: cannot be read: {error.strerror}",))
        prefixes: dict[tuple[str, ...], None] = {}
        damaged: list[str] = []
        for number, line in enumerate(text.split("\n"), 1):
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            try:
                prefixes[_parsed(stripped)] = None
            except ValueError as error:
                damaged.append(f"{self.path}:{number}: {error}")
        return Rules(tuple(prefixes), tuple(damaged))

    def add(self, words: Sequence[str]) -> None:
        """Allow from now on what begins with these words. Raises BadRule, OSError.

        The rule is on the disk when this returns; of two servers that add at once, neither loses.
        """
        prefix = checked(list(words))
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        file = os.open(self.path, flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if prefix in self.read().prefixes:
                return
            size = os.fstat(file).st_size
            # An edit by hand may have left the last line without its end.
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            line = f"{_WORD}{json.dumps(prefix, ensure_ascii=False)}\n"
            os.write(file, ("\n" + line if torn else line).encode())
            os.fsync(file)
        finally:
            os.close(file)


def _parsed(line: str) -> tuple[str, ...]:
    if not line.startswith(_WORD):
        raise BadRule('a rule is `allow ["word", …]`')
    try:
        words = json.loads(line.removeprefix(_WORD))
    except ValueError as error:
        raise BadRule(f"what follows `allow` is no JSON array: {error}") from error
    return checked(words)
