"""Symbolic links by other users in the folder of `agent exec`, on the way to named files."""

import json
from pathlib import Path

import pytest
from runs import SAYS_HELLO, Agent, scenario

pytestmark = [pytest.mark.socket, pytest.mark.slow]

PLAIN = ("--json", "--skip-git-repo-check")


def play(agent: Agent, *words: str, **more):
    model = ("--scenario", scenario(agent.folder, SAYS_HELLO))
    return agent.run(*PLAIN, *model, *words, stdin=b"hi", **more)


def refused(agent: Agent, *words: str, **more) -> str:
    ran = play(agent, *words, **more)
    assert (ran.status, ran.out) == (1, b"")
    [line] = ran.err.splitlines()
    assert "is a link to elsewhere" in line
    return line


@pytest.mark.parametrize("target", ["precious", "not-there", "work/.git/hooks/pre-commit"])
def test_a_link_of_the_folder_has_no_message_written_elsewhere(agent: Agent, target: str) -> None:
    (agent.folder / "precious").write_text("kept")
    (agent.cwd / ".git/hooks").mkdir(parents=True)
    (agent.cwd / "out").symlink_to(agent.folder / target)
    line = refused(agent, "-o", "out")
    assert f"name what is meant ({agent.folder / target}?)" in line
    assert (agent.folder / "precious").read_text() == "kept"
    assert (agent.cwd / "out").is_symlink()
    assert not (agent.folder / "not-there").exists()


def test_a_folder_that_is_a_link_has_no_message_written_elsewhere(agent: Agent) -> None:
    (agent.folder / "private").mkdir()
    (agent.cwd / "sub").symlink_to(agent.folder / "private")
    refused(agent, "-o", "sub/out")
    assert list((agent.folder / "private").iterdir()) == []


def test_a_link_of_the_repository_above_is_one_of_somebody_else_too(agent: Agent) -> None:
    (agent.cwd / ".git").mkdir()
    (agent.cwd / "sub").mkdir()
    (agent.cwd / "out").symlink_to(agent.folder / "precious")
    refused(agent, "-o", "../out", cwd=agent.cwd / "sub")


def test_no_file_of_the_home_becomes_a_schema(agent: Agent) -> None:
    """Under another provider's address that would be where the credentials go."""
    agent.home.mkdir()
    (agent.home / ".credentials.json").write_text(json.dumps({"docs": {"access_token": "t0ken"}}))
    (agent.cwd / "schema.json").symlink_to(agent.home / ".credentials.json")
    assert "t0ken" not in refused(agent, "--output-schema", "schema.json")


def test_a_link_within_the_repository_may_name_a_schema(agent: Agent) -> None:
    (agent.cwd / ".git").mkdir()
    (agent.cwd / "sub").mkdir()
    (agent.cwd / "one.json").write_text("{}")
    (agent.cwd / "sub/schema.json").symlink_to("../one.json")
    words = ("--output-schema", "schema.json")
    assert "is a link" not in play(agent, *words, cwd=agent.cwd / "sub").err


def test_a_repository_that_is_the_whole_home_is_none_here(agent: Agent) -> None:
    (agent.folder / ".git").mkdir()
    (agent.folder / "precious.json").write_text("{}")
    (agent.cwd / "schema.json").symlink_to("../precious.json")
    refused(agent, "--output-schema", "schema.json")


def test_a_link_of_the_folder_makes_no_other_folder_writable(agent: Agent) -> None:
    (agent.folder / "private").mkdir()
    (agent.cwd / "more").symlink_to(agent.folder / "private")
    refused(agent, "-s", "workspace-write", "--add-dir", "more")


def test_links_of_the_user_are_followed(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "answers")
    assert play(agent, "-o", "../link/out", "--add-dir", "../link").status == 0
    assert (tmp_path / "answers/out").read_text() == "Hello"
    assert play(agent, "-o", "/dev/stderr").status == 0
