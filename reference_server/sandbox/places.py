"""Places in the file system that are hidden from confined commands, or protected from them."""

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
"""Paths in the user's home that no confined command may read, with sockets of Docker and git.

Settings that builds need, and that are not meant to hold passwords (`.gitconfig`), are not among
them.
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
"""Variables with the paths of both, which a listening server adds to its own environment."""
ENCLOSURE = "AGENT_ENCLOSURE"
OPEN_IN_ENCLOSURE = "AGENT_OPEN_IN_ENCLOSURE"
"""Variables with the folder that holds those of several servers in one process, and with the
folders in it that are this server's, separated by colons. A stage adds them; confined commands see
nothing else in the enclosure.
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
"""Folders in the temporary folder with sockets of programs that could act outside the sandbox.

Only lasting folders: a mount on one that was just removed would fail.
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
"""Paths that stay visible in /run, which is hidden for its sockets: programs, DNS configuration.

Of the latter only files: the services that write them have sockets beside them.
"""
_MAX_ENTRIES = 1000
"""Maximum entries of a folder in /run searched for sockets; programs put theirs near the top."""


def settings_folder(environment: Mapping[str, str]) -> str:
    """Return the name of the folder of settings in a home or project; a dialect changes it."""
    return environment.get("AGENT_FOLDER") or ".agent"


def is_inside(path: str, folder: str) -> bool:
    """Return whether a normalized path is the folder itself or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_kernel_path(path: str) -> bool:
    """Return whether a resolved path is in a file system of the kernel."""
    return any(is_inside(path, kernel) for kernel in KERNELS)


def secrets_of(home: str) -> set[str]:
    """Return the secrets of a user's home, resolved, whether they exist or not."""
    return _resolve_all(os.path.join(home, name) for name in SECRETS)


def secrets_moved_by(environment: Mapping[str, str], homes: Iterable[str]) -> set[str]:
    """Return secrets at places that these variables name, resolved, whether they exist or not.

    Folders that are or contain a home are left out: hiding one would hide everything.
    """
    paths = [
        os.path.join(environment[variable], name.removeprefix(base))
        for base, variable in _BASES.items()
        if environment.get(variable)
        for name in SECRETS
        if name.startswith(base)
    ]
    for variable in _SECRET_VARIABLES:
        # KRB5CCNAME may be `FILE:path`, which a split at colons parses too.
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
    """Return the real paths; fast if most do not exist and many are in the same folder."""
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
    """Yield existing folders with sockets of programs outside the sandbox, /run first."""
    for path in ("/run", "/var/run"):
        if os.path.isdir(path):
            yield os.path.realpath(path)
    for name in SOCKETS:
        path = os.path.join(temporary, name.format(user=os.getuid()))
        if os.path.isdir(path) and not os.path.islink(path):
            yield path


def sockets_named_by(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield existing sockets that variables name, such as those of ssh-agent and tmux."""
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
    """Return a socket in or below a folder of /run; None if none is found near the top.

    None also for a disk that is mounted there, as removable ones are. A path that cannot be read is
    returned like a socket.
    """
    try:
        if os.stat(folder).st_dev not in _devices_of_run():
            return None
        for path in islice(_everything_in(folder), _MAX_ENTRIES):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                return path
    except OSError as error:
        # A folder that cannot be searched may have a socket, so it stays hidden.
        return error.filename or folder
    return None


def _devices_of_run() -> set[int]:
    """Return the devices of the in-memory file systems in /run: the system's, and each user's."""
    users = [f"/run/user/{os.getuid()}"]
    return {os.stat(path).st_dev for path in ("/run", *users) if os.path.isdir(path)}


def _everything_in(folder: str) -> Iterator[str]:
    """Yield all paths below a folder, level by level. Raises OSError."""
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
    """Yield the existing paths of RUN_KEPT."""
    for name in RUN_KEPT:
        path = os.path.join("/run", name)
        if os.path.exists(path):
            yield path


def own_code() -> set[str]:
    """Return the resolved folders and files from which this server loads code, now or restarted."""
    paths = {sysconfig.get_path("stdlib"), sys.executable}
    for package in ("reference_server", "harness"):
        spec = find_spec(package)
        paths |= set((spec and spec.submodule_search_locations) or ())
    if sys.prefix != sys.base_prefix:
        paths.add(sys.prefix)
    paths |= {path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")}
    return {os.path.realpath(path) for path in paths if path}
