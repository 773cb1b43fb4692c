"""The model's side of a scenario, or of a file that has only this side."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from harness.errors import UsageError
from harness.model.script import ModelStep, Script
from harness.model.strict import Strict
from harness.protocol.values import obj
from harness.scenario.explain import first_mistake
from harness.scenario.identity import FAMILY
from harness.scenario.loader import fill_in_filler, load
from harness.scenario.model import ModelSide, Scenario
from harness.scenario.scenario_names import named_files
from harness.scenario.yaml12 import Document, ScenarioError, parse_file

# Members that change a server's behaviour but not its model, and their descriptions.
_IGNORED_PARTS = {
    "settings": "its settings",
    "workspace": "its files",
    "config": "its config",
    "mcp": "its MCP servers",
    "faults": "its faults",
    "expect": "its expectations",
}


class ModelFile(Strict):
    """A file with only the model's side: `model:` as in a scenario, and perhaps a `title:`."""

    title: str = Field(default="", max_length=200)
    strict_model: bool = False
    model: ModelSide = Field(default_factory=list[ModelStep])


@dataclass(frozen=True, slots=True)
class ModelScript:
    """The model's side of one file: thread alias -> script.

    `name` is the scenario's id, or the file's name. `ignored_parts` describes members of the
    scenario that a model alone does not set up.
    """

    name: str
    title: str
    path: Path
    scripts: Mapping[str, Script]
    document: Document
    by_thread: bool
    ignored_parts: tuple[str, ...] = ()

    def line_of(self, alias: str, step: int) -> int:
        """Return the line number of a step in the file."""
        path = ("model", alias, step) if self.by_thread else ("model", step)
        return self.document.place(path)[0]


def load_model_script(word: str) -> ModelScript:
    """Return the model's side of a file, or of the scenario with that id.

    Raises `UsageError` if there is no such file, or it has a mistake or no model step.
    """
    path = _file_of_word(word)
    script = _script_of_model_file(path) or _script_of_scenario(path)
    if not any(script.scripts.values()):
        raise UsageError(f"{word}: its model: has no step, so that there is nothing to answer")
    return script


def _file_of_word(word: str) -> Path:
    if Path(word).is_file():
        return Path(word)
    files = named_files([word])
    if len(files) != 1:
        raise UsageError(f"{word}: {len(files)} scenarios; name one")
    return files[0]


def _script_of_model_file(path: Path) -> ModelScript | None:
    """Return the script of a file with only the model's side; None for a scenario."""
    if not path.is_file() or path.name.endswith(FAMILY):
        return None
    document = parse_file(path)
    members = obj(document.value)
    if not members:
        message = "expected a mapping with model: and the steps of a script; found no mapping"
        raise ScenarioError(path, document.place(()), message)
    if members.keys() & (Scenario.model_fields.keys() - ModelFile.model_fields.keys()):
        return None
    try:
        file = ModelFile.model_validate(fill_in_filler(document, path, path.name))
    except ValidationError as error:
        raise first_mistake(error, document, path, ModelFile) from error
    by_thread = isinstance(file.model, dict)
    scripts = file.model if isinstance(file.model, dict) else {"": file.model}
    return ModelScript(path.name, file.title, path, scripts, document, by_thread)


def _script_of_scenario(path: Path) -> ModelScript:
    loaded = load(path, clientless=True)
    scenario = loaded.scenario
    keys = scenario.model_fields_set
    return ModelScript(
        loaded.id,
        scenario.title,
        loaded.path,
        scenario.scripts(),
        loaded.document,
        by_thread=isinstance(scenario.model, dict),
        ignored_parts=tuple(words for name, words in _IGNORED_PARTS.items() if name in keys),
    )
