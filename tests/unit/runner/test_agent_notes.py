"""The proxy between an SDK and a real agent passes everything on and records it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness.play.sdk.agent_notes import AgentNotes

EVENT = {"type": "turn.started"}


def ran(notes: AgentNotes, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(notes.program), *words]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=60, check=False
    )


def standing_for(folder: Path, script: str) -> AgentNotes:
    notes = AgentNotes(folder, os.environ)
    notes.run_real_agent(["sh", "-c", script, "agent"])
    return notes


def test_input_words_lines_and_status_are_passed_on_and_noted(tmp_path: Path) -> None:
    line = json.dumps(EVENT)
    notes = standing_for(tmp_path, f"echo '{line}'; echo no event; cat; echo $1 >&2; exit 3")
    end = ran(notes, "word", given="said")
    assert end.stdout == f"{line}\nno event\nsaid"
    assert (end.stderr, end.returncode) == ("word\n", 3)
    started, wrote, ended = notes.take_new_notes()
    assert (started["started"]["argv"], started["started"]["stdin"]) == (["word"], "said")
    assert (wrote, ended) == ({"wrote": EVENT}, {"ended": 3})
    assert notes.take_new_notes() == []


def test_an_agent_that_a_signal_ends_ends_its_program_so(tmp_path: Path) -> None:
    end = ran(standing_for(tmp_path, "kill -9 $$"))
    assert end.returncode == -signal.SIGKILL


def test_the_agent_is_ended_when_its_program_is(tmp_path: Path) -> None:
    notes = standing_for(tmp_path, "echo ready; exec sleep 60")
    with subprocess.Popen(
        [str(notes.program)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.terminate()
        assert program.wait(60) == -signal.SIGTERM
        # Nobody holds the pipe any more.
        assert program.stdout.read() == ""


def test_nothing_of_the_drivers_own_environment_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "of-the-user")
    notes = standing_for(tmp_path, "exit 0")
    monkeypatch.setenv("ADDED", "by-the-sdk")
    ran(notes)
    env = notes.take_new_notes()[0]["started"]["env"]
    assert env.get("ADDED") == "by-the-sdk"
    assert "MY_SECRET" not in env
    assert "of-the-user" not in (tmp_path / "state" / "start-1.json").read_text("utf-8")
