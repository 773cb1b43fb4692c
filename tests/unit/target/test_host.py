"""Programs that a target needs on this machine: checked by a command, bounded, one line each."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

import pytest

from harness.client.target import host
from harness.client.target.host import Lack, lacks_of
from harness.client.target.profile import Profile, Program, parse_profile
from harness.errors import UsageError


def program(folder: Path, script: str, name: str = "confine") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def profile(*, capabilities: object = ("core", "sandbox"), **fields: object) -> Profile:
    told = {"command": ["confine"], "install": "the package confiner", **fields}
    given = capabilities if capabilities == "probe" else list(capabilities)  # pyright: ignore[reportArgumentType]
    return Profile(name="p", capabilities=given, host={"sandbox": Program.model_validate(told)})  # pyright: ignore[reportArgumentType]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the PATH."""
    (folder := tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_a_program_that_ends_well_is_no_lack(path: Path) -> None:
    program(path, 'test "$*" = "--try it"')
    assert lacks_of(profile(command=["confine", "--try", "it"])) == ()


def test_a_program_that_is_not_there_is_named_with_what_to_install() -> None:
    (lack,) = lacks_of(profile())
    assert lack == Lack("sandbox", "confine", "confine was not found", lack.advice)
    assert lack.reason == (
        "this machine cannot do sandbox: confine was not found; install the package confiner"
    )


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("echo; echo 'no namespaces' >&2; echo more >&2; exit 1", "no namespaces"),
        ("exit 3", "it ended with status 3"),
        ("kill -9 $$", "it ended with status -9"),
    ],
)
def test_a_program_that_does_not_work_is_quoted(path: Path, script: str, fault: str) -> None:
    found = program(path, script)
    (lack,) = lacks_of(profile(otherwise="allow namespaces"))
    assert lack.cause == f"{found} does not work here ({fault})"
    assert lack.advice == "install the package confiner, or allow namespaces"


def test_a_file_that_cannot_be_run_is_a_lack(path: Path) -> None:
    program(path, "").write_text("#!/no/such/interpreter\n")
    (lack,) = lacks_of(profile())
    assert "does not work here (No such file or directory)" in lack.cause


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells of others' processes")
def test_a_program_that_hangs_is_ended_at_the_bound_with_what_it_started(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "MAX_CHECK_SECONDS", 0.2)
    program(path, f"tail -f /dev/null & echo $! > {path}/child; wait")
    began = time.monotonic()
    (lack,) = lacks_of(profile())
    assert time.monotonic() - began < 5
    assert lack.cause.endswith("does not work here (it did not end within 0.2 s)")
    child = int((path / "child").read_text())
    assert ends(child)


def ends(pid: int) -> bool:
    """Return True if it has ended, or ends within the bound; this process may not be its parent."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(process) as opened:
        return bool(select.select([opened], [], [], 5.0)[0])


def test_the_places_come_before_the_path(path: Path, tmp_path: Path) -> None:
    (place := tmp_path / "place").mkdir()
    program(path, "exit 1")
    program(place, "exit 0")
    assert lacks_of(profile(places=[str(place)])) == ()
    assert len(lacks_of(profile())) == 1


@pytest.mark.parametrize(
    ("capabilities", "asked"),
    [(["core"], False), (["core", "sandbox"], True), ("probe", True)],
)
def test_only_what_is_promised_or_probed_is_asked_for(
    path: Path, capabilities: object, asked: bool
) -> None:
    program(path, f"echo asked >> {path}/log")
    lacks_of(profile(capabilities=capabilities))
    assert (path / "log").exists() is asked


MISTAKES = {
    "no-install": ('command = "a"', "here:2:1: the key 'install' is missing"),
    "no-command": ('install = "a"', "here:2:1: the key 'command' is missing"),
    "empty": ('command = []\ninstall = "a"', "here:3:11: host.sandbox.command: it should"),
    "unknown": (
        'command = "a"\ninstal = "a"',
        "here:4:1: unknown key 'instal'; did you mean 'install'?",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_the_table_is_one_line_with_its_key(case: str) -> None:
    text, expected = MISTAKES[case]
    with pytest.raises(UsageError) as caught:
        parse_profile(f'name = "x"\n[host.sandbox]\n{text}', "here")
    assert str(caught.value).startswith(expected)
    assert len(str(caught.value).splitlines()) == 1
