"""Options, and the command line built from them. Values are checked before a process starts."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from agent_sdk.errors import ConfigError
from agent_sdk.guards import StrPath, brief, is_list
from agent_sdk.inputs import path_word, word_of
from agent_sdk.overrides import overrides, toml_string

SandboxMode = Literal["read-only", "workspace-write", "danger-full-access"]
ApprovalMode = Literal["never", "on-request", "on-failure", "untrusted"]
ModelReasoningEffort = Literal["minimal", "low", "medium", "high", "xhigh"]
WebSearchMode = Literal["disabled", "cached", "live"]

KEY = "PROVIDER_API_KEY"
ADDRESS = "PROVIDER_BASE_URL"


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Options for every run of the agent. `repr` shows only `program`: the rest may be secret."""

    program: str = "agent"
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    set_variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    config: tuple[str, ...] = field(default=(), repr=False)

    def child_environment(self) -> dict[str, str]:
        """Return the agent's environment: `environment` or that of this process, plus our own."""
        base = os.environ if self.environment is None else self.environment
        return {**base, **self.set_variables}


def agent_options(
    *,
    base_url: str | None,
    api_key: str | None,
    agent_path: StrPath | None,
    env: Mapping[str, str] | None,
    config: Mapping[str, Any] | None,
) -> AgentOptions:
    """Return the checked options of an agent. Raises ConfigError for an invalid value."""
    variables: dict[str, str] = {}
    # A caller's unset variable often arrives as "": that means not given.
    if api_key:
        variables[KEY] = _secret(api_key)
    if base_url:
        variables[ADDRESS] = word_of(base_url, "base_url")
    if config is not None and not isinstance(config, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"config is {type(config).__name__}, and not a mapping")
    return AgentOptions(
        program="agent" if agent_path is None else path_word(agent_path, "agent_path"),
        environment=None if env is None else MappingProxyType(_environment(env)),
        set_variables=MappingProxyType(variables),
        config=tuple(word_of(one, "config") for one in overrides(config or {})),
    )


def _secret(key: object) -> str:
    if not isinstance(key, str) or not key.isascii() or not key.isprintable():
        raise ConfigError("api_key is no string of printable ASCII characters")
    return key


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the environment, checked. Errors show names, never values."""
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"env: {name!r} cannot be the name of a variable")
        if not isinstance(value, str) or "\0" in value:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"env: the value of {name} is no string without null characters")
        try:
            os.fsencode(name + value)
        except UnicodeEncodeError:
            raise ConfigError(f"env: {name!r} holds a lone surrogate, which is no text") from None
    return dict(env)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadOptions:
    """Options for every turn of a thread; for None the agent uses its own default."""

    working_directory: StrPath | None = None
    sandbox_mode: SandboxMode | None = None
    model: str | None = None
    skip_git_repo_check: bool = False
    model_reasoning_effort: ModelReasoningEffort | None = None
    network_access_enabled: bool | None = None
    web_search_mode: WebSearchMode | None = None
    approval_policy: ApprovalMode | None = None
    additional_directories: Sequence[StrPath] = ()

    def words(self) -> list[str]:
        """Return the command-line options, except for `settings`. Raises ConfigError."""
        words: list[str] = []
        if self.model is not None:
            words += _option("--model", word_of(self.model, "model"))
        if self.sandbox_mode is not None:
            words += ["--sandbox", _one_of(SandboxMode, self.sandbox_mode, "sandbox_mode")]
        if self.working_directory is not None:
            words += ["--cd", path_word(self.working_directory, "working_directory")]
        if not is_list(self.additional_directories):
            raise ConfigError("additional_directories is no list of paths")
        for folder in self.additional_directories:
            words += ["--add-dir", path_word(folder, "additional_directories")]
        return [*words, "--skip-git-repo-check"] if self.skip_git_repo_check else words

    def settings(self) -> Iterator[str]:
        """Yield the options passed as `--config`, each `key=value` in TOML. Raises ConfigError."""
        if (effort := self.model_reasoning_effort) is not None:
            word = _one_of(ModelReasoningEffort, effort, "model_reasoning_effort")
            yield f"model_reasoning_effort={_setting('model_reasoning_effort', word)}"
        if (network := self.network_access_enabled) is not None:
            if not isinstance(network, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError("network_access_enabled is neither True nor False")
            yield f"sandbox_workspace_write.network_access={str(network).lower()}"
        if (search := self.web_search_mode) is not None:
            word = _one_of(WebSearchMode, search, "web_search_mode")
            yield f"web_search={_setting('web_search_mode', word)}"
        if (policy := self.approval_policy) is not None:
            word = _one_of(ApprovalMode, policy, "approval_policy")
            yield f"approval_policy={_setting('approval_policy', word)}"


def _one_of(kind: object, value: object, name: str) -> str:
    """Return `value` if the Literal `kind` has it. Raises ConfigError with the nearest word."""
    word, words = word_of(value, name), get_args(kind)
    if word in words:
        return word
    from difflib import get_close_matches

    nearest = get_close_matches(word.lower(), words, 1)
    advice = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise ConfigError(f"{name} must be one of {', '.join(words)}, not {brief(word)}{advice}")


def _option(name: str, value: str) -> list[str]:
    """Return an option with its value, joined by "=" if the value begins with "-"."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _setting(name: str, value: str) -> str:
    return toml_string(word_of(value, name), name)


def thread_id_word(thread_id: object) -> str:
    """Return the id if it can follow `resume`. Raises ConfigError if it looks like an option."""
    word = word_of(thread_id, "the thread id")
    if word.startswith("-"):
        raise ConfigError(f"the thread id begins like an option: {word!r}")
    return word


def command_line(
    agent: AgentOptions,
    thread: ThreadOptions,
    *,
    thread_id: str | None,
    images: Sequence[str],
    schema: str | None,
) -> list[str]:
    """Return the arguments of the agent. Of two settings with the same key the later one counts.

    Raises ConfigError for an option that cannot be passed.
    """
    words = ["exec", "--experimental-json"]
    for setting in agent.config:
        words += ["--config", setting]
    words += thread.words()
    if schema is not None:
        words += ["--output-schema", schema]
    for setting in thread.settings():
        words += ["--config", setting]
    if thread_id is not None:
        # The id may come from an agent, so it is checked too.
        words += ["resume", thread_id_word(thread_id)]
    for path in images:
        words += ["--image", path]
    return words
