"""Meaning of a client's answer; an invalid decision denies."""

from typing import Any

import pytest

from reference_server.engine.approvals import (
    CommandAnswer,
    Decision,
    FileAnswer,
    read_command_answer,
    read_file_answer,
)

NO_DECISIONS: list[dict[str, Any]] = [
    {"id": 0, "error": {"code": -1, "message": "no"}},
    {"id": 0, "error": {"code": -1, "message": "no"}, "result": {"decision": "accept"}},
    {"id": 0, "result": {"decision": "approved"}},
    {"id": 0, "result": {"decision": None}},
    {"id": 0, "result": {"decision": ["accept"]}},
    {"id": 0, "result": {}},
    {"id": 0, "result": None},
    {"id": 0, "result": "accept"},
    {"id": 0},
]


def decision(word: Any) -> dict[str, Any]:
    return {"id": 0, "result": {"decision": word}}


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("accept", CommandAnswer(Decision.ACCEPT)),
        ("acceptForSession", CommandAnswer(Decision.ACCEPT, for_session=True)),
        ("acceptWithExecpolicyAmendment", CommandAnswer(Decision.ACCEPT, keep_rule=True)),
        (
            "applyNetworkPolicyAmendment",
            CommandAnswer(Decision.ACCEPT, keep_rule=True, network=True),
        ),
        ("decline", CommandAnswer(Decision.DECLINE)),
        ("cancel", CommandAnswer(Decision.CANCEL)),
    ],
)
def test_each_of_the_six_words_about_a_command(word: str, meaning: CommandAnswer):
    assert read_command_answer(decision(word)) == meaning


def test_an_amendment_may_bring_its_words():
    amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["npm", "test"]}}
    assert read_command_answer(decision(amendment)) == CommandAnswer(
        Decision.ACCEPT, keep_rule=True, prefix=("npm", "test")
    )


@pytest.mark.parametrize(("action", "accepted"), [("allow", True), ("deny", False)])
def test_a_network_amendment_may_bring_its_rule(action: str, accepted: bool):
    rule = {"network_policy_amendment": {"host": "example.org", "action": action}}
    found = read_command_answer(decision({"applyNetworkPolicyAmendment": rule}))
    assert (found.decision is Decision.ACCEPT) == accepted
    assert found.network == accepted


@pytest.mark.parametrize("answer", NO_DECISIONS)
def test_an_invalid_decision_denies(answer: dict[str, Any]):
    assert read_command_answer(answer) == CommandAnswer(Decision.DECLINE)
    assert read_file_answer(answer) == FileAnswer(Decision.DECLINE)


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("accept", FileAnswer(Decision.ACCEPT)),
        ("acceptForSession", FileAnswer(Decision.ACCEPT, for_session=True)),
        ("decline", FileAnswer(Decision.DECLINE)),
        ("cancel", FileAnswer(Decision.CANCEL)),
    ],
)
def test_each_word_about_a_file_change(word: str, meaning: FileAnswer):
    assert read_file_answer(decision(word)) == meaning
