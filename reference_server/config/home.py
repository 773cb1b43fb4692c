"""The home folder and the places inside it.

Here live path names, and how a folder of the home is made; no file is read or written here.
"""

import contextlib
import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Home:
    """`AGENT_HOME`, or `~/.agent`."""

    root: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Home":
        """Find the home; a relative AGENT_HOME is taken from the working directory."""
        named = environment.get("AGENT_HOME")
        return cls(Path(named).absolute() if named else Path.home() / ".agent")

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
    def counters(self) -> Path:
        """The last thread and turn number handed out."""
        return self.root / "counters"

    @property
    def servers(self) -> Path:
        """What the servers of this home know of each other, and what they have under way."""
        return self.root / "servers"


def make_private(folder: Path) -> None:
    """Make a folder and what is missing above it, for nobody but the user, whatever the umask.

    The rights of what is there already are its owner's matter. Raises OSError.
    """
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_private(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)
        # A umask takes rights away, and may take the user's own.
        folder.chmod(0o700)
        return
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
