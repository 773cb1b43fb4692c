"""Folders that a confined program sees: what is hidden, and what its command needs of it."""

import os
import pwd
import shutil
import site
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

# Below these are people's files, or sockets of other programs.
_HIDDEN = ("/home", "/root", "/run", "/var/run", "/tmp", "/var/tmp", "/mnt", "/media")
# What programs of a system need of a hidden folder.
_SHOWN = ("/run/current-system", "/run/wrappers", "/run/opengl-driver")
# Folders of a prefix with programs and libraries, and its file that names the interpreter.
_PREFIX_PARTS = ("bin", "sbin", "lib", "lib64", "libexec", "pyvenv.cfg")
# Secrets by their names in a home or a project.
_SECRET_NAMES = (
    *(".aws", ".azure", ".cargo/credentials.toml", ".config", ".docker", ".env", ".env.local"),
    *(
        ".envrc",
        ".git-credentials",
        ".gnupg",
        ".kube",
        ".mozilla",
        ".netrc",
        ".npmrc",
        ".password-store",
    ),
    *(".pgpass", ".pki", ".pypirc", ".ssh", ".thunderbird", ".local/share/keyrings"),
)
# Secrets of the machine, which root could read.
_MACHINE_SECRETS = (
    *(
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/gshadow",
        "/etc/gshadow-",
        "/etc/ssh",
        "/etc/ssl/private",
    ),
    *("/etc/krb5.keytab", "/etc/kubernetes", "/etc/wireguard", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/NetworkManager/system-connections", "/var/lib/docker", "/var/lib/kubelet"),
    *("/var/lib/private", "/var/lib/systemd", "/var/mail", "/var/spool"),
)
_MAX_LINKS = 40


def homes() -> list[Path]:
    """Return the folders of the user, and of the others with an account below /home, resolved."""
    return _homes(os.path.expanduser("~"))


@lru_cache(maxsize=4)
def _homes(own: str) -> list[Path]:
    found = {Path(own)}
    with suppress(KeyError):
        found.add(Path(pwd.getpwuid(os.getuid()).pw_dir))
    with suppress(OSError):
        found.update(Path("/home").iterdir())
    return sorted({home.resolve() for home in found} - {Path("/")})


def hidden_folders() -> list[Path]:
    """Return the existing folders that a confined program finds empty, resolved."""
    return _hidden_folders((*_HIDDEN, *map(str, homes())))


@lru_cache(maxsize=4)
def _hidden_folders(names: tuple[str, ...]) -> list[Path]:
    folders = {path.resolve() for path in map(Path, names)}
    folders = {path for path in folders if path.is_dir() and path != Path("/")}
    return sorted(path for path in folders if not folders & {*path.parents})


def secrets_below(folder: Path) -> Iterator[Path]:
    """Yield the existing secrets in a folder that is shown, resolved."""
    for name in _SECRET_NAMES:
        path = folder / name
        if os.path.lexists(path) and path.exists():
            yield path.resolve()


@lru_cache(maxsize=1)
def machine_secrets() -> list[Path]:
    """Return the existing secrets of the machine, resolved."""
    return sorted({path.resolve() for path in map(Path, _MACHINE_SECRETS) if path.exists()})


def is_showable(folder: Path) -> bool:
    """Return whether a folder can be shown whole: it is not a home, and holds none."""
    return not any(
        folder == other or folder in other.parents for other in (*homes(), *hidden_folders())
    )


def needed_by(command: Sequence[str], cwd: Path) -> list[Path]:
    """Return the paths that a command needs: its program, its files, the harness's own programs.

    The words of the command that are paths count as its files; a program's folder of libraries and
    the interpreter of its first line count with it.
    """
    needed: dict[Path, None] = {}
    for path in (*map(Path, _SHOWN), *_own_code()):
        needed[path] = None
    if is_showable(cwd):
        needed[cwd] = None
    for word in command:
        path = cwd / word
        if os.sep in word or path.is_file():
            with suppress(OSError):
                needed.update(dict.fromkeys(_parts_of_program(path)))
    return [path for path in needed if path.exists()]


@lru_cache(maxsize=1)
def _own_code() -> list[Path]:
    """Return the code of the harness and of its interpreter: it plays MCP servers, for example."""
    prefixes = (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(sys.executable)))
    code = [Path(__file__).resolve().parents[3], *map(Path, site.getsitepackages())]
    for prefix in map(Path, prefixes):
        for path in {prefix, prefix.resolve()}:
            code += _parts_of_prefix(path)
    return code


def _parts_of_program(path: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the links of a path to its end, and what stands beside each; follow first lines."""
    for step in _links(path):
        if step.is_dir():
            if is_showable(step):
                yield step
            continue
        modules = [parent for parent in step.parents if parent.name == "node_modules"]
        if modules:
            yield modules[-1]
        elif step.parent.name in ("bin", "sbin"):
            yield from _parts_of_prefix(step.parent.parent)
        yield step.parent if is_showable(step.parent) else step
    interpreter = _interpreter_of(path) if depth < 3 else None
    if interpreter is not None:
        yield from _parts_of_program(interpreter, depth + 1)


def _parts_of_prefix(prefix: Path) -> Iterator[Path]:
    for name in _PREFIX_PARTS:
        yield prefix / name


def _links(path: Path) -> Iterator[Path]:
    """Yield a path and the targets of its links, each as written and with its folder resolved."""
    path = Path(os.path.abspath(path))
    for _ in range(_MAX_LINKS):
        if not os.path.lexists(path):
            return
        real = path.parent.resolve() / path.name
        yield from () if ".." in path.parts else (path,)
        yield real
        if not real.is_symlink():
            return
        path = real.parent / os.readlink(real)


def _interpreter_of(path: Path) -> Path | None:
    """Return the interpreter of a script's first line, None if there is none."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        return None
    if not head.startswith(b"#!"):
        return None
    words = os.fsdecode(head[2:].partition(b"\n")[0]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    found = shutil.which(words[0]) if words else None
    return Path(found) if found else None


def below_hidden(paths: Iterable[Path], hidden: Sequence[Path]) -> list[Path]:
    """Return the paths that are below a hidden folder, without those below another of them."""
    chosen = {path for path in paths if any(folder in path.parents for folder in hidden)}
    return sorted(path for path in chosen if not chosen & {*path.parents})
