"""`--scenario`: the model's side comes from a scenario, without a network.

Here lives how the option's value is found, and the one line of error where it cannot be played.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from reference_server.cli.surroundings import UsageError

if TYPE_CHECKING:
    import httpx

SCENARIO_ADDRESS = "http://scenario.invalid/v1"
"""The address of a scenario's model. Its transport is in process, so nothing is looked up."""


def scenario_transport(path: Path) -> "Callable[[], httpx.AsyncBaseTransport]":
    """Give the transport that plays a scenario's model. Raises UsageError with one line."""
    from harness.scenario.identity import SUFFIX, bundled_folder, row_of_path
    from harness.scenario.loader import ScenarioError, load_scenario

    bundled = bundled_folder() / f"{path}{SUFFIX}"
    # A row of a family is named like a file of its own.
    is_own = path.exists() or row_of_path(path) is not None
    if not is_own and not bundled.is_file() and row_of_path(bundled) is None:
        raise UsageError(
            f"--scenario {path}: there is no such file, and no bundled scenario has this id; "
            "harness scenario list shows the ids"
        )
    if path.is_dir():
        raise UsageError(f"--scenario {path}: it is a folder; give the file of one scenario")
    try:
        scenario = load_scenario(path if is_own else bundled)
    except ScenarioError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error

    def transport() -> "httpx.AsyncBaseTransport":
        # Imported with the first model call: it takes longer than the first event may take.
        from harness.backend.inprocess import ScriptedTransport

        return ScriptedTransport.from_scenario(scenario)

    return transport


def scenario_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Give the environment in which the model has the address of a scenario's."""
    return {**environment, "PROVIDER_BASE_URL": SCENARIO_ADDRESS}
