"""`--scenario`: the model's side comes from a scenario, without a network.

The server does not play the faults of a scenario: `harness faulty` puts them between it and its
client.
"""

import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reference_server.cli.surroundings import UsageError
from reference_server.config.model import Config
from reference_server.scripted_answers import ScriptedAnswers

if TYPE_CHECKING:
    from harness.scenario.model import Scenario
    from reference_server.model.answer import ModelConnection

SCENARIO_ADDRESS = "http://scenario.invalid/v1"
"""The address of a scenario's model. The model is in process, so nothing is looked up."""


BEHIND_FAULTS = "AGENT_BEHIND_FAULTS"
"""Set in the environment of a server that `harness faulty` has started with a scenario's faults."""


def scenario_transport(
    path: Path, *, faults: bool = True, resumes: bool = False
) -> "Callable[[], ModelConnection]":
    """Return a factory of connections to a scenario's model.

    With `resumes` it skips the steps whose answers the resumed thread already contains. Raises
    UsageError, in one line, if the scenario cannot be loaded, or has faults and `faults` is false:
    they act between client and server.
    """
    scenario = _scenario(path)
    if scenario.faults and not faults:
        raise UsageError(f"--scenario {path}: it has faults, which agent app-server alone plays")

    def connection() -> "ModelConnection":
        # Imported with the first model call: it takes longer than the first event may take.
        from harness.model.scenario_model import scripted_model_of
        from reference_server.model.scripted import ScriptedConnection

        return ScriptedConnection(scripted_model_of(scenario), resumes=resumes)

    return connection


def scenario_defaults(path: Path) -> Config:
    """Return the defaults that config.toml, options and the client can override.

    They are the scenario's `settings`, as for a client of `--listen`, and for the rest the server's
    own defaults: its commands run in the user's folder. Raises UsageError for a bad scenario.
    """
    stated = _scenario(path).settings
    names = {
        "approvalPolicy": "approval_policy",
        "sandbox": "sandbox_mode",
        "model": "model",
    }
    values = {names[name]: getattr(stated, name) for name in stated.model_fields_set}
    config = Config(model_auto_compact_token_limit=_compact_limit(path))
    return replace(config, **{name: value for name, value in values.items() if value is not None})


def _compact_limit(path: Path) -> int | None:
    """Return the limit that the default script needs for its compaction; else None."""
    if not _scenario(path).default_script:
        return None
    from harness.model.default_script import COMPACT_TOKENS

    return COMPACT_TOKENS


def scenario_answers(path: Path) -> ScriptedAnswers:
    """Return the scenario's answers to requests. Raises UsageError for a bad scenario."""
    return ScriptedAnswers(_scenario(path).answers_by_method())


@contextmanager
def home_of_play(environment: Mapping[str, str]) -> Generator[dict[str, str]]:
    """Yield the environment of a scripted play, with a temporary home unless AGENT_HOME is set.

    The temporary home is removed at the end. Raises UsageError if it cannot be made.
    """
    if environment.get("AGENT_HOME"):
        yield dict(environment)
        return
    from reference_server.private_folder import private_root

    with ExitStack() as stack:
        try:
            home = stack.enter_context(private_root()) / "home"
            home.mkdir(mode=0o700)
        except OSError as error:
            raise UsageError(
                f"no home for this play can be made ({error}); name one by --home or AGENT_HOME"
            ) from error
        yield {**environment, "AGENT_HOME": str(home)}


def go_behind_faults(path: Path, arguments: Sequence[str]) -> None:
    """Replace this process with the proxy that plays the scenario's faults, this server behind it.

    The process id and the streams stay. Return if there are no faults, or if the proxy is there
    already. Raises UsageError for a bad scenario.
    """
    if os.environ.pop(BEHIND_FAULTS, "") or not _scenario(path).faults:
        return
    # -P: never import a file of the user's working directory.
    python = [sys.executable, "-P", "-m"]
    proxy = [*python, "harness", "faulty", "--scenario", str(path), "--"]
    server = [*python, "reference_server", "app-server", *arguments]
    os.execve(sys.executable, [*proxy, *server], {**os.environ, BEHIND_FAULTS: "1"})


def _scenario(path: Path) -> "Scenario":
    """Load the scenario of a file or of a bundled id. Raises UsageError with one line."""
    from harness.scenario.identity import (
        DEFAULT_ID,
        SUFFIX,
        bundled_folder,
        default_scenario,
        row_of_path,
    )
    from harness.scenario.loader import ScenarioError, load_scenario

    bundled = bundled_folder() / f"{path}{SUFFIX}"
    if str(path) == DEFAULT_ID:
        bundled = default_scenario()
    # A row of a family is named like a file of its own.
    is_own = path.exists() or row_of_path(path) is not None
    if not is_own and not bundled.is_file() and row_of_path(bundled) is None:
        raise UsageError(
            f"--scenario {path}: there is no such file, and no bundled scenario has this id; "
            "harness scenario list shows the ids"
        )
    if path.is_dir():
        raise UsageError(
            f"--scenario {path}: it is a folder; give the file of one scenario, or "
            "--listen, which plays all of them"
        )
    try:
        return load_scenario(path if is_own else bundled)
    except ScenarioError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def scenario_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with `SCENARIO_ADDRESS` as the model provider's base URL."""
    return {**environment, "PROVIDER_BASE_URL": SCENARIO_ADDRESS}
