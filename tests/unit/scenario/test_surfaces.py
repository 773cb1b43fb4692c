"""Scenarios on surfaces other than the session: playable ones, and their names."""

import pytest

from harness.client.target.profile import Deviation
from harness.report.results.baseline import mark_known_finding
from harness.report.results.outcome import Finding
from harness.scenario.bundled import bundled_ids_on, bundled_scenario
from harness.scenario.loader import ScenarioError, load_text
from harness.scenario.surfaces import needs_agent
from harness.trace.surfaces import EXEC, scenario_of, surface_id, surface_of

HEAD = """
title: a turn
surfaces: [session, exec]
model: [{reply: [{message: "hello"}]}]
client:
  - start_thread: {as: t}
"""


def text(*steps: str) -> str:
    return HEAD + "".join(f"  - {step}\n" for step in steps)


def test_a_scenario_has_an_id_on_each_surface() -> None:
    loaded = load_text(text('start_turn: {thread: t, text: "a", as: u}'), name="my/turn")
    assert loaded.on_surface(EXEC).id == "my/turn@exec"
    assert loaded.on_surface("session").id == "my/turn"
    assert (surface_of("my/turn@exec"), surface_of("my/turn@interrupt")) == ("exec", "session")
    assert scenario_of(surface_id("my/turn", EXEC)) == "my/turn"


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        (
            ['start_turn: {thread: t, text: "a", as: u}', 'steer: {turn: u, text: "b"}'],
            "exec cannot play this step: nobody speaks to a process that runs",
        ),
        (
            [
                'start_turn: {thread: t, text: "a", as: u}',
                'start_turn: {thread: t, text: "b", as: v}',
            ],
            "on exec the turn u must end first: add a wait for it before",
        ),
        (
            ['start_turn: {thread: t, text: "a", as: u, params: {effort: high}}'],
            "exec takes no effort; it takes outputSchema, sandbox",
        ),
        (
            ['start_turn: {thread: t, input: [{type: image, url: "http://x"}], as: u}'],
            "exec takes inputs of the types text and localImage",
        ),
        (
            ["start_thread: {as: s, params: {ephemeral: true}}"],
            "exec takes no ephemeral; it takes approvalPolicy, cwd, model, sandbox",
        ),
    ],
)
def test_steps_that_exec_cannot_play_are_refused_with_their_place(
    steps: list[str], complaint: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(text(*steps), name="turn")
    assert caught.value.message == complaint
    line = 6 + len(steps)
    assert caught.value.place[0] == line


def test_the_bundled_scenarios_of_a_surface_are_those_that_say_so() -> None:
    on_exec = {scenario_of(name) for name in bundled_ids_on(EXEC)}
    assert {"turns/plain-turn", "exec/resumed"} <= on_exec
    assert "exec/resumed" not in bundled_ids_on("session")
    assert all(EXEC in bundled_scenario(name).scenario.surfaces for name in on_exec)


@pytest.mark.parametrize(
    ("glob", "session", "on_exec"),
    [
        ("*", True, True),
        ("turns/*", True, False),
        ("turns/*@exec", False, True),
        ("turns/plain-turn", True, False),
    ],
)
def test_an_entry_is_about_the_surface_that_it_names(
    glob: str, session: bool, on_exec: bool
) -> None:
    entry = Deviation(rule="scenario.expectation", reason="known", scenario=glob)
    finding = Finding("scenario.expectation", "it was not met")
    for name, known in (("turns/plain-turn", session), ("turns/plain-turn@exec", on_exec)):
        assert bool(mark_known_finding(finding, name, [entry]).known) is known


def test_item_types_of_exec_are_words_of_its_own_scenarios_alone() -> None:
    from harness.play.lexicon import protocol_lexicon

    own = text('start_turn: {thread: t, text: "a", as: u}') + "expect: {items: [todo_list]}\n"
    alone = own.replace("[session, exec]", "[exec]")
    assert load_text(alone, lexicon=protocol_lexicon()).scenario.expect.items == ["todo_list"]
    with pytest.raises(ScenarioError, match="unknown item type 'todo_list'"):
        load_text(own, lexicon=protocol_lexicon())


def test_a_client_is_named_in_the_handshake_of_a_session_alone() -> None:
    named = text('start_turn: {thread: t, text: "a", as: u}') + "client_name: vscode\n"
    with pytest.raises(ScenarioError, match="only session has a handshake that names the client"):
        load_text(named, name="turn")
    alone = load_text(named.replace("[session, exec]", "[session]"), name="turn")
    assert alone.scenario.needs_fresh_server


def test_an_sdk_has_nothing_between_the_turns_of_a_thread() -> None:
    turns = [f'start_turn: {{thread: t, text: "a", as: {name}}}' for name in ("u", "v")]
    search, over = 'search_home: {texts: ["x"]}', "wait: {turn: u}"
    between = text(turns[0], over, search, turns[1]).replace("exec]", "sdk]")
    with pytest.raises(
        ScenarioError, match="sdk has nothing between the turns of a thread"
    ) as caught:
        load_text(between, name="turn")
    assert caught.value.place[0] == 9
    after = text(turns[0], over, turns[1], search).replace("exec]", "sdk]")
    loaded = load_text(after, name="turn")
    assert needs_agent(loaded.scenario)
    assert "sdk" in loaded.on_surface("sdk").tags
    assert "sdk" not in loaded.tags


def test_calls_of_an_sdk_stand_in_no_scenario_of_a_session() -> None:
    calls = HEAD.replace("exec]", "sdk]") + "  - sdk: {turns: [{input: hello}]}\n"
    with pytest.raises(ScenarioError, match="sdk has steps of its own: it stands alone"):
        load_text(calls, name="turn")
