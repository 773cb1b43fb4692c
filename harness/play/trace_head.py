"""The part of a scenario that no message shows, which stands in the head of its trace."""

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
from harness.scenario.model import CopiedFile, EncodedFile, Scenario
from harness.scenario.races import Raced
from harness.trace.record.masks import Masker
from harness.trace.surfaces import SESSION

# Of a scenario; the rest is said by the client's messages, or demanded of the server.
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
# What somebody may have put a secret into. What is said, and what is in files, is in the messages
# too, as it is.
_SECRET_MEMBERS: Final = ("config", "mcp")

# What a client does without saying anything; and answers, which may stand for several questions,
# and say which of several they are for.
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
    """Return what the scenario gives a run, as plain values. Raises `OSError` for a file to copy.

    `steps` are what the client does without a message, and the names of what it begins, by the
    number of the step. A race has none: some of its steps are of no file.
    """
    scenario = _with_file_contents(loaded)
    members = scenario.model_dump(
        mode="json", by_alias=True, exclude_unset=True, include={*_MEMBERS}
    )
    given = {name: members[name] for name in _MEMBERS if members.get(name)}
    if "config" in given:
        given["config"] = fill(given["config"], {"scenario_folder": "{cwd}"})
    masker = Masker()
    for name in _SECRET_MEMBERS:
        if name in given:
            given[name] = json.loads(masker.text(json.dumps(given[name])))
    if not isinstance(loaded, Raced):
        given["steps"] = _steps(scenario, of_session=loaded.surface == SESSION)
    return given


def _steps(scenario: Scenario, *, of_session: bool) -> list[dict[str, Any]]:
    """A row for each step; a program is told of few of them."""
    found: list[dict[str, Any]] = []
    for step in scenario.steps:
        [name] = type(step).model_fields
        body = getattr(step, name)
        silent = isinstance(step, _SILENT_STEPS) or getattr(body, "base64", None) is not None
        if silent or not (of_session or isinstance(step, StartThreadStep | StartTurnStep)):
            found.append(step.model_dump(mode="json", by_alias=True, exclude_unset=True))
            continue
        # Not by `model_dump`, which refuses what is nested deep: what is sent may be anything.
        alias = getattr(body, "alias", None)
        found.append({} if alias is None else {"as": alias})
    return found


def _with_file_contents(loaded: Loaded) -> Scenario:
    """The scenario with the files beside it that it copies, or that its configuration names."""
    scenario, beside = loaded.scenario, loaded.path.parent
    named = re.findall(r"\{scenario_folder\}/([^\"]+)", json.dumps(scenario.config))
    copied = any(isinstance(one, CopiedFile) for one in scenario.workspace.files.values())
    if not copied and not named:
        return scenario
    contents = {name: (beside / name).read_bytes() for name in named}
    contents |= scenario.workspace.contents(beside)
    files = {name: _content(content) for name, content in contents.items()}
    workspace = scenario.workspace.model_copy(update={"files": files})
    return scenario.model_copy(update={"workspace": workspace})


def _content(content: bytes) -> str | EncodedFile:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return EncodedFile(base64=base64.b64encode(content).decode("ascii"))
