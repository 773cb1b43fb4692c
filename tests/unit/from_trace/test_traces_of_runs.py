"""A trace of a run has the run's scenario; a scenario made from it is the same text."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.commands.from_trace import from_trace
from harness.errors import UsageError
from harness.play.lexicon import protocol_lexicon
from harness.scenario.loader import load_text
from harness.scenario.model import Scenario

GOOD = Path(__file__).parents[3] / "fixtures" / "traces" / "good"
GIVEN: dict[str, Any] = {
    "needs": ["deltas"],
    "config": {"features": {"web": True}},
    "client_name": "somebody",
    "workspace": {"files": {"a.txt": "a\n"}, "pipes": ["go"]},
    "model": [{"reply": [{"hold": "here"}, {"message": "Hello."}]}],
    "steps": [
        {"as": "mine"},
        {"as": "first"},
        {"wait": {"gate": "here"}},
        {},
        {"wait": {"turn": "first", "status": "completed"}},
    ],
}


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOOD / "plain-turn.jsonl").read_text().splitlines()]


def step(name: str, after: int) -> dict[str, Any]:
    return {"mark": "step", "at": 0, "after": after, "data": {"name": name, "line": 1}}


def sent(found: list[dict[str, Any]], method: str) -> int:
    return next(r["frame"] for r in found if f'"method": "{method}"' in r.get("raw", ""))


def played(given: dict[str, Any], folder: Path) -> Path:
    """The stored trace of a plain turn, as a run that was given something would have left it."""
    found = rows()
    found[0]["trace"]["given"] = given
    thread, turn = sent(found, "thread/start"), sent(found, "turn/start")
    last = max(row["frame"] for row in found if "frame" in row)
    gate = {"mark": "gate", "at": 0, "after": turn + 1, "data": {"gate": "here"}}
    marks = [
        step("start_thread", thread - 1),
        step("start_turn", turn - 1),
        step("wait", turn + 1),
        step("open", turn + 1),
        gate,
        step("wait", turn + 1),
        {"mark": "ending", "at": 0, "after": last, "data": {}},
    ]
    whole = [found[0]]
    for row in found[1:-1]:
        whole += [mark for mark in marks if mark["after"] == row.get("frame", -2) - 1]
        whole.append(row)
    path = folder / "1.jsonl"
    lines = [*whole, marks[-1], found[-1]]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in lines))
    return path


def made(path: Path) -> Scenario:
    return load_text(from_trace(path).text, lexicon=protocol_lexicon()).scenario


def test_the_input_of_a_run_is_given_again(tmp_path: Path) -> None:
    scenario = made(played(GIVEN, tmp_path))
    plain = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for name in ("needs", "config", "client_name", "workspace"):
        assert plain[name] == GIVEN[name]
    assert scenario.held_gates() == ["here"]


def test_the_client_takes_the_steps_of_the_run_under_their_names(tmp_path: Path) -> None:
    scenario = made(played(GIVEN, tmp_path))
    steps = [one.model_dump(by_alias=True, exclude_unset=True) for one in scenario.client]
    assert steps[0] == {"start_thread": {"as": "mine"}}
    assert [next(iter(one)) for one in steps[1:]] == ["start_turn", "wait", "open", "wait"]
    assert steps[2:] == [
        {"wait": {"gate": "here"}},
        {"open": "here"},
        {"wait": {"turn": "first", "status": "completed"}},
    ]


def test_without_steps_as_of_a_race_the_rest_is_given_and_the_steps_are_inferred(
    tmp_path: Path,
) -> None:
    given = {name: value for name, value in GIVEN.items() if name != "steps"}
    scenario = made(played(given, tmp_path))
    assert scenario.config == GIVEN["config"]
    assert scenario.workspace.pipes == ["go"]
    assert scenario.held_gates() == []  # Its model is the one that the messages tell of.
    assert [next(iter(one.model_dump())) for one in scenario.client][-1] == "wait"


def test_a_masked_secret_is_said_at_the_head_of_the_file(tmp_path: Path) -> None:
    masked = {**GIVEN, "config": {"key": "<secret 1>"}}
    assert (
        "a secret of the configuration is masked" in from_trace(played(masked, tmp_path)).notes[0]
    )


def test_a_head_with_other_things_than_a_run_writes_is_one_message(tmp_path: Path) -> None:

    with pytest.raises(UsageError, match=r"1\.jsonl: what its client said cannot be written"):
        from_trace(played({**GIVEN, "model": [{"reply": [{"sing": "a song"}]}]}, tmp_path))


def test_the_title_says_which_session_it_was_and_not_what_its_file_is_called(
    tmp_path: Path,
) -> None:
    assert made(played(GIVEN, tmp_path)).title == "What was played as plain-turn happens again"
    path = tmp_path / "2.jsonl"
    entry = {"t": 0.1, "dir": "C>S", "msg": {"id": 1, "method": "thread/list", "params": {}}}
    path.write_text(json.dumps(entry) + "\n")
    assert made(path).title == "A client that asks for thread/list is answered again"
    said = {"threadId": "t-1", "input": [{"type": "text", "text": "fix the\nbuild " + "now " * 30}]}
    turn = {"t": 0.2, "dir": "C>S", "msg": {"id": 2, "method": "turn/start", "params": said}}
    path.write_text(json.dumps(entry) + "\n" + json.dumps(turn) + "\n")
    assert made(path).title.startswith("The session that began with 'fix the build now now")
    assert made(path).title.endswith("now …' happens again")
