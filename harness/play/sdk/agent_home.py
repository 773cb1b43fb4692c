"""The surroundings of an agent's program: a home, a workspace, its environment, a model."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.client.target.overrides import merge_tables, placeholder_values, turn_params, with_overrides
from harness.client.target.place import RunFolder, write_home_files
from harness.client.target.process import environment
from harness.client.target.profile import Profile, fill
from harness.client.target.program import NotStarted, find_program, with_absolute_paths
from harness.model.mcp_desk import McpDesk, mcp_desk
from harness.model.model import ScriptedModel
from harness.model.named_pipes import named_pipes
from harness.model.server import ModelServer
from harness.model.tools import ToolRow
from harness.model.wire.responses import ResponsesEncoder
from harness.play.session.conversation import Needs, furnish_workspace, needs_of
from harness.play.turns_player import Stage
from harness.scenario.loader import Loaded
from harness.scenario.surfaces import THREAD_PARAMS
from harness.trace.marks import Place, ToldBySession
from harness.trace.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Staged:
    """A play that can begin: what its program is run with, and its model."""

    stage: Stage
    model: ScriptedModel


class AgentStages:
    """Prepares plays of one profile's agent, which all have the same model server."""

    def __init__(self, profile: Profile, folder: RunFolder, models: ModelServer) -> None:
        self._profile = profile
        self._folder = folder
        self._models = models

    @asynccontextmanager
    async def served(
        self, loaded: Loaded, recorder: Recorder, told: Iterable[ToldBySession]
    ) -> AsyncGenerator[Staged]:
        """Let the model and the MCP servers of a play answer for the length of the block.

        Its folders are marked in its trace, and what was told elsewhere. Raises `NotStarted` where
        the agent's program is not found.
        """
        if not self._profile.exec.command:
            raise NotStarted("no agent's program is known: give --agent-cmd")
        needs = needs_of(loaded)
        async with mcp_desk(needs.mcp, lambda: self._folder.new_folder("mcp")) as desk:
            staged = self._prepare(loaded, recorder, needs, desk)
            for one in told:
                recorder.mark(one)
            model, cwd = staged.model, staged.stage.cwd
            self._models.serve(model)
            try:
                async with named_pipes(cwd, needs.pipes, needs.told, model.gates):
                    yield staged
            finally:
                self._models.serve(None)

    def _prepare(self, loaded: Loaded, recorder: Recorder, needs: Needs, desk: McpDesk) -> Staged:
        desk.servers.begin(recorder.mark)
        cwd, home = self._folder.new_folder("work"), self._folder.new_folder("home")
        stands_for = placeholder_values(self._profile, cwd, home, scenario_folder=needs.scenario_folder)
        files = {fill(name, stands_for): data for name, data in needs.files.items()}
        furnish_workspace(cwd, files)
        profile = with_overrides(
            self._profile,
            config=merge_tables(needs.config, desk.config),
            placeholders=stands_for,
            several=False,
            env=desk.env,
        )
        values = {"model_url": self._models.url, "home": str(home), "cwd": str(cwd)}
        write_home_files(home, profile, values)
        model = self._model(loaded, recorder)
        model.watch_tools(desk.servers.tools)
        stage = self._stage(profile, loaded, cwd, home, stands_for, values)
        recorder.mark(
            Place(home=str(home), cwd=str(cwd), server_cwd=str(cwd), agent=profile.agent_folder)
        )
        return Staged(stage, model)

    def _stage(
        self,
        profile: Profile,
        loaded: Loaded,
        cwd: Path,
        home: Path,
        stands_for: dict[str, str],
        values: dict[str, str],
    ) -> Stage:
        ours = fill(profile.env, values)
        settings: dict[str, Any] = loaded.scenario.settings.model_dump(exclude_none=True)
        known = {**profile.thread, **turn_params(profile, loaded.scenario.needs)}
        known = {name: one for name, one in known.items() if name in THREAD_PARAMS}
        command = find_program(fill(profile.exec.command, values), "--agent-cmd")
        return Stage(
            command=with_absolute_paths(command),
            program=profile.exec,
            env=environment(ours, home, profile.home_env),
            variables=tuple(sorted({"HOME", profile.home_env, "NO_PROXY", *ours})),
            cwd=cwd,
            home=home,
            scratch=self._folder.new_folder(loaded.surface),
            params={**settings, **known},
            places=stands_for,
        )

    def _model(self, loaded: Loaded, recorder: Recorder) -> ScriptedModel:
        profile = self._profile
        return ScriptedModel(
            loaded.scenario.scripts(),
            ResponsesEncoder(),
            mark=recorder.mark,
            markers=loaded.markers(),
            strict=loaded.scenario.strict_model,
            tools=[ToolRow(**tool.model_dump()) for tool in profile.tools],
            outcomes={str(name): texts for name, texts in profile.outcomes.items()},
            loose=profile.capabilities == "probe",
        )
