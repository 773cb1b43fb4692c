"""The client `Agent`: options common to all its threads, which it starts and resumes."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_sdk.guards import StrPath
from agent_sdk.options import (
    ApprovalMode,
    ModelReasoningEffort,
    SandboxMode,
    ThreadOptions,
    WebSearchMode,
    agent_options,
    thread_id_word,
)
from agent_sdk.thread import Thread


class Agent:
    """The agent on this machine. No process is started until a thread runs a turn.

    `base_url`: the URL of the model's API; the agent's own default if None.
    `api_key`: the API key. It is passed as the variable PROVIDER_API_KEY, never on the command
    line; without it the agent reads that variable from its environment.
    `agent_path`: the path of the program; if None, `agent` is looked up on PATH.
    `env`: the whole environment of the agent; if None, that of this process. The variables of
    `base_url` and `api_key` are added to either.
    `config`: settings of the agent, as nested mappings, passed as `--config` options. Other users
    of the machine can see a command line: put no secrets here.

    Raises ConfigError for values that cannot be passed on.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        agent_path: StrPath | None = None,
        env: Mapping[str, str] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._options = agent_options(
            base_url=base_url, api_key=api_key, agent_path=agent_path, env=env, config=config
        )

    def __repr__(self) -> str:
        return f"Agent(agent_path={self._options.program!r})"

    def start_thread(
        self,
        *,
        working_directory: StrPath | None = None,
        sandbox_mode: SandboxMode | None = None,
        model: str | None = None,
        skip_git_repo_check: bool = False,
        model_reasoning_effort: ModelReasoningEffort | None = None,
        network_access_enabled: bool | None = None,
        web_search_mode: WebSearchMode | None = None,
        approval_policy: ApprovalMode | None = None,
        additional_directories: Sequence[StrPath] = (),
    ) -> Thread:
        """Return a new thread. The agent creates it, and gives it an id, in its first turn.

        The options are passed with each turn; for None the agent uses its own default.
        `working_directory`: the directory the agent works in; the current one if None.
        `additional_directories`: further directories for context. Raises ConfigError.
        """
        options = ThreadOptions(
            working_directory=working_directory,
            sandbox_mode=sandbox_mode,
            model=model,
            skip_git_repo_check=skip_git_repo_check,
            model_reasoning_effort=model_reasoning_effort,
            network_access_enabled=network_access_enabled,
            web_search_mode=web_search_mode,
            approval_policy=approval_policy,
            additional_directories=additional_directories,
        )
        return Thread(self._options, options, None)

    def resume_thread(
        self,
        thread_id: str,
        *,
        working_directory: StrPath | None = None,
        sandbox_mode: SandboxMode | None = None,
        model: str | None = None,
        skip_git_repo_check: bool = False,
        model_reasoning_effort: ModelReasoningEffort | None = None,
        network_access_enabled: bool | None = None,
        web_search_mode: WebSearchMode | None = None,
        approval_policy: ApprovalMode | None = None,
        additional_directories: Sequence[StrPath] = (),
    ) -> Thread:
        """Return a stored thread; `thread_id` is an earlier `Thread.id`. Raises ConfigError.

        The options are those of `start_thread`; an unknown id shows only when a turn runs.
        """
        options = ThreadOptions(
            working_directory=working_directory,
            sandbox_mode=sandbox_mode,
            model=model,
            skip_git_repo_check=skip_git_repo_check,
            model_reasoning_effort=model_reasoning_effort,
            network_access_enabled=network_access_enabled,
            web_search_mode=web_search_mode,
            approval_policy=approval_policy,
            additional_directories=additional_directories,
        )
        return Thread(self._options, options, thread_id_word(thread_id))
