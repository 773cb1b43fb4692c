"""`harness replay`: fixed, fails, flaky, and one message for each unplayable document."""

import shlex
import sys
from pathlib import Path

import pytest
from command_line import call

from harness.search.fuzz.sessions.search import FoundFailure
from harness.search.fuzz.store import Failure, Store
from tests.processes import ROOT, Said
from tests.rules.traces import Talk

pytestmark = [pytest.mark.slow, pytest.mark.socket]

# Ends by itself when it is asked for a thread: in its processes of these numbers, from 1.
CRASHER = """
import os, sys
sys.path.insert(0, {servers!r})
from minimal import Server
with open({plays!r}, "ab") as plays:
    plays.write(b"x")
    plays.flush()
    number = plays.tell()
class Crasher(Server):
    def thread_read(self, params, reply):
        if number in {wrong}:
            os._exit(3)
        super().thread_read(params, reply)
Crasher().serve()
"""
READ = {"method": "thread/read", "params": {"threadId": "$t.thread.id"}, "expect": "any"}
DOCUMENT = {"title": "Found", "client": [{"start_thread": {"as": "t"}}, {"request": READ}]}
STORE = ("--store", "store")
CRASH = "the server ended by itself with exit status 3"


def kept(folder: Path, cause: str = "scenario.crash") -> Failure:
    """A failure in the store of a folder."""
    store = folder / "store"
    store.mkdir()
    trace = Talk().asks("a").answers({}).trace()
    return Store(store).keep("inputs", FoundFailure(DOCUMENT, cause, "it ended", trace), "spec")


def replay(folder: Path, word: str, wrong: tuple[int, ...] = ()) -> Said:
    """Replay on a server that ends in these plays of three."""
    script = folder / "crasher.py"
    servers, plays = str(ROOT / "fixtures" / "servers"), str(folder / "plays")
    script.write_text(CRASHER.format(servers=servers, plays=plays, wrong=wrong), encoding="utf-8")
    server = shlex.join([sys.executable, str(script)])
    return call("harness", "replay", word, *STORE, "--server-cmd", server, cwd=folder)


@pytest.mark.parametrize(
    ("wrong", "status", "told"),
    [
        ((), 0, "fixed: {id} (0 of 3 plays wrong)"),
        ((1, 2, 3), 1, "fails: {id} (3 of 3 plays wrong)"),
        ((2,), 1, "flaky: {id} (1 of 3 plays wrong)"),
    ],
    ids=["fixed", "fails", "flaky"],
)
def test_a_failure_of_the_store_is_played_three_times(
    wrong: tuple[int, ...], status: int, told: str, tmp_path: Path
) -> None:
    failure = kept(tmp_path)
    said = replay(tmp_path, failure.id, wrong)
    lines = said.out.splitlines()
    assert (said.status, lines[0], said.err) == (status, told.format(id=failure.id), "")
    assert [CRASH in line for line in lines[1:]] == [True] * bool(wrong)
    assert (tmp_path / "plays").read_bytes() == b"xxx"


def test_only_the_cause_of_the_failure_counts(tmp_path: Path) -> None:
    said = replay(tmp_path, kept(tmp_path, "turn.completes").id, (1, 2, 3))
    assert (said.status, said.out.split(":")[0]) == (0, "fixed")


def test_a_file_that_is_in_no_store_fails_for_anything_that_is_wrong(tmp_path: Path) -> None:
    failure = kept(tmp_path, "turn.completes")
    path = tmp_path / "mine.scenario.yaml"
    (tmp_path / "store" / f"{failure.id}.scenario.yaml").rename(path)
    said = replay(tmp_path, str(path), (1, 2, 3))
    assert (said.status, said.out.splitlines()[0]) == (1, "fails: mine (3 of 3 plays wrong)")


@pytest.mark.parametrize("word", ["nobody", "../crasher", "nobody.scenario.yaml"])
def test_a_file_that_is_not_a_failure_is_reported(word: str, tmp_path: Path) -> None:
    said = replay(tmp_path, word)
    assert (said.status, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert word in said.err


@pytest.mark.parametrize("end", [".json", ".scenario.yaml"])
@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_a_damaged_file_of_the_store_is_named(end: str, text: str, tmp_path: Path) -> None:
    name = f"{kept(tmp_path).id}{end}"
    (tmp_path / "store" / name).write_text(text)
    said = replay(tmp_path, name.removesuffix(end))
    assert (said.status, said.out, "Traceback" in said.err) == (2, "", False)
    assert name in said.err
    assert not (tmp_path / "plays").exists()


def test_a_server_that_cannot_be_started_is_no_verdict(tmp_path: Path) -> None:
    word = kept(tmp_path).id
    said = call("harness", "replay", word, *STORE, "--server-cmd", "false", cwd=tmp_path)
    assert (said.status, said.out) == (1, "")
    assert "harness doctor" in said.err
