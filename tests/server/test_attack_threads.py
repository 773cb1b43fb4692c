"""Attacks on threads: foreign files as rollouts, ids that are paths, clients that interfere."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, delta, opened, says
from session_peer import Peer, another_client, session

from reference_server.rollout import reader

OF_ONE_THREAD: dict[str, dict[str, Any]] = {
    "thread/resume": {},
    "thread/fork": {},
    "thread/read": {"includeTurns": True},
    "thread/archive": {},
    "thread/unarchive": {},
    "thread/unsubscribe": {},
    "thread/name/set": {"name": "a name"},
    "thread/rollback": {"numTurns": 1},
}
TOUCHING_THE_FILE = [
    one for one in OF_ONE_THREAD if one not in ("thread/unsubscribe", "thread/unarchive")
]
PATHS = ["../thr_1", "thr_1/../thr_1", "/etc/passwd", "thr_1\0", "thr_" + "9" * 400, "*", "thr_²"]


def ask(method: str, thread: str) -> dict[str, Any]:
    return {"threadId": thread, **OF_ONE_THREAD[method]}


def planted(home: Path, thread: str = "thr_1") -> Path:
    path = home / "sessions" / "2025" / "01" / "02" / f"rollout-x-{thread}.jsonl"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("method", OF_ONE_THREAD)
async def test_an_id_that_is_a_path_leads_nowhere(tmp_path, method: str) -> None:
    outside = tmp_path / "thr_1"
    outside.write_text("untouched")
    async with session(tmp_path / "home") as peer:
        await peer.start_thread()
        for thread in PATHS:
            error = (await peer.request(method, ask(method, thread)))["error"]
            assert error["code"] == -32600
            assert error["message"].startswith("there is no thread ")
            assert len(error["message"]) < 300
    assert outside.read_text() == "untouched"


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        (method, kind)
        for method in TOUCHING_THE_FILE
        for kind in ("pipe", "folder", "link", "dangling", "device", "empty", "huge")
        # A file is archived whatever is in it.
        if (method, kind) not in (("thread/archive", "empty"), ("thread/archive", "huge"))
    ],
)
async def test_a_file_that_is_not_a_rollout_is_refused_and_left_in_place(
    tmp_path, method: str, kind: str, monkeypatch
) -> None:
    path = planted(tmp_path)
    content = '{"type":"thread","at":1,"id":"thr_1","settings":{}}\n'
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "link":
            (tmp_path / "elsewhere").write_text(content)
            path.symlink_to(tmp_path / "elsewhere")
        case "dangling":
            path.symlink_to(tmp_path / "nowhere")
        case "device":
            path.symlink_to("/dev/zero")
        case "empty":
            path.touch()
        case _:
            monkeypatch.setattr(reader, "MAX_ROLLOUT_BYTES", 2**20)
            path.touch()
            os.truncate(path, 2**20 + 1)
    async with session(tmp_path) as peer:
        answer = await peer.request(method, ask(method, "thr_1"))
        assert str(path) in answer["error"]["message"]
        assert path.name in os.listdir(path.parent)
        assert (await peer.request("thread/loaded/list"))["result"]["data"] == []
        # Nothing holds it: a server that could read it would load it.
        assert await peer.start_thread()
    assert not (tmp_path / "archived_sessions").exists() or not list(
        (tmp_path / "archived_sessions").rglob("*.jsonl")
    )


async def test_a_rollout_that_holds_another_thread_is_not_taken_for_it(tmp_path) -> None:
    async with session(tmp_path, [says("One.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.request("thread/unsubscribe", {"threadId": thread})
        [path] = tmp_path.rglob("*.jsonl")
        path.rename(path.with_name(path.name.replace(thread, "thr_77")))
        for method in ("thread/resume", "thread/fork", "thread/rollback", "thread/name/set"):
            error = (await peer.request(method, ask(method, "thr_77")))["error"]
            assert f"its thread record {thread}" in error["message"]


async def test_turn_ids_that_no_server_gave_are_copied_as_others(tmp_path) -> None:
    path = planted(tmp_path)
    settings = (
        '{"model":"m","modelProvider":"mock","cwd":"/","approvalPolicy":"never",'
        '"sandbox":{"type":"dangerFullAccess"}}'
    )
    turns = ['a\\"b', "\\\\", "turn_1", "x" * 5000]
    lines = [f'{{"type":"thread","at":1,"id":"thr_1","settings":{settings}}}']
    # Spaces, and an order that this server does not write.
    lines += [
        f'{{"settings":{settings}, "turnId":"{turn}", "at":2, "type":"turn-started", '
        '"server":"0123456789abcdef"}'
        for turn in turns
    ]
    path.write_text("\n".join([*lines, "not JSON", '{"type":"thr', "\x00\xff"]))
    async with session(tmp_path) as peer:
        answer = await peer.request("thread/fork", {"threadId": "thr_1"})
        shown = answer["result"]["thread"]["turns"]
        assert [turn["status"] for turn in shown] == ["interrupted"] * len(turns)
        again = await peer.request(
            "thread/read", ask("thread/read", answer["result"]["thread"]["id"])
        )
        assert again["result"]["thread"]["turns"] == shown


async def test_two_clients_get_in_each_others_way_and_the_thread_lives(tmp_path) -> None:
    """Requests may come in any order: each is answered, and the thread ends in one state."""
    never = [Reply([CREATED, opened(), delta("w"), anyio.Event()]) for _ in range(40)]
    methods = [
        "thread/resume",
        "thread/unsubscribe",
        "thread/archive",
        "thread/unarchive",
        "thread/rollback",
        "thread/fork",
        "thread/name/set",
        "turn/start",
        "turn/interrupt",
    ]
    async with session(tmp_path, never) as peer, another_client(peer) as other:
        thread = await peer.start_thread()
        asked: list[tuple[Peer, int]] = []
        for number in range(60):
            client = (peer, other)[number % 2]
            method = methods[(number * 7 + number // 9) % len(methods)]
            params = {
                "threadId": thread,
                "name": "n",
                "numTurns": 1,
                "turnId": f"turn_{number}",
                "input": [{"type": "text", "text": "go"}],
            }
            asked.append((client, await client.send(method, params)))
        for client, request in asked:
            await client.answer(request)
        for client in (peer, other):
            await client.request("thread/unarchive", {"threadId": thread})
        resumed = await peer.request("thread/resume", {"threadId": thread})
        shown = resumed["result"]["thread"]
        assert shown["status"]["type"] in ("idle", "active")
        assert len(list(tmp_path.rglob(f"*-{thread}.jsonl"))) == 1
        assert await other.request("thread/unsubscribe", {"threadId": thread})
        await peer.request("thread/archive", {"threadId": thread})
        assert len(list(tmp_path.rglob(f"*-{thread}.jsonl"))) == 1
        # Each turn that a client saw begin it also saw end, while it was subscribed.
        begun = [p["turn"]["id"] for p in peer.params_of("turn/started")]
        ended = [p["turn"]["id"] for p in peer.params_of("turn/completed")]
        assert len(ended) == len(set(ended))
        assert set(begun) <= set(ended)


async def test_a_client_that_leaves_while_its_thread_is_loaded_holds_nothing(tmp_path) -> None:
    async with session(tmp_path, [says("One.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.request("thread/unsubscribe", {"threadId": thread})
        async with another_client(peer) as other:
            await other.send("thread/resume", {"threadId": thread})
        # It is loaded, or not: either way another client can have it.
        shown = await peer.request("thread/resume", {"threadId": thread})
        assert shown["result"]["thread"]["status"] == {"type": "idle"}
        assert (await peer.request("thread/unsubscribe", {"threadId": thread}))["result"] == {
            "status": "unsubscribed"
        }
