"""The configuration of a run: config.toml, the environment, and the command line over both.

Here live the default that `agent exec` has of its own, the names that the SDK gives to variables,
and the checks of the folder. Raises NotBegun or ConfigError, each with one line.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from reference_server.config.home import Home
from reference_server.config.load import load_config
from reference_server.config.model import Config
from reference_server.oneshot.ending import NotBegun
from reference_server.oneshot.options import Options

KEY = "CODEX_API_KEY"
"""The variable in which the shipping SDK passes the option `apiKey` on."""


def environment_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Give the environment under the names of this program.

    The SDK's key counts more than PROVIDER_API_KEY, which may only be inherited.
    """
    made = dict(environment)
    if key := made.pop(KEY, ""):
        made["PROVIDER_API_KEY"] = key
    return made


def config_of(options: Options, home: Home, warn: Callable[[str], None]) -> Config:
    """Read the configuration, and lay the options over it."""
    config = load_config(
        home.config_file, environment_of(os.environ), warn, overrides=options.config
    )
    return replace(
        config,
        approval_policy="never",
        **({} if options.model is None else {"model": options.model}),
        **({} if options.sandbox is None else {"sandbox_mode": options.sandbox}),
    )


def folder_of(options: Options) -> str:
    """Find the working directory of the thread, an absolute path. Raises NotBegun."""
    try:
        here = os.getcwd()
    except OSError as error:
        if options.cd is None or not os.path.isabs(options.cd):
            raise NotBegun(
                f"agent exec: the working directory cannot be found ({error.strerror}); name one "
                "with --cd"
            ) from None
        here = "/"
    folder = os.path.normpath(os.path.join(here, options.cd or ""))
    if not options.skip_git_repo_check and not _in_repository(folder):
        raise NotBegun(
            f"agent exec: {folder} is in no git repository, where changes could be undone; "
            "--skip-git-repo-check works there all the same"
        )
    return folder


def _in_repository(folder: str) -> bool:
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return True
