"""Files that a scenario writes and removes: on disk, in the trace, and in model calls."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

from harness.client.target.profile import Bounds
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.loader import load_text
from harness.scenario.player import Player, StepFailure
from harness.scenario.yaml12 import ScenarioError
from harness.trace.marks import FileWritten, ModelCall, Place
from harness.trace.trace import Trace

from .fake_server import connected

pytestmark = pytest.mark.anyio


async def played(steps: str, cwd: Path, home: Path) -> tuple[StepFailure | None, Trace]:
    """These steps, after which the model is called with a line of a file."""
    loaded = load_text(f"title: a scenario\nclient:\n{steps}")
    with anyio.fail_after(20):
        async with connected() as (peer, _, _):
            peer.recorder.mark(Place(home=str(home)))
            model = ScriptedModel([], ResponsesEncoder(), mark=peer.recorder.mark)
            places = {"cwd": str(cwd), "home": str(home), "agent": ".agent"}
            player = Player(
                loaded,
                peer,
                model,
                cwd=cwd,
                bounds=Bounds(step=10),
                thread_params={},
                placeholders=places,
            )
            unmet = await player.play()
            said = {"input": [{"role": "user", "content": "do: count them one by one, please"}]}
            model.answer(json.dumps(said).encode())
            return unmet, peer.recorder.trace
    raise AssertionError("a bounded block was left without a result")


async def test_a_file_is_written_noted_and_found_in_a_model_call(tmp_path: Path) -> None:
    cwd, home = tmp_path / "work", tmp_path / "home"
    text = "# tally\n\ncount them one by one\nnot this line, though\n"
    steps = f'  - write_file: {{path: "{{home}}/skills/t/SKILL.md", text: {json.dumps(text)}}}\n'
    unmet, trace = await played(steps, cwd, home)
    path = home / "skills" / "t" / "SKILL.md"
    assert unmet is None
    assert path.read_text("utf-8") == text
    assert [one.body for one in trace.marks_of(FileWritten)] == [
        FileWritten(path=str(path), text=text)
    ]
    assert [one.body.held for one in trace.marks_of(ModelCall)] == [("count them one by one",)]


async def test_bytes_that_are_no_text_are_noted_without_one(tmp_path: Path) -> None:
    steps = '  - write_file: {path: "{cwd}/{agent}/x", base64: "//79"}\n'
    unmet, trace = await played(steps, tmp_path, tmp_path / "home")
    path = tmp_path / ".agent" / "x"
    assert unmet is None
    assert path.read_bytes() == b"\xff\xfe\xfd"
    (mark,) = trace.marks_of(FileWritten)
    assert mark.body == FileWritten(path=str(path), text=None)


async def test_a_file_is_removed_and_one_that_is_not_there_may_be(tmp_path: Path) -> None:
    steps = "".join(
        f'  - {step}: {{path: "{{cwd}}/sub/x"{more}}}\n'
        for step, more in (("write_file", ", text: x"), ("remove_file", ""), ("remove_file", ""))
    )
    unmet, trace = await played(steps, tmp_path, tmp_path / "home")
    assert unmet is None
    assert (tmp_path / "sub").is_dir()
    assert not (tmp_path / "sub" / "x").exists()
    assert [one.body.exists for one in trace.marks_of(FileWritten)] == [True, False, False]


@pytest.mark.parametrize("path", ["{cwd}/../x", "/x", "{cwd}", "{cwd}/sub/../../x", "../x"])
async def test_nothing_is_written_elsewhere(tmp_path: Path, path: str) -> None:
    cwd = tmp_path / "work"
    cwd.mkdir()
    steps = f'  - write_file: {{path: "{path}", text: "x"}}\n'
    unmet, trace = await played(steps, cwd, tmp_path / "home")
    assert unmet is not None
    assert "neither below the workspace nor below the home" in unmet.message
    assert trace.marks_of(FileWritten) == []
    assert os.listdir(tmp_path) == ["work"]


async def test_a_refusal_of_the_disk_ends_the_script(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    unmet, _ = await played('  - write_file: {path: "{cwd}/x", text: "x"}\n', tmp_path, tmp_path)
    assert unmet is not None
    assert "Is a directory" in unmet.message


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("path: x", "expected exactly one of text and base64"),
        ("path: x, text: a, base64: YQ==", "expected exactly one of text and base64"),
        ("path: x, base64: '***'", "not the bytes of a file in base64"),
    ],
)
async def test_a_mistake_in_a_step_is_told(body: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        load_text(f"title: x\nclient:\n  - write_file: {{{body}}}\n")
