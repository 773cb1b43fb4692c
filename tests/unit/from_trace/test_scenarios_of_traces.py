"""Scenarios that `harness scenario from-trace` makes of traces, and errors about unusable ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.commands.from_trace import from_trace
from harness.errors import UsageError
from harness.play.lexicon import protocol_lexicon
from harness.scenario.from_trace.item_parts import hunks_of
from harness.scenario.loader import load_text
from harness.scenario.model import Scenario
from harness.trace.marks import Closed
from harness.trace.store import save
from tests.rules.traces import THREAD, TURN, Talk

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "fixtures" / "traces"
RECORDED = FIXTURES / "recorded" / "python-client.jsonl"
BUNDLED = ROOT / "scenarios" / "recorded" / "python-client.scenario.yaml"
REAL = sorted((FIXTURES / "real-0.107.0").glob("*.jsonl"))
ACCEPTED = FIXTURES / "real-0.107.0" / "cmd_accept.jsonl"
REVIEW = FIXTURES / "real-0.107.0" / "review.jsonl"


def made(path: Path) -> Scenario:
    return load_text(from_trace(path).text, lexicon=protocol_lexicon()).scenario


def plain(path: Path) -> dict[str, Any]:
    return made(path).model_dump(mode="json", by_alias=True, exclude_unset=True)


def test_the_bundled_recording_is_what_is_made_of_its_trace() -> None:
    bundled = load_text(BUNDLED.read_text("utf-8"), lexicon=protocol_lexicon()).scenario
    again = made(RECORDED).model_copy(update={"title": bundled.title})
    assert again == bundled


def test_recorded_words_of_the_model_are_taken_literally() -> None:
    parts = [part for step in plain(RECORDED)["model"] for part in step["reply"]]
    assert parts[1:3] == [
        {"reasoning": {"summary": ["**Looking** at the folder."]}},
        {"run": {"command": "touch made.txt"}},
    ]
    assert {"patch": {"add": {"added.txt": "added\n"}}} in parts


def test_answers_of_the_client_are_given_again() -> None:
    answers = [step["answer"]["decision"] for step in plain(RECORDED)["client"] if "answer" in step]
    assert answers == ["accept", "accept", "decline"]


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_recording_of_the_real_server_becomes_a_scenario_that_loads(path: Path) -> None:
    scenario = made(path)
    assert scenario.client
    told = from_trace(path).text
    assert told.startswith(f"# Made by harness scenario from-trace of {path.name}.\n")


def test_an_interrupt_holds_the_model_where_the_client_acted() -> None:
    scenario = made(FIXTURES / "real-0.107.0" / "interrupt_stream.jsonl")
    steps = [next(iter(step.model_dump())) for step in scenario.client]
    assert "interrupt" in steps
    before = scenario.client[steps.index("interrupt") - 1]
    waited = before.model_dump(exclude_unset=True)["wait"]
    assert waited.get("gate") in scenario.held_gates() or "notification" in waited


@pytest.mark.parametrize("waits", [True, False])
def test_an_overlapping_request_about_the_thread_may_be_refused(
    waits: bool, tmp_path: Path
) -> None:
    talk = Talk().start_thread().start_turn()
    for number in (70, 71):
        named = {"threadId": THREAD, "turnId": TURN}
        talk.sends({"method": "turn/interrupt", "id": number, "params": named})
        if waits:
            talk.answers({}, to=number)
    for number in () if waits else (70, 71):
        talk.answers({}, to=number)
    save(talk.end_turn(status="interrupted").trace(), tmp_path / "twice.jsonl")
    steps = [step for step in plain(tmp_path / "twice.jsonl")["client"] if "wait" not in step]
    ends = [next(iter(step)) for step in steps if "interrupt" in repr(step)]
    assert ends == (["interrupt"] * 2 if waits else ["request"] * 2)
    asked = [step["request"] for step in steps if "request" in step]
    assert all(one["expect"] == "any" for one in asked)


@pytest.mark.parametrize("is_answered", [True, False], ids=["begun", "asked-for"])
def test_a_turn_beside_another_may_be_refused_or_interrupt_it(
    is_answered: bool, tmp_path: Path
) -> None:
    second = {"threadId": THREAD, "input": [{"type": "text", "text": "more"}]}
    talk = Talk().start_thread()
    if is_answered:
        talk.start_turn()
    else:
        talk.sends({"method": "turn/start", "id": 70, "params": second})
    talk.sends({"method": "turn/start", "id": 71, "params": second})
    if not is_answered:
        answer = {"turn": {"id": TURN, "items": [], "status": "inProgress"}}
        talk.answers(answer, to=70).turn_started()
    talk.answers({"turn": {"id": "turn_2", "items": [], "status": "inProgress"}}, to=71)
    talk.message("item_1", "One.").turn_completed()
    talk.turn_started("turn_2").message("item_2", "Two.", turn="turn_2").turn_completed("turn_2")
    save(talk.trace(), tmp_path / "beside.jsonl")
    made = plain(tmp_path / "beside.jsonl")
    asked = [step["request"] for step in made["client"] if "request" in step]
    assert {(one["method"], one["expect"]) for one in asked} == {("turn/start", "any")}
    assert "as" not in asked[-1], "no step and no expectation is about the second turn"
    (ends,) = made["expect"]["turns"].values()
    assert ends == ["completed", "interrupted"]
    waited = [step["wait"]["status"] for step in made["client"] if "turn" in step.get("wait", {})]
    assert waited == [ends]
    assert made["expect"]["model_calls"] == [0, 1, 2]
    assert "items" not in made["expect"]


def test_no_word_of_the_model_is_waited_for_after_an_interrupt(tmp_path: Path) -> None:
    named = {"threadId": THREAD, "turnId": TURN}
    talk = Talk().start_thread().start_turn()
    talk.sends({"method": "turn/interrupt", "id": 70, "params": named})
    talk.message("item_1", "This was ", "still on its way.")
    talk.sends({"method": "turn/interrupt", "id": 71, "params": named})
    talk.answers({}, to=70).answers({}, to=71)
    save(talk.end_turn(status="interrupted").trace(), tmp_path / "twice.jsonl")
    steps = [next(iter(step.items())) for step in plain(tmp_path / "twice.jsonl")["client"]]
    first = next(at for at, (_, step) in enumerate(steps) if "turn/interrupt" in repr(step))
    assert ("wait", {"gate": "gate-1"}) in steps[:first]
    waits = [step for name, step in steps[first:] if name == "wait"]
    assert waits, "the answers and the end of the turn are waited for"
    assert not any("gate" in step for step in waits)


@pytest.mark.parametrize("has_message", [False, True])
def test_interrupt_may_come_before_a_model_call_that_nothing_followed(
    has_message: bool, tmp_path: Path
) -> None:
    talk = Talk().start_thread().start_turn()
    talk.calls("hello")
    if has_message:
        talk.message("item_1", "It was called.")
    talk.asks("turn/interrupt", threadId=THREAD, turnId=TURN).answers({})
    save(talk.end_turn(status="interrupted").trace(), tmp_path / "interrupted.jsonl")
    expected = plain(tmp_path / "interrupted.jsonl")["expect"]
    assert expected.get("model_calls") == (None if has_message else [0, 1])


@pytest.mark.parametrize("late", [False, True])
def test_steer_before_a_retry_may_be_heard_by_it_or_by_a_later_call(
    late: bool, tmp_path: Path
) -> None:
    def steer(talk: Talk) -> None:
        words = [{"type": "text", "text": "and this"}]
        talk.asks("turn/steer", threadId=THREAD, expectedTurnId=TURN, input=words)
        talk.answers({"turnId": TURN})

    talk = Talk().start_thread().start_turn().failing(will_retry=True)
    if not late:
        steer(talk)
    talk.message("item_1", "Whole.")
    if late:
        steer(talk)
    talk.item(
        {"type": "userMessage", "id": "item_2", "content": [{"type": "text", "text": "and this"}]}
    )
    talk.message("item_3", "With that.")
    save(talk.end_turn().trace(), tmp_path / "steered.jsonl")
    made = plain(tmp_path / "steered.jsonl")
    assert len(made["model"]) == 3
    if late:
        assert [one["agentMessage"]["text"] for one in made["expect"]["items"]] == [
            "Whole.",
            "With that.",
        ]
        assert "model_calls" not in made["expect"]
    else:
        assert made["expect"] == {"turns": {"u": "completed"}, "model_calls": [2, 3]}


def test_a_turn_that_ended_is_waited_for_before_its_client_leaves(tmp_path: Path) -> None:
    talk = Talk().start_thread().start_turn()
    talk.tells("turn/completed", threadId=THREAD, turn={"id": TURN, "status": "completed"})
    talk.mark(Closed("c1"))
    talk.on("c2").sends({"method": "initialize", "id": 90, "params": {}})
    save(talk.trace(), tmp_path / "t.jsonl")
    kinds = [next(iter(step)) for step in plain(tmp_path / "t.jsonl")["client"]]
    assert kinds[-3:] == ["wait", "disconnect", "restart"]


def test_rules_that_the_recorded_server_broke_are_noted_with_their_lines(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in ACCEPTED.read_text("utf-8").splitlines()]
    doubled = next(n for n, row in enumerate(rows) if row["msg"].get("method") == "item/completed")
    rows.insert(doubled + 1, rows[doubled])
    path = tmp_path / "twice.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    written = from_trace(path)
    assert written.notes[0].startswith("the recorded server broke ")
    assert f"item.completed-once (line {doubled + 2})" in written.notes[0]
    assert "the recorded server broke" in written.text


def test_ids_have_names_where_the_client_says_them_again() -> None:
    text = from_trace(RECORDED).text
    thread = next(
        json.loads(row["raw"])["result"]["thread"]["id"]
        for row in map(json.loads, RECORDED.read_text("utf-8").splitlines())
        if '"result":{"thread":' in row.get("raw", "")
    )
    assert thread not in text
    assert "threadId: $t.thread.id" in text


def test_a_file_that_was_cut_off_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    lines = RECORDED.read_text("utf-8").splitlines(keepends=True)
    cut.write_text("".join(lines[:100]) + lines[100][:40])
    told = from_trace(cut)
    assert told.notes[0].startswith("the file is cut off in line 101")
    assert "(the file is cut off in line 101" in told.text.splitlines()[0]
    assert 0 < len(made(cut).client) < len(made(RECORDED).client)


def test_a_call_whose_turn_was_cut_off_ends_before_the_gate(tmp_path: Path) -> None:
    """A server runs a command when its call has ended, so a gate after it is of the next call."""
    cut = tmp_path / "cut.jsonl"
    lines = ACCEPTED.read_text("utf-8").splitlines(keepends=True)
    asked = next(number for number, line in enumerate(lines) if "requestApproval" in line)
    answered = next(
        number for number, line in enumerate(lines[asked:], asked) if "decision" in line
    )
    cut.write_text("".join(lines[: answered + 1]))
    call, after = plain(cut)["model"]
    assert [list(part) for part in call["reply"]] == [["run"]]
    assert [list(part) for part in after["reply"]] == [["hold"]]


def test_a_review_says_that_its_model_calls_are_not_in_the_trace() -> None:
    notes = from_trace(REVIEW).notes
    assert any(note.startswith("how many model calls a review makes") for note in notes)


def test_of_a_damaged_file_what_is_before_the_damage_is_used(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    lines = RECORDED.read_text("utf-8").splitlines(keepends=True)
    bad.write_text("".join([*lines[:100], "{broken\n", *lines[101:]]))
    told = from_trace(bad)
    assert told.notes[0].startswith("only what is before line 101 is used: ")
    assert 0 < len(made(bad).client) < len(made(RECORDED).client)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "neither a trace"),
        ("{broken\n", "neither a trace"),
        ('{"trace":{"version":99,"marks":2}}\n', ":1: not a trace line: format version 99"),
        ('{"trace":{"version":2,"marks":9}}\n', "marks of version 9"),
        ('{"trace":{"version":2,"marks":2}}\n{"end":"closed"}\n', "no client said anything"),
    ],
)
def test_a_file_of_which_nothing_can_be_made_is_one_message(
    tmp_path: Path, content: str, told: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match=told):
        from_trace(path)


@pytest.mark.parametrize(("name", "surface"), [("mcp-commands", "command"), ("sdk-results", "sdk")])
def test_a_trace_of_another_surface_is_refused_by_its_name(name: str, surface: str) -> None:
    with pytest.raises(UsageError, match=f"a trace of the surface '{surface}'; scenarios are made"):
        from_trace(FIXTURES / "good" / f"{name}.jsonl")


def test_a_command_that_was_asked_about_on_request_asks_for_more_rights() -> None:
    [first, *_] = plain(FIXTURES / "real-0.107.0" / "cmd_accept.jsonl")["model"]
    assert first["reply"][0]["run"]["escalate"] is True
    assert first["reply"][0]["run"]["reason"] == "need it"


def test_a_command_that_was_asked_about_and_never_begun_is_one_that_the_model_wanted() -> None:
    [first, *_] = plain(FIXTURES / "real-0.107.0" / "interrupt_approval.jsonl")["model"]
    assert "run" in first["reply"][0]


def test_steered_input_is_heard_by_the_next_model_call() -> None:
    replies = [step["reply"] for step in plain(FIXTURES / "real-0.107.0" / "steer.jsonl")["model"]]
    said = [[part for part in reply if "message" in part] for reply in replies]
    assert [len(one) for one in said] == [1, 1]
    assert said[1] == [{"message": {"deltas": ["after steer"]}}]


def test_a_compaction_has_a_summary_and_is_waited_for() -> None:
    path = FIXTURES / "real-0.107.0" / "compact_manual.jsonl"
    made = plain(path)
    said = {"deltas": ["A summary of what was said."]}
    assert made["model"][1] == {"reply": [{"message": said}]}
    assert any("the summary of a compaction is not" in note for note in from_trace(path).notes)
    at = next(
        number
        for number, step in enumerate(made["client"])
        if step.get("request", {}).get("method") == "thread/compact/start"
    )
    wait = {"notification": "item/completed", "where": {"item.type": "contextCompaction"}}
    assert made["client"][at + 1 : at + 3] == [{"wait": wait}, {"wait": {"idle": "t"}}]


def test_a_patch_that_moves_a_file_is_the_text_of_one() -> None:
    made = plain(FIXTURES / "real-0.107.0" / "patch_multi.jsonl")
    [patch, *_] = [part["patch"] for part in made["model"][0]["reply"] if "patch" in part]
    assert "*** Update File: mv.txt\n*** Move to: moved.txt\n@@\n-m\n+M\n" in patch["text"]
    assert made["expect"]["workspace"]["mv.txt"] == "absent"
    assert made["expect"]["workspace"]["moved.txt"] == "M\n"


@pytest.mark.parametrize(
    ("diff", "hunks"),
    [
        ("@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n", [("a\r\nb\r\n", "a\r\nB\r\n")]),
        ("@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", [("a\nb", "A\nb")]),
        ("@@ -1 +1 @@\n-b\n\\ No newline at end of file\n+b\n", [("b", "b\n")]),
        ("@@ -1 +1 @@\n-a\x0cb\n+B\n", [("a\x0cb\n", "B\n")]),
    ],
)
def test_hunks_of_a_diff_keep_how_lines_end(diff: str, hunks: list[tuple[str, str]]) -> None:
    assert hunks_of(diff) == hunks
