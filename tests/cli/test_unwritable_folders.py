"""Commands where the current folder cannot be written or named, or /proc is not there."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from command_line import PLAIN

from tests.processes import COMMANDS, ROOT, Said, run, run_warm

pytestmark = [pytest.mark.slow, pytest.mark.socket]

MINIMAL = shlex.join([sys.executable, str(ROOT / "fixtures/servers/minimal.py")])
SERVER = ("--server-cmd", MINIMAL)
TRACE = str(ROOT / "fixtures/traces/good/plain-turn.jsonl")
PLAYING = {
    "run": ("run", "turns/plain-turn", *SERVER),
    "workers": ("run", "turns/plain-turn", *SERVER, "-n", "2"),
    "play": ("scenario", "play", "turns/plain-turn", *SERVER),
    "doctor": ("doctor", *SERVER),
    "connect": ("connect", *SERVER),
    "fuzz": ("fuzz", *SERVER, "--max-time", "1"),
    "mutate": ("mutate", *SERVER),
}
READING = {
    "check": ("check", TRACE),
    "show": ("show", TRACE),
    "status": ("status",),
    "compare": ("compare", "previous", "last"),
    "ledger": ("ledger",),
}


def harness(folder: Path, *words: str, before: tuple[str, ...] = ()) -> Said:
    """Run `harness …` in a folder that is not temporary, with a home beside it."""
    (temporary := folder.parent / "tmp").mkdir(exist_ok=True)
    env = {**os.environ, **PLAIN, "HOME": str(folder.parent / "me"), "TMPDIR": str(temporary)}
    env.pop("CI", None)  # There a new snapshot that waits for review is an error.
    if not before:
        return run_warm("harness", *words, cwd=folder, env=env)
    return run([*before, COMMANDS / "harness", *words], cwd=folder, env=env)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A current folder in which `.harness` cannot be made, even by root."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / ".harness").write_text("a file")
    return tmp_path / "here"


@pytest.mark.parametrize("case", ["run", "workers", "doctor", "connect"])
def test_a_place_that_can_be_written_is_found_and_named(case: str, folder: Path) -> None:
    said = harness(folder, *PLAYING[case])
    assert said.status == 0, said.out + said.err
    note = said.err.splitlines()[0]
    assert ".harness cannot be written" in note
    assert f"{folder.parent}/me/.cache/harness/here-" in note
    assert "--dir" in note


@pytest.mark.parametrize("case", PLAYING)
def test_no_place_is_one_line_that_asks_for_one(case: str, folder: Path) -> None:
    (folder.parent / "me").write_text("a file")
    said = harness(folder, *PLAYING[case])
    assert (said.status, said.out.strip()) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith(f"harness: {folder}/.harness cannot be written (")
    assert line.endswith("; name a folder that can be written by --dir")


@pytest.mark.parametrize("case", READING)
def test_command_that_only_reads_needs_no_place(case: str, folder: Path) -> None:
    (folder.parent / "me").write_text("a file")
    said = harness(folder, *READING[case])
    assert "Traceback" not in said.err
    assert "cannot be written" not in said.err
    assert said.status == (0 if case in ("check", "show") else 2)


def test_folder_of_the_user_takes_everything(folder: Path) -> None:
    (folder.parent / "me").write_text("a file")
    own = folder.parent / "own"
    said = harness(folder, *PLAYING["workers"], "--dir", "../own")
    assert (said.status, said.err) == (0, ""), said.out + said.err
    assert list(own.glob("traces/*/turns/plain-turn.jsonl"))
    assert list(own.glob("history/*/report.json"))
    assert harness(folder, "ledger", "--dir", "../own").status == 0


def test_folder_whose_name_is_not_utf8_is_played_in(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"a\xff")
    folder.mkdir()
    said = harness(folder, *PLAYING["run"], "--json", "report.json")
    assert said.status == 0, said.out + said.err
    assert "is not UTF-8" in said.err
    assert (folder / "report.json").exists()
    refused = harness(folder, *PLAYING["workers"])
    assert refused.status == 2
    assert "-n 2: the current folder has a name that is not UTF-8" in refused.err + refused.out
    assert "Traceback" not in refused.err + refused.out


@pytest.mark.parametrize("command", ["run", "workers", "validate", "play"])
def test_scenario_whose_name_is_not_utf8_is_one_line(command: str, tmp_path: Path) -> None:
    (folder := tmp_path / "here").mkdir()
    name = os.fsdecode(b"a\xff.scenario.yaml")
    shutil.copy(ROOT / "scenarios/turns/plain-turn.scenario.yaml", folder / name)
    words = {
        "run": ("run", name, *SERVER),
        "workers": ("run", name, *SERVER, "-n", "2"),
        "validate": ("scenario", "validate", name),
        "play": ("scenario", "play", name, *SERVER),
    }
    said = harness(folder, *words[command])
    assert said.status == (1 if command == "validate" else 2)
    assert "is not UTF-8" in said.err + said.out
    assert "Traceback" not in said.err + said.out
    assert "harness broke" not in said.err + said.out


def test_scenario_in_a_folder_whose_name_is_not_utf8_is_played(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"a\xff")
    (folder / "own").mkdir(parents=True)
    shutil.copy(ROOT / "scenarios/turns/plain-turn.scenario.yaml", folder / "own")
    forms = ("--json", "a.json", "--junit", "a.xml", "--markdown", "a.md", "--snapshots", "kept")
    said = harness(folder, "run", "own", *SERVER, *forms, "-v")
    assert said.status == 0, said.out + said.err
    assert "harness broke" not in said.out
    assert all((folder / name).exists() for name in ("a.json", "a.xml", "a.md", "kept"))


def test_current_folder_that_was_removed_is_one_line(tmp_path: Path) -> None:
    (folder := tmp_path / "here").mkdir()
    script = 'rmdir "$PWD"; exec "$@"'
    said = harness(folder, *PLAYING["run"], before=("/bin/sh", "-c", script, "sh"))
    assert said.status == 2
    assert said.err.splitlines() == ["harness: the current folder was removed; change to another"]


@pytest.mark.parametrize("case", ["run", "workers"])
def test_run_without_proc_says_what_it_cannot_see(case: str, tmp_path: Path) -> None:
    (folder := tmp_path / "here").mkdir()
    hidden = ("bwrap", "--dev-bind", "/", "/", "--tmpfs", "/proc", "--")
    if shutil.which("bwrap") is None or run([*hidden, "true"], cwd=folder).status != 0:
        pytest.skip("bubblewrap cannot hide /proc here")
    said = harness(folder, *PLAYING[case], before=hidden)
    assert said.status == 0, said.out + said.err
    assert "no /proc" in said.err


def test_a_read_only_mount_is_left_for_the_cache(tmp_path: Path) -> None:
    (folder := tmp_path / "here").mkdir()
    mount = ("bwrap", "--dev-bind", "/", "/", "--ro-bind", str(folder), str(folder), "--")
    mount = (*mount[:-1], "--chdir", str(folder), "--")
    if shutil.which("bwrap") is None or run([*mount, "true"], cwd=folder).status != 0:
        pytest.skip("bubblewrap cannot mount here")
    harness(folder, *PLAYING["run"])  # What it leaves cannot be written afterwards.
    said = harness(folder, *PLAYING["run"], before=mount)
    assert said.status == 0, said.out + said.err
    assert "Read-only file system" in said.err
