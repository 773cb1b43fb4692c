"""Options that name what is judged, the same in every command, and their completion in a shell.

A shell asks for completions at each Tab, so names come from files' names where that is enough.
"""

from collections.abc import Iterable
from typing import Annotated

import typer


def complete_profiles(incomplete: str) -> list[str]:
    """Return the built-in profiles that begin so."""
    from harness.cli.commands.profiles import built_in_rows

    return _names_that_begin(incomplete, (row["name"] for row in built_in_rows()))


def complete_scenarios(incomplete: str) -> list[str]:
    """Return the ids and areas of bundled scenarios that begin so, areas alone until a `/`."""
    from harness.scenario.bundled import bundled_ids

    ids = bundled_ids()
    if "/" not in incomplete:
        ids = {f"{name.split('/', 1)[0]}/" for name in ids}
    return _names_that_begin(incomplete, ids)


def complete_rules(incomplete: str) -> list[str]:
    """Return the ids of rules that begin so."""
    from harness.judge.rules.discovery import every_rule

    return _names_that_begin(incomplete, every_rule())


def complete_explained(incomplete: str) -> list[str]:
    """Return the names that `harness explain` knows and that begin so."""
    from harness.cli.commands.explain import explained_names

    return _names_that_begin(incomplete, explained_names())


def complete_pages(incomplete: str) -> list[str]:
    """Return the names of the documents' pages that begin so."""
    from harness.cli.commands.shipped import documents

    return _names_that_begin(incomplete, documents())


def _names_that_begin(start: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(start))


TargetOption = Annotated[
    str,
    typer.Option("--target", help="a profile's name or path", autocompletion=complete_profiles),
]
ServerCmdOption = Annotated[
    str, typer.Option("--server-cmd", help="the server, run without a shell")
]
AgentCmdOption = Annotated[str, typer.Option("--agent-cmd", help="the agent whose exec is judged")]
SdkCmdOption = Annotated[
    str, typer.Option("--sdk-cmd", help="the driver of the SDK that is judged")
]
ScaleOption = Annotated[float, typer.Option("--timeout-scale", help="multiply every bound")]
_SCENARIOS = typer.Argument(
    help="files, folders, ids (turns/plain-turn, turns/, 'turns/*'), or bundled",
    autocompletion=complete_scenarios,
)
ScenariosArgument = Annotated[list[str] | None, _SCENARIOS]
NeededScenariosArgument = Annotated[list[str], _SCENARIOS]
