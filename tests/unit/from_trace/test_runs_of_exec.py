"""Scenarios from runs of `agent exec`: from a run of the harness, and from a recording."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.commands.from_trace import from_trace
from harness.play.lexicon import protocol_lexicon
from harness.scenario.loader import load_text

GOOD = Path(__file__).parents[3] / "fixtures" / "traces" / "good"
ARGV = ["agent", "exec", "--experimental-json", "--skip-git-repo-check"]


def plain(path: Path) -> dict[str, Any]:
    scenario = load_text(from_trace(path).text, lexicon=protocol_lexicon()).scenario
    return scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)


def recorded(
    folder: Path,
    *events: dict[str, Any],
    words: tuple[str, ...] = (),
    prompt: str = "fix it",
    push: str = "none",
) -> Path:
    """A recording of one process, as `harness record --surface exec` leaves it."""
    started = {"connection": "p1", "argv": [*ARGV, *words], "cwd": "/srv/project"}
    rows: list[dict[str, Any]] = [
        {"trace": {"target": "a recording", "version": 2, "marks": 2, "surface": "exec"}},
        {"mark": "program-started", "at": 0, "after": -1, "data": started},
    ]
    told = [("to-target", "harness", prompt)] if prompt else []
    told += [("from-target", "target", json.dumps(one)) for one in events]
    for number, (side, origin, raw) in enumerate(told):
        place = {"frame": number, "at": 1, "conn": "p1"}
        rows.append({**place, "dir": side, "origin": origin, "raw": raw})
    ended = {"connection": "p1", "status": 0 if push == "none" else -15, "push": push}
    rows.append({"mark": "program-ended", "at": 2, "after": len(told) - 1, "data": ended})
    rows.append({"end": "quiescent"})
    path = folder / "1.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def item(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "i1", **value}}


BEGIN = ({"type": "thread.started", "thread_id": "t-1"}, {"type": "turn.started"})
END = {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 2}}
SAID = item({"type": "agent_message", "text": "Done."})


def test_each_process_is_a_turn_of_the_thread_that_it_goes_on_with() -> None:
    made = plain(GOOD / "exec-resumed.jsonl")
    assert made["surfaces"] == ["exec"]
    steps = [next(iter(step.items())) for step in made["client"]]
    assert [name for name, _ in steps] == [
        "start_thread",
        "start_turn",
        "wait",
        "start_turn",
        "wait",
    ]
    assert [body["text"] for name, body in steps if name == "start_turn"] == ["hello", "and now?"]
    assert {body["thread"] for name, body in steps if name == "start_turn"} == {"t"}
    assert made["expect"]["turns"] == {"u": "completed", "u2": "completed"}


@pytest.mark.parametrize("path", sorted(GOOD.glob("exec-*.jsonl")), ids=lambda path: path.stem)
def test_every_good_trace_of_the_surface_becomes_a_scenario_that_loads(path: Path) -> None:
    assert plain(path)["client"]


def test_options_of_the_command_line_are_parameters_of_the_thread(tmp_path: Path) -> None:
    words = ("--sandbox", "read-only", "--cd", "/srv/project/below")
    words += ("--config", 'approval_policy="on-request"', "--image", "/srv/project/a.png")
    made = plain(recorded(tmp_path, *BEGIN, SAID, END, words=words))
    [thread, turn, _] = made["client"]
    params = {"approvalPolicy": "on-request", "sandbox": "read-only", "cwd": "{cwd}/below"}
    assert thread == {"start_thread": {"as": "t", "params": params}}
    given = [{"type": "text", "text": "fix it"}, {"type": "localImage", "path": "{cwd}/a.png"}]
    assert turn["start_turn"]["input"] == given
    assert set(made["workspace"]["files"]) == {"below/.keep", "a.png"}


def test_a_prompt_may_be_the_last_word_of_the_command_line(tmp_path: Path) -> None:
    path = recorded(tmp_path, *BEGIN, SAID, END, words=("fix the build",), prompt="")
    made = plain(path)
    assert made["client"][1]["start_turn"]["text"] == "fix the build"
    assert made["title"] == "The session that began with 'fix the build' happens again"


def test_items_are_what_the_model_asked_for(tmp_path: Path) -> None:
    call = {"server": "tiny", "tool": "add", "arguments": {"a": 1}, "status": "completed"}
    result = {"content": [{"type": "text", "text": "3"}], "structured_content": None}
    path = recorded(
        tmp_path,
        *BEGIN,
        item({"id": "i0", "type": "reasoning", "text": "Hm."}),
        item({"type": "command_execution", "command": "bash -lc 'ls -a'", "exit_code": 0}),
        item({"id": "i2", "type": "mcp_tool_call", "result": result, **call}),
        item({"id": "i3", "type": "file_change", "changes": [{"path": "a", "kind": "add"}]}),
        item({"id": "i4", "type": "agent_message", "text": "Done."}),
        END,
    )
    made = plain(path)
    parts = [part for step in made["model"] for part in step["reply"] if "usage" not in part]
    assert parts[0] == {"reasoning": {"summary": ["Hm."]}}
    assert parts[1]["run"] in ("ls -a", {"command": "ls -a"})
    assert parts[2] == {"mcp_call": {"server": "tiny", "tool": "add", "arguments": {"a": 1}}}
    assert list(parts[3]["patch"]["add"]) == ["a"]
    assert made["mcp"] == {"tiny": {"tools": {"add": {"says": "3"}}}}
    assert any("into files is not in the events" in note for note in from_trace(path).notes)


def test_a_process_that_was_told_to_end_is_told_so_while_its_model_speaks(tmp_path: Path) -> None:
    made = plain(recorded(tmp_path, *BEGIN, SAID, push="TERM"))
    steps = [next(iter(step)) for step in made["client"]]
    assert steps == ["start_thread", "start_turn", "wait", "interrupt", "wait"]
    gate = made["client"][2]["wait"]["gate"]
    assert {"hold": gate} in made["model"][-1]["reply"]
    assert "turns" not in made.get("expect", {})


def test_a_run_of_exec_is_played_by_the_program_without_a_server(tmp_path: Path) -> None:
    assert from_trace(recorded(tmp_path, *BEGIN, SAID, END)).played_by == "--agent-cmd COMMAND"
