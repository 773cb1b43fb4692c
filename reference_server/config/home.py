"""The home folder and the paths inside it."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reference_server.sandbox.places import settings_folder


@dataclass(frozen=True, slots=True)
class Home:
    """The home: `AGENT_HOME`, or `~/.agent`.

    `state`: the folder of a running server's counters and locks, if it is not the home itself.
    """

    root: Path
    state: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Home":
        """Return the home; a relative AGENT_HOME starts at the working directory.

        Links are resolved now: a command could change them later. Raises RuntimeError if the user
        has no home, OSError if there is no working directory.
        """
        path = environment.get("AGENT_HOME")
        home = Path(path).absolute() if path else Path.home() / settings_folder(environment)
        # A link that cannot be followed is reported when something in the home is opened.
        with contextlib.suppress(OSError):
            home = Path(os.path.realpath(home))
        return cls(home)

    @property
    def config_file(self) -> Path:
        """The file of settings."""
        return self.root / "config.toml"

    @property
    def sessions(self) -> Path:
        """The folder of rollouts, by year, month and day."""
        return self.root / "sessions"

    @property
    def archived_sessions(self) -> Path:
        """The folder of archived rollouts."""
        return self.root / "archived_sessions"

    @property
    def skills(self) -> Path:
        """The folder of the user's skills."""
        return self.root / "skills"

    @property
    def credentials(self) -> Path:
        """The file of OAuth credentials of MCP servers that are not in a keyring."""
        return self.root / ".credentials.json"

    @property
    def thread_index(self) -> Path:
        """The folder of the thread index, which can be rebuilt from the rollouts."""
        return self.root / "index"

    @property
    def counters(self) -> Path:
        """The file with the last thread and turn numbers in use."""
        return (self.state or self.root) / "counters"

    @property
    def servers(self) -> Path:
        """The folder of running servers' locks and of journals of patches in progress."""
        return (self.state or self.root) / "servers"

    @property
    def claims(self) -> Path:
        """The file whose bytes running servers lock for the threads that they have open."""
        return (self.state or self.root) / "threads.lock"
