"""`pytest --server-cmd=…` in a user's project: the user's tests and the scenarios, selectable.

A server that was given is played, or the run is an error that says why it is not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.scenario.bundled import bundled_ids_on

from .judging import command
from .running import Told, own_pytest, scenario

pytestmark = [pytest.mark.socket, pytest.mark.slow]

MINIMAL = command("minimal")
NOTHING = "ERROR: a server was given, and no scenario is left to play on it: "


@pytest.fixture
def project(place: Path) -> Path:
    """Tests with a conftest and a marker of their own, and a scenario beside them."""
    (place / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\nmarkers =\n    mine: a marker of theirs\n"
        "addopts = --strict-markers\nnorecursedirs = turns\n"
    )
    tests = place / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef answer():\n    return 42\n"
    )
    (tests / "test_theirs.py").write_text(
        "import pytest\n@pytest.mark.mine\ndef test_theirs(answer):\n    assert answer == 42\n"
    )
    scenario(place / "my" / "hello.scenario.yaml")
    return place


def ask(*words: str, project: Path, server: str = MINIMAL) -> Told:
    return own_pytest(*words, server=server, folder=project)


def collected(*words: str, project: Path) -> set[str]:
    """The ids that a run would play and test."""
    told = ask("--collect-only", *words, project=project)
    assert told.status == 0, told.text
    return {line for line in told.text.split("\n\n")[0].splitlines() if line}


THEIRS = "tests/test_theirs.py::test_theirs"


def test_without_paths_their_tests_and_the_bundled_scenarios_are_collected(project: Path) -> None:
    assert collected(project=project) == {THEIRS, *bundled_ids_on("session")}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tests"], {THEIRS, *bundled_ids_on("session")}),
        (["."], {THEIRS, "my/hello"}),
        (["tests", "my/hello"], {THEIRS, "my/hello"}),
        (["tests", "turns/plain-turn"], {THEIRS, "turns/plain-turn"}),
        (["tests", "my", "bundled"], {THEIRS, "my/hello", *bundled_ids_on("session")}),
        (["bundled"], bundled_ids_on("session")),
        ([THEIRS, "turns/plain-turn"], {THEIRS, "turns/plain-turn"}),
        (["turns/"], {one for one in bundled_ids_on("session") if one.startswith("turns/")}),
        (["turns/*", "-k", "plain"], {"turns/plain-turn"}),
        (["turns", "--deselect", "turns/plain-turn", "-k", "plain or phases"], {"turns/phases"}),
        (["--no-bundled", "."], {THEIRS, "my/hello"}),
        (["my/hello.scenario.yaml::my/hello"], {"my/hello"}),
        (["turns/plain-turn@kill"], {"turns/plain-turn@kill"}),
        (["FAILED turns/plain-turn - what - is wrong"], {"turns/plain-turn"}),
        ([f"FAILED {THEIRS} - assert 1 == 2", "turns/phases"], {THEIRS, "turns/phases"}),
        (["my", "my/hello", "./my/hello.scenario.yaml"], {"my/hello"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_arguments_name_scenarios_and_own_tests(
    words: list[str], expected: set[str], project: Path
) -> None:
    assert collected(*words, project=project) == expected


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_their_tests_and_what_was_named_are_both_run(workers: str, project: Path) -> None:
    told = ask("tests", "turns/plain-turn", workers, project=project)
    assert told.status == 0, told.text
    assert told.score == "1 PASS"
    rules = int(told.line("rules: ").split("(")[1].split()[0])
    assert told.tally["passed"] == rules + len({"their test", "the scenario"})


def test_their_failure_fails_the_run_and_leaves_the_verdict_green(project: Path) -> None:
    (project / "tests" / "test_worse.py").write_text("def test_worse():\n    assert False\n")
    told = ask("tests", "turns/plain-turn", project=project)
    assert told.status == 1
    assert "verdict: GREEN" in told.text
    assert told.tally["failed"] == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["tests", "-k", "theirs"], "none is chosen by -k theirs"),
        (["tests", "-k", "theirs", "-n2"], "none is chosen by -k theirs"),
        (["tests", "--tag", "turn"], "--tag: unknown tag 'turn'; did you mean 'turns'?"),
        (["sdk-calls/plain-turn"], "what was named is played with --sdk-cmd"),
        (["mcp-command/", "exec/"], "what was named is played with --agent-cmd"),
    ],
    ids=["deselected", "deselected-with-workers", "tag", "sdk", "agent"],
)
def test_a_server_that_nothing_is_played_on_is_an_error(
    words: list[str], why: str, project: Path
) -> None:
    told = ask(*words, project=project)
    assert told.status == (4 if "--tag" in words else 5), told.text
    assert why in told.line(NOTHING)
    assert "passed" not in told.tally, "nothing is run at all"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["tests"], "tests: no file below this folder has"),
        (["tests", "-n2"], "tests: no file below this folder has"),
        ([THEIRS], "--no-bundled, and "),
        ([".", "-k", "test_theirs"], "none is chosen by -k test_theirs"),
        ([], "tests: no file below this folder has"),
    ],
    ids=["tests", "workers", "node", "keyword", "no-path"],
)
def test_with_no_bundled_their_tests_run_as_ever_and_a_line_says_that_nothing_was_played(
    words: list[str], why: str, project: Path
) -> None:
    told = ask("--no-bundled", *words, project=project)
    assert told.status == 0, told.text
    assert told.tally["passed"] == 1
    assert why in told.line("no scenario was played on the server: ")


def test_with_no_bundled_what_failed_last_among_their_tests_is_run_alone(project: Path) -> None:
    worse = project / "tests" / "test_worse.py"
    worse.write_text("def test_worse():\n    assert False\n")
    first = ask("--no-bundled", project=project)
    assert (first.status, first.tally["passed"]) == (1, 1), first.text
    again = ask("--no-bundled", "--lf", project=project)
    assert (again.status, "passed" in again.tally) == (1, False), again.text
    nothing = ask("--no-bundled", "tests", "-k", "nobody", project=project)
    assert nothing.status == 5, "pytest's own, where nothing at all ran"


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_where_own_scenarios_are_played_a_line_says_that_the_bundled_ones_are_not(
    workers: str, project: Path
) -> None:
    told = ask("my", workers, project=project)
    assert (told.status, told.score) == (0, "1 PASS"), told.text
    assert told.line("bundled scenarios") == (
        "bundled scenarios were not added, since my/hello was found; name `bundled` to add them"
    )
    for words in (["my", "--no-bundled"], ["my/hello"]):
        assert "were not added" not in ask(*words, project=project).text


@pytest.mark.parametrize("words", [[], ["tests"], [THEIRS]], ids=str)
def test_a_program_that_does_not_exist_is_an_error_at_once(words: list[str], project: Path) -> None:
    told = ask(*words, project=project, server="no-such-server")
    assert told.status == 4
    assert "'no-such-server' was not found" in told.line("ERROR: ")
    assert "passed" not in told.text


def test_a_name_without_the_suffix_is_told(project: Path) -> None:
    (project / "my" / "hello.scenario.yaml").rename(project / "foo.yaml")
    told = ask("foo.yaml", project=project)
    assert told.status == 4
    assert told.line("ERROR: ") == (
        "ERROR: foo.yaml: the name of a scenario file ends in .scenario.yaml; "
        "rename it to foo.scenario.yaml"
    )


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_two_files_with_one_id_are_an_error_that_names_both(workers: str, project: Path) -> None:
    own = scenario(project / "language" / "threads.scenario.yaml")
    bundled = sorted(one for one in bundled_ids_on("session") if one.startswith("language/"))[0]
    own = own.rename(project / f"{bundled}.scenario.yaml")
    told = ask(".", "bundled", workers, project=project)
    assert told.status == 2, told.text
    lines = [line for line in told.text.splitlines() if "is that of" in line]
    assert lines
    assert all(f"its id {bundled} is that of" in one and str(own) in one for one in lines)
    assert "conformance of" not in told.text


def test_below_the_projects_folder_deselect_takes_what_is_printed_there(project: Path) -> None:
    (project / "deep").mkdir()
    words = ["turns/usage", "turns/plain-turn", "--deselect"]
    told = ask(*words, "../turns/usage", project=project / "deep")
    assert told.score == "1 PASS", told.text
    assert told.tally["deselected"] == 1
    pasted = ask(*words, "FAILED ../turns/usage - so", project=project / "deep")
    assert pasted.score == "1 PASS", pasted.text


def test_a_scenario_file_without_a_server_is_answered_with_what_to_give(project: Path) -> None:
    line = [sys.executable, "-m", "pytest", "my/hello.scenario.yaml"]
    done = subprocess.run(line, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    hint = "ERROR: scenario files need a server: give --server-cmd or --target"
    assert hint in done.stderr.splitlines()
    other = subprocess.run([*line[:3], "nobody.py"], cwd=project, capture_output=True, check=False)
    assert b"scenario files" not in other.stderr
