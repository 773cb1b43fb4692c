"""The command line of a confined program: bubblewrap's options, and the bounds around it.

Which parts hold what is in docs/confine.md.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.client.target.confine import first_process, folders
from harness.client.target.confine.table import Confine, parse_bytes
from harness.errors import UsageError

# Variables of the machine that a confined program gets beside those of the run.
PASSED_VARIABLES = (
    *("PATH", "LANG", "LANGUAGE", "TERM", "TZ", "USER", "LOGNAME", "SHELL"),
    # The certificate authorities of a run without network.
    *("SSL_CERT_DIR", "SSL_CERT_FILE"),
)

_BUBBLEWRAP = "bwrap"
_PLACES = ("/usr/bin", "/usr/local/bin", "/bin")
_INSTALL = "install the package bubblewrap"
_ALLOW = (
    "allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 or "
    "user.max_user_namespaces; for a container, its security options)"
)
_NEWER = "install bubblewrap 0.8 or newer"
# Bytes of /tmp and of /dev/shm, which are memory.
_TEMPORARY_BYTES = 256 * 1024**2
# Descriptors that the standard streams have until the server takes them: bubblewrap keeps 0 to 2,
# so that the end of a stream would be seen only when bubblewrap ends.
_STDIN, _STDOUT = 8, 9
_SWAP = f'exec "$@" {_STDIN}<&0 {_STDOUT}>&1 </dev/null >/dev/null'
_SURVIVORS_GRACE_MS = 500
_MAX_TRIAL_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Confinement:
    """The confinement of one run's programs: the profile's table, and the run's own folder."""

    table: Confine
    folder: Path

    def command(
        self, words: Sequence[str], *, cwd: Path, env: Iterable[str], report: int
    ) -> list[str]:
        """Return the command line that runs a command confined, with these variables of ours.

        `report` is the file descriptor for the report of its end (see `first_process`).
        """
        settings = {
            "report": report,
            "stdin": _STDIN,
            "stdout": _STDOUT,
            "descriptors": self.table.descriptors,
            "processes": self.table.processes,
            "memory": parse_bytes(self.table.memory),
            "grace": _SURVIVORS_GRACE_MS,
        }
        python = [os.path.realpath(sys.executable), "-I", "-S", first_process.__file__]
        return [
            *("/bin/sh", "-c", _SWAP, "confine"),
            *bubblewrap_words(self.table, words, cwd=cwd, writable=[self.folder]),
            *python,
            " ".join(f"{name}={number}" for name, number in settings.items()),
            "=".join(sorted(env)),
            *words,
        ]

    def brief_command(self, words: Sequence[str]) -> list[str]:
        """Return the command line for a command whose output alone counts."""
        root = Path("/")
        return [*bubblewrap_words(self.table, words, cwd=root, writable=[self.folder]), *words]


def bubblewrap_words(
    table: Confine, command: Sequence[str], *, cwd: Path, writable: Sequence[Path] = ()
) -> list[str]:
    """Return bubblewrap with the options for a command, up to the command itself.

    Raises `UsageError` if bubblewrap or a folder of the profile is missing.
    """
    program = find_bubblewrap()
    if program is None:
        raise UsageError(f"bwrap was not found; {_INSTALL}")
    words = [program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    words += ["--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    if os.geteuid() == 0:
        # Root may write settings of the kernel without any capability, and its control groups from
        # a namespace of its own.
        words += ["--remount-ro", "/proc", "--disable-userns"]
    size = ["--size", str(_TEMPORARY_BYTES), "--tmpfs"]
    words += [*size, "/dev/shm", "--remount-ro", "/dev"]
    hidden = folders.hidden_folders()
    for folder in hidden:
        words += [*size, str(folder)]
    shown = folders.needed_by(command, cwd) + _profile_paths(table.readable, "readable")
    for path in folders.below_hidden(shown, hidden):
        words += ["--ro-bind", str(path), str(path)]
    for home in folders.below_hidden(folders.homes(), hidden):
        words += ["--dir", str(home)]
    secrets = {path for folder in {*shown, cwd} for path in folders.secrets_below(folder)}
    for path in sorted(secrets | {*folders.machine_secrets()}):
        words += _hide(path)
    own = [folder.resolve() for folder in writable]
    for path in (*own, *_profile_paths(table.writable, "writable")):
        words += ["--bind", str(path), str(path)]
    kept = {Path(folder).resolve() for folder in ("/tmp", "/var/tmp")}
    for folder in hidden:
        words += ["--remount-ro", str(folder)] if folder not in kept else []
    return [*words, "--chdir", str(cwd), "--"]


def find_bubblewrap() -> str | None:
    """Return the path of bubblewrap, None if it is not installed."""
    return shutil.which(_BUBBLEWRAP, path=os.pathsep.join([*_PLACES, os.environ.get("PATH", "")]))


def find_problem() -> str:
    """Return why no program can be confined here, with what to do; "" if it can."""
    if sys.platform != "linux":
        return f"it needs Linux, for namespaces and bubblewrap; {sys.platform} has neither"
    if find_bubblewrap() is None:
        return f"bwrap was not found; {_INSTALL}"
    command = [*bubblewrap_words(Confine(), ["true"], cwd=Path("/")), "true"]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_MAX_TRIAL_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"bwrap did not end within {_MAX_TRIAL_SECONDS} s"
    fault = (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[0]
    advice = _NEWER if "Unknown option" in fault else _ALLOW
    return f"bwrap does not work here ({fault}); {advice}" if ran.returncode else ""


def describe_network_problem(cause: str) -> str:
    """Return the sentence on a network of its own that was refused."""
    return f"no network of its own can be made ({cause}); {_ALLOW}"


def _hide(path: Path) -> list[str]:
    if path.is_dir():
        return ["--perms", "0500", "--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]


def _profile_paths(names: Iterable[str], key: str) -> list[Path]:
    """Return the folders of the profile's table, resolved. Raises `UsageError` if missing."""
    paths = [Path(name).expanduser().resolve() for name in names]
    for path in paths:
        if not path.exists():
            raise UsageError(f"[confine] {key}: {path} does not exist; make it or leave it out")
    return paths
