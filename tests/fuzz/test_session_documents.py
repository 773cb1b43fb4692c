"""Generated sessions, without a server: they load, vary, and shrink."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from harness.model.script import ModelStep
from harness.model.tracks import Track
from harness.protocol.values import obj
from harness.scenario.loader import load_text
from harness.scenario.scenario_text import scenario_text
from harness.search.fuzz.sessions.chains import generate_document
from harness.search.fuzz.sessions.chooser import seeded_chooser
from harness.search.fuzz.sessions.cuts import is_loadable, split_step, without_steps
from harness.search.fuzz.sessions.guidance import Corpus
from harness.search.fuzz.sessions.session import Offers
from harness.search.fuzz.sessions.shrinking import SMALL_CASE_STEPS, FailurePoint, shrink_document

Json = dict[str, Any]


def methods_of(document: Json) -> list[str]:
    """The requests of a document, and the names of its other steps."""
    return [obj(body).get("method", kind) for kind, body in map(split_step, document["client"])]


def begun(documents: list[Json], wrong: Callable[[Json], bool]) -> list[FailurePoint | None]:
    """The answer of who plays each of the documents, to its end, where some go wrong."""
    return [FailurePoint(len(one["client"])) if wrong(one) else None for one in documents]


@pytest.mark.parametrize("seed", range(6))
def test_a_generated_session_is_a_scenario(seed: int) -> None:
    document = generate_document(seeded_chooser(seed))
    loaded = load_text(scenario_text(document, "generated"))
    assert loaded.document.value == document


def test_the_same_choices_give_the_same_session() -> None:
    assert generate_document(seeded_chooser(7)) == generate_document(seeded_chooser(7))
    assert generate_document(seeded_chooser(7)) != generate_document(seeded_chooser(8))


def test_an_unguided_corpus_gives_the_same_sessions_for_the_same_seed() -> None:
    one, two = Corpus(3, guided=False), Corpus(3, guided=False)
    for _ in range(3):
        assert generate_document(one.chooser()) == generate_document(two.chooser())


def test_nearly_all_sessions_have_turns() -> None:
    drawn = [methods_of(generate_document(seeded_chooser(seed), Offers())) for seed in range(40)]
    assert sum("start_turn" in one for one in drawn) > 34


@pytest.mark.parametrize("where", ["input of a turn", "name of a thread", "message", "file"])
def test_texts_are_in_scripts_that_servers_damage(where: str) -> None:
    texts = "".join(
        text
        for seed in range(60)
        for text in TEXTS[where](generate_document(seeded_chooser(seed), Offers()))
    )
    assert any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in texts)
    assert any(unicodedata.combining(sign) for sign in texts)
    assert any(ord(sign) > 0xFFFF for sign in texts)
    assert any(unicodedata.category(sign) == "Lo" for sign in texts)


def texts_of_steps(document: Json, kind: str, member: str) -> list[str]:
    steps = [obj(body) for one, body in map(split_step, document["client"]) if one == kind]
    return [str(obj(step.get("params", step)).get(member, "")) for step in steps]


def replies_of(document: Json, kind: str) -> list[str]:
    steps = [step for script in document["model"].values() for step in script]
    return [str(part) for step in steps for part in step.get("reply", ()) if kind in part]


TEXTS: dict[str, Callable[[Json], list[str]]] = {
    "input of a turn": lambda document: texts_of_steps(document, "start_turn", "text"),
    "name of a thread": lambda document: texts_of_steps(document, "request", "name"),
    "message": lambda document: replies_of(document, "message"),
    "file": lambda document: replies_of(document, "patch"),
}


def test_the_second_client_sends_each_request_too() -> None:
    seen: set[str] = set()
    for seed in range(150):
        for kind, body in map(
            split_step, generate_document(seeded_chooser(seed), Offers())["client"]
        ):
            if obj(body).get("on") == "b":
                seen.add(obj(body).get("method", kind))
    wanted = {
        "start_thread", "start_turn", "turn/steer", "turn/interrupt", "thread/read", "thread/list",
        "thread/resume", "thread/fork", "thread/archive", "thread/unsubscribe", "thread/name/set",
        "thread/rollback",
    }  # fmt: skip
    assert wanted - seen == set()


def test_most_sessions_are_short() -> None:
    lengths = [
        len(generate_document(seeded_chooser(seed), Offers())["client"]) for seed in range(60)
    ]
    short = sum(one < 40 for one in lengths)
    assert 30 <= short <= 50, lengths


def test_every_kind_of_step_comes_up() -> None:
    offers, seen = Offers(), Counter[str]()
    for seed in range(60):
        seen.update(methods_of(generate_document(seeded_chooser(seed), offers)))
    wanted = {
        "start_thread", "start_turn", "answer", "open", "wait", "connect", "disconnect", "restart",
        "turn/start", "turn/steer", "turn/interrupt", "thread/read", "thread/list",
        "thread/loaded/list", "thread/resume", "thread/fork", "thread/archive",
        "thread/unarchive", "thread/unsubscribe", "thread/name/set", "thread/rollback",
        "thread/compact/start",
    }  # fmt: skip
    assert wanted - seen.keys() == set()


def test_lacking_features_are_not_planned() -> None:
    offers = Offers({"compact", "approvals", "run", "several", "restart"})
    for seed in range(20):
        document = generate_document(seeded_chooser(seed), offers)
        planned = methods_of(document)
        lacking = {"thread/compact/start", "answer", "connect", "restart"}
        assert not lacking.intersection(planned)
        assert "'run':" not in repr(document["model"])


def test_each_turn_has_steps_of_its_own() -> None:
    document = generate_document(seeded_chooser(5))
    for steps in document["model"].values():
        assert all(step["when"]["input_contains"] for step in steps)


def test_a_call_that_no_step_is_for_leaves_the_steps_to_others() -> None:
    def step(text: str) -> ModelStep:
        when = {"input_contains": [text]}
        return ModelStep.model_validate({"when": when, "reply": [{"message": text}]})

    track = Track("t", [step("q01"), step("q02")])

    def asked(said: str) -> int:
        return track.next_step(1, lambda when: said in when.input_contains)

    assert [asked("q01"), asked("q01"), asked("q02"), asked("q02")] == [0, -1, 1, -1]


def test_a_step_goes_with_all_that_speak_of_what_it_began() -> None:
    client = [
        {"start_thread": {"as": "t"}},
        {"start_turn": {"thread": "t", "text": "do", "as": "u"}},
        {"request": {"method": "turn/interrupt", "params": {"turnId": "$u.turn.id"}}},
        {"wait": {"turn": "u"}},
        {"request": {"method": "thread/list"}},
    ]
    left = without_steps({"title": "x", "client": client}, range(1, 2))["client"]
    assert methods_of({"client": left}) == ["start_thread", "thread/list"]
    assert without_steps({"title": "x", "client": client}, range(1))["client"] == client[4:]


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("seed", [1, 2, 5])
def test_a_session_is_shrunk_to_what_matters(seed: int, at_once: int) -> None:
    document = generate_document(seeded_chooser(seed), Offers({"several", "restart"}))
    assert methods_of(document).count("start_turn") >= 2
    tried: list[Json] = []

    def fails(candidates: list[Json]) -> list[FailurePoint | None]:
        """Fail as if the server failed at the second turn."""
        tried.extend(candidates)
        return begun(candidates, lambda one: methods_of(one).count("start_turn") >= 2)

    small = shrink_document(document, fails, at_once=at_once)
    kinds = Counter(methods_of(small))
    assert kinds["start_turn"] == 2
    ordering = kinds["wait"] + kinds["answer"]
    assert kinds.total() - ordering <= 4, small["client"]
    assert kinds.total() <= SMALL_CASE_STEPS
    assert "when" not in repr(small.get("model"))
    assert "workspace" not in small
    assert all(is_loadable(one) for one in tried)


def test_steps_within_a_turn_are_dropped_at_once() -> None:
    when, where = {"input_contains": ["q01"]}, {"turnId": "$u.turn.id"}
    asked = {"to": "item/commandExecution/requestApproval", "where": where, "decision": "accept"}
    document: Json = {
        "title": "x",
        "model": {
            "t": [
                *({"when": when, "reply": [{"run": f"echo {at}"}]} for at in range(5)),
                {"when": when, "reply": [{"message": "Done."}]},
            ]
        },
        "client": [
            {"start_thread": {"as": "t"}},
            {"start_turn": {"thread": "t", "text": "do q01", "as": "u"}},
            *({"answer": asked} for _ in range(5)),
            {"wait": {"turn": "u"}},
        ],
    }
    tries = 0

    def ends(one: Json) -> bool:
        """Return True if the failure would show: a turn is awaited, each question is answered."""
        nonlocal tries
        tries += 1
        held = repr(one.get("model")).count("'run'") > methods_of(one).count("answer")
        return "wait" in methods_of(one) and not held

    small = shrink_document(document, lambda some: begun(some, ends), lambda: tries >= 5)
    assert methods_of(small) == ["start_thread", "start_turn", "wait"]
    assert "'run'" not in repr(small.get("model"))


def test_a_fork_and_a_second_client_are_left_out_where_they_do_not_matter() -> None:
    thread = {"threadId": "$v.thread.id"}
    document: Json = {
        "title": "x",
        "model": {"t": [{"reply": [{"message": "a"}]}], "v": [{"reply": [{"message": "b"}]}]},
        "client": [
            {"connect": "b"},
            {"start_thread": {"as": "t", "on": "b"}},
            {"start_turn": {"thread": "t", "text": "do", "as": "q", "on": "b"}},
            {
                "request": {
                    "method": "thread/fork",
                    "params": {"threadId": "$t.thread.id"},
                    "as": "v",
                    "on": "b",
                }
            },
            {"start_turn": {"thread": "v", "text": "go", "as": "r"}},
            {"wait": {"idle": "v"}},
            {"request": {"method": "thread/rollback", "params": thread}},
        ],
    }

    def wrong(one: Json) -> bool:
        """Return True if two turns are followed by a rollback."""
        kinds = methods_of(one)
        return kinds.count("start_turn") == 2 and kinds[-2:] == ["wait", "thread/rollback"]

    small = shrink_document(document, lambda some: begun(some, wrong))
    assert small["client"] == [
        {"start_thread": {"as": "t"}},
        {"start_turn": {"thread": "t", "text": "do", "as": "q"}},
        {"start_turn": {"thread": "t", "text": "go", "as": "r"}},
        {"wait": {"idle": "t"}},
        {"request": {"method": "thread/rollback", "params": {"threadId": "$t.thread.id"}}},
    ]


def test_steps_that_were_not_begun_are_left_out_untried() -> None:
    document = generate_document(seeded_chooser(3), Offers({"several", "restart"}))
    tried: list[Json] = []

    def fails(candidates: list[Json]) -> list[FailurePoint | None]:
        """Fail as if the server ended every script at the second step."""
        tried.extend(candidates)
        first = methods_of(document)[:2]
        return [FailurePoint(2) if methods_of(one)[:2] == first else None for one in candidates]

    small = shrink_document(document, fails)
    assert methods_of(small) == methods_of(document)[:2]
    assert len(tried) < len(document["client"]) / 2


def test_steps_after_the_one_at_which_it_showed_are_left_out_again_and_again() -> None:
    steps = [{"request": {"method": "thread/list", "params": {"at": at}}} for at in range(30)]
    document: Json = {"title": "x", "client": steps}
    tried: list[Json] = []

    def fails(candidates: list[Json]) -> list[FailurePoint | None]:
        """Fail as if the server failed at the fifth step, independent of the steps after it."""
        tried.extend(candidates)
        found = [one["client"] for one in candidates]
        return [
            FailurePoint(len(one), one.index(steps[4]) + 1) if steps[4] in one else None
            for one in found
        ]

    small = shrink_document(document, fails, lambda: len(tried) > 20)
    assert small["client"] == [steps[4]]


def test_early_steps_are_dropped_first() -> None:
    steps = [{"request": {"method": "thread/list", "params": {"at": at}}} for at in range(40)]
    document: Json = {"title": "x", "client": steps}
    tried: list[Json] = []

    def fails(candidates: list[Json]) -> list[FailurePoint | None]:
        """Fail as if the server failed at the last step but one."""
        tried.extend(candidates)
        return begun(candidates, lambda one: steps[38] in one["client"])

    small = shrink_document(document, fails, lambda: len(tried) > 12)
    assert small["client"] in ([steps[38]], [steps[38], steps[39]])


def test_shrinking_stops_when_it_is_told_to() -> None:
    document = generate_document(seeded_chooser(1))
    count = 0

    def fails(candidates: list[Json]) -> list[FailurePoint | None]:
        nonlocal count
        count += 1
        return [None] * len(candidates)

    shrink_document(document, fails, lambda: count >= 3)
    assert count == 3


def test_commands_come_again_word_for_word() -> None:
    again = 0
    for seed in range(120):
        for steps in generate_document(seeded_chooser(seed), Offers())["model"].values():
            parts = [part for step in steps for part in step.get("reply", ())]
            runs = Counter(part["run"] for part in parts if "run" in part)
            again += any(times > 1 for times in runs.values())
    assert again >= 8


def test_a_second_client_is_gone_and_back_within_a_turn() -> None:
    times = 0
    for seed in range(100):
        steps = generate_document(seeded_chooser(seed), Offers())["client"]
        times += any(
            one == {"disconnect": "b"}
            and obj(split_step(after)[1]).get("method") == "thread/resume"
            for one, after in zip(steps, steps[2:], strict=False)
        )
    assert times >= 10


def test_nobody_speaks_on_a_connection_that_is_gone() -> None:
    for seed in (
        *range(60),
        1339,
    ):  # The last one did, for a thread that b had left before it went.
        there = {"b": False}
        for kind, body in map(
            split_step, generate_document(seeded_chooser(seed), Offers())["client"]
        ):
            if kind in ("connect", "disconnect"):
                there[body] = kind == "connect"
            assert there.get(obj(body).get("on", ""), True), (seed, kind, body)
