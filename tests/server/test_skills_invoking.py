"""A skill in the input of a turn: its text reaches the model, once."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, completed, delta, done, message_item, opened, says
from session_peer import Peer, session
from skill_folders import WORD, heard, item, plain, project, put_skill, say, switch, text

from reference_server.skills import invoking

pytestmark = pytest.mark.anyio
SAID = f"Say {WORD} tally."


def times(peer: Peer, call: int = -1) -> int:
    return heard(peer, call).count(SAID)


@pytest.mark.parametrize(
    "kinds",
    [("text",), ("item",), ("text", "item"), ("text", "text", "item", "item")],
    ids="-".join,
)
async def test_the_text_of_a_skill_reaches_the_model_once(kinds, tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    parts = {"text": text("$tally apples"), "item": item("tally", file)}
    content = [parts[one] for one in kinds]
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, *content)
    assert times(peer) == 1
    [shown] = peer.completed_items("userMessage")
    assert shown["content"] == content


async def test_it_comes_before_what_the_user_says_with_its_name_and_path(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally", text="---\nname: tally\n---\n# Tally\n\nCounts.\n")
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$tally apples"))
    [message] = peer.side.bodies[0]["input"]
    assert [part["text"] for part in message["content"]] == [
        f"<skill>\n<name>tally</name>\n<path>{file}</path>\n# Tally\n\nCounts.\n</skill>",
        "$tally apples",
    ]


async def test_a_later_turn_names_it_again_and_the_model_has_it_once(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home", [says("a")] * 4) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$tally apples"))
        await say(peer, thread, text("$tally pears"), item("tally", file))
        await say(peer, thread, item("tally", file))
        assert times(peer) == 1
        file.write_text(plain("tally").replace("Say", "Shout"))
        await say(peer, thread, text("$tally figs"))
    assert f"Shout {WORD} tally." in heard(peer)


async def test_after_a_rollback_the_model_is_given_it_again(tmp_path: Path) -> None:
    put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home", [says("a")] * 2) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$tally apples"))
        await peer.request("thread/rollback", {"threadId": thread, "numTurns": 1})
        await say(peer, thread, text("$tally pears"))
    assert times(peer) == 1


async def test_after_a_restart_the_conversation_holds_what_was_given(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$tally apples"))
    before = peer.side.bodies[0]["input"]
    file.write_text(plain("another"))
    async with session(tmp_path / "home", [says("b")]) as peer:
        await peer.request("thread/resume", {"threadId": thread})
        await say(peer, thread, text("go on"))
    assert peer.side.bodies[0]["input"][: len(before)] == before


async def test_a_steered_input_brings_its_skill_once(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    gate = anyio.Event()
    async with session(tmp_path / "home", [held(gate), says("b")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        turn = await peer.start_turn(thread, "one")
        await peer.event("item/agentMessage/delta")
        for given in (text("$tally apples"), item("tally", file)):
            steered = {"threadId": thread, "expectedTurnId": turn, "input": [given]}
            assert (await peer.request("turn/steer", steered))["result"] == {"turnId": turn}
        gate.set()
        await peer.turn_end(turn)
    assert (times(peer, 0), times(peer, 1)) == (0, 1)


def held(gate: anyio.Event) -> Reply:
    """A message that waits for the gate in its middle."""
    end = [delta("b"), done(message_item("ab")), completed()]
    return Reply([CREATED, opened(), delta("a"), gate, *end])


async def test_two_skills_are_both_given(tmp_path: Path) -> None:
    put_skill(project(tmp_path), "tally")
    put_skill(tmp_path / "home" / "skills", "knit")
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$knit, then ($tally)"))
    assert [f"Say {WORD} {name}." in heard(peer) for name in ("tally", "knit")] == [True, True]


@pytest.mark.parametrize("words", ["$unknown", "$HOME and $5", "$Tally", "$tallying", "a$tally"])
async def test_a_name_of_no_skill_is_text(words: str, tmp_path: Path) -> None:
    put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text(words))
    assert heard(peer) == words


async def test_the_nearest_skill_of_a_name_counts_and_only_if_it_is_enabled(tmp_path: Path) -> None:
    near = put_skill(project(tmp_path), "tally", text="# tally\n\nCounts.\n\nThe near one.\n")
    put_skill(tmp_path / "home" / "skills", "tally", text="# tally\n\nCounts.\n\nThe far one.\n")
    async with session(tmp_path / "home", [says("a")] * 2) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$tally"))
        first = heard(peer)
        await switch(peer, near, enabled=False)
        await say(peer, thread, text("$tally"))
        second = heard(peer)
    assert ("near one" in first, "far one" in first) == (True, False)
    assert "far one" in second


async def test_a_disabled_skill_is_not_given(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home", [says("a")] * 3) as peer:
        await switch(peer, file, enabled=False)
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$tally apples"))
        assert heard(peer) == "$tally apples"
        await say(peer, thread, text("$tally pears"), item("tally", file))
        assert times(peer) == 0
        assert f"The skill $tally, described in {file}, is not used: it is disabled." in heard(peer)
        await switch(peer, file, enabled=True)
        await say(peer, thread, text("$tally figs"))
    assert times(peer) == 1


async def test_a_new_skill_needs_no_reload_to_be_used(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await peer.request("skills/list", {"cwds": [str(tmp_path)]})
        put_skill(project(tmp_path), "tally")
        await say(peer, thread, text("$tally apples"))
    assert times(peer) == 1


async def test_the_cwd_of_the_turn_says_which_project_is_meant(tmp_path: Path) -> None:
    put_skill(project(tmp_path / "b"), "tally")
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await peer.run_turn(thread, "$tally apples", cwd=str(tmp_path / "b"))
    assert times(peer) == 1


async def test_an_item_can_name_a_skill_of_a_further_root(tmp_path: Path) -> None:
    file = put_skill(tmp_path / "elsewhere", "tally")
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$tally"), item("tally", file))
    assert times(peer) == 1


@pytest.mark.parametrize("path", ["tally/SKILL.md", "", "./SKILL.md", "~/SKILL.md"])
@pytest.mark.parametrize("method", ["turn/start", "turn/steer"])
async def test_an_item_with_a_path_that_is_not_absolute_is_refused(
    method: str, path: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"expectedTurnId": "turn_1", "input": [text("a"), item("tally", path)]}
    async with session(tmp_path) as peer:
        given["threadId"] = await peer.start_thread(cwd=str(tmp_path))
        error = (await peer.request(method, given))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("input[1].path: must be the absolute path")
    assert peer.params_of("turn/started") == []


async def refusal(peer: Peer, cwd: Path, name: str, path: Path | str) -> str:
    """Name a skill by an item in a turn; gives all that the model has heard."""
    thread = await peer.start_thread(cwd=str(cwd))
    await say(peer, thread, text("go"), item(name, path))
    return heard(peer)


@pytest.mark.parametrize(
    ("name", "path", "why"),
    [
        ("tally", "none/SKILL.md", "cannot be read: No such file"),
        ("tally", "knit/SKILL.md", "the skill there is called knit"),
        ("tally", "tally", "it is not in a SKILL.md"),
        ("tally", "folder/SKILL.md", "is not a regular file"),
        ("tally", "\0/SKILL.md", "cannot be read"),
        ("tally", "x" * 5000 + "/SKILL.md", "a path has at most 4096 bytes"),
    ],
)
async def test_an_item_that_leads_to_no_such_skill_is_told_and_the_turn_goes_on(
    name: str, path: str, why: str, tmp_path: Path
) -> None:
    put_skill(project(tmp_path), "tally")
    put_skill(project(tmp_path), "knit")
    (project(tmp_path) / "folder" / "SKILL.md").mkdir(parents=True)
    async with session(tmp_path / "home", [says("a")]) as peer:
        said = await refusal(peer, tmp_path, name, f"{project(tmp_path)}/{path}")
    assert "The skill $tally, described in" in said
    assert why in said
    assert WORD not in said


async def test_an_input_gives_a_bounded_number_of_skills(tmp_path: Path) -> None:
    count = invoking.MAX_SKILLS + 1
    for number in range(count):
        put_skill(project(tmp_path), f"s{number}")
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text(" ".join(f"$s{number}" for number in range(count))))
    assert heard(peer).count(WORD) == invoking.MAX_SKILLS
    assert f"The skill $s{count - 1} is not used: one input names at most" in heard(peer)


async def test_the_skills_of_an_input_are_bounded_together(tmp_path: Path) -> None:
    for number in range(5):
        put_skill(project(tmp_path), f"s{number}", text=f"# s{number}\n\n{'word ' * 25_000}\n")
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$s0 $s1 $s2 $s3 $s4"))
    assert len(heard(peer)) < invoking.TEXT_LIMIT + 10_000
    assert "The skill $s4 is not used" in heard(peer)


async def test_a_mention_is_told_once_and_shown_as_it_came(tmp_path: Path) -> None:
    mention = {"type": "mention", "name": "mail", "path": "app://mail-1"}
    content = [text("$mail read it"), mention, mention]
    async with session(tmp_path, [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, *content)
    assert heard(peer) == "$mail read it\nUse the app $mail (app://mail-1)."
    [shown] = peer.completed_items("userMessage")
    assert shown["content"] == content


async def test_a_name_with_a_mention_means_the_app_and_no_skill(tmp_path: Path) -> None:
    put_skill(project(tmp_path), "tally")
    mention = {"type": "mention", "name": "tally", "path": "app://tally-1"}
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$tally apples"), mention)
    assert heard(peer) == "$tally apples\nUse the app $tally (app://tally-1)."


@pytest.mark.parametrize("path", ["app://", "", "mail-1", "http://mail-1", "app:/mail-1"])
async def test_a_mention_of_another_form_is_refused(path: str, tmp_path: Path) -> None:
    given = [text("$mail"), {"type": "mention", "name": "mail", "path": path}]
    async with session(tmp_path) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        error = (await peer.request("turn/start", {"threadId": thread, "input": given}))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("input[1].path: ")
