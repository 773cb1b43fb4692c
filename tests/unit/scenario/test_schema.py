"""The JSON Schema for editors: it is the one in docs/, and takes what the loader takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.scenario.bundled import bundled_folder
from harness.scenario.loader import find, load
from harness.scenario.schema import json_schema, schema_text
from harness.scenario.yaml12 import ScenarioError, parse, parse_file

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = jsonschema_rs.validator_for(json_schema())
ROOT_OF_SCENARIOS = bundled_folder()
BUNDLED = {
    loaded.id: loaded.document.value
    for _, path in find([ROOT_OF_SCENARIOS])
    for loaded in [load(path, root=ROOT_OF_SCENARIOS)]
}
EXAMPLES = re.findall(
    r"^```yaml\n(.*?)^```$", (ROOT / "docs/scenarios.md").read_text(), re.M | re.S
)
BAD = sorted((ROOT / "fixtures/bad_scenarios").glob("*.yaml"))
# Of these mistakes a schema knows nothing: names, places, and exactly one of several keys.
BEYOND = {"alias-taken", "unknown-turn", "unknown-gate-opened", "wait-for-two-things"}


def mistakes(value: Any) -> list[str]:
    return [error.message for error in SCHEMA.iter_errors(value)]


def test_the_committed_schema_is_what_the_models_say() -> None:
    committed = (ROOT / "docs/scenario.schema.json").read_text("utf-8")
    assert committed == schema_text(), "harness scenario schema > docs/scenario.schema.json"
    assert json.loads(committed)["$defs"]["Filler"]


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_scenario_fits_the_schema(name: str) -> None:
    assert mistakes(BUNDLED[name]) == []


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_documented_example_fits_the_schema(text: str) -> None:
    assert mistakes(parse(text.encode(), "example").value) == []


def test_what_is_misspelt_does_not_fit() -> None:
    refused: set[str] = set()
    for path in BAD:
        try:
            value = parse_file(path).value
        except ScenarioError:
            continue
        if mistakes(value):
            refused.add(path.name.removesuffix(".scenario.yaml"))
    assert {"misspelt-key", "misspelt-nested-key", "unknown-step", "title-is-a-number"} <= refused
    assert {"delay-too-long", "disconnect-at-unknown-event", "http-status-too-small"} <= refused
    assert not refused & BEYOND
