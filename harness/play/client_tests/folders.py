"""The surroundings of one connection: its home, its workspace, its model and MCP servers."""

import contextlib
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.client.target.overrides import merge_tables, placeholder_values, with_overrides
from harness.client.target.place import write_home_files
from harness.client.target.profile import Profile, fill, load_profile
from harness.model.mcp_desk import mcp_desk
from harness.model.model import ScriptedModel
from harness.model.named_pipes import named_pipes
from harness.model.of_scenario import model_of
from harness.scenario.loader import Loaded

PROFILE = "reference"


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of one connection, all below `root`.

    `agent` is the home of the server, `home` that of its user, `work` the working directory.
    """

    root: Path

    @property
    def agent(self) -> Path:
        """The server's home: its configuration and its threads."""
        return self.root / "agent"

    @property
    def home(self) -> Path:
        """The HOME of commands."""
        return self.root / "home"

    @property
    def work(self) -> Path:
        """The scenario's workspace."""
        return self.root / "work"

    def make(self) -> None:
        """Make them, for this user alone."""
        for folder in (self.root, self.agent, self.home, self.work):
            folder.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove them with all that is in them, whatever a command has made of their rights."""
        for folder, _, _ in os.walk(self.root):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Furnished:
    """The needs of a server that plays a scenario: the model's side, and more variables."""

    model: ScriptedModel
    environment: Mapping[str, str]


@asynccontextmanager
async def furnished(
    loaded: Loaded, folders: Folders, *, model_url: str
) -> AsyncGenerator[Furnished]:
    """Lay out a scenario in its folders for the length of the block. Raises OSError."""
    scenario = loaded.scenario
    made = 0

    def private() -> Path:
        nonlocal made
        made += 1
        folder = folders.root / f"mcp{made}"
        folder.mkdir(mode=0o700)
        return folder

    async with mcp_desk(scenario.mcp, private) as desk:
        profile = load_profile(PROFILE)
        stands_for = placeholder_values(
            profile, folders.work, folders.agent, scenario_folder=loaded.path.parent.resolve()
        )
        config = {**_settings(loaded), **scenario.config}
        profile = with_overrides(
            profile,
            config=merge_tables(config, desk.config),
            placeholders=stands_for,
            several=False,
            env=desk.env,
        )
        values = {**stands_for, "model_url": model_url}
        write_home_files(folders.agent, profile, values)
        _fill_workspace(loaded, folders, profile)
        model = model_of(scenario)
        pipes, told = scenario.workspace.pipes, scenario.awaited_gates()
        async with named_pipes(folders.work, pipes, told, model.gates):
            yield Furnished(model, fill(dict(profile.env), values))


def _settings(loaded: Loaded) -> dict[str, str]:
    """The settings of a scenario as configuration: a client that says otherwise has its will."""
    settings = loaded.scenario.settings
    found = {"approval_policy": settings.approvalPolicy, "sandbox_mode": settings.sandbox}
    return found if settings.model is None else {**found, "model": settings.model}


def _fill_workspace(loaded: Loaded, folders: Folders, profile: Profile) -> None:
    contents = loaded.scenario.workspace.contents(loaded.path.parent)
    for name, content in contents.items():
        file = folders.work / fill(name, placeholder_values(profile, folders.work, folders.agent))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
