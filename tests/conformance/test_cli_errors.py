"""Errors in a command line, a profile or a file: one line, and nothing starts.

`configure` checks everything before pytest collects; some tests go through pytest as well. The
server of these tests leaves a file behind as soon as it starts.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.play.config import configure
from tests.bad_scenarios import write_bad

from .judging import Ran, run_pytest

pytestmark = [pytest.mark.socket, pytest.mark.slow]

WITNESS = "started"
BAD = "misspelt-key.scenario.yaml"


@pytest.fixture
def server(place: Path) -> str:
    script = place / "server.sh"
    script.write_text(f"#!/bin/sh\ntouch '{place / WITNESS}'\nexec cat\n")
    script.chmod(0o755)
    return str(script)


def ask(place: Path, mark: str, *args: str) -> Ran:
    ran = run_pytest(*args, folder=place, mark=mark)
    assert not (place / WITNESS).exists(), "the server was started"
    return ran


def complaint(ran: Ran) -> str:
    """The only line of a usage error."""
    assert ran.status == 4, ran.text
    lines = [line for line in ran.text.splitlines() if line.strip()]
    assert len(lines) == 1, ran.text
    return lines[0].removeprefix("ERROR: ")


def refusal(**options: Any) -> str:
    """The text of the error with which a run is refused."""
    with pytest.raises(UsageError) as caught:
        configure(**options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


COMMANDS = {
    "missing": ("no-such-server --stdio", "'no-such-server' was not found; give --server-cmd"),
    "missing-path": ("./no/such", "'./no/such' was not found; give --server-cmd"),
    "empty": ("", "the command is empty; give --server-cmd 'program arguments'"),
    "blank": ("  ", "the command is empty; give --server-cmd 'program arguments'"),
    "quotes": ("server 'half", "cannot be split as by a shell: No closing quotation"),
    "not-executable": ("./plain.txt", "'./plain.txt' is not executable: chmod +x ./plain.txt, or"),
    "folder": ("./folder", "'./folder' is a directory; give the program in it"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_command_that_cannot_run(case: str, place: Path, mark: str) -> None:
    (place / "plain.txt").touch()
    (place / "folder").mkdir()
    line, expected = COMMANDS[case]
    assert expected in complaint(ask(place, mark, "--server-cmd", line))


PROFILES = {
    "toml": ("name = [", "not TOML: "),
    "unknown-key": (
        'name = "x"\ncomand = "y"\n',
        "mine.toml:2:1: unknown key 'comand'; did you mean",
    ),
    "unknown-inner-key": (
        'name = "x"\n[bounds]\nsteep = 1\n',
        "mine.toml:3:1: unknown key 'steep'; did you mean 'step'?",
    ),
    "wrong-type": ('name = "x"\nenv = 3\n', "env: it should be a table"),
    "negative-bound": ('name = "x"\n[bounds]\nstep = -1\n', "bounds.step: it should be greater"),
    "no-name": ('title = "x"\n', "the key 'name' is missing"),
    "no-reason": (
        'name = "x"\n[[deviations]]\nrule = "turn.completes"\n',
        "mine.toml:2:1: the key 'reason' is missing",
    ),
    "unknown-rule": (
        'name = "x"\n[[deviations]]\nrule = "turn.complets"\nreason = "r"\n',
        "mine.toml:3:8: unknown rule or finding 'turn.complets'; did you mean 'turn.completes'?",
    ),
}


@pytest.mark.parametrize("case", PROFILES)
def test_profile_with_a_mistake(case: str, place: Path, server: str) -> None:
    text, expected = PROFILES[case]
    (place / "mine.toml").write_text(text)
    assert expected in refusal(target="mine.toml", server_cmd=server)


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "profile": ({"target": "none.toml"}, "no profile 'none.toml': not a file, and the built-in"),
    "profile-folder": ({"target": "home"}, "--target home is a folder"),
    "baseline": ({"baseline": "none.toml"}, "--baseline none.toml: no such file"),
    "baseline-folder": ({"baseline": "home"}, "--baseline home: cannot be read: Is a directory"),
    "baseline-toml": ({"baseline": "half.toml"}, "half.toml:1:13: not TOML: "),
    "baseline-key": (
        {"baseline": "baseline.toml"},
        "baseline.toml:3:1: unknown key 'reson'; did you mean 'reason'?",
    ),
    "rule": ({"rule": "turn.complets"}, "unknown rule id 'turn.complets'; did you mean"),
    "require": (
        {"require": "flying"},
        "--require: unknown capability 'flying'; there are ",
    ),
    "scale": ({"scale": 0.0}, "--timeout-scale must be a number greater than 0"),
    "scale-nan": ({"scale": math.nan}, "--timeout-scale must be a number greater than 0"),
    "scale-inf": ({"scale": math.inf}, "--timeout-scale must be a number greater than 0"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_option_with_a_mistake(case: str, place: Path, server: str) -> None:
    (place / "half.toml").write_text("[[deviations]\n")
    (place / "baseline.toml").write_text(
        '[[deviations]]\nrule = "turn.completes"\nreson = "misspelt"\n'
    )
    options, expected = OPTIONS[case]
    assert expected in refusal(server_cmd=server, **options)


THROUGH_PYTEST = {
    "profile": (["--target", "none.toml"], "no profile 'none.toml'"),
    "baseline": (["--baseline", "none.toml"], "--baseline none.toml: no such file"),
    "rule": (["--rule", "turn.complets"], "did you mean 'turn.completes'?"),
    "junit": (["--junit-xml=pytest.ini/x"], "--junit-xml pytest.ini/x: pytest.ini is not a folder"),
    "json": (["--harness-json", "none/x.json"], "--harness-json none/x.json: its folder does not"),
}


@pytest.mark.parametrize("case", THROUGH_PYTEST)
def test_mistake_is_a_usage_error_of_pytest(case: str, place: Path, mark: str, server: str) -> None:
    options, expected = THROUGH_PYTEST[case]
    assert expected in complaint(ask(place, mark, "--server-cmd", server, *options))


def test_profile_without_a_command(place: Path, mark: str) -> None:
    assert "has no command; give --server-cmd" in complaint(ask(place, mark, "--target", "spec"))


def test_option_without_a_server(place: Path, mark: str) -> None:
    text = complaint(ask(place, mark))
    assert text == "--harness-json needs a server: give --server-cmd or --target"


def test_bad_scenario_file_is_one_line_and_nothing_starts(
    place: Path, mark: str, server: str
) -> None:
    folder = place / "mine"
    folder.mkdir()
    write_bad(folder, BAD)
    (folder / "good.scenario.yaml").write_text(
        "title: good\nclient:\n  - start_thread: {as: t}\n", encoding="utf-8"
    )
    ran = ask(place, mark, "--server-cmd", server, "mine")
    assert ran.status == 2
    lines = [line for line in ran.text.splitlines() if str(folder / BAD) in line]
    assert lines == [f"{folder / BAD}:6:1: unknown key 'clinet'; did you mean 'client'?"]
    assert "Traceback" not in ran.text
    assert "conformance of" not in ran.text
