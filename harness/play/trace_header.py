"""Members of a scenario that no message shows, as stored in the header of its trace."""

import base64
import json
import re
from typing import Any, Final

from harness.client.target.profile import fill
from harness.scenario.client_steps import (
    AnswerStep,
    ConnectStep,
    DisconnectStep,
    KillStep,
    ModelListensStep,
    RestartStep,
    SlowReaderStep,
    StartThreadStep,
    StartTurnStep,
    WaitStep,
)
from harness.scenario.loader import Loaded
from harness.scenario.model import Scenario
from harness.scenario.races import RacedScenario
from harness.scenario.workspace import Content, CopiedFile, EncodedFile
from harness.trace.record.masks import Masker
from harness.trace.surfaces import SESSION

# The client's messages show the other members, or they are expectations.
_MEMBERS: Final = (
    "needs",
    "extensions",
    "config",
    "mcp",
    "workspace",
    "server",
    "client_name",
    "strict_model",
    "faults",
    "model",
)
# Members that may hold a secret. Messages and files are not masked: the trace has them anyway.
_SECRET_MEMBERS: Final = ("config", "mcp")

# Steps that send nothing; and answers, since one step may answer several requests, or choose
# between them.
_SILENT_STEPS: Final = (
    AnswerStep,
    ConnectStep,
    DisconnectStep,
    KillStep,
    ModelListensStep,
    RestartStep,
    SlowReaderStep,
    WaitStep,
)


def header_members(loaded: Loaded) -> dict[str, Any]:
    """Return the members of a scenario that its trace's header stores, with secrets masked.

    `steps` has one row for each step: the whole step if no message of the trace shows it, else only
    its alias, if any. A raced scenario has no `steps`, since its file does not contain all of them.
    Raises `OSError` if a file that the scenario copies cannot be read.
    """
    scenario = _with_file_contents(loaded)
    members = scenario.model_dump(
        mode="json", by_alias=True, exclude_unset=True, include={*_MEMBERS}
    )
    header = {name: members[name] for name in _MEMBERS if members.get(name)}
    if "config" in header:
        header["config"] = fill(header["config"], {"scenario_folder": "{cwd}"})
    masker = Masker()
    for name in _SECRET_MEMBERS:
        if name in header:
            header[name] = json.loads(masker.mask_text(json.dumps(header[name])))
    if not isinstance(loaded, RacedScenario):
        header["steps"] = _steps(scenario, of_session=loaded.surface == SESSION)
    return header


def _steps(scenario: Scenario, *, of_session: bool) -> list[dict[str, Any]]:
    """Return a row for each step; only steps that messages show are shortened to their alias."""
    rows: list[dict[str, Any]] = []
    for step in scenario.steps:
        [name] = type(step).model_fields
        body = getattr(step, name)
        silent = isinstance(step, _SILENT_STEPS) or getattr(body, "base64", None) is not None
        if silent or not (of_session or isinstance(step, StartThreadStep | StartTurnStep)):
            rows.append(step.model_dump(mode="json", by_alias=True, exclude_unset=True))
            continue
        # Not by `model_dump`, which rejects deeply nested values, and params may be anything.
        alias = getattr(body, "alias", None)
        rows.append({} if alias is None else {"as": alias})
    return rows


def files_beside(scenario: Scenario) -> list[str]:
    """Return the files that a scenario copies or its config names, relative to its folder."""
    files = scenario.workspace.files.values()
    return [file.source for file in files if isinstance(file, CopiedFile)] + _named_files(scenario)


def _named_files(scenario: Scenario) -> list[str]:
    return re.findall(r"\{scenario_folder\}/([^\"]+)", json.dumps(scenario.config))


def _with_file_contents(loaded: Loaded) -> Scenario:
    """Return the scenario with the contents of the files that it copies or its config names."""
    scenario, beside = loaded.scenario, loaded.path.parent
    named = _named_files(scenario)
    if not files_beside(scenario):
        return scenario
    files = {name: _content((beside / name).read_bytes()) for name in named}
    for name, file in scenario.workspace.files.items():
        is_copy = isinstance(file, CopiedFile)
        files[name] = _content((beside / file.source).read_bytes()) if is_copy else file
    workspace = scenario.workspace.model_copy(update={"files": files})
    return scenario.model_copy(update={"workspace": workspace})


def _content(content: bytes) -> Content:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return EncodedFile(base64=base64.b64encode(content).decode("ascii"))
