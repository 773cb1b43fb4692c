"""Actions that a command line shows: the `commandActions` of an item.

Best effort, for display only: no decision depends on it. Source: session-protocol "ThreadItem",
commandExecution (commandActions).

| program | action |
|---|---|
| cat, head, tail, nl, less, more, bat, `sed -n SCRIPT FILE` | read, one for each file |
| ls, tree, find (that runs and deletes nothing), fd, `rg --files`, `git ls-files` | listFiles |
| grep and its kin, rg, ag, ack, `git grep` | search |
| anything else | unknown |

In a pipeline, commands that only shape text (`| head`, `| wc -l`, `| sort`) give no action. `cd`,
`echo` and the like give none beside other actions; `cd` applies to the paths after it. A program
whose arguments make it write or run something is unknown (`DOES_MORE`): an approval request must
not show less than the command does. A command line that cannot be parsed is one unknown action, and
so is one that is too long: each action repeats the text of its command and its folder.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from harness.protocol.wire.item import (
    ListFilesAction,
    ReadAction,
    SearchAction,
    UnknownAction,
)
from reference_server.sandbox.shell_syntax import NotSimple, SimpleCommand, commands_of, script_of

Action = ReadAction | ListFilesAction | SearchAction | UnknownAction

_SHAPING = "awk column cut fmt fold grep head nl rev sed sort tail tr uniq wc"
SHAPING = frozenset(_SHAPING.split())
"""Programs that, after a pipe and without a file operand, only shape another command's output."""
NO_ACTION = frozenset({"cd", "echo", "printf", "pwd", "set", "true", ":"})
_HARMLESS_TARGETS = frozenset({"/dev/null", "1", "2", "&1", "&2"})
_WITH_VALUES = {
    "head": "-n -c --lines --bytes",
    "tail": "-n -c --lines --bytes",
    "grep": "-A -B -C -D -d -m --include --exclude --exclude-dir --max-count --label",
    "rg": (
        "-A -B -C -E -M -T -d -g -j -m -r -t --glob --iglob --max-count --max-depth --replace "
        "--sort --sortr --type --type-not --context --colors --color --threads"
    ),
    "ls": "-I -w -T --ignore --hide",
    "tree": "-I -L -P -o --filelimit",
    "nl": "-b -d -f -h -i -l -n -s -v -w",
    "bat": "-l -r --language --line-range --style --theme",
    "cut": "-b -c -d -f",
    "sort": "-k -t -o -S -T",
    "uniq": "-f -s -w",
    "awk": "-F -v -f",
    "fold": "-w",
    "fmt": "-w",
}
_VALUE_OPTIONS = {name: frozenset(options.split()) for name, options in _WITH_VALUES.items()}
"""Options whose value is the next word."""
_FIND_ACTS = ("-exec", "-ok", "-delete", "-fprint", "-fls")
_PROGRAM_THAT_ACTS = re.compile(r"system|getline|[|>]|^-[fiE]|^--(?!field|assign)")
_PLAIN_SED = re.compile(
    r"\d+(?:,(?:\d+|\$))?[pdq]|s(\W)(?:(?!\1).)*\1(?:(?!\1).)*\1[gpI\d]*", re.DOTALL
)
DOES_MORE: dict[str, Callable[[list[str]], bool]] = {
    "awk": lambda rest: any(map(_PROGRAM_THAT_ACTS.search, rest)),
    "bat": lambda rest: any(one.startswith("--p") for one in rest),
    "fd": lambda rest: any(re.match(r"-[A-Za-z]*[xX]|--exec", one) for one in rest),
    "git": lambda rest: any(re.match(r"-[A-Za-z]*O|--o|-c", one) for one in rest),
    "less": lambda rest: any(one.startswith(("+", "-o", "-O", "--log", "-k")) for one in rest),
    "more": lambda rest: any(one.startswith("+") for one in rest),
    "rg": lambda rest: any(re.match(r"--pre|--ho|--se|-[A-Za-z]*z", one) for one in rest),
    "sed": lambda rest: not all(one == "-n" or _PLAIN_SED.fullmatch(one) for one in rest[:2]),
    "sort": lambda rest: any(re.match(r"-[A-Za-z]*[oT]|--[oct]", one) for one in rest),
    "tree": lambda rest: any(re.match(r"-[A-Za-z]*[oRH]|--o", one) for one in rest),
}
"""Checks by program: True if the arguments make it write or run something."""
MAX_COMMAND_CHARACTERS = 8192
"""Maximum characters of a command that is parsed."""
MAX_ACTIONS = 64
"""Maximum actions of one command; one with more is a single unknown action."""


def actions_of(argv: Sequence[str]) -> list[Action]:
    """Return the actions of a command, in order. Never raises."""
    unparsed: list[Action] = [UnknownAction(command=script_of(argv) or shlex.join(argv))]
    if sum(map(len, argv)) > MAX_COMMAND_CHARACTERS:
        return unparsed
    try:
        actions = _actions_of_all(commands_of(argv))
    except NotSimple:
        return unparsed
    return actions if len(actions) <= MAX_ACTIONS else unparsed


def _actions_of_all(commands: Sequence[SimpleCommand]) -> list[Action]:
    actions: list[Action] = []
    minor: list[Action] = []
    folder = ""
    piped = False
    for command in commands:
        words = [word.text for word in command.words]
        if words and words[0] == "cd" and not piped:
            is_plain = len(words) == 2 and not words[1].startswith("-")
            folder = _join(folder, words[1]) if is_plain else folder
        if words and words[0] in NO_ACTION and not _writes(command):
            minor.append(UnknownAction(command=command.source))
        elif not (piped and words and words[0] in SHAPING and _only_shapes(words)):
            actions += _actions(command, words, folder)
        piped = command.joiner == "|"
    return actions or minor


def _only_shapes(words: list[str]) -> bool:
    return not _files_of(words) and not _does_more(words)


def _does_more(words: list[str]) -> bool:
    more = DOES_MORE.get(PurePosixPath(words[0]).name)
    return more is not None and more(words[1:])


def _writes(command: SimpleCommand) -> bool:
    return any(
        ">" in operator and target.text not in _HARMLESS_TARGETS
        for operator, target in command.redirects
    )


def _actions(command: SimpleCommand, words: list[str], folder: str) -> list[Action]:
    understand = _UNDERSTOOD.get(PurePosixPath(words[0]).name if words else "")
    if understand is None or _writes(command) or _does_more(words):
        return [UnknownAction(command=command.source)]
    return understand(words, command.source, folder) or [UnknownAction(command=command.source)]


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Return options (with their values) and operands of a program's arguments."""
    takes = _VALUE_OPTIONS.get(PurePosixPath(words[0]).name, frozenset())
    options: list[str] = []
    operands: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word == "--":
            operands += rest
        elif word.startswith("-") and word != "-":
            options.append(word)
            if word in takes:
                options += [next(rest, "")]
        else:
            operands.append(word)
    return options, operands


def _files_of(words: list[str]) -> list[str]:
    """Return the file operands of a shaping command."""
    _, operands = _split(words)
    if words[0] == "tr":
        return []
    return operands[1:] if words[0] in ("awk", "grep", "sed") else operands


def _join(folder: str, path: str) -> str:
    return str(PurePosixPath(folder, path)) if folder else path


def _read(files: Sequence[str], source: str, folder: str) -> list[Action]:
    return [
        ReadAction(command=source, name=PurePosixPath(path).name or path, path=_join(folder, path))
        for path in files
        if path not in ("", "-")
    ]


def _reads(words: list[str], source: str, folder: str) -> list[Action]:
    return _read(_split(words)[1], source, folder)


def _sed_actions(words: list[str], source: str, folder: str) -> list[Action]:
    options, operands = _split(words)
    if options != ["-n"] or len(operands) < 2:
        return []
    return _read(operands[1:], source, folder)


def _lists(words: list[str], source: str, folder: str) -> list[Action]:
    _, operands = _split(words)
    return [_listing(operands[0] if operands else None, source, folder)]


def _listing(path: str | None, source: str, folder: str) -> Action:
    target = (folder or None) if path is None else _join(folder, path)
    return ListFilesAction(command=source, path=target)


def _find(words: list[str], source: str, folder: str) -> list[Action]:
    if any(word.startswith(_FIND_ACTS) for word in words):
        return []
    first = words[1] if len(words) > 1 and words[1][:1] not in ("-", "(", "!", "") else None
    return [_listing(first, source, folder)]


def _fd(words: list[str], source: str, folder: str) -> list[Action]:
    if any(word in ("-x", "-X", "--exec", "--exec-batch") for word in words):
        return []
    _, operands = _split(words)
    return [_listing(operands[1] if len(operands) > 1 else None, source, folder)]


def _searches(words: list[str], source: str, folder: str) -> list[Action]:
    options, operands = _split(words)
    if "--files" in options and PurePosixPath(words[0]).name == "rg":
        return [_listing(operands[0] if operands else None, source, folder)]
    query: str | None = None
    for option in ("-e", "--regexp"):
        if option in options:
            # `_split` does not know that this option has a value: it is the first operand.
            query = operands.pop(0) if operands else None
            break
    else:
        query = operands.pop(0) if operands else None
    path = operands[0] if operands else None
    target = (folder or None) if path is None else _join(folder, path)
    return [SearchAction(command=source, query=query, path=target)]


def _git(words: list[str], source: str, folder: str) -> list[Action]:
    match words[1:2]:
        case ["grep"]:
            return _searches(["grep", *words[2:]], source, folder)
        case ["ls-files"]:
            return _lists(["ls", *words[2:]], source, folder)
        case _:
            return []


_UNDERSTOOD: dict[str, Callable[[list[str], str, str], list[Action]]] = {
    **dict.fromkeys(("cat", "head", "tail", "nl", "less", "more", "bat", "batcat"), _reads),
    **dict.fromkeys(("ls", "tree", "dir", "exa", "eza"), _lists),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"), _searches),
    "sed": _sed_actions,
    "find": _find,
    "fd": _fd,
    "git": _git,
}
