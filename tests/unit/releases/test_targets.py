"""Commands of a version, its identity, lists of versions, and the file of a matrix."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.report.results.rerun_command import Programs
from harness.search.releases.matrix_file import read_matrix_file
from harness.search.releases.target import (
    MissingProgram,
    Target,
    ensure_installed,
    resolve_command,
)
from harness.search.releases.versions import parse_versions


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def program(path: str, text: str = "#!/bin/sh\n", *, mode: int = 0o755) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    Path(path).chmod(mode)


def test_a_pattern_names_the_one_program_of_each_version() -> None:
    program(".real/1/vendor/codex/codex")
    program(".real/1/vendor/README/codex", mode=0o644)
    program(".real/2/vendor/bin/codex")
    command = ".real/{version}/**/codex app-server --home 'a b'"
    assert resolve_command(command, "1") == ".real/1/vendor/codex/codex app-server --home 'a b'"
    assert resolve_command(command, "2") == ".real/2/vendor/bin/codex app-server --home 'a b'"
    with pytest.raises(MissingProgram, match=r"no file matches '\.real/3/"):
        resolve_command(command, "3")
    program(".real/2/vendor/old/codex")
    with pytest.raises(UsageError, match=r"matches 2 files \(.real/2/vendor/bin/codex, "):
        resolve_command(command, "2")


def test_a_release_is_the_same_until_something_of_it_changes() -> None:
    program("server", "one")
    program("mine.toml", 'name = "mine"\ncommand = ["server"]\n')

    def identity(version: str = "1", command: str = "./server") -> str:
        programs = Programs("mine.toml", command)
        return Target("any", programs).release(version).identity()

    first = identity()
    assert identity() == first
    program("server", "two")
    assert identity() != first
    program("server", "one")
    assert identity() == first
    assert len({first, identity("2"), identity(command="./server -v")}) == 3
    program("mine.toml", 'name = "mine"\ncommand = ["server"]\nenv = {A = "b"}\n')
    assert identity() != first


def test_a_missing_program_is_installed_once() -> None:
    target = Target("any", Programs("spec", "./{version}/server"))
    install = f"{sys.executable} -c \"import os; os.mkdir('1'); os.symlink('/bin/sh', '1/server')\""
    told: list[str] = []
    assert ensure_installed(target, "1", install, told.append).programs.server == "./1/server"
    ensure_installed(target, "1", install, told.append)
    assert told == ["any@1: installing"]


@pytest.mark.parametrize(
    ("install", "reason"),
    [
        ("", "the program './9/server' was not found; an installation"),
        ("sh -c 'echo no network >&2; exit 3'", "failed with status 3: no network"),
        ("./nothing", "the installation failed: ./nothing: No such file"),
        ("true", "the program './9/server' was not found"),
    ],
)
def test_a_failed_installation_says_why(install: str, reason: str) -> None:
    target = Target("any", Programs("spec", "./{version}/server"))
    with pytest.raises(MissingProgram, match=reason):
        ensure_installed(target, "9", install, lambda _: None)


PUBLISHED = ["0.9.0", "1.0.0-alpha.1", "1.0.0", "1.1.0", "1.1.0-linux-x64", "2.0.0"]


@pytest.mark.parametrize(
    ("words", "pre_releases", "versions"),
    [
        ("b, a,b", False, ["b", "a"]),
        ("0.9.0..1.1.0", False, ["0.9.0", "1.0.0", "1.1.0"]),
        ("1.0.0-alpha.1..1.1.0", False, ["1.0.0-alpha.1", "1.0.0", "1.1.0"]),
        ("0.9.0..1.0.0", True, ["0.9.0", "1.0.0-alpha.1", "1.0.0"]),
        ("1.1.0..", False, ["1.1.0", "2.0.0"]),
        ("..1.0.0", False, ["0.9.0", "1.0.0"]),
    ],
)
def test_versions_are_listed_or_a_range(
    words: str, pre_releases: bool, versions: list[str]
) -> None:
    parsed = parse_versions(
        words, npm="p", pre_releases=pre_releases, published=lambda _: PUBLISHED
    )
    assert parsed == versions


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("1.0.0..1.1.1", "p has no 1.1.1; did you mean '1.1.0'?"),
        ("2.0.0..1.0.0", "2.0.0 is newer than 1.0.0; swap them"),
    ],
)
def test_a_range_that_is_none_says_why(words: str, reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_versions(words, npm="p", published=lambda _: PUBLISHED)
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "versions"), [('["1.0.0", "1.1.0"]', ["1.0.0", "1.1.0"]), ('"1.0.0"', ["1.0.0"])]
)
def test_npm_is_asked_for_the_versions_of_a_package(
    answer: str, versions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program("bin/npm", f"#!/bin/sh\ntest \"$*\" = 'view p versions --json' && echo '{answer}'\n")
    monkeypatch.setenv("PATH", f"{Path('bin').absolute()}{os.pathsep}{os.environ['PATH']}")
    assert parse_versions("..", npm="p") == versions
    program("bin/npm", "#!/bin/sh\necho 'npm error 404 no p' >&2\nexit 1\n")
    with pytest.raises(UsageError, match="npm error 404 no p; name the versions"):
        parse_versions("..", npm="p")


MATRIX = """
[[target]]
name = "codex"
versions = ["1", "2"]
server-cmd = "codex-{version} app-server"
agent-cmd = "codex-{version}"
target = ["codex-0.107", "codex-0.169"]
surfaces = ["session", "exec"]

[[target]]
name = "mine"
server-cmd = "mine"
"""


def test_a_row_makes_a_column_for_each_combination() -> None:
    Path("m.toml").write_text(MATRIX)
    rows = [row for target in read_matrix_file(Path("m.toml")).target for row in target.targets()]
    labels = [target.label(version) for target, version, _ in rows]
    assert labels[:3] == [
        "codex-codex-0.107-session@1",
        "codex-codex-0.107-session@2",
        "codex-codex-0.107-exec@1",
    ]
    assert (len(labels), labels[-1]) == (9, "mine")
    assert rows[2][0].programs == Programs("codex-0.107", agent="codex-{version}")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "m.toml:1:1: the key 'target' is missing"),
        ('[[target]]\nname = "a"\nserver-cmb = "b"', "m.toml:3:1: unknown key 'server-cmb'"),
        (
            '[[target]]\nname = "a"\nserver_cmd = "b"',
            "m.toml:3:1: unknown key 'server_cmd'; did you mean 'server-cmd'?",
        ),
        ('[[target]]\nname = "a"', "m.toml:2:8: the target 'a' has no command; give it server-cmd"),
        (
            '[[target]]\nname = "a"\nserver-cmd = "b"\nsurfaces = ["exec"]',
            "m.toml:2:8: 'a-exec' has no command for its surface",
        ),
        (
            '[[target]]\nname = "a"\nserver-cmd = "b"\n[[target]]\nname = "a"\nserver-cmd = "c"',
            "m.toml:5:8: there are two targets 'a'; rename one",
        ),
        (
            '[[target]]\nname = "a"\nserver-cmd = "b"\nversions = "1..2"',
            "m.toml:2:8: the range 1..2 needs",
        ),
    ],
)
def test_a_mistake_in_the_file_of_a_matrix_has_its_place(text: str, mistake: str) -> None:
    Path("m.toml").write_text(text)
    with pytest.raises(UsageError) as raised:
        read_matrix_file(Path("m.toml"))
    assert mistake in str(raised.value)
