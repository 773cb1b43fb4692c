"""Places in the file system that are hidden from confined commands, or protected from them.

The mounts on them are in `mounts.py`.
"""

import os
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

KERNELS = ("/proc", "/sys", "/dev")
"""File systems of the kernel: never a root, and never read or written for a model."""
HISTORIES = (
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".sh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".irb_history",
    ".lesshst",
    ".local/share/fish/fish_history",
)
"""Histories of the user's input, passwords included."""
SECRETS = (
    ".ssh",
    ".aws",
    ".gnupg",
    ".pki",
    ".cert",
    ".azure",
    ".kube",
    ".password-store",
    ".vault-token",
    ".docker/config.json",
    ".docker/run",
    ".docker/desktop",
    ".dockercfg",
    ".config/containers/auth.json",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".boto",
    ".s3cfg",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/python_keyring",
    ".git-credentials",
    ".config/git/credentials",
    ".git-credential-cache",
    ".cache/git/credential",
    ".subversion/auth",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".codex",
    ".claude",
    ".claude.json",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".electrum",
    ".bitcoin",
    *HISTORIES,
)
"""In the user's home: what no confined command may read, and the sockets of Docker and git's cache.

Settings that builds need, and that are not meant to hold passwords, are left out (`.gitconfig`).
"""
_BASES = {
    ".config/": "XDG_CONFIG_HOME",
    ".local/share/": "XDG_DATA_HOME",
    ".cache/": "XDG_CACHE_HOME",
    ".docker/": "DOCKER_CONFIG",
    ".cargo/": "CARGO_HOME",
    ".gradle/": "GRADLE_USER_HOME",
    ".composer/": "COMPOSER_HOME",
}
"""Environment variables that move these folders of the home elsewhere."""
OWN_SOCKET = "AGENT_LISTEN_SOCKET"
TOKEN_FILE = "AGENT_LISTEN_TOKEN_FILE"
"""Variables that the server adds to its own when it listens; nobody else need set them."""
ENCLOSURE = "AGENT_ENCLOSURE"
OPEN_IN_ENCLOSURE = "AGENT_OPEN_IN_ENCLOSURE"
"""A folder in which several servers of one process have theirs, and which folders in it are this
server's, separated by colons. The server adds them too; confined commands see nothing else there.
"""
_SECRET_VARIABLES = (
    TOKEN_FILE,
    "GNUPGHOME",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "KUBECONFIG",
    "KRB5CCNAME",
    "KRB5_CLIENT_KTNAME",
    "NETRC",
    "PGPASSFILE",
    "CLOUDSDK_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AZURE_CONFIG_DIR",
    "GH_CONFIG_DIR",
    "GLAB_CONFIG_DIR",
    "NPM_CONFIG_USERCONFIG",
    "npm_config_userconfig",
    "PASSWORD_STORE_DIR",
    "VAULT_TOKEN_PATH",
    "SOPS_AGE_KEY_FILE",
    "DOCKER_CERT_PATH",
    "REGISTRY_AUTH_FILE",
    "BOTO_CONFIG",
    "RCLONE_CONFIG",
    "TF_CLI_CONFIG_FILE",
    "CODEX_HOME",
    "CLAUDE_CONFIG_DIR",
    "HISTFILE",
    "PYTHON_HISTORY",
    "NODE_REPL_HISTORY",
    "PSQL_HISTORY",
    "MYSQL_HISTFILE",
)
"""Variables that name files or folders of secrets, separated by colons if there are several."""
SOCKETS = (".X11-unix", ".ICE-unix", "screens", "tmux-{user}")
"""In the temporary folder: sockets of programs that could act outside the sandbox for a command.

Only folders that are not removed: mounting on one that has just gone would fail.
"""
RUN_KEPT = (
    "current-system",
    "wrappers",
    "opengl-driver",
    "systemd/resolve/resolv.conf",
    "systemd/resolve/stub-resolv.conf",
    "NetworkManager/resolv.conf",
    "NetworkManager/no-stub-resolv.conf",
    "resolvconf/resolv.conf",
    "connman/resolv.conf",
    "netconfig/resolv.conf",
)
"""Visible in /run, which is otherwise hidden for its sockets: programs, and name servers.

Of name servers only the files: the services that write them have sockets beside them.
"""
_MAX_ENTRIES = 1000
"""Entries of a folder in /run that are searched for sockets; programs put theirs near the top."""


def is_inside(path: str, folder: str) -> bool:
    """Return whether a normalised path is that folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_kernel_path(path: str) -> bool:
    """Return whether a resolved path is in a file system of the kernel."""
    return any(is_inside(path, kernel) for kernel in KERNELS)


def secrets_of(home: str) -> set[str]:
    """Return the secrets of a user's home, resolved, whether they exist or not."""
    return _resolve_all(os.path.join(home, name) for name in SECRETS)


def secrets_moved_by(environment: Mapping[str, str], homes: Iterable[str]) -> set[str]:
    """Return the secrets that these variables move elsewhere, resolved, whether they exist or not.

    Without folders that are or contain a home: hiding one would hide everything.
    """
    paths = [
        os.path.join(environment[variable], name.removeprefix(base))
        for base, variable in _BASES.items()
        if environment.get(variable)
        for name in SECRETS
        if name.startswith(base)
    ]
    for variable in _SECRET_VARIABLES:
        # A cache of Kerberos has its kind before it, with a colon too.
        paths += environment.get(variable, "").split(os.pathsep)
    paths.append(f"/tmp/krb5cc_{os.getuid()}")
    excluded = {"/", "/tmp", *(os.path.realpath(home) for home in homes)}
    resolved = _resolve_all(path for path in paths if os.path.isabs(path) and "\0" not in path)
    return {
        path
        for path in resolved
        if not is_kernel_path(path) and not any(is_inside(one, path) for one in excluded)
    }


def _resolve_all(paths: Iterable[str]) -> set[str]:
    """Resolve many paths; fast if most do not exist and many are in the same folder."""
    folders: dict[str, str] = {}
    resolved: set[str] = set()
    for path in paths:
        folder, name = os.path.split(os.path.normpath(path))
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        full_path = os.path.join(folders[folder], name)
        resolved.add(os.path.realpath(full_path) if os.path.islink(full_path) else full_path)
    return resolved


def places_of_sockets(temporary: str = "/tmp") -> Iterator[str]:
    """Yield folders with sockets of programs outside the sandbox; /run is the first."""
    for path in ("/run", "/var/run"):
        if os.path.isdir(path):
            yield os.path.realpath(path)
    for name in SOCKETS:
        path = os.path.join(temporary, name.format(user=os.getuid()))
        if os.path.isdir(path) and not os.path.islink(path):
            yield path


def sockets_named_by(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield sockets that the environment names: our own, ssh agent, tmux, the bus, Docker."""
    bus = environment.get("DBUS_SESSION_BUS_ADDRESS", "").partition("unix:path=")[2]
    paths = (
        environment.get(OWN_SOCKET, ""),
        environment.get("SSH_AUTH_SOCK", ""),
        environment.get("TMUX", "").partition(",")[0],
        bus.partition(",")[0],
        environment.get("DOCKER_HOST", "").removeprefix("unix://"),
    )
    for path in paths:
        if os.path.isabs(path) and os.path.exists(path) and not os.path.isdir(path):
            yield os.path.realpath(path)


def socket_within(folder: str) -> str | None:
    """Return a socket in a folder of /run or below it; None where none is found near the top.

    A disk that is mounted there, as removable ones are, is like any other folder.
    """
    try:
        if os.stat(folder).st_dev not in _devices_of_run():
            return None
        for path in islice(_everything_in(folder), _MAX_ENTRIES):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                return path
    except OSError as error:
        # A folder that cannot be searched is treated as if it had a socket: it stays hidden.
        return error.filename or folder
    return None


def _devices_of_run() -> set[int]:
    """Return the devices of the in-memory file systems in /run: the system's, and each user's."""
    users = [f"/run/user/{os.getuid()}"]
    return {os.stat(path).st_dev for path in ("/run", *users) if os.path.isdir(path)}


def _everything_in(folder: str) -> Iterator[str]:
    """Yield the paths in a folder, those nearer to it first."""
    level = [folder]
    while level:
        deeper: list[str] = []
        for one in level:
            with os.scandir(one) as entries:
                for entry in entries:
                    yield entry.path
                    if entry.is_dir(follow_symlinks=False):
                        deeper.append(entry.path)
        level = deeper


def visible_in_run() -> Iterator[str]:
    """Yield the paths in /run that stay visible."""
    for name in RUN_KEPT:
        path = os.path.join("/run", name)
        if os.path.exists(path):
            yield path


def own_code() -> set[str]:
    """Return the resolved folders and files with this server's code, now or after a restart."""
    paths = {sysconfig.get_path("stdlib"), sys.executable}
    for package in ("reference_server", "harness"):
        spec = find_spec(package)
        paths |= set((spec and spec.submodule_search_locations) or ())
    if sys.prefix != sys.base_prefix:
        paths.add(sys.prefix)
    paths |= {path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")}
    return {os.path.realpath(path) for path in paths if path}
