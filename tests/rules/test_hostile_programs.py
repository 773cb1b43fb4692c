"""Output and files of hostile programs: a rule that raised on them would be our ERROR."""

from __future__ import annotations

import json

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Verdict
from harness.play.sdk.driver import line_of
from harness.protocol.spec.loading import load_book
from tests.rules.case import Written
from tests.rules.command_talk import CommandTalk
from tests.rules.sdk_talk import SdkTalk
from tests.rules.streams import StreamTalk, message

BOOK = load_book()
DEEP = "[" * 100_000
# What Python refuses to read as a number.
LONG = "1" * 5000
RUNS = (["list", "--json"], ["get", "docs", "--json"], ["list"], ["add", "docs", "--", "x"])


def crashed(talk: Written) -> list[str]:
    rows = judge(BOOK, talk.trace(), all_rules().values())
    return [row.rule for row in rows if row.verdict is Verdict.ERROR]


@pytest.mark.parametrize("printed", [DEEP, LONG, "[null, 3]", "{}"])
@pytest.mark.parametrize("written", [f"a = {DEEP}", f"a = {LONG}", "mcp_servers = 3", "a ="])
def test_hostile_output_of_a_command_is_judged_or_passed_over(printed: str, written: str) -> None:
    talk = CommandTalk().adds("docs", "npx").config(written)
    for words in RUNS:
        talk.asks(*words).ends(printed)
    assert crashed(talk) == []


@pytest.mark.parametrize("said", [DEEP, LONG])
def test_a_structured_answer_that_nobody_can_read_is_no_json(said: str) -> None:
    schema = json.dumps({"type": "object"})
    talk = StreamTalk().process(schema=schema).calls("hello").answers('{"a": 1}')
    talk.opens().completed(message(said)).done()
    assert crashed(talk) == []
    rows = judge(BOOK, talk.trace(), all_rules().values())
    wrong = {row.rule for row in rows if row.verdict is Verdict.FAIL}
    assert "exec.structured-answer" in wrong


@pytest.mark.parametrize("word", [DEEP, LONG])
def test_words_and_lines_of_an_sdk_that_nobody_can_read_are_passed_over(word: str) -> None:
    talk = SdkTalk().driver().asks(outputSchema={"type": "object"}).starts("exec", word).gives()
    assert crashed(talk) == []
    assert line_of(word.encode()) is None
