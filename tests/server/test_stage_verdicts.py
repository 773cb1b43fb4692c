"""Verdict of a connection: the script, the file's expectations, faults, duties of the client."""

import re

import pytest
from staged import GREETING, staged
from websockets.exceptions import ConnectionClosed

from harness.judge.rules.client_duties import missing_answers
from harness.play.client_tests.report import lines_of

pytestmark = [pytest.mark.anyio, pytest.mark.socket, pytest.mark.slow]

ASKS = """\
title: A command is asked about
settings: {approvalPolicy: untrusted}
workspace: {files: {notes.txt: "old"}}
model:
  - reply:
      - run: {command: "touch made.txt; cat notes.txt"}
  - expect: {tool_output: {outcome: declined}}
    reply:
      - message: {deltas: ["You said ", "no."]}
expect:
  turns: {first: completed}
  items: [{commandExecution: {status: declined}}, {agentMessage: {text: "You said no."}}]
  workspace: {made.txt: absent, notes.txt: "old"}
"""
FAULTY = GREETING + "faults:\n  - drop: {method: item/agentMessage/delta, nth: 1}\n"


async def asked(stage, decision: str) -> None:
    async with stage.client() as client:
        await client.turn(await client.begin())
        question = await client.until("item/commandExecution/requestApproval")
        await client.say({"id": question["id"], "result": {"decision": decision}})
        await client.until("turn/completed")


async def test_a_client_that_does_what_the_file_expects_is_green(tmp_path) -> None:
    async with staged(tmp_path, {"one": ASKS}) as stage:
        await asked(stage, "decline")
        ended = await stage.result()
        assert not ended.is_red, ended.problems
        assert {one.verdict for one in ended.duties} <= {"PASS", "NOT_EXERCISED"}


async def test_an_unmet_expectation_is_reported_with_its_line(tmp_path) -> None:
    async with staged(tmp_path, {"one": ASKS}) as stage:
        await asked(stage, "accept")
        found = await stage.problems()
    [call, items, workspace] = found
    assert call.startswith("one.scenario.yaml:7: call 2: the tool output is ok, expected declined")
    assert items.startswith("one.scenario.yaml:12: items[0]: no commandExecution with status")
    assert workspace.startswith("one.scenario.yaml:13: workspace: made.txt exists; expected absent")


async def test_a_turn_too_many_finds_the_script_at_its_end(tmp_path) -> None:
    async with staged(tmp_path, {"one": GREETING}) as stage:
        async with stage.client() as client:
            thread = await client.begin()
            for _ in range(2):
                await client.turn(thread)
                await client.until("turn/completed")
        [problem] = await stage.problems()
        assert problem.startswith("one.scenario.yaml:3: call 2 is not in the script")


async def test_a_step_that_was_never_played_is_told_with_its_line(tmp_path) -> None:
    text = GREETING + "  - reply:\n      - message: Never.\n"
    async with staged(tmp_path, {"one": text}) as stage:
        async with stage.client() as client:
            await client.play()
        [problem] = await stage.problems()
        assert problem == (
            "one.scenario.yaml:5: model step 2 was never played: the model was called 1 time(s)"
        )


async def test_refused_request_is_told_beside_the_problems(tmp_path) -> None:
    async with staged(tmp_path, {"one": GREETING}) as stage:
        async with stage.client() as client:
            await client.begin()
            await client.turn("thr_99")
        ended = await stage.result()
    assert ended.is_red
    [refused] = ended.refused
    assert re.fullmatch(r'#\d+ turn/start -32\d+ ".*thr_99.*"', refused)
    assert list(lines_of(ended))[1] == f"  refused: {refused}"
    assert ended.to_json()["refused"] == [refused]


async def test_names_of_turns_without_a_client_are_the_turns_in_their_order(tmp_path) -> None:
    text = GREETING + "expect:\n  turns: {first: completed, second: completed}\n"
    async with staged(tmp_path, {"one": text}) as stage:
        async with stage.client() as client:
            await client.play()
        [problem] = await stage.problems()
        assert problem == (
            "one.scenario.yaml:6: turn second: expected completed; found no turn/completed"
        )


async def test_the_names_of_a_clients_side_are_the_turns_in_their_order(tmp_path) -> None:
    steps = "client:\n  - start_thread: {as: t}\n  - start_turn: {thread: t, text: hi, as: u}\n"
    text = f"{GREETING}{steps}expect:\n  turns: {{u: interrupted}}\n"
    async with staged(tmp_path, {"one": text}) as stage:
        async with stage.client() as client:
            await client.play()
        [problem] = await stage.problems()
        assert "turn u: expected interrupted; found params.turn.status: " in problem


async def test_the_faults_of_a_scenario_are_at_work_on_each_connection(tmp_path) -> None:
    async with staged(tmp_path, {"one": FAULTY}) as stage:
        for number in (1, 2):
            async with stage.client() as client:
                await client.play()
            methods = [one.get("method") for one in client.heard]
            assert methods.count("item/agentMessage/delta") == 1
            assert not (await stage.result(number)).is_red
            told = f"connection {number}: fault drop item/agentMessage/delta number 1: dropped "
            assert any(one.startswith(told) for one in stage.said)


async def test_a_fault_that_found_no_place_is_told(tmp_path) -> None:
    async with staged(tmp_path, {"one": FAULTY.replace("nth: 1", "nth: 9")}) as stage:
        async with stage.client() as client:
            await client.play()
        [problem] = await stage.problems()
        assert problem.startswith("one.scenario.yaml:6: the fault never acted")


async def test_an_unknown_decision_breaks_a_duty_with_its_wire_line(tmp_path) -> None:
    text = ASKS.split("expect:\n  turns")[0].replace(
        "  - expect: {tool_output", "  #  {tool_output"
    )
    text = text.replace("    reply:\n      - message", "  - reply:\n      - message")
    async with staged(tmp_path, {"one": text}) as stage:
        async with stage.client() as client:
            await client.turn(await client.begin())
            question = await client.until("item/commandExecution/requestApproval")
            await client.say({"id": question["id"], "result": {"decision": "perhaps"}})
            await client.until("turn/completed")
        ended = await stage.result()
    [broken] = [one for one in ended.duties if one.verdict == "FAIL"]
    assert (broken.rule, broken.level, ended.is_red) == ("duty.decision-known", "MUST", True)
    assert any('"perhaps"' in line for line in broken.wire)


async def test_text_that_is_not_utf8_breaks_a_duty_and_ends_the_connection(tmp_path) -> None:
    async with staged(tmp_path, {"one": GREETING}) as stage:
        async with stage.client() as client:
            await client.begin()
            await client.line.send(b'{"method": "x\xff"}', text=True)
            with pytest.raises(ConnectionClosed) as closed:
                await client.until("nothing")
        ended = await stage.result()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1007
    [broken] = [one for one in ended.duties if one.verdict == "FAIL"]
    assert (broken.rule, broken.level, ended.is_red) == ("duty.message-form", "MUST", True)
    assert "no UTF-8 from byte 14" in broken.actual


@pytest.mark.parametrize("how", ["leaves", "stopped"])
async def test_an_unanswered_question_breaks_a_duty_whoever_ends_the_talk(
    tmp_path, monkeypatch, how: str
) -> None:
    monkeypatch.setattr(missing_answers, "MIN_SECONDS_TO_ANSWER", 0.0)
    text = ASKS.split("  - expect: {tool_output")[0]
    async with staged(tmp_path, {"one": text}) as stage:
        async with stage.client() as client:
            await client.turn(await client.begin())
            await client.until("item/commandExecution/requestApproval")
            if how == "stopped":
                stage.stage.stop()
                await client.until("serverRequest/resolved")
        ended = await stage.result()
    broken = [(one.rule, one.level) for one in ended.duties if one.verdict == "FAIL"]
    assert (broken, ended.problems, ended.is_red) == ([("duty.answers", "MUST")], (), True)


async def test_a_fault_is_not_held_against_the_client(tmp_path) -> None:
    """Judged is what the client was told, with the faults, and what it said itself."""
    text = ASKS.split("expect:\n  turns")[0].replace("{outcome: declined}", "{outcome: ok}")
    text += "faults:\n  - duplicate: {method: item/commandExecution/requestApproval}\n"
    async with staged(tmp_path, {"one": text}) as stage:
        async with stage.client() as client:
            await client.turn(await client.begin())
            for _ in range(2):
                question = await client.until("item/commandExecution/requestApproval")
                await client.say({"id": question["id"], "result": {"decision": "accept"}})
            await client.until("turn/completed")
        ended = await stage.result()
        assert not [one for one in ended.duties if one.is_red()], ended.duties


async def test_files_that_cannot_be_laid_out_are_reported_to_both(tmp_path) -> None:
    async with staged(tmp_path, {"one": GREETING + "config: {model: 5}\n"}) as stage:
        async with stage.client() as client:
            await client.say({"id": 1, "method": "initialize", "params": {}})
            words = (await client.hear())["error"]["message"]
        [problem] = (await stage.result()).problems
        assert problem == words
        assert "the scenario cannot be played" in problem
        assert "`model` must be" in problem


@pytest.mark.parametrize("requires", [False, True])
async def test_a_client_without_a_handshake_is_red_if_the_handshake_is_required(
    tmp_path, requires: bool
) -> None:
    async with staged(tmp_path, {"one": GREETING}, requires_initialize=requires) as stage:
        async with stage.client() as client:
            await client.ask("thread/start")
            await client.play()
        ended = await stage.result()
        early = "--require-initialize: the client sent 'thread/start' before initialize"
        assert list(ended.problems) == [early] * requires
        assert ended.is_red is requires
