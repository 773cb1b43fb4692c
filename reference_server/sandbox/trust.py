"""Trusted commands: they can only read, so approval policy `untrusted` runs them without asking.

A command is trusted if it consists of simple commands joined by `|`, `&&`, `||` or `;`, each of a
program below, and of nothing else: no redirection, substitution, variable, assignment or background
command. The text of a shell (`bash -lc TEXT`) is parsed. Programs count by their bare name, or in
/bin, /usr/bin or /usr/local/bin.

| program | trusted |
|---|---|
| those of `ALWAYS` | always |
| printf | without -v, and without `%n`, which sets a variable too |
| find | without -exec, -execdir, -ok, -okdir, -delete, -fprint…, -fls, -files0-from |
| rg | without --pre, --hostname-bin, -z, --search-zip |
| sort | without -o, --output, -T, --temporary-directory, --compress-program, --files0-from |
| uniq | with one file at most |
| tree | without -o, -R, -H, which write or run something |
| file | without -C, --compile, -z, -Z |
| date | without -s, --set, and with no operand but +FORMAT |
| sed | only `sed -n {N}p` or `{N},{M}p`, then files |
| git | status, log, diff, show, rev-parse, ls-files, blame: without --output, --ext-diff, |
|     | --textconv, --no-index, -O, -o, --contents; branch: listing only; only in the working |
|     | directory of the thread, since a repository's configuration can name programs |

Patterns (`*.py`), tildes and braces are allowed only for programs that are trusted always: for
others a file could have the name of an option. Long options may be abbreviated, as programs allow.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from reference_server.sandbox.shell_syntax import SimpleCommand

_ALWAYS = """
basename cat cd cksum cmp comm cut df diff dirname du echo egrep false fgrep grep groups head id ls
md5sum nl nproc od pwd readlink realpath rev seq sha1sum sha256sum sha512sum stat tail tr true uname
wc which whoami
"""
ALWAYS = frozenset(_ALWAYS.split())
"""Programs that only read, whatever their options."""
_FOLDERS = frozenset({"/bin", "/usr/bin", "/usr/local/bin"})
JOINS = frozenset({"", "|", "&&", "||", ";"})
"""Operators that may join commands; not `&`, which leaves a command running."""
_FIND_ACTS = ("-exec", "-ok", "-delete", "-fprint", "-fls", "-files0-from")
_LINES = re.compile(r"(?:[0-9]+|[0-9]+,(?:[0-9]+|\$))p")
_COUNTS = re.compile(r"%[^%A-Za-z]*[hlqLjzt]*n")
"""A `%n` of printf, which stores a count in the variable that the next word names."""
_GIT_READS = frozenset({"status", "log", "diff", "show", "rev-parse", "ls-files", "blame"})
_GIT_LISTS = frozenset(
    {"-a", "-r", "-v", "-vv", "--all", "--list", "--remotes", "--show-current", "--verbose"}
)


def program_name(program: str) -> str | None:
    """Return the name of a system program, given bare or with its folder; else None."""
    path = PurePosixPath(program)
    if "/" not in program:
        return program
    return path.name if str(path.parent) in _FOLDERS else None


def only_reads(command: SimpleCommand, among: Sequence[SimpleCommand], *, at_home: bool) -> bool:
    """Return whether the table trusts a simple command; `among`: all commands of its text.

    `at_home`: it runs in the working directory of its thread.
    """
    if command.redirects or command.assigns or not command.words or command.joiner not in JOINS:
        return False
    program, *arguments = command.words
    name = None if program.varies else program_name(program.text)
    if name is None or any("$" in word.text for word in arguments if word.varies):
        return False
    if name in ALWAYS:
        return True
    changes_folder = any(one.words and one.words[0].text == "cd" for one in among)
    if name == "git" and (changes_folder or not at_home):
        # Git obeys the configuration of the repository that it runs in, which can name programs.
        return False
    check = _CHECKS.get(name)
    if check is None or any(word.varies for word in arguments):
        return False
    return check([word.text for word in arguments])


def _without(arguments: list[str], short: str = "", *long: str) -> bool:
    """Return whether the arguments have none of these options, clustered or abbreviated."""
    for argument in arguments:
        if argument.startswith("--"):
            given = argument.partition("=")[0]
            if len(given) > 2 and any(option.startswith(given) for option in long):
                return False
        elif argument.startswith("-") and any(letter in argument for letter in short):
            return False
    return True


def _find(arguments: list[str]) -> bool:
    return not any(one.startswith(_FIND_ACTS) for one in arguments)


def _rg(arguments: list[str]) -> bool:
    return _without(arguments, "z", "--pre", "--hostname-bin", "--search-zip")


def _sort(arguments: list[str]) -> bool:
    long = ("--output", "--temporary-directory", "--compress-program", "--files0-from")
    return _without(arguments, "oT", *long)


def _uniq(arguments: list[str]) -> bool:
    # To be safe, the value of an option counts as a file; everything after -- is one.
    end = [*arguments, "--"].index("--")
    files = [one for one in arguments[:end] if not one.startswith("-") or one == "-"]
    return len(files) + len(arguments[end + 1 :]) <= 1


def _date(arguments: list[str]) -> bool:
    return _without(arguments, "s", "--set") and all(one[:1] in ("-", "+") for one in arguments)


def _sed_only_reads(arguments: list[str]) -> bool:
    match arguments:
        case ["-n", script, *files]:
            plain = all(not one.startswith("-") for one in files)
            return _LINES.fullmatch(script) is not None and plain
        case _:
            return False


def _git(arguments: list[str]) -> bool:
    match arguments:
        case ["branch", *options]:
            return all(one in _GIT_LISTS for one in options)
        case [command, *rest] if command in _GIT_READS:
            long = ("--output", "--ext-diff", "--textconv", "--no-index", "--contents")
            return _without(rest, "Oo", *long)
        case _:
            return False


_CHECKS: dict[str, Callable[[list[str]], bool]] = {
    "date": _date,
    "file": lambda arguments: _without(
        arguments, "CzZ", "--compile", "--uncompress", "--uncompress-noreport"
    ),
    "find": _find,
    "git": _git,
    "rg": _rg,
    "sed": _sed_only_reads,
    "sort": _sort,
    "tree": lambda arguments: _without(arguments, "oRH", "--output"),
    "uniq": _uniq,
    # The printf of bash can set a variable, which affects later commands of the same text.
    "printf": lambda arguments: (
        _without(arguments, "v") and not any(map(_COUNTS.search, arguments))
    ),
}
"""Checks of arguments by program; the arguments hold no variable or pattern."""
