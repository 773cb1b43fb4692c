"""The servers to measure, and their start in a new home.

Their profiles are those of `make demo` and `make real`, so that these run the same servers.
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
    """One server: its column, its profile with the command, the folder for its homes, and the
    notifications to opt out of.
    """

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
        """Start the server, in a new home or in `home`; yield a client and the workspace.

        `prepare` is called with the home before the start. No message has been sent yet.
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
        """Return the home of the server with this workspace."""
        return self.folder / f"{work.name.removesuffix('-work')}-home"

    def greeting(self) -> dict[str, Any]:
        """Return the params of initialize, with the notifications to opt out of."""
        params = {**INITIALIZE, **self.profile.initialize}
        if self.opted_out:
            capabilities = params.get("capabilities", {})
            params["capabilities"] = {**capabilities, "optOutNotificationMethods": self.opted_out}
        return params


def reference(folder: Path) -> Target:
    """Return the reference server, by its installed command if there is one, as users start it."""
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
        """The heading of its column in the table."""
        return f"real {self.release}"

    def path(self, checkout: Path) -> Path:
        """Return the path at which `make real` installs its program."""
        inside = f"node_modules/real/vendor/x86_64-unknown-linux-musl/{self.program}"
        return checkout / ".real" / self.release / inside

    def is_installed(self, checkout: Path) -> bool:
        """Return whether its program exists and can be run."""
        return os.access(self.path(checkout), os.X_OK)

    def target(self, checkout: Path, folder: Path) -> Target:
        """Return the target that starts this release, with homes in `folder`."""
        command = [str(self.path(checkout)), "app-server"]
        profile = load_profile(self.profile).model_copy(update={"command": command})
        return Target(self.column, profile, folder)


REALS = (
    Real("0.107.0", "codex-0.107", "codex/codex", needs_namespace=False),
    Real("0.169.0", "codex-0.169", "bin/codex", needs_namespace=True),
)
