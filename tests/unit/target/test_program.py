"""A program that cannot be run: one line with the reason and advice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.client.target.process import start
from harness.client.target.program import NotStarted, find_program, with_absolute_paths


def written(folder: Path, name: str, content: bytes, mode: int = 0o755) -> str:
    path = folder / name
    path.write_bytes(content)
    path.chmod(mode)
    return f"./{name}"


def refusal(command: list[str]) -> str:
    with pytest.raises(NotStarted) as caught:
        find_program(command)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix("the server's program ")


@pytest.mark.parametrize(
    ("option", "whose"),
    [
        ("--server-cmd", "the server's program"),
        ("--agent-cmd", "the agent's program"),
        ("--sdk-cmd", "the SDK's driver"),
    ],
)
async def test_a_refusal_names_whose_program_it_is(option: str, whose: str, tmp_path: Path) -> None:
    with pytest.raises(NotStarted) as caught:
        find_program(["nothere"], option)
    assert str(caught.value).startswith(f"{whose} 'nothere' was not found; give {option} a ")
    empty = [str(tmp_path / written(tmp_path, "empty", b""))]
    with pytest.raises(NotStarted, match=f"^{whose} .* cannot be started"):
        await start(
            empty,
            cwd=tmp_path,
            env=dict(os.environ),
            stderr=tmp_path / "stderr",
            owner="test",
            home=tmp_path,
            temporary=tmp_path / "temporary",
            option=option,
        )


async def refused_start(command: list[str], folder: Path) -> str:
    with pytest.raises(NotStarted) as caught:
        await start(
            find_program(command),
            cwd=folder,
            env=dict(os.environ),
            stderr=folder / "stderr",
            owner="test",
            home=folder,
            temporary=folder / "temporary",
        )
    return str(caught.value)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_directory_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    expected = "is a directory; give the program in it, such as ./agent/server"
    assert refusal(["./agent"]) == f"'./agent' {expected}"


@pytest.mark.parametrize(
    ("name", "content", "by"),
    [
        ("server.py", b"import sys\n", "python ./server.py"),
        ("server", b"#!/usr/bin/env -S node --x\n", "node ./server"),
        ("server", b"#!/bin/bash -e\n", "bash ./server"),
        ("server.sh", b"", "sh ./server.sh"),
    ],
)
def test_a_file_that_is_not_executable_is_told_the_two_ways_out(
    tmp_path: Path, name: str, content: bytes, by: str
) -> None:
    path = written(tmp_path, name, content, 0o644)
    way = f"chmod +x {path}, or name its interpreter: {by}"
    assert refusal([path]) == f"{path!r} is not executable: {way}"
    assert refusal([path, "--stdio"]) == f"{path!r} is not executable: {way} …"


def test_a_file_of_this_folder_is_given_with_its_path(tmp_path: Path) -> None:
    written(tmp_path, "my-server.py", b"#!/bin/sh\n")
    expected = "was not found on PATH; the one in this folder is ./my-server.py"
    assert refusal(["my-server.py"]) == f"'my-server.py' {expected}"
    written(tmp_path, "my-server.py", b"", 0o644)
    assert "chmod +x my-server.py and give ./my-server.py, or" in refusal(["my-server.py"])


def test_an_interpreter_that_does_not_exist_is_named_with_the_line(tmp_path: Path) -> None:
    path = written(tmp_path, "server", b"#!/no/such/python3 -u\nimport sys\n")
    said = refusal([path])
    assert "its first line is '#!/no/such/python3 -u', and there is no /no/such/python3;" in said
    assert said.endswith("fix that line, or name an interpreter: python3 ./server")


def test_an_interpreter_that_is_not_executable_is_named_with_the_line(tmp_path: Path) -> None:
    plain = written(tmp_path, "plain", b"", 0o644)
    path = written(tmp_path, "server", f"#!{plain}\n".encode())
    assert f"its first line is '#!{plain}', and {plain} is not executable; fix" in refusal([path])


@pytest.mark.parametrize("line", [b"#!/bin/sh", b"#!/usr/bin/env python3"])
def test_line_ends_of_windows_after_the_interpreter_are_told(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path, "server", line + b"\r\nexit 0\r\n")
    said = refusal([path])
    assert f"has the line ends of Windows, and its interpreter would be {line.decode()[2:]}" in (
        said.replace("'", "")
    )
    assert said.endswith(rf"sed -i 's/\r$//' {path}")


async def test_a_script_without_a_first_line_is_told_to_name_its_interpreter(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "server.py", b"import sys\nsys.stdin.read()\n")
    said = await refused_start([path], tmp_path)
    assert "it does not begin with a #! line, so that nothing says what runs it;" in said
    assert "name its interpreter: python ./server.py, or let it begin with #!/usr/" in said


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "it is an empty file"),
        (b"\x7fELF\0\0nonsense", "it is damaged, or made for another kind of machine"),
    ],
)
async def test_refusals_of_the_system_are_reported_in_words(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = written(tmp_path, "server", content)
    said = await refused_start([path], tmp_path)
    assert f"the server's program '{path}' cannot be started: Exec format error; {expected}" in said


def test_a_good_script_is_let_through(tmp_path: Path) -> None:
    for number, line in enumerate([b"#!/bin/sh\n", b"#! /usr/bin/env python3\n", b"#!/bin/sh"]):
        path = written(tmp_path, f"server{number}", line)
        assert find_program([path]) == [path]


def test_a_command_that_starts_elsewhere_names_its_files_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("agent.py", "bin/agent", "exec"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    words = ["python", "agent.py", "bin/agent", "exec", "other.py", "no/such", "agent.py"]
    full = [str(tmp_path / "agent.py"), str(tmp_path / "bin/agent")]
    assert with_absolute_paths(words) == ["python", *full, "exec", "other.py", "no/such", full[0]]
    assert with_absolute_paths(["agent.py"]) == ["agent.py"]
