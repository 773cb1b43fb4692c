"""Lasting rules: commands that the client has allowed permanently.

They are in the file `rules/default.rules` of the home, one rule per line. `#` begins a comment.

    # made by acceptWithExecpolicyAmendment: only this command in this folder
    allow exactly ["bash", "-c", "npm run build"] in "/home/me/project"
    # the client named the words with which a command must begin
    allow ["npm", "run"]

A command is allowed if it is the one of an `exactly` rule; or if it consists of simple commands,
joined by `|`, `&&`, `||` or `;`, each of which begins with the words of a rule. So `npm run build;
rm x` is not allowed, nor is anything with a redirection or substitution. For programs that run
their arguments (`RUNNERS`), a rule allows no words beyond its own. An invalid line is reported in
`Rules.damaged_lines` and has no effect.

A rule only saves the approval request: an allowed command runs inside the sandbox, and no rule
applies to a command that is to run outside. Source: session-protocol "Approval sequence",
acceptWithExecpolicyAmendment.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from reference_server.safe_files import lock, make_private, open_for_reading, open_regular
from reference_server.sandbox.shell_syntax import (
    SHELLS,
    NotSimple,
    SimpleCommand,
    commands_of,
    script_of,
)
from reference_server.sandbox.trust import JOINS, only_reads, program_name

FILE = "rules/default.rules"
NETWORK_FILE = "rules/network.rules"
"""Rules for commands that may also reach the network (applyNetworkPolicyAmendment), same form."""
_RUN_WORDS = """
sudo su doas env nohup nice timeout xargs eval exec command builtin source time setsid stdbuf
python perl ruby node php lua osascript ssh busybox toybox find fd sed awk gawk mawk make tar vi vim
"""
RUNNERS = SHELLS | frozenset(_RUN_WORDS.split())
"""Programs that run their arguments: a rule allows them with no words beyond its own."""
TOO_WIDE = RUNNERS | frozenset(
    ["git", "npm", "npx", "pnpm", "yarn", "pip", "docker", "podman", "rm"]
)
"""Programs that can do anything: a rule must have more words than their name and options."""
FILE_LIMIT = 1 << 20
"""Maximum bytes of a rules file, which is read before each command."""
RULE_LIMIT = 10_000
"""Maximum characters of one rule."""
_VERSION = re.compile(r"[0-9.]+$")
_NO_WORD = re.compile(r"-|[A-Za-z_]\w*=")
_EXACT = re.compile(r"exactly (\[.*\]) in (\".*\")", re.DOTALL)
_WORD = "allow "


class BadRule(ValueError):
    """Words that cannot be a rule; str() says why."""


@dataclass(frozen=True, slots=True)
class Exact:
    """An `exactly` rule: one argv in one folder."""

    argv: tuple[str, ...]
    folder: str


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a file; `damaged_lines`: `file:line: reason` for each invalid line."""

    prefixes: tuple[tuple[str, ...], ...] = ()
    exact: frozenset[Exact] = frozenset()
    damaged_lines: tuple[str, ...] = ()

    def allow(self, argv: Sequence[str], cwd: str, *, trusted_in: str | None = None) -> bool:
        """Return whether the rules allow a command that runs in `cwd`.

        With `trusted_in`, the working directory of the thread, the simple commands that no rule
        covers may be trusted ones instead (`trust.py`), even all of them.
        """
        if Exact(tuple(argv), cwd) in self.exact or tuple(argv) in self.prefixes:
            return True
        try:
            commands = commands_of(argv)
        except NotSimple:
            return False
        if not commands or (script_of(argv) is not None and program_name(argv[0]) is None):
            return False
        trusting, at_home = trusted_in is not None, trusted_in == cwd
        return all(
            self._covers(command) or (trusting and only_reads(command, commands, at_home=at_home))
            for command in commands
        )

    def _covers(self, command: SimpleCommand) -> bool:
        if command.redirects or command.assigns or not command.words or command.joiner not in JOINS:
            return False
        words = tuple(word.text for word in command.words)
        # The client that allowed the rule has not seen the value of a variable or pattern.
        if any(word.varies for word in command.words):
            return False
        if _name(words[0]) in RUNNERS:
            return words in self.prefixes
        return any(words[: len(prefix)] == prefix for prefix in self.prefixes)


def check_prefix(words: object) -> tuple[str, ...]:
    """Return the words of a client's prefix rule. Raises BadRule if they are no safe rule."""
    prefix = _words(words)
    name = _name(prefix[0])
    if name in TOO_WIDE and all(_NO_WORD.match(word) for word in prefix[1:]):
        raise BadRule(f"a rule that begins with {' '.join(prefix)} alone would allow anything")
    if "/" in prefix[0] and not os.path.isabs(prefix[0]):
        raise BadRule(f"{prefix[0]} is another program in another folder; give its absolute path")
    return prefix


def _words(words: object) -> tuple[str, ...]:
    listed = cast("list[Any]", words) if isinstance(words, list | tuple) else []
    if not listed or not all(isinstance(word, str) and word for word in listed):
        raise BadRule("a rule is an array of one or more words that are not empty")
    parsed = tuple(cast("list[str]", listed))
    if sum(map(len, parsed)) > RULE_LIMIT:
        raise BadRule(f"a rule has at most {RULE_LIMIT:,} characters")
    if any("\0" in word or _unwritable(word) for word in parsed):
        raise BadRule("a word of the rule has a character that no command can have")
    return parsed


def _name(program: str) -> str:
    """Return a program's name without folder and version: `/usr/bin/python3.11` is `python`."""
    name = PurePosixPath(program).name
    return _VERSION.sub("", name) or name


def _unwritable(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return True
    return False


class RulesFile:
    """A rules file of a home. It is read at every use, so that a user's edit counts at once."""

    def __init__(self, home: Path, name: str = FILE) -> None:
        self.path = home / name

    def read(self) -> Rules:
        """Return the rules that are in the file now. Never raises."""
        try:
            with open_for_reading(self.path) as file:
                text = file.read(FILE_LIMIT).decode("utf-8", "replace")
        except FileNotFoundError:
            return Rules()
        except OSError as error:
            return Rules(damaged_lines=(f"{self.path}: cannot be read: {error.strerror}",))
        prefixes: dict[tuple[str, ...], None] = {}
        exact: set[Exact] = set()
        damaged: list[str] = []
        for number, line in enumerate(text.split("\n"), 1):
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            try:
                rule = _parse_rule(stripped)
                if isinstance(rule, Exact):
                    exact.add(rule)
                else:
                    prefixes[rule] = None
            except ValueError as error:
                damaged.append(f"{self.path}:{number}: {error}")
        return Rules(tuple(prefixes), frozenset(exact), tuple(damaged))

    def add(self, words: Sequence[str]) -> None:
        """Add a rule that allows commands that begin with these words. Raises BadRule, OSError.

        The rule is on the disk when this returns, even if two servers add rules at once.
        """
        prefix = check_prefix(list(words))
        self._append(json.dumps(prefix, ensure_ascii=False))

    def add_exactly(self, argv: Sequence[str], folder: str) -> None:
        """Add a rule that allows only this command in this folder. Raises BadRule, OSError."""
        words = json.dumps(_words(list(argv)), ensure_ascii=False)
        self._append(f"exactly {words} in {json.dumps(folder, ensure_ascii=False)}")

    def _append(self, rule: str) -> None:
        line = f"{_WORD}{rule}\n"
        make_private(self.path.parent)
        file = open_regular(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            lock(file, self.path)
            text = self.path.read_bytes()
            if len(text) + len(line) > FILE_LIMIT:
                raise BadRule(f"{self.path} is full: remove rules that are not needed")
            if line.encode() in text.splitlines(keepends=True):
                return
            # The user may have edited the file and left its last line without a newline.
            torn = bool(text) and not text.endswith(b"\n")
            os.write(file, ("\n" + line if torn else line).encode())
            os.fsync(file)
        finally:
            os.close(file)


def _parse_rule(line: str) -> tuple[str, ...] | Exact:
    if not line.startswith(_WORD):
        raise BadRule('a rule is `allow ["word", …]`')
    rule = line.removeprefix(_WORD)
    try:
        if match := _EXACT.fullmatch(rule):
            return Exact(_words(json.loads(match[1])), str(json.loads(match[2])))
        words = json.loads(rule)
    except (ValueError, RecursionError) as error:
        raise BadRule(f"what follows `allow` is no JSON array: {error}") from error
    return check_prefix(words)
