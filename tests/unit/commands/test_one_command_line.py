"""One command line for all commands: the same words for help, output files and errors."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from harness.cli.main import app
from tests.processes import ROOT, run_warm

TARGET_OF_OUTPUT = "FILE|-"
# Commands without `--json FILE|-`, and why.
WITHOUT_JSON = {
    "explain": "prints an explanation",
    "record": "writes a trace",
    "connect": "holds a conversation",
    "watch": "serves pages",
    "example": "prints a file",
    "docs": "prints a page",
    "schema": "prints JSON",
    "upgrade": "rewrites traces",
    "snapshots review": "asks for decisions; snapshots list has the results",
    "snapshots summary": "writes a part of a page",
    "profile new": "writes a profile",
    "scenario show": "prints a file",
    "scenario from-trace": "writes a scenario",
    "scenario schema": "prints JSON",
}
# A command line of each command that names something that does not exist.
UNUSABLE = {
    "run": "--target nobody",
    "check": "no.jsonl",
    "show": "no.jsonl",
    "explain": "no.such-id",
    "list": "--json no/such/folder/\0",
    "doctor": "--target nobody",
    "fuzz": "--target nobody",
    "replay": "nothing --target nobody",
    "load": "--target nobody",
    "soak": "--target nobody",
    "faulty": "--fault no-such -- true",
    "drift": "--target nobody",
    "double": "--dialect codex-3 -- true",
    "record": "--target nobody -- true",
    "mutate": "--target nobody",
    "model": "no.yaml",
    "connect": "--target nobody",
    "example": "nothing",
    "docs": "nothing",
    "schema": "nothing",
    "upgrade": "no.jsonl",
    "status": "--json .",
    "report": "no.json",
    "watch": "no.json",
    "merge": "no.json",
    "compare": "no.json no.json",
    "bisect": "turn.completes --versions 1,2 --server-cmd no-such-{version}",
    "matrix": "no.toml",
    "ledger": "no.json",
    "snapshots review": "no-folder",
    "snapshots list": "no-folder",
    "snapshots summary": "no-folder",
    "profile list": "--json .",
    "profile show": "nobody",
    "profile new": "--settings a.json",
    "scenario validate": "no/such",
    "scenario list": "no/such",
    "scenario show": "no/such",
    "scenario from-trace": "no.jsonl",
    "scenario schema": "--nope",
    "scenario play": "no/such --target nobody",
}


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command with its words."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        if not hasattr(command, "commands"):
            yield " ".join(words), command
            return
        for name, child in command.commands.items():
            yield from walk(child, (*words, name))

    yield from walk(typer.main.get_command(app), ())


ALL = dict(commands())


def options_of(command: Any) -> dict[str, Any]:
    return {name: option for option in command.params for name in option.opts}


def test_table_has_every_command() -> None:
    assert UNUSABLE.keys() == ALL.keys()
    assert WITHOUT_JSON.keys() < ALL.keys()


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("words", ["", "scenario", "snapshots", *ALL])
def test_help_is_asked_for_by_either_name(words: str, option: str) -> None:
    result = CliRunner().invoke(app, [*words.split(), option])
    assert result.exit_code == 0
    assert "Usage:" in result.output


@pytest.mark.parametrize("words", ALL)
def test_results_go_to_a_file_or_to_standard_output_as_json(words: str) -> None:
    option = options_of(ALL[words]).get("--json")
    assert (option is None) == (words in WITHOUT_JSON)
    assert option is None or option.metavar == TARGET_OF_OUTPUT


@pytest.mark.parametrize("words", ALL)
def test_output_file_has_one_name(words: str) -> None:
    options = options_of(ALL[words])
    assert ("-o" in options) == ("--output" in options)
    assert not {"--to", "--out", "--file", "--output-file", "--report"} & options.keys()
    for name in ("--markdown", "--junit"):
        if name in options:
            assert options[name].metavar == TARGET_OF_OUTPUT


def test_same_option_takes_the_same_value_in_every_command() -> None:
    flags: dict[str, set[bool]] = {}
    for command in ALL.values():
        for name, option in options_of(command).items():
            if name.startswith("--"):
                flags.setdefault(name, set()).add(option.is_flag)
    assert not [name for name, kinds in flags.items() if len(kinds) > 1]


@pytest.mark.slow
@pytest.mark.parametrize("words", UNUSABLE)
def test_every_command_ends_with_2_if_something_cannot_be_used(words: str, tmp_path: Path) -> None:
    line = [*words.split(), *UNUSABLE[words].split(" ")]
    line = [word.replace("\0", "") or "." for word in line]
    if words == "list":
        (tmp_path / "no").touch()  # A file in place of the folder.
    said = run_warm("harness", *line, cwd=tmp_path, env={**os.environ, "NO_COLOR": "1"})
    assert said.status == 2, said.out + said.err
    assert "Traceback" not in said.err
    assert said.err.strip()


@pytest.mark.parametrize("module", ["harness/__main__.py", "reference_server/cli/__init__.py"])
def test_older_python_is_refused_for_its_version_alone(module: str) -> None:
    path = ROOT / module
    ast.parse(path.read_text("utf-8"), feature_version=(3, 10))
    name = module.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    code = (
        "import sys; sys.version_info = (3, 10, 4, 'final', 0); sys.version = '3.10.4 (main)'\n"
        f"import {name} as command; raise SystemExit(command.main())"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert ": Python 3.11 or newer is needed, this is 3.10.4" in done.stderr


def test_no_requirement_applies_to_an_older_python() -> None:
    """Then pip and uv name the version of Python as the reason, not a missing library."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"
    for requirement in project["dependencies"]:
        assert requirement.endswith("; python_version >= '3.11'"), requirement
