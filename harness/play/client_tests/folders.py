"""Environment of one connection: its home, workspace, model and MCP servers."""

import contextlib
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.client.target.overrides import merge_tables, placeholder_values, with_overrides
from harness.client.target.profile import Profile, fill, load_profile
from harness.client.target.run_folders import write_home_files
from harness.model.mcp_hosting import serve_mcp_servers
from harness.model.model import ScriptedModel
from harness.model.named_pipes import named_pipes
from harness.model.scenario_model import scripted_model_of
from harness.scenario.loader import Loaded
from harness.scenario.workspace import furnish_workspace

PROFILE = "reference"


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of one connection, all below `root`.

    `agent` is the home of the server, `home` that of its user, `work` the working directory.
    """

    root: Path

    @property
    def agent(self) -> Path:
        """Return the server's home: its configuration and its threads."""
        return self.root / "agent"

    @property
    def home(self) -> Path:
        """Return the HOME of commands."""
        return self.root / "home"

    @property
    def work(self) -> Path:
        """Return the scenario's workspace."""
        return self.root / "work"

    def make(self) -> None:
        """Make the folders, accessible only to this user. Raises `OSError`."""
        for folder in (self.root, self.agent, self.home, self.work):
            folder.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove the folders with their contents, even those that a command made unreadable."""
        for folder, _, _ in os.walk(self.root):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class ScenarioSetup:
    """Inputs of a server that plays a scenario: the model, and additional variables."""

    model: ScriptedModel
    environment: Mapping[str, str]


@asynccontextmanager
async def set_up_scenario(
    loaded: Loaded, folders: Folders, *, model_url: str
) -> AsyncGenerator[ScenarioSetup]:
    """Write a scenario's configuration and files for the length of the block. Raises `OSError`."""
    scenario = loaded.scenario
    made = 0

    def private() -> Path:
        nonlocal made
        made += 1
        folder = folders.root / f"mcp{made}"
        folder.mkdir(mode=0o700)
        return folder

    async with serve_mcp_servers(scenario.mcp, private) as desk:
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
        model = scripted_model_of(scenario)
        pipes, gates = scenario.workspace.pipes, scenario.awaited_gates()
        async with named_pipes(folders.work, pipes, gates, model.gates):
            yield ScenarioSetup(model, fill(dict(profile.env), values))


def _settings(loaded: Loaded) -> dict[str, str]:
    """Return a scenario's settings as configuration, which the client's parameters override."""
    settings = loaded.scenario.settings
    config = {"approval_policy": settings.approvalPolicy, "sandbox_mode": settings.sandbox}
    return config if settings.model is None else {**config, "model": settings.model}


def _fill_workspace(loaded: Loaded, folders: Folders, profile: Profile) -> None:
    values = placeholder_values(profile, folders.work, folders.agent)
    contents = loaded.scenario.workspace.contents(loaded.path.parent)
    furnish_workspace(folders.work, contents, lambda name: fill(name, values))
