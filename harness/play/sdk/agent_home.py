"""Environment of an agent's program: a home, a workspace, variables, a model."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.client.target.overrides import (
    merge_tables,
    placeholder_values,
    turn_params,
    with_overrides,
)
from harness.client.target.process import environment
from harness.client.target.profile import Profile, fill
from harness.client.target.program import NotStarted, find_program, with_absolute_paths
from harness.client.target.run_folders import RunFolder, write_home_files
from harness.model.mcp_hosting import McpSettings, serve_mcp_servers
from harness.model.model import ScriptedModel
from harness.model.named_pipes import named_pipes
from harness.model.server import ModelServer
from harness.model.tools import ToolRow
from harness.model.wire.responses import ResponsesEncoder
from harness.play.session.conversation import Needs, needs_of
from harness.play.turns_player import Stage
from harness.scenario.loader import Loaded
from harness.scenario.surfaces import THREAD_PARAMS
from harness.scenario.workspace import furnish_workspace
from harness.trace.marks import Place, SessionReport
from harness.trace.recorder import Recorder


@dataclass(frozen=True, slots=True)
class PreparedPlay:
    """A play that can begin: the environment of its program, and its model."""

    stage: Stage
    model: ScriptedModel


class AgentStages:
    """Environments for plays on one profile's agent, which share a model server."""

    def __init__(self, profile: Profile, folder: RunFolder, models: ModelServer) -> None:
        self._profile = profile
        self._folder = folder
        self._models = models

    @asynccontextmanager
    async def serve_agent(
        self, loaded: Loaded, recorder: Recorder, session_turns: Iterable[SessionReport]
    ) -> AsyncGenerator[PreparedPlay]:
        """Run the model and the MCP servers of a play for the length of the block.

        Its trace gets marks for its folders, and for the turns of the session. Raises `NotStarted`
        if the agent's program is not found.
        """
        if not self._profile.exec.command:
            raise NotStarted("no agent's program is known: give --agent-cmd")
        needs = needs_of(loaded)
        async with serve_mcp_servers(needs.mcp, lambda: self._folder.new_folder("mcp")) as desk:
            staged = self._prepare(loaded, recorder, needs, desk)
            for mark in session_turns:
                recorder.mark(mark)
            model, cwd = staged.model, staged.stage.cwd
            self._models.set_model(model)
            try:
                async with named_pipes(cwd, needs.pipes, needs.awaited_gates, model.gates):
                    yield staged
            finally:
                self._models.set_model(None)

    def _prepare(
        self, loaded: Loaded, recorder: Recorder, needs: Needs, desk: McpSettings
    ) -> PreparedPlay:
        desk.servers.begin(recorder.mark)
        cwd, home = self._folder.new_folder("work"), self._folder.new_folder("home")
        stands_for = placeholder_values(
            self._profile, cwd, home, scenario_folder=needs.scenario_folder
        )
        furnish_workspace(cwd, needs.files, lambda name: fill(name, stands_for))
        profile = with_overrides(
            self._profile,
            config=merge_tables(needs.config, desk.config),
            placeholders=stands_for,
            several=False,
            env=desk.env,
        )
        values = {"model_url": self._models.url, "home": str(home), "cwd": str(cwd)}
        write_home_files(home, profile, values)
        model = self._make_model(loaded, recorder)
        model.watch_tools(desk.servers.tools)
        stage = self._make_stage(profile, loaded, cwd, home, stands_for, values)
        recorder.mark(
            Place(home=str(home), cwd=str(cwd), server_cwd=str(cwd), agent=profile.agent_folder)
        )
        return PreparedPlay(stage, model)

    def _make_stage(
        self,
        profile: Profile,
        loaded: Loaded,
        cwd: Path,
        home: Path,
        stands_for: dict[str, str],
        values: dict[str, str],
    ) -> Stage:
        own_env = fill(profile.env, values)
        settings: dict[str, Any] = loaded.scenario.settings.model_dump(exclude_none=True)
        thread_params = {**profile.thread, **turn_params(profile, loaded.scenario.needs)}
        thread_params = {
            name: value for name, value in thread_params.items() if name in THREAD_PARAMS
        }
        command = find_program(fill(profile.exec.command, values), "--agent-cmd")
        return Stage(
            command=with_absolute_paths(command),
            program=profile.exec,
            env=environment(own_env, home, profile.home_env, confined=profile.is_confined),
            variables=tuple(sorted({"HOME", profile.home_env, "NO_PROXY", *own_env})),
            cwd=cwd,
            home=home,
            scratch=self._folder.new_folder(loaded.surface),
            params={**settings, **thread_params},
            places=stands_for,
            confinement=profile.confinement(self._folder.path),
        )

    def _make_model(self, loaded: Loaded, recorder: Recorder) -> ScriptedModel:
        profile = self._profile
        return ScriptedModel(
            loaded.scenario.scripts(),
            ResponsesEncoder(),
            mark=recorder.mark,
            markers=loaded.thread_markers(),
            strict=loaded.scenario.strict_model,
            tools=[ToolRow(**tool.row()) for tool in profile.tools],
            outcomes={str(name): texts for name, texts in profile.outcomes.items()},
            loose=profile.capabilities == "probe",
        )
