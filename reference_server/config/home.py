"""The home folder and the places inside it."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Home:
    """`AGENT_HOME`, or `~/.agent`.

    `state`: the folder of what a running server writes beside threads, if not the home itself.
    """

    root: Path
    state: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Home":
        """Find the home; a relative AGENT_HOME is taken from the working directory.

        Links are followed now: a command could lead them elsewhere while the server runs.
        """
        path = environment.get("AGENT_HOME")
        home = Path(path).absolute() if path else Path.home() / ".agent"
        # A link that cannot be followed is reported when something in the home is opened.
        with contextlib.suppress(OSError):
            home = Path(os.path.realpath(home))
        return cls(home)

    @property
    def config_file(self) -> Path:
        """The settings."""
        return self.root / "config.toml"

    @property
    def sessions(self) -> Path:
        """The rollouts, by year, month and day."""
        return self.root / "sessions"

    @property
    def archived_sessions(self) -> Path:
        """The archived rollouts."""
        return self.root / "archived_sessions"

    @property
    def skills(self) -> Path:
        """The skills of the user."""
        return self.root / "skills"

    @property
    def credentials(self) -> Path:
        """The OAuth credentials of MCP servers, where they are in no keyring."""
        return self.root / ".credentials.json"

    @property
    def thread_index(self) -> Path:
        """The folder of the index of threads, which is made again from the rollouts."""
        return self.root / "index"

    @property
    def counters(self) -> Path:
        """The last thread and turn number handed out."""
        return (self.state or self.root) / "counters"

    @property
    def servers(self) -> Path:
        """Locks of the running servers of this home, and journals of patches under way."""
        return (self.state or self.root) / "servers"

    @property
    def claims(self) -> Path:
        """Return the file in which running servers mark the threads that they have open."""
        return (self.state or self.root) / "threads.lock"
