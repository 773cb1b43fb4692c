"""`codex login` and `codex logout`: the API key in auth.json, as a release of the dialect keeps it.

Clients run `codex login status` before anything else, and ask their user to log in unless it exits
with 0. The key is stored and never used: the provider's variable has the key of the model. A
program of a stage (`--program`, `harness double`, the fixture) is logged in until `codex logout`.
"""

import errno
import json
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from reference_server.cli.surroundings import UsageError, complain, find_home
from reference_server.program_start import PROGRAM_SOCKET
from reference_server.safe_files import open_checked

_USAGE = """\
usage: codex login [status | --with-api-key]
       codex logout

options:
  --with-api-key  read the key from standard input, and store it
"""
_SHORT_KEY_CHARACTERS = 13
"""Keys of at most so many characters are masked as a whole."""
_MAX_BYTES = 64 * 1024
"""Bytes that are read of the input and of the file."""
_MEMBER = "OPENAI_API_KEY"


def run(words: Sequence[str], *, saved: str, status: str) -> int:
    """Run `login ...` or `logout`, and return the exit status: 1 if not logged in or no key.

    `saved` and `status` are the release's words, the latter with a masked `{key}`.
    """
    try:
        file = Path(find_home(os.environ).root) / "auth.json"
    except UsageError as error:
        complain(f"codex: {error}")
        return 2
    try:
        match words:
            case ["login", "status"]:
                return _say_status(file, status)
            case ["login", "--with-api-key"]:
                return _save_key(file, saved)
            case ["logout"]:
                return _log_out(file)
            case [*_, "--help" | "-h"]:
                sys.stdout.write(_USAGE)
                return 0
            case ["login"]:
                complain("codex: signing in with a browser needs the network; use --with-api-key")
                return 1
            case _:
                complain(f"codex: unexpected argument {words[1]!r}; see codex login --help")
                return 2
    except OSError as error:
        complain(f"codex: {file}: {error.strerror}")
        return 1


def _save_key(file: Path, saved: str) -> int:
    complain("Reading API key from stdin...")
    key = sys.stdin.buffer.read(_MAX_BYTES).decode("utf-8", "replace").strip() if sys.stdin else ""
    if not key:
        complain("No API key provided via stdin.")
        return 1
    _write(file, {"auth_mode": "apikey", _MEMBER: key})
    complain(saved)
    return 0


def _log_out(file: Path) -> int:
    had_key = bool(_stored_key(file))
    file.unlink(missing_ok=True)
    if PROGRAM_SOCKET in os.environ:
        _write(file, {})
    complain("Successfully logged out" if had_key else "Not logged in")
    return 0


def _say_status(file: Path, status: str) -> int:
    key = _stored_key(file)
    complain(status.replace("{key}", _mask(key)) if key else "Not logged in")
    return 0 if key else 1


def _stored_key(file: Path) -> str:
    """Return the key of the file; "" if it has none."""
    try:
        with open(open_checked(str(file), _check_regular), "rb") as stream:
            key = json.loads(stream.read(_MAX_BYTES))[_MEMBER]
    except FileNotFoundError:
        return "a double's" if PROGRAM_SOCKET in os.environ else ""
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return key if isinstance(key, str) else ""


def _check_regular(_: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")


def _write(file: Path, value: dict[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(json.dumps(value, indent=2))


def _mask(key: str) -> str:
    if len(key) <= _SHORT_KEY_CHARACTERS:
        return "***"
    shown = f"{key[:8]}***{key[-5:]}"
    return "".join(char if char.isprintable() else "?" for char in shown)
