"""A search of sessions on a live server: findings, their size, and their replay."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.profile import Deviation
from harness.play.config import configure
from harness.protocol.spec.loading import load_book
from harness.scenario.loader import load_text
from harness.scenario.scenario_text import scenario_text
from harness.search.fuzz.sessions.checks import LOST, MIXED, REFUSED, Output
from harness.search.fuzz.sessions.expectations import add_demands
from harness.search.fuzz.sessions.features import feature_of
from harness.search.fuzz.sessions.play import Problem, needed_capabilities
from harness.search.fuzz.sessions.search import FoundFailure, search

SERVERS = Path(__file__).parents[2] / "fixtures" / "servers"
BOOK = load_book()
RUN = {"run": "echo q01'n002'"}
DOCUMENT: dict[str, Any] = {
    "title": "A session",
    "model": {"t": [{"reply": [RUN]}, {"reply": [{"message": "Done."}]}]},
    "client": [
        {"start_thread": {"as": "t"}},
        {"start_turn": {"thread": "t", "text": "do q01", "as": "u"}},
        {"wait": {"turn": "u"}},
        {
            "request": {
                "method": "thread/read",
                "expect": "any",
                "params": {"threadId": "$t.thread.id", "includeTurns": True},
            }
        },
    ],
}


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.socket
def test_a_turn_that_ends_twice_is_found_and_made_small() -> None:
    server = SERVERS / "broken" / "double_completed.py"
    told: list[FoundFailure] = []
    config = configure(target="spec", server_cmd=f"{sys.executable} {server}")
    campaign = search(config, 1, 60.0, on_found=told.append, cases=2, worker="fuzz-search")
    assert campaign.cases == 2
    assert campaign.requests == campaign.results + campaign.errors > 5
    assert told == campaign.failures
    found = next(one for one in told if one.cause == "turn.completed-once")
    assert len(found.document["client"]) <= 10
    assert load_text(scenario_text(found.document, found.text)).scenario.starts_turns
    assert any(frame.method == "turn/completed" for frame in found.trace.frames)


def test_a_document_demands_the_answer_that_did_not_come() -> None:
    where = {"thread.turns.*.items.*.content.*.text": "do q01"}
    made = add_demands(DOCUMENT, Problem(LOST, "lost", step=4, where=where), BOOK)
    assert made["client"][3]["request"]["where"] == where
    assert "expect" not in made["client"][3]["request"]
    assert made["needs"] == ["command-execution"]
    assert LOST in made["title"]
    assert load_text(scenario_text(made, "found"))
    assert "where" not in DOCUMENT["client"][3]["request"]


def test_a_document_demands_that_a_request_is_granted() -> None:
    made = add_demands(DOCUMENT, Problem(REFUSED, "refused", step=4), BOOK)
    assert "expect" not in made["client"][3]["request"]


def test_a_document_demands_an_output_of_the_call_or_of_the_item() -> None:
    told = Problem(MIXED, "mixed", output=Output("q01n002", None, 1))
    call = add_demands(DOCUMENT, told, BOOK)
    assert call["model"]["t"][1]["expect"] == {"input_contains": ["q01n002"]}
    shown = Problem(MIXED, "mixed", output=Output("q01n002"))
    item = add_demands(DOCUMENT, shown, BOOK)
    output = {"aggregatedOutput": {"contains": "q01n002"}}
    assert item["expect"] == {"items": [{"commandExecution": output}]}
    assert load_text(scenario_text(call, "found"))
    assert load_text(scenario_text(item, "found"))


def test_problems_that_a_rule_judges_need_no_demand() -> None:
    made = add_demands(DOCUMENT, Problem("turn.completes", "never", step=4), BOOK)
    assert made["client"] == DOCUMENT["client"]
    assert made["model"] == DOCUMENT["model"]


def test_the_needs_of_a_document() -> None:
    client = [
        {"connect": "b"},
        {"request": {"method": "turn/steer"}},
        {"request": {"method": "thread/archive"}},
        {"answer": {"to": "item/fileChange/requestApproval", "decision": "accept"}},
    ]
    needs = ["archive", "file-change-approval", "several-clients", "steering"]
    assert needed_capabilities({"client": client}, BOOK) == needs


@pytest.mark.parametrize(
    ("step", "feature"),
    [
        ({"answer": {"to": "item/fileChange/requestApproval"}}, "approvals"),
        ({"connect": "b"}, "several"),
        ({"request": {"method": "thread/fork"}}, "fork"),
        ({"request": {"method": "thread/name/set"}}, "name"),
        ({"wait": {"notification": "item/completed"}}, "compact"),
        ({"wait": {"idle": "t"}}, "wait"),
        ({"restart": True}, "restart"),
    ],
)
def test_which_action_a_step_belongs_to(step: dict[str, Any], feature: str) -> None:
    assert feature_of(step) == feature


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.socket
def test_known_deviations_of_one_scenario_are_not_reported() -> None:
    server = SERVERS / "broken" / "double_completed.py"
    config = configure(target="spec", server_cmd=f"{sys.executable} {server}")
    entry = Deviation(rule="turn.completed-once", reason="known", scenario="turns/hello")
    config = dataclasses.replace(config, entries=(*config.entries, entry))
    campaign = search(config, 1, 60.0, cases=2, worker="fuzz-known")
    assert campaign.cases == 2
    assert "turn.completed-once" in campaign.rules
    assert "turn.completed-once" not in {found.cause for found in campaign.failures}
