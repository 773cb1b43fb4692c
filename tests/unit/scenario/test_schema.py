"""The JSON Schema for editors: it equals the one in docs/, and accepts what the loader accepts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.scenario.bundled import bundled_files, bundled_folder, bundled_scenario
from harness.scenario.schema import family_schema, json_schema, schema_text
from harness.scenario.yaml12 import ScenarioError, parse, parse_file
from tests.bad_scenarios import bad_scenarios

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = jsonschema_rs.validator_for(json_schema())
FAMILY_SCHEMA = jsonschema_rs.validator_for(family_schema())
ROOT_OF_SCENARIOS = bundled_folder()
FAMILIES = sorted(ROOT_OF_SCENARIOS.rglob("*.family.yaml"))
EXAMPLES = re.findall(
    r"^```yaml\n(.*?)^```$", (ROOT / "docs/scenarios.md").read_text(), re.M | re.S
)
# Of these mistakes a schema knows nothing: names, places, and exactly one of several keys.
BEYOND = {"alias-taken", "unknown-turn", "unknown-gate-opened", "wait-for-two-things"}


def mistakes(value: Any) -> list[str]:
    schema = FAMILY_SCHEMA if "rows" in value else SCHEMA
    return [error.message for error in schema.iter_errors(value)]


def test_the_committed_schema_is_what_the_models_say() -> None:
    committed = (ROOT / "docs/scenario.schema.json").read_text("utf-8")
    assert committed == schema_text(), "harness scenario schema > docs/scenario.schema.json"
    assert json.loads(committed)["$defs"]["Filler"]


def test_the_committed_schema_of_families_is_what_the_models_say() -> None:
    committed = (ROOT / "docs/family.schema.json").read_text("utf-8")
    advice = "harness scenario schema --family > docs/family.schema.json"
    assert committed == schema_text(family=True), advice


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.name)
def test_bundled_family_fits_its_schema(path: Path) -> None:
    assert mistakes(parse_file(path).value) == []


def test_a_misspelt_key_in_a_template_does_not_fit() -> None:
    value = parse_file(FAMILIES[0]).value
    value["scenario"]["clinet"] = value["scenario"].pop("client")
    assert mistakes(value)


@pytest.mark.parametrize("area", sorted({name.split("/")[0] for name in bundled_files()}))
def test_bundled_scenario_fits_the_schema(area: str) -> None:
    for name in bundled_files():
        if name.startswith(f"{area}/"):
            assert mistakes(bundled_scenario(name).document.value) == [], name


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_documented_example_fits_the_schema(text: str) -> None:
    assert mistakes(parse(text.encode(), "example").value) == []


def test_misspelt_keys_do_not_fit() -> None:
    refused: set[str] = set()
    for name, text in bad_scenarios().items():
        try:
            value = parse(text.encode(), name).value
        except ScenarioError:
            continue
        if isinstance(value, dict) and mistakes(value):
            refused.add(name.removesuffix(".scenario.yaml"))
    assert {"misspelt-key", "misspelt-nested-key", "unknown-step", "title-is-a-number"} <= refused
    assert {"delay-too-long", "disconnect-at-unknown-event", "http-status-too-small"} <= refused
    assert not refused & BEYOND
