"""The command line of `agent exec` for one turn: what is wanted, as words of a profile."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.client.target.profile import ExecProgram, fill
from harness.protocol.values import arr, obj, text
from harness.scenario.steps.context import StepFailed, UnmetKind

# The policy of a thread is a setting of the program's configuration.
_SETTINGS = {"approvalPolicy": "approval_policy"}
# What every scenario has unless it says otherwise.
_USUAL = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
# What a program lacks that cannot be told something.
_LACKS = {"an output schema": "output-schema", "a thread to resume": "storage"}
# Between several texts of one input there is an empty line.
BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a turn.

    They are parameters of its thread, the thread to go on with ("" for a new one), the file of its
    output schema ("" for none), the paths of its images.
    """

    params: Mapping[str, Any]
    thread: str = ""
    schema_file: str = ""
    images: Sequence[str] = ()


def command_line(program: ExecProgram, wanted: Wanted) -> list[str]:
    """The words after the program's name. Raises `StepFailed` where one cannot be said."""
    words = list(program.arguments)

    def say(what: str, template: list[str], value: str, usual: str = "") -> None:
        if value == usual and not template:
            return  # A program that cannot be told may do so anyway.
        if value and not template:
            message = f"the profile's [exec] has no words for {what}"
            raise StepFailed(UnmetKind.NOT_OFFERED, message, capability=_LACKS.get(what, "core"))
        if value:
            words.extend(fill(template, {"value": value}))

    say("a model", program.model, text(wanted.params.get("model")))
    say("a sandbox", program.sandbox, text(wanted.params.get("sandbox")), _USUAL["sandbox"])
    say("a working directory", program.cwd, text(wanted.params.get("cwd")))
    say("an output schema", program.schema_file, wanted.schema_file)
    for name, key in _SETTINGS.items():
        value, usual = text(wanted.params.get(name)), _USUAL[name]
        told = f"{key}={json.dumps(value)}" if value else ""
        say("a setting", program.setting, told, f"{key}={json.dumps(usual)}")
    say("a thread to resume", program.resume, wanted.thread)
    for image in wanted.images:
        say("an image", program.image, image)
    return words


def prompt_of(entries: Any, plain: str | None) -> tuple[str, list[str]]:
    """The prompt and the paths of images in the input of a turn."""
    if plain is not None:
        return plain, []
    given = [obj(entry) for entry in arr(entries)]
    texts = [text(one.get("text")) for one in given if one.get("type") == "text"]
    images = [text(one.get("path")) for one in given if one.get("type") == "localImage"]
    return BETWEEN.join(texts), images
