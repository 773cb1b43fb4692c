"""The plan of a confinement, in memory: what is hidden, what a command needs, what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.client.target.confine import command, entering, folders
from harness.client.target.confine.end import ConfinedEnd
from harness.client.target.confine.table import Confine
from harness.client.target.process import environment
from harness.client.target.profile import parse_profile
from harness.errors import UsageError
from harness.report.results.rerun_command import Programs

FINDS = "/usr/bin/bwrap"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home, in which all programs of the tests lie; bubblewrap need not be there."""
    home = tmp_path / "person"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(folders, "_HIDDEN", (str(home),))
    monkeypatch.setattr(command, "find_bubblewrap", lambda: FINDS)
    return home


def mounts(words: list[str], option: str) -> list[str]:
    return [words[index + 1] for index, word in enumerate(words) if word == option]


def make_program(path: Path, first_line: str = "#!/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first_line}\n")
    path.chmod(0o755)
    return path


def test_a_home_is_hidden_and_only_the_folder_of_the_program_is_shown(home: Path) -> None:
    program = make_program(home / "tools" / "server" / "run")
    words = command.bubblewrap_words(Confine(), [str(program)], cwd=Path("/"))
    assert str(home) in mounts(words, "--tmpfs")
    assert str(home) in mounts(words, "--remount-ro")
    shown = [path for path in mounts(words, "--ro-bind") if path.startswith(str(home))]
    assert shown == [str(program.parent)]


def test_a_program_that_lies_in_the_home_itself_shows_itself_alone(home: Path) -> None:
    program = make_program(home / "server")
    words = command.bubblewrap_words(Confine(), [str(program)], cwd=home)
    assert str(program) in mounts(words, "--ro-bind")
    assert str(home) not in mounts(words, "--ro-bind")


def test_links_and_first_lines_lead_to_what_a_program_needs(home: Path) -> None:
    python = make_program(home / "versions" / "3" / "bin" / "python")
    (home / "versions" / "3" / "lib").mkdir()
    (home / "versions" / "3" / "secrets").mkdir()
    (home / "venv" / "bin").mkdir(parents=True)
    (home / "venv" / "bin" / "python").symlink_to(python)
    script = make_program(home / "venv" / "bin" / "agent", f"#!{home}/venv/bin/python")
    module = make_program(home / "node" / "node_modules" / "real" / "cli.js")
    for path, needed in (
        (script, {home / "venv" / "bin", home / "versions/3/bin", home / "versions/3/lib"}),
        (module, {home / "node" / "node_modules"}),
    ):
        found = folders.needed_by([str(path)], Path("/"))
        assert needed <= {*found}
        assert home / "versions" / "3" / "secrets" not in found
        assert home not in found


def test_secrets_in_a_shown_folder_are_hidden_again(home: Path) -> None:
    project = home / "project"
    for name in (".env", ".netrc"):
        make_program(project / name)
    (project / ".aws").mkdir()
    words = command.bubblewrap_words(Confine(), ["true"], cwd=project)
    text = " ".join(words)
    for hidden in (
        f"--ro-bind /dev/null {project}/.env",
        f"--ro-bind /dev/null {project}/.netrc",
        f"--tmpfs {project}/.aws --remount-ro {project}/.aws",
    ):
        assert hidden in text
    assert text.index(f"--ro-bind {project} {project}") < text.index(f"{project}/.env")


def test_the_writable_folders_are_those_of_the_run_and_of_the_profile(home: Path) -> None:
    own, more = home / "run", home / "more"
    own.mkdir()
    more.mkdir()
    table = Confine(writable=[str(more)])
    words = command.bubblewrap_words(table, ["true"], cwd=Path("/"), writable=[own])
    assert mounts(words, "--bind") == [str(own), str(more)]
    with pytest.raises(UsageError, match=r"\[confine\] readable: .*gone does not exist"):
        command.bubblewrap_words(Confine(readable=["gone"]), ["true"], cwd=Path("/"))


def test_a_confined_server_gets_no_variable_of_ours_but_common_ones(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://user:secret@host")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    env = environment({"MY_KEY": "given"}, home, "AGENT_HOME", confined=True)
    own = {"HOME", "AGENT_HOME", "NO_PROXY", "GIT_CEILING_DIRECTORIES", "MY_KEY", "LC_ALL"}
    assert {*env} - {*command.PASSED_VARIABLES} == own | {name for name in env if name[:3] == "LC_"}
    assert "DATABASE_URL" in environment({}, home, "AGENT_HOME")


@pytest.mark.parametrize("line", ['memory = "2 apples"', "processes = 0", 'readable = "x"'])
def test_a_mistake_in_the_table_is_one_line_with_its_place(line: str) -> None:
    with pytest.raises(UsageError, match=r"^p\.toml:3:"):
        parse_profile(f'name = "p"\n[confine]\n{line}\n', "p.toml")


def test_a_machine_that_cannot_confine_refuses_or_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_bubblewrap", lambda: None)
    said = "bwrap was not found; install the package bubblewrap"
    with pytest.raises(UsageError, match=f"--confine: nothing can be confined here: {said}"):
        entering.enter_confined_run(is_required=True)
    assert entering.enter_confined_run(is_required=False) == (False, f"NOT CONFINED: {said}")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "it needs Linux" in entering.enter_confined_run(is_required=False)[1]


def test_the_command_that_plays_a_failure_again_is_confined_too() -> None:
    assert Programs("p", "server", confined=True).options("session")[-1] == "--confine"


def test_without_a_report_the_status_of_bubblewrap_stands() -> None:
    end = ConfinedEnd()
    end.close_writer()
    assert (end.status(3), end.survivors(3)) == (3, ())
