"""Configuration of a run: config.toml, the environment, and the command line, which overrides both.

Mistakes raise NotBegun or ConfigError, each with one line. Paths of the command line that lead
through a symbolic link in the agent's folder are rejected: the link may be part of the repository,
or a command of an earlier run made it. If followed, the last message could overwrite a file of the
user or a git hook, a file that commands cannot read could be sent to the model as a schema, or
another folder could become writable.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.protocol.wire.settings import SandboxPolicy, WorkspaceWrite
from reference_server.agent_exec.ending import NotBegun
from reference_server.agent_exec.options import Options
from reference_server.config.home import Home
from reference_server.config.load import load_config
from reference_server.config.model import PROVIDER_KEY, Config
from reference_server.sandbox.links import follow
from reference_server.sandbox.mounts import REPOSITORY
from reference_server.sandbox.places import is_inside, is_kernel_path
from reference_server.settings import MAX_ROOTS, ThreadSettings, sandbox_policy


class LinkGuard:
    """Checks of the links in paths of the command line. All methods raise NotBegun.

    `folders`: the absolute folders that the agent may write; the repositories around them are
    untrusted too.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._written = [os.path.realpath(one) for one in folders]
        self._repositories = [_repository_of(one) for one in self._written]

    def check_read(self, path: str, option: str) -> None:
        """Raise NotBegun if a link in a repository leads to a file to read outside of it."""
        _check(path, option, self._repositories, leads=self._repositories)

    def check_root(self, path: str, option: str) -> None:
        """Raise NotBegun if a link in these folders leads to a writable folder outside of them."""
        _check(path, option, self._written, leads=self._written)
        _check(path, option, self._repositories, leads=self._repositories)

    def check_written(self, path: str, option: str) -> None:
        """Raise NotBegun if a link in a repository leads to a file to write, as in `.git`."""
        _check(path, option, self._repositories, leads=())


def _check(path: str, option: str, places: Sequence[str], *, leads: Sequence[str]) -> None:
    """Raise NotBegun for a path with a link in `places`, unless its target is inside `leads`."""
    # Not normalized: `link/..` is the parent of the link's target.
    real, links = follow(path if os.path.isabs(path) else os.path.join(os.getcwd(), path))
    if any(is_inside(real, place) for place in leads):
        return
    for link in links:
        if not is_kernel_path(link) and any(is_inside(link, place) for place in places):
            raise NotBegun(
                f"agent exec: {option} {path}: {link} is a link to elsewhere, which a command or "
                f"the repository may have made; name what is meant ({real}?)"
            )


def _repository_of(folder: str) -> str:
    """Return the repository around a folder; the folder itself without one below the user's home.

    A repository around the home does not count: a link to any file of the home would stay in it.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    for parent in (folder, *map(str, Path(folder).parents)):
        if is_inside(home, parent):
            break
        if os.path.lexists(os.path.join(parent, REPOSITORY)):
            return parent
    return folder


SDK_KEY = "CODEX_API_KEY"
"""Variable in which the shipping SDK passes its option `apiKey`."""
DEFAULTS = Config(approval_policy="never")
"""Default settings; without a user, commands run in the sandbox without approval requests."""
WORKSPACE = "sandbox_workspace_write"


def environment_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the SDK's variable of the key under this program's name.

    The SDK's key takes precedence over PROVIDER_API_KEY, which may only be inherited.
    """
    result = dict(environment)
    if key := result.pop(SDK_KEY, ""):
        result[PROVIDER_KEY] = key
    return result


def config_of(options: Options, home: Home, warn: Callable[[str], None]) -> Config:
    """Return the configuration, overridden by the options. Raises ConfigError, NotBegun."""
    environment = environment_of(os.environ)
    config = load_config(
        home.config_file, environment, warn, overrides=options.config, defaults=DEFAULTS
    )
    if options.model is not None:
        config = replace(config, model=options.model)
    if options.sandbox is not None:
        config = replace(config, sandbox_mode=options.sandbox)
    roots = [*config.writable_roots, *map(_check_added_folder, options.add_dirs)]
    if len(roots) > MAX_ROOTS:
        raise NotBegun(f"agent exec: more than {MAX_ROOTS} folders that may be written")
    config = replace(config, writable_roots=tuple(dict.fromkeys(roots)))
    if "openai_base_url" in named_settings(options) and config.openai_base_url:
        # The command line takes precedence over a variable that may only be inherited.
        environment_with_address = {**environment, "PROVIDER_BASE_URL": config.openai_base_url}
        config = replace(config, environment=environment_with_address)
    return config


def _check_added_folder(path: str) -> str:
    folder = os.path.abspath(path)
    _check_folder(folder, f"--add-dir {path}")
    return folder


def named_settings(options: Options) -> frozenset[str]:
    """Return the top-level keys of config.toml that options of the command line set."""
    keys = {one.partition("=")[0].split(".")[0].strip(" \t\"'") for one in options.config}
    if options.model is not None:
        keys.add("model")
    if options.sandbox is not None:
        keys.add("sandbox_mode")
    if options.add_dirs:
        keys.add(WORKSPACE)
    return frozenset(keys)


def resumed_settings(
    stored: ThreadSettings, config: Config, named_settings: frozenset[str], cwd: str
) -> ThreadSettings:
    """Return the settings of a resumed thread: its own, overridden by those of the command line."""
    fields = {
        "model": config.model,
        "model_provider": config.model_provider,
        "approval_policy": config.approval_policy,
        "effort": config.model_reasoning_effort,
    }
    keys = {"effort": "model_reasoning_effort"}
    overrides = {
        name: value for name, value in fields.items() if keys.get(name, name) in named_settings
    }
    sandbox = _resumed_sandbox(stored.sandbox, config, named_settings)
    return stored.model_copy(update={**overrides, "sandbox": sandbox, "cwd": cwd})


def _resumed_sandbox(
    stored: SandboxPolicy, config: Config, named_settings: frozenset[str]
) -> SandboxPolicy:
    if "sandbox_mode" in named_settings:
        return sandbox_policy(config.sandbox_mode, config)
    if WORKSPACE in named_settings and isinstance(stored, WorkspaceWrite):
        return sandbox_policy("workspace-write", config)
    return stored


def folder_of(options: Options) -> str:
    """Return the absolute working directory. Raises NotBegun, also if it is in no repository."""
    try:
        folder = os.path.abspath(options.cd or "")
    except OSError as error:
        raise NotBegun(
            f"agent exec: the working directory cannot be found ({error.strerror}); go to another "
            "one, or name one with --cd"
        ) from None
    _check_folder(folder, "the working directory" if options.cd is None else f"--cd {options.cd}")
    if not options.skip_git_repo_check and not _in_repository(os.path.realpath(folder)):
        raise NotBegun(
            f"agent exec: {folder} is in no git repository, so changes could not be undone; "
            "--skip-git-repo-check lets the agent work there all the same"
        )
    return folder


def check_links(options: Options, config: Config, folder: str) -> None:
    """Raise NotBegun if an untrusted link redirects a path of the command line."""
    added = {os.path.abspath(path) for path in options.add_dirs}
    guard = LinkGuard([folder, *(path for path in config.writable_roots if path not in added)])
    for path in options.add_dirs:
        guard.check_root(path, "--add-dir")
    guard = LinkGuard([folder, *config.writable_roots])
    if options.schema is not None:
        guard.check_read(options.schema, "--output-schema")
    if options.last_message is not None:
        guard.check_written(options.last_message, "--output-last-message")


def _check_folder(folder: str, source: str) -> None:
    try:
        folder.encode()
        # The dot also checks that the folder can be entered.
        os.stat(os.path.join(folder, "."))
    except UnicodeEncodeError:
        name = folder.encode("utf-8", "backslashreplace").decode()
        raise NotBegun(
            f"agent exec: {source}: {name} has a name that is not UTF-8, which no message can hold"
        ) from None
    except OSError as error:
        raise NotBegun(
            f"agent exec: {source}: {error.strerror}; name a folder that exists"
        ) from None


def _in_repository(folder: str) -> bool:
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return True
