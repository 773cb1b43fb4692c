"""Transcripts hide values that differ from run to run or from machine to machine."""

from pathlib import Path

import pytest

from harness.report.snapshot.message import Transcript, dump_json
from harness.report.snapshot.portable import transcript_of
from harness.trace.marks import Place, Setup
from harness.trace.trace import Mark, Trace
from tests.unit.snapshot.lines import traced

READ = '-> {"method": "thread/read", "id": 7, "params": {"threadId": "thr_12"}}'
ITEM = '{"method": "item/started", "params": {"threadId": "thr_12", "item": '


def shown(*lines: str) -> Transcript:
    return transcript_of(traced(*lines), handshake=True, environment={})


def text(*lines: str) -> str:
    return "\n".join(message.line for message in shown(*lines).messages)


def answer(thread: str) -> str:
    return f'<- {{"id": 7, "result": {{"thread": {{"id": "thr_12", {thread}}}}}}}'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"createdAt": 1700000000', '"createdAt": 1800000000'),
        ('"seen": 1700000000123', '"seen": 1800000000456'),
        ('"since": "2026-11-01T10:00:00Z"', '"since": "2027-01-02T11:12:13.456+01:00"'),
        (
            '"session": "0199a7f2-aaaa-7bbb-8ccc-123456789abc"',
            '"session": "0199b813-dddd-7eee-8fff-abcdef123456"',
        ),
        ('"server": "http://127.0.0.1:41234/mcp"', '"server": "http://127.0.0.1:5555/mcp"'),
        ('"command": "/usr/bin/bash -c ls"', '"command": "/bin/bash -c ls"'),
        ('"a": 1, "b": {"d": 1, "c": 2}', '"b": {"c": 2, "d": 1}, "a": 1'),
        ('"userAgent": "agent/1.2 (linux)"', '"userAgent": "agent/1.3 (macos)"'),
        ('"processId": "4711"', '"processId": "815"'),
        ('"path": "/h/cwd/a.txt"', '"path": "/h/cwd/a.txt"'),
    ],
)
def test_values_of_one_run_or_machine_are_not_shown(one: str, other: str) -> None:
    assert shown(READ, answer(one)) == shown(READ, answer(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"tokens": 15', '"tokens": 16'),
        ('"timeoutMs": 100', '"timeoutMs": 200'),
        ('"done": true', '"done": 1'),
        ('"preview": "a"', '"preview": "b"'),
        ('"preview": null', '"seen": null'),
        ('"version": "1.2"', '"version": "1.3"'),
        ('"path": "/h/cwd/a.txt"', '"path": "/h/home/a.txt"'),
    ],
)
def test_values_that_the_server_chose_are_shown(one: str, other: str) -> None:
    assert text(READ, answer(one)) != text(READ, answer(other))


def test_ids_are_numbered_and_a_short_one_is_none_in_other_words() -> None:
    item = f'<- {ITEM}{{"id": "1", "type": "agentMessage", "text": "1 of 1"}}}}}}'
    line = shown(item).messages[0].line
    assert '"id": "<item 1>"' in line
    assert '"text": "1 of 1"' in line


def test_where_a_text_was_cut_into_deltas_does_not_show() -> None:
    def delta(piece: str, item: str = "msg_10") -> str:
        params = f'{{"itemId": "{item}", "delta": "{piece}"}}'
        return f'<- {{"method": "item/agentMessage/delta", "params": {params}}}'

    assert shown(delta("He"), delta("llo")) == shown(delta("Hel"), delta("lo"))
    assert len(shown(delta("a"), delta("b", "msg_11"), delta("c")).messages) == 3


def test_notifications_about_several_threads_have_no_order_among_the_threads() -> None:
    def told(thread: int, words: str) -> str:
        return f'<- {{"method": "{words}", "params": {{"threadId": "thr_{thread}0"}}}}'

    start = [told(1, "thread/started"), READ, answer('"turns": []'), told(2, "thread/started")]
    end = [READ, answer('"turns": []')]
    one = shown(*start, *end, told(1, "a"), told(2, "b"), told(1, "c"))
    assert one == shown(*start, *end, told(2, "b"), told(1, "a"), told(1, "c"))
    assert one != shown(*start, *end, told(2, "b"), told(1, "c"), told(1, "a"))


def test_secrets_are_hidden_by_their_look_their_member_and_their_variable() -> None:
    environment = {"SHOP_API_KEY": "marmalade42", "HOME_TOKEN": "short", "PATH": "/bin:/x"}
    lines = [
        READ,
        answer(
            '"a": "sk-abcdefghijklmnop1234", "b": "Bearer abcdefghijkl", "apiKey": "plain",'
            ' "c": "https://me:hunter2@host/x", "d": "key marmalade42.", "totalTokens": 5,'
            ' "token": "tiny", "inputTokens": 3, "authorization": "x"'
        ),
    ]
    trace = traced(*lines)
    line = transcript_of(trace, handshake=True, environment=environment).messages[-1].line
    for secret in ("abcdefghij", "plain", "hunter2", "marmalade", "tiny", '"x"'):
        assert secret not in line
    assert line.count("<secret>") == 7
    assert '"totalTokens": 5' in line
    assert "https://me:<secret>@host/x" in line


def test_how_many_secrets_a_machine_has_does_not_show() -> None:
    trace = traced(READ, answer('"apiKey": "one-of-mine", "token": "another-one"'))
    one = transcript_of(trace, handshake=True, environment={})
    assert one == transcript_of(
        trace, handshake=True, environment={"A_TOKEN": "123456789", "B_API_KEY": "abcdefghi"}
    )
    assert "<secret>" in one.messages[-1].line


def test_a_very_long_text_is_cut_and_its_end_still_counts() -> None:
    long = "x" * 5000
    assert shown(READ, answer(f'"a": "{long}y"')) != shown(READ, answer(f'"a": "{long}z"'))
    assert len(text(READ, answer(f'"a": "{long}y"'))) < 2000
    assert "5001 characters in all" in text(READ, answer(f'"a": "{long}y"'))


def test_control_characters_are_escaped() -> None:
    line = text(READ, answer('"a": "\\u001b[2Jgone\\u0085\\u202eback\\ud800"'))
    assert line.isprintable() or "\n" in line
    assert "\\u001b[2J" in line
    assert "\\ud800" in line
    assert line.encode("utf-8")


def test_json_of_several_lines_keeps_its_line_ends_and_escapes_the_rest() -> None:
    assert dump_json({"a": "b\x9b"}, indent=2) == '{\n  "a": "b\\u009b"\n}'


def test_the_folders_of_this_machine_have_names() -> None:
    assert '"<user>/notes"' in text(READ, answer(f'"a": "{Path.home()}/notes"'))


def test_the_folder_in_which_the_package_is_installed_has_a_name() -> None:
    """Skills that come with the reference server are shown with their path."""
    installed = Path(__file__).parents[3]
    assert '"<installed>/skills/a"' in text(READ, answer(f'"a": "{installed}/skills/a"'))
    place = Place(server_cwd=str(installed), home=f"{installed}/.harness/run/1/home")
    trace = traced(READ, answer(f'"a": "{installed}/b {place.home}/c"'), marks=(place,))
    line = transcript_of(trace, handshake=True, environment={}).messages[-1].line
    assert '"<installed>/b <home>/c"' in line


def test_the_handshake_of_a_shared_process_is_left_out() -> None:
    lines = ('-> {"method": "initialize", "id": 1}', '<- {"id": 1, "result": {}}', READ)
    trace: Trace = traced(*lines)
    trace.marks += [Mark(0.0, -1, Setup(True)), Mark(0.0, 1, Setup(False))]
    assert [m.is_sent for m in transcript_of(trace, handshake=False).messages] == [True]
    assert len(transcript_of(trace, handshake=True).messages) == 3
