"""Other servers of the same home: those that run, and those that were killed."""

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, completed, message, patches, says
from session_peer import session

import reference_server
from reference_server import presence as presence_module
from reference_server import recovery
from reference_server.config.home import Home
from reference_server.patch.journal import Journal, JournaledWrite, State, digest
from reference_server.presence import Presence, is_running, leftovers, taking_over
from reference_server.recovery import recover

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 30
OLD, NEW = ".patch-" + "0" * 16 + ".tmp", ".patch-" + "1" * 16 + ".tmp"


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


def killed(
    home: Home, *writes: JournaledWrite, state: State = State.PREPARED, **heading: Any
) -> Path:
    """Leave the files of a server that was killed during a patch."""
    server = Presence(home)
    path = server.new_journal()
    journal = Journal(lambda: path, {"threadId": None, **heading})
    journal.begin(list(writes), [])
    journal.mark(state)
    server.release()
    return path


def noted(file: Path, before: str | None, after: str | None) -> JournaledWrite:
    texts = [None if text is None else text.encode() for text in (before, after)]
    return JournaledWrite(str(file.parent), file.name, NEW, OLD, digest(texts[0]), digest(texts[1]))


def test_a_server_is_there_from_its_first_need_to_its_end(home: Home) -> None:
    server = Presence(home)
    assert leftovers(home) == {}
    name = server.id()
    assert (is_running(home, name), server.id()) == (True, name)
    with taking_over(home, name) as gone:
        assert not gone
    server.release()
    assert not is_running(home, name)
    assert leftovers(home) == {}


@pytest.mark.parametrize("name", ["", "../../x", "0" * 15, "0" * 16, "0" * 17])
def test_an_id_of_no_server_is_not_running(home: Home, name: str) -> None:
    assert not is_running(home, name)


def test_who_only_looks_does_not_keep_a_killed_server_from_being_settled(home: Home) -> None:
    killed(home)
    [name] = leftovers(home)
    lock = home.servers / f"{name}.lock"
    lock.touch()
    looking, looked = threading.Event(), threading.Event()

    def look() -> None:
        descriptor = os.open(lock, os.O_RDONLY)
        presence_module.fcntl.flock(descriptor, presence_module.fcntl.LOCK_SH)
        looking.set()
        looked.wait(BOUND)
        os.close(descriptor)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(look)
        assert looking.wait(BOUND)
        threading.Timer(0, looked.set).start()
        recover(home)
    assert leftovers(home) == {}


def test_of_servers_that_start_at_once_one_settles(home: Home, tmp_path, monkeypatch) -> None:
    settled: list[Path] = []
    real = recovery._settle_patch
    monkeypatch.setattr(recovery, "_settle_patch", lambda h, p: (settled.append(p), real(h, p)))
    for _ in range(20):
        settled.clear()
        path = killed(home, noted(tmp_path / "f", None, "x"))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(recover, [home] * 4))
        assert settled == [path]
        assert leftovers(home) == {}


def test_a_file_that_somebody_has_changed_since_stays_and_loses_nothing(
    home: Home, tmp_path, caplog
) -> None:
    (file := tmp_path / "f").write_text("somebody's")
    (tmp_path / OLD).write_text("before")
    killed(home, noted(file, "before", "after"))
    recover(home)
    assert file.read_text() == "somebody's"
    assert (tmp_path / OLD).read_text() == "before"
    assert f"{file} was changed by somebody else since" in caplog.text
    assert OLD in caplog.text
    assert leftovers(home) == {}


def test_a_file_in_the_place_of_a_new_one_stays(home: Home, tmp_path, caplog) -> None:
    (file := tmp_path / "f").write_text("somebody's")
    killed(home, noted(file, None, "after"))
    recover(home)
    assert file.read_text() == "somebody's"
    assert str(file) in caplog.text


def test_a_patch_that_was_rolled_back_is_not_rolled_back_again(home: Home, tmp_path) -> None:
    """The file was made by a later patch, with the same content."""
    (file := tmp_path / "f").write_text("after")
    killed(home, noted(file, None, "after"), state=State.UNDONE)
    recover(home)
    assert file.read_text() == "after"
    assert leftovers(home) == {}


def test_a_folder_that_has_become_a_link_is_not_followed(home: Home, tmp_path, caplog) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "f").write_text("after")
    (tmp_path / "folder").symlink_to(elsewhere)
    killed(home, noted(tmp_path / "folder" / "f", None, "after"))
    recover(home)
    assert (elsewhere / "f").read_text() == "after"
    assert f"{tmp_path / 'folder'} is no longer the folder that it was" in caplog.text


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "../f"), ("name", ".."), ("folder", "here"), ("old", "f"), ("fresh", "/etc/passwd")],
)
def test_a_journal_that_names_other_places_is_none(
    home: Home, tmp_path, field: str, value: str
) -> None:
    (file := tmp_path / "f").write_text("after")
    path = killed(home, noted(file, None, "after"))
    state, said = path.read_text().splitlines()
    forged = json.loads(said)
    forged["writes"][0][field] = value
    path.write_text(f"{state}\n{json.dumps(forged)}\n")
    recover(home)
    assert file.read_text() == "after"
    assert leftovers(home) == {}


@pytest.mark.parametrize("content", ["", "prepared \n{", "prepared \n[]\n", "x\n{}\n", "[" * 9999])
def test_a_journal_that_was_never_finished_is_removed(home: Home, content: str) -> None:
    path = killed(home)
    path.write_text(content)
    recover(home)
    assert leftovers(home) == {}


def test_a_folder_among_the_servers_files_stops_no_start(home: Home, caplog) -> None:
    home.servers.mkdir(parents=True)
    os.mkfifo(home.servers / f"{'0' * 16}.1.patch.json")
    (home.servers / f"{'1' * 16}.lock").mkdir()
    (home.servers / "notes.txt").touch()
    recover(home)
    assert "not settled" in caplog.text


async def test_a_turn_that_another_server_runs_is_shown_in_progress(tmp_path) -> None:
    gate = anyio.Event()
    held = Reply([CREATED, gate, *message("done"), completed()])
    asked = {"threadId": "thr_1", "includeTurns": True}
    async with session(tmp_path, [says("one"), held]) as first, session(tmp_path) as second:
        thread = await first.start_thread()
        await first.run_turn(thread)
        turn = await first.start_turn(thread)
        await first.event("item/completed", turnId=turn)
        shown = (await second.request("thread/read", asked))["result"]["thread"]
        gate.set()
        await first.turn_end(turn)
        after = (await second.request("thread/read", asked))["result"]["thread"]
    assert shown["status"] == after["status"] == {"type": "notLoaded"}
    assert [one["status"] for one in shown["turns"]] == ["completed", "inProgress"]
    assert [one["status"] for one in after["turns"]] == ["completed", "completed"]


async def test_a_patch_that_is_recorded_leaves_no_journal(tmp_path) -> None:
    unasked = {"sandbox": "danger-full-access", "approvalPolicy": "never", "cwd": str(tmp_path)}
    home = tmp_path / "home"
    async with session(home, [patches("*** Add File: a", "+x"), says("hi")]) as peer:
        await peer.run_turn(await peer.start_thread(**unasked))
        assert [len(journals) for journals in leftovers(Home(home)).values()] == [0]
    assert leftovers(Home(home)) == {}


KILLED_AT_THE_SECOND_FILE = """
import os, signal, sys
from reference_server.patch import apply
from reference_server.cli import main
class Killing:
    left = 2
    def __getattr__(self, name):
        if name == "link":
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)
        return getattr(os, name)
apply.os = Killing()
sys.exit(main(sys.argv[1:]))
"""
SCENARIO = """\
title: Two files are made
model:
  - reply:
      - patch: {add: {a: "x\\n", b: "y\\n"}}
client:
  - start_thread: {as: t}
"""


@pytest.mark.socket
@pytest.mark.slow
def test_a_server_that_starts_after_one_was_killed_in_a_patch_settles_it(tmp_path) -> None:
    (tmp_path / "one.scenario.yaml").write_text(SCENARIO)
    (work := tmp_path / "work").mkdir()
    unasked = {"sandbox": "danger-full-access", "approvalPolicy": "never", "cwd": str(work)}
    given = {"threadId": "thr_1", "input": [{"type": "text", "text": "hi"}]}

    def run(command: list[str], *requests: tuple[str, object]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, *command, "app-server", "--scenario", "one.scenario.yaml"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "HOME": str(tmp_path),
                "AGENT_HOME": str(tmp_path / ".agent"),
            },
        )
        assert process.stdin is not None
        for number, (method, params) in enumerate(requests):
            line = json.dumps({"id": number, "method": method, "params": params}).encode()
            process.stdin.write(line + b"\n")
        process.stdin.flush()
        return process

    first = run(["-c", KILLED_AT_THE_SECOND_FILE], ("thread/start", unasked), ("turn/start", given))
    assert first.wait(BOUND) == -signal.SIGKILL
    first.communicate()
    assert (work / "a").exists()
    read = {"threadId": "thr_1", "includeTurns": True}
    second = run(["-m", "reference_server"], ("thread/read", read))
    output, errors = second.communicate(timeout=BOUND)
    [turn] = json.loads(output.splitlines()[0])["result"]["thread"]["turns"]
    assert turn["status"] == "interrupted"
    assert [(item["type"], item.get("status")) for item in turn["items"]] == [
        ("userMessage", None),
        ("fileChange", "failed"),
    ]
    assert list(work.iterdir()) == []
    assert (second.returncode, errors) == (0, b"")
    assert list((tmp_path / ".agent" / "servers").iterdir()) == []
