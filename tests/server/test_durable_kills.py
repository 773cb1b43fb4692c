"""A server killed at any moment of its work: nothing that it has reported is lost.

Each play (kill_cases) is stopped after each message, each half of a record and each record
(kill_player); what is then on the disk is what a kill leaves there. Another server of such a home
shows the thread, and goes on with it. The play is also repeated, and killed at some of the moments.
"""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from disk_states import State, contents, read_state, write_state
from kill_cases import CASES, Case, Message
from kill_player import ERRORS, HOME, STATES, WORK
from model_side import says
from session_peer import Peer, session

from reference_server.config.home import Home
from reference_server.engine.compaction import PREFIX
from reference_server.handlers import handler_of
from reference_server.presence import leftovers
from reference_server.recovery import recover

pytestmark = [pytest.mark.slow, pytest.mark.socket]

ROOT = Path(__file__).parent
SAMPLE = 23
"""A play is killed at one of this number of moments."""


class Player:
    """The process that plays; it ends with its input."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, ROOT / "kill_player.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "NO_PROXY": "*"},
        )

    def play(self, case: Case, folder: Path, fatal: int = 0, *, stops: bool = False) -> Message:
        """Play a case in a new folder."""
        (work := folder / WORK).mkdir(parents=True)
        for name, text in case.states[0].items():
            (work / name).write_text(text)
        for name, content in case.files.items():
            (work / name).write_bytes(content)
        asked = {"case": case.name, "folder": str(folder), "fatal": fatal}
        asked["stops"] = stops
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer["failed"] == "", (folder / ERRORS).read_text()
        return answer

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    player = Player()
    yield player
    player.close()


@dataclass
class Told:
    """Messages that a client received: by turn its thread, completed items, and end if it came."""

    threads: list[str] = field(default_factory=list)
    thread_of: dict[str, str] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    items: dict[str, list[Message]] = field(default_factory=dict)
    ends: dict[str, Message] = field(default_factory=dict)


def told_by(messages: list[Message]) -> Told:
    told = Told()
    for message in messages:
        params = message.get("params", {})
        match message.get("method"):
            case "thread/started":
                told.threads.append(params["thread"]["id"])
            case "turn/started":
                told.begun.append(params["turn"]["id"])
                told.thread_of[params["turn"]["id"]] = params["threadId"]
            case "item/completed":
                told.items.setdefault(params["turnId"], []).append(params["item"])
            case "turn/completed":
                told.ends[params["turn"]["id"]] = params["turn"]
            case _:
                pass
    return told


def check_stored(told: Told, thread: Message) -> None:
    """Check that the stored thread has all that was reported, unchanged, and no unfinished item."""
    stored = {turn["id"]: turn for turn in thread["turns"]}
    assert len(stored) == len(thread["turns"])
    mine = [turn for turn in told.begun if told.thread_of[turn] == thread["id"]]
    assert [turn for turn in stored if turn in mine] == mine
    for turn_id, turn in stored.items():
        ids = [item["id"] for item in turn["items"]]
        assert len(set(ids)) == len(ids)
        items = told.items.get(turn_id, [])
        assert [item for item in turn["items"] if item in items] == items
        assert {item.get("status") for item in turn["items"]}.isdisjoint({"inProgress"})
        if turn_id in told.ends:
            end = told.ends[turn_id]
            assert (turn["status"], turn["error"]) == (end["status"], end["error"])
            assert turn["items"] == items
        else:
            assert turn["status"] != "inProgress"
    open_ = [turn for turn in mine if turn not in told.ends]
    # All that a client saw of an end is its message: the record may be there before.
    assert len(open_) <= 1


def files_of(work: Path) -> dict[str, str]:
    return {
        str(path.relative_to(work)): path.read_text()
        for path in work.rglob("*")
        if path.is_file() and path.suffix != ".png"
    }


def check_files(case: Case, work: Path, thread: Message) -> None:
    """Each patch is made wholly or not at all, as its stored item says."""
    items = [item for turn in thread["turns"] for item in turn["items"]]
    made = [
        item for item in items if item["type"] == "fileChange" and item["status"] == "completed"
    ]
    assert files_of(work) == case.states[len(made)]


def check_words(words: list[Message]) -> None:
    """A provider takes the conversation: each call has its output, right or wrong."""
    unanswered: set[str] = set()
    for one in words:
        if one["type"] == "message":
            assert {"role", "content"} <= set(one)
        elif one["type"].endswith("_call") and "call_id" in one:
            assert one["call_id"] not in unanswered
            unanswered.add(one["call_id"])
        elif one["type"].endswith("_call_output"):
            assert one["call_id"] in unanswered
            unanswered.remove(one["call_id"])
    assert unanswered == set()


def texts_of(items: list[Message]) -> list[str]:
    """Return the texts of the user and of the agent, in order."""
    said: list[str] = []
    for item in items:
        if item["type"] == "userMessage":
            said += [part["text"] for part in item["content"] if part["type"] == "text"]
        elif item["type"] == "agentMessage":
            said.append(item["text"])
    return said


async def read(peer: Peer, thread: str) -> Message:
    params = {"threadId": thread, "includeTurns": True}
    return (await peer.request("thread/read", params))["result"]["thread"]


async def check_next_turn(peer: Peer, case: Case, tolds: Sequence[Told], before: Message) -> None:
    """The thread takes another turn, and the model hears what was said before."""
    thread = before["id"]
    resumed = (await peer.request("thread/resume", {"threadId": thread}))["result"]["thread"]
    assert resumed["turns"] == before["turns"]
    assert resumed["status"] == {"type": "idle"}
    end = await peer.run_turn(thread, "And now something else.")
    assert end["status"] == "completed"
    words = peer.side.bodies[-1]["input"]
    check_words(words)
    spoken = json.dumps(words)
    for told in [] if json.dumps(PREFIX)[1:-1] in spoken else tolds:
        mine = [turn for turn in told.begun if told.thread_of[turn] == thread]
        for turn in mine:
            if told.ends.get(turn, {}).get("status") != "failed":
                for text in texts_of(told.items.get(turn, [])):
                    assert text in case.unheard or json.dumps(text)[1:-1] in spoken
    after = await read(peer, thread)
    assert after["turns"][:-1] == before["turns"]
    ids = [item["id"] for turn in after["turns"] for item in turn["items"]]
    assert len(set(ids)) == len(ids)


async def check_after(case: Case, folder: Path, tolds: Sequence[Told]) -> None:
    """Another server of the home finds everything, whichever of these the client was told.

    What it was told grows from one to the next.
    """
    home = Home(folder / HOME)
    recover(home)
    threads = tolds[-1].threads
    replies = [says("Very well.") for _ in threads]
    async with session(home.root, replies) as peer:
        for thread_id in threads:
            thread = await read(peer, thread_id)
            aware = [told for told in tolds if thread_id in told.threads]
            for told in aware:
                check_stored(told, thread)
            if thread_id == threads[0]:
                check_files(case, folder / WORK, thread)
            if handler_of("thread/resume") is not None:
                await check_next_turn(peer, case, aware, thread)
    assert leftovers(home) == {}


def note(case: Case, moments: str, folder: Path, messages: list[Message]) -> str:
    """Return a message that locates a failed check."""
    last = json.dumps(messages[-1]) if messages else "nothing"
    [*rollouts] = (folder / HOME).rglob("rollout-*.jsonl")
    stored = "".join(path.read_text(errors="replace") for path in rollouts)
    return f"{case.name}, killed at {moments}, after {last}; stored:\n{stored}"


def states_of(folder: Path) -> list[State]:
    """Return the states of a play that was stopped."""
    return pickle.loads(folder.with_suffix(STATES).read_bytes())


@pytest.mark.parametrize("name", CASES)
async def test_a_server_killed_at_any_moment_loses_nothing(
    player: Player, tmp_path: Path, name: str
) -> None:
    case, place = CASES[name], tmp_path / "place"
    played = player.play(case, place, stops=True)
    assert played["status"] == 0, (place / ERRORS).read_text()
    messages: list[Message] = played["told"]
    await check_after(case, place, [told_by(messages)])
    states = states_of(place)
    assert len(played["stops"]) == played["moments"] > len(states) > 1
    for number, state in enumerate(states):
        counts = [lines for one, lines in played["stops"] if one == number]
        shutil.rmtree(place)
        write_state(state, place)
        try:
            await check_after(case, place, [told_by(messages[:count]) for count in counts])
        except Exception as error:
            moments = f"one of {len(counts)} moments"
            error.add_note(note(case, moments, place, messages[: counts[-1]]))
            raise


@pytest.mark.kills
@pytest.mark.parametrize(("number", "name"), list(enumerate(CASES)))
async def test_a_server_killed_at_some_moments_loses_nothing(
    player: Player, tmp_path: Path, number: int, name: str
) -> None:
    case, kills = CASES[name], 0
    fatal = 1 + number % SAMPLE
    while True:
        place = tmp_path / str(fatal)
        played = player.play(case, place, fatal)
        try:
            await check_after(case, place, [told_by(played["told"])])
        except Exception as error:
            error.add_note(note(case, f"moment {fatal}", place, played["told"]))
            raise
        if played["status"] != -9:
            break
        kills += 1
        fatal += SAMPLE
    assert kills


@pytest.mark.parametrize("name", ["interrupted command", "patch"])
def test_a_kill_leaves_the_state_in_which_the_server_was_stopped(
    player: Player, tmp_path: Path, name: str
) -> None:
    for fatal in range(2, 30, 4):
        place = tmp_path / str(fatal)
        played = player.play(CASES[name], place, fatal, stops=True)
        assert played["status"] == -9
        last = states_of(place)[-1]
        assert contents(read_state(place)) == contents(last)
        assert played["stops"][-1] == [len(states_of(place)) - 1, len(played["told"])]


def test_the_checks_see_what_is_lost() -> None:
    item: dict[str, Any] = {"id": "item_1", "type": "agentMessage", "text": "kept"}
    turn = {"id": "turn_1", "status": "completed", "error": None, "items": [item]}
    told = Told(["thr_1"], {"turn_1": "thr_1"}, ["turn_1"], {"turn_1": [item]}, {"turn_1": turn})
    check_stored(told, {"id": "thr_1", "turns": [turn]})
    for other in (
        [],
        [{**turn, "items": []}],
        [{**turn, "items": [{**item, "text": "other"}]}],
        [{**turn, "status": "interrupted"}],
        [turn, turn],
    ):
        with pytest.raises(AssertionError):
            check_stored(told, {"id": "thr_1", "turns": other})
    call = {"type": "function_call", "call_id": "call_1"}
    output = {"type": "function_call_output", "call_id": "call_1"}
    check_words([call, output])
    for words in ([call], [output], [output, call], [call, output, output], [call, call, output]):
        with pytest.raises(AssertionError):
            check_words(words)
