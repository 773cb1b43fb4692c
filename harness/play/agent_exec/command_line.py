"""The command line of `agent exec` for one turn, in the words of a profile."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.client.target.profile import ExecProgram, fill
from harness.protocol.values import arr, obj, text
from harness.scenario.steps.context import FailureKind, StepFailed

# The policy of a thread is a setting of the program's configuration.
_SETTINGS = {"approvalPolicy": "approval_policy"}
# The settings of every scenario unless it says otherwise.
_DEFAULTS = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
# The capabilities missing in a program without the words for something.
_CAPABILITIES = {"an output schema": "output-schema", "a thread to resume": "storage"}
# An empty line separates several texts of one input.
TEXT_SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """The options of a turn.

    They are parameters of its thread, the thread to resume ("" for a new one), the file of its
    output schema ("" for none), the paths of its images.
    """

    params: Mapping[str, Any]
    thread: str = ""
    schema_file: str = ""
    images: Sequence[str] = ()


def command_line(program: ExecProgram, options: TurnOptions) -> list[str]:
    """Return the words after the program's name. Raises `StepFailed` if one has no option."""
    words = list(program.arguments)

    def add_words(subject: str, template: list[str], value: str, usual: str = "") -> None:
        if value == usual and not template:
            return  # A program without the option may do so anyway.
        if value and not template:
            message = f"the profile's [exec] has no words for {subject}"
            raise StepFailed(
                FailureKind.NOT_OFFERED, message, capability=_CAPABILITIES.get(subject, "core")
            )
        if value:
            words.extend(fill(template, {"value": value}))

    add_words("a model", program.model, text(options.params.get("model")))
    add_words(
        "a sandbox", program.sandbox, text(options.params.get("sandbox")), _DEFAULTS["sandbox"]
    )
    add_words("a working directory", program.cwd, text(options.params.get("cwd")))
    add_words("an output schema", program.schema_file, options.schema_file)
    for name, key in _SETTINGS.items():
        value, usual = text(options.params.get(name)), _DEFAULTS[name]
        setting = f"{key}={json.dumps(value)}" if value else ""
        add_words("a setting", program.setting, setting, f"{key}={json.dumps(usual)}")
    add_words("a thread to resume", program.resume, options.thread)
    for image in options.images:
        add_words("an image", program.image, image)
    return words


def prompt_of(entries: Any, plain: str | None) -> tuple[str, list[str]]:
    """Return the prompt and the paths of images in the input of a turn."""
    if plain is not None:
        return plain, []
    items = [obj(entry) for entry in arr(entries)]
    texts = [text(item.get("text")) for item in items if item.get("type") == "text"]
    images = [text(item.get("path")) for item in items if item.get("type") == "localImage"]
    return TEXT_SEPARATOR.join(texts), images
