"""The servers that are measured, and how each is started in a fresh home.

The profiles are those that `make demo` and `make real` judge with, so both see the same server.
"""

import itertools
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.client.target.process import environment
from harness.client.target.profile import Profile, fill, load_profile
from harness.client.target.program import find_program
from harness.client.target.run_folders import write_home_files
from tools.bench.client import Client, running_server

INITIALIZE: dict[str, Any] = {"clientInfo": {"name": "bench", "title": "bench", "version": "1"}}
REFERENCE = "reference"


@dataclass(slots=True)
class Target:
    """One server: its column, its profile (with its command), where its homes are made."""

    column: str
    profile: Profile
    folder: Path
    opted_out: list[str] = field(default_factory=list[str])
    _homes: Any = field(default_factory=lambda: itertools.count(1))

    @contextmanager
    def start(
        self,
        model_url: str,
        prepare: Callable[[Path], None] | None = None,
        *,
        home: Path | None = None,
    ) -> Generator[tuple[Client, Path]]:
        """Start it in a fresh home and yield the client, before any message, and its workspace.

        `prepare` fills the home before; `home` is one that an earlier server has left.
        """
        name = f"{self.profile.name}-{next(self._homes)}"
        work = self.folder / f"{name}-work"
        work.mkdir()
        if home is None:
            home = self.home_of(work)
            home.mkdir()
        values = {"model_url": model_url, "home": str(home), "cwd": str(work)}
        write_home_files(home, self.profile, values)
        if prepare is not None:
            prepare(home)
        env = environment(fill(self.profile.env, values), home, self.profile.home_env)
        command = find_program(fill(self.profile.command, values))
        with running_server(
            command, cwd=work, env=env, stderr=self.folder / f"{name}.stderr"
        ) as client:
            yield client, work

    def home_of(self, work: Path) -> Path:
        """Return the home of the server that had this workspace."""
        return self.folder / f"{work.name.removesuffix('-work')}-home"

    def greeting(self) -> dict[str, Any]:
        """Return the params of initialize; what the specification does not know is opted out of."""
        params = {**INITIALIZE, **self.profile.initialize}
        if self.opted_out:
            capabilities = params.get("capabilities", {})
            params["capabilities"] = {**capabilities, "optOutNotificationMethods": self.opted_out}
        return params


def reference(folder: Path) -> Target:
    """Return the reference server, started as a user starts it."""
    profile = load_profile("reference")
    installed = Path(sys.executable).parent / profile.command[0]
    if installed.exists():
        command = [str(installed), *profile.command[1:]]
        profile = profile.model_copy(update={"command": command})
    return Target(REFERENCE, profile, folder)


@dataclass(frozen=True, slots=True)
class Real:
    """A release of the real server, as `make real` installs it."""

    release: str
    profile: str
    program: str
    needs_namespace: bool

    @property
    def column(self) -> str:
        """Its column of the table."""
        return f"real {self.release}"

    def path(self, checkout: Path) -> Path:
        """Return the path of its program, if it is installed."""
        inside = f"node_modules/real/vendor/x86_64-unknown-linux-musl/{self.program}"
        return checkout / ".real" / self.release / inside

    def is_installed(self, checkout: Path) -> bool:
        """Return whether it can be started."""
        return os.access(self.path(checkout), os.X_OK)

    def target(self, checkout: Path, folder: Path) -> Target:
        """Return its target."""
        command = [str(self.path(checkout)), "app-server"]
        profile = load_profile(self.profile).model_copy(update={"command": command})
        return Target(self.column, profile, folder)


REALS = (
    Real("0.107.0", "codex-0.107", "codex/codex", needs_namespace=False),
    Real("0.169.0", "codex-0.169", "bin/codex", needs_namespace=True),
)
