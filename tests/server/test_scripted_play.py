"""A scripted play of `agent app-server` over standard streams: its settings, and its home."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent_process import run_agent
from tests.processes import BOUND, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket]

HELLO = "model: [{reply: [{message: hello}]}]\n"
STATED = "settings: {approvalPolicy: untrusted, sandbox: workspace-write, model: mine}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "stated.scenario.yaml").write_text(f"title: t\n{STATED}{HELLO}", "utf-8")
    (tmp_path / "silent.scenario.yaml").write_text(f"title: t\n{HELLO}", "utf-8")
    return tmp_path


def started(folder: Path, *words: str, home: str = "") -> dict[str, Any]:
    """The answer to thread/start of a play that ends then; HOME is the folder."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
    requests = [
        {"method": "initialize", "id": 1, "params": {"clientInfo": {"name": "t", "version": "1"}}},
        {"method": "thread/start", "id": 2, "params": {}},
    ]
    process = run_agent(
        [sys.executable, "-m", "reference_server", "app-server", *words],
        input="".join(json.dumps(one) + "\n" for one in requests),
        capture_output=True,
        cwd=folder,
        env={**environment, "AGENT_HOME": home} if home else environment,
        encoding="utf-8",
        timeout=BOUND,
        check=False,
    )
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    return next(one["result"] for one in answers if one.get("id") == 2)


def settings_of(answer: dict[str, Any]) -> tuple[str, str, str]:
    return answer["approvalPolicy"], answer["sandbox"]["type"], answer["model"]


@pytest.mark.parametrize("listening", [(), ("--listen", "stdio")], ids=["plain", "listening"])
def test_settings_of_the_file_hold_both_ways(folder: Path, listening: tuple[str, ...]) -> None:
    answer = started(folder, "--scenario", "stated.scenario.yaml", *listening)
    assert settings_of(answer) == ("untrusted", "workspaceWrite", "mine")


def test_settings_that_the_file_leaves_out_are_the_confined_defaults(folder: Path) -> None:
    answer = started(folder, "--scenario", "silent.scenario.yaml")
    assert settings_of(answer)[:2] == ("on-request", "readOnly")


def test_words_of_the_user_count_before_the_file(folder: Path) -> None:
    (folder / "kept").mkdir()
    (folder / "kept" / "config.toml").write_text('approval_policy = "never"\n', "utf-8")
    words = ("--scenario", "stated.scenario.yaml", "--home", "kept", "--config", "model=other")
    assert settings_of(started(folder, *words)) == ("never", "workspaceWrite", "other")


def test_play_leaves_the_home_of_the_user_alone(folder: Path) -> None:
    path = Path(started(folder, "--scenario", "stated.scenario.yaml")["thread"]["path"])
    assert path.is_relative_to(folder)
    assert sorted(one.name for one in folder.iterdir()) == [
        "silent.scenario.yaml",
        "stated.scenario.yaml",
    ]


@pytest.mark.parametrize("way", ["option", "variable"])
def test_named_home_stays(folder: Path, way: str) -> None:
    words = ("--home", "kept") if way == "option" else ()
    home = "" if words else str(folder / "kept")
    answer = started(folder, "--scenario", "stated.scenario.yaml", *words, home=home)
    assert Path(answer["thread"]["path"]).is_relative_to(folder / "kept")
    assert (folder / "kept" / "sessions").is_dir()


def test_home_of_a_server_without_a_script_is_that_of_the_option(folder: Path) -> None:
    answer = started(folder, "--home", "kept", home=str(folder / "other"))
    assert Path(answer["thread"]["path"]).is_relative_to(folder / "kept")
    assert not (folder / "other").exists()
