"""The times of a recorded model in a scenario, and in `harness model`."""

import json
from pathlib import Path

import pytest

from harness.cli.commands.from_trace import from_trace
from harness.cli.commands.model import ModelOptions, _load_script
from harness.errors import UsageError
from harness.model.parts import Delay

RECORDED = Path(__file__).parents[3] / "fixtures/traces/recorded/python-client.jsonl"


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    """The recording with a time for each item of its model: a quarter of a second."""
    lines = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    for line in lines:
        if line.get("mark") == "model-said":
            piece = {"seconds": 0.25, "characters": 0}
            line["data"]["pieces"] = [[piece] for _ in line["data"]["items"]]
    path = tmp_path / "timed.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", "utf-8")
    return path


def test_each_item_waits_as_recorded_only_if_asked(timed: Path) -> None:
    items = timed.read_text("utf-8").count('"seconds"')
    assert items > 2
    assert from_trace(timed, timing=True).text.count("delay: {seconds: 0.25}") == items
    assert "delay" not in from_trace(timed).text


def test_a_recording_is_a_script_of_the_model_alone(timed: Path) -> None:
    script = _load_script(ModelOptions(str(timed), timing=True))  # pyright: ignore[reportPrivateUsage]
    entries = [e for steps in script.scripts.values() for step in steps for _, e in step.entries()]
    assert script.name == "timed.jsonl"
    assert {entry.delay.seconds for entry in entries if isinstance(entry, Delay)} == {0.25}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("turns/plain-turn", "turns/plain-turn is not a recording"),
        (str(RECORDED), "no times of a model's answer; record it by harness record --record-model"),
    ],
)
def test_timing_that_is_not_recorded_is_an_error(script: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        _load_script(ModelOptions(script, timing=True))  # pyright: ignore[reportPrivateUsage]
