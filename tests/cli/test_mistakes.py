"""Mistakes of a user: one line that says how to correct them, exit status 2, no traceback."""

import re
from pathlib import Path

import pytest
from command_line import Said, call

from harness.cli.commands import protocol_words
from harness.cli.commands.vocabulary import names
from harness.faults.base import all_faults
from harness.faults.client_duties import client_faults
from harness.judge.rules.discovery import every_rule
from harness.protocol.spec.findings import finding_kinds
from harness.protocol.spec.loading import load_book
from tests.bad_scenarios import write_bad

pytestmark = pytest.mark.slow


def _one_line(said: Said, *, status: int = 2) -> str:
    assert said.status == status
    assert said.out == ""
    assert "Traceback" not in said.err
    (line,) = said.err.splitlines()
    return line


def test_an_unknown_rule_is_answered_with_the_nearest() -> None:
    line = _one_line(call("harness", "explain", "turn.complets"))
    words = "harness: unknown id 'turn.complets'; did you mean "
    assert line == f"{words}'turn.completes'? (harness list)"


def test_a_rule_like_no_other_is_answered_with_their_number_and_where_they_are_listed() -> None:
    line = _one_line(call("harness", "explain", "zzzzzzzz"))
    requirements = {one.id for one in load_book().requirements}
    ids = {
        *every_rule(),
        *finding_kinds(),
        *requirements,
        *names(),
        *protocol_words.names(),
        *all_faults(),
        *client_faults(),
    }
    none = f"none of the {len(ids)} is like it (harness list)"
    assert line == f"harness: unknown id 'zzzzzzzz'; {none}"


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("scenario show two-threads", "'turns/two-threads' or 'clients/two-threads-at-once'?"),
        ("faulty --fault turn-ends -- true", "'turn-ends-twice', "),
        ("mutate --target reference --fault turn-end", "'turn-ends-twice', "),
        (
            "mutate --target reference --rule completes",
            "'item.completes' or 'turn.completes'? (harness list)",
        ),
        ("docs report", "'reports'? (harness docs)"),
    ],
)
def test_a_part_of_a_name_is_answered_with_the_names_that_have_it(words: str, near: str) -> None:
    assert f"; did you mean {near}" in _one_line(call("harness", *words.split()))


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_missing_trace_is_named(command: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.jsonl"
    line = _one_line(call("harness", command, str(missing)))
    assert line == f"harness: {missing}: No such file or directory"


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_folder_is_no_trace(command: str, tmp_path: Path) -> None:
    line = _one_line(call("harness", command, str(tmp_path)))
    assert line == f"harness: {tmp_path}: Is a directory"


@pytest.mark.parametrize("command", ["check", "show"])
@pytest.mark.parametrize("text", ["# a title\n", "", "{}\n", "\x00\n", "[1, 2]\n"])
def test_a_file_that_is_no_trace_is_refused(command: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "no-trace.jsonl"
    path.write_text(text, encoding="utf-8")
    line = _one_line(call("harness", command, str(path)))
    assert line.startswith(f"harness: {path}:1: ")


def test_a_profile_that_does_not_exist_is_answered_with_the_nearest() -> None:
    line = _one_line(call("harness", "doctor", "--target", "nope"))
    assert "no profile 'nope'" in line
    assert "codex-0.107, codex-0.169, reference, spec" in line


def test_a_program_that_does_not_exist_is_named() -> None:
    line = _one_line(call("harness", "doctor", "--server-cmd", "no-such-program --stdio"))
    assert "'no-such-program' was not found" in line


def test_fuzzing_a_server_that_does_not_start_is_one_line_that_names_the_doctor() -> None:
    said = call("harness", "fuzz", "--server-cmd", "false", "--conversations", "1")
    assert said.status == 1
    assert said.out == ""
    assert "ended with exit status 1" in said.err
    assert said.err.endswith("; ask harness doctor what to do")


def test_a_method_that_does_not_exist_is_answered_with_the_nearest() -> None:
    line = _one_line(call("harness", "fuzz", "--target", "reference", "--method", "turn/strat"))
    assert line == "harness: --method: unknown request 'turn/strat'; did you mean 'turn/start'?"


def test_a_command_that_cannot_be_split_is_shown() -> None:
    line = _one_line(call("harness", "doctor", "--server-cmd", "python 'server.py"))
    assert "cannot be split" in line


def test_no_server_at_all_is_answered_with_what_to_give() -> None:
    line = _one_line(call("harness", "doctor"))
    assert "--server-cmd" in line


@pytest.mark.parametrize(
    ("option", "answer"),
    [
        (["--target", "nope"], "no profile 'nope'"),
        (["--server-cmd", "no-such-program"], "'no-such-program' was not found"),
        (["--target", "reference", "--rule", "turn.complets"], "'turn.completes'"),
        (["--target", "reference", "--baseline", "nope.toml"], "nope.toml: no such file"),
        (["--target", "reference", "--require", "nope"], "--require: unknown capability 'nope'"),
        (["--target", "reference", "--timeout-scale", "0"], "greater than 0"),
        (
            ["--target", "reference", "no-such-folder"],
            "no-such-folder: no such file or folder",
        ),
        (["--target", "reference", "turns/plain-tur"], "did you mean 'turns/plain-turn'?"),
        (["--target", "reference", "turns/plain-turn@interupt"], "did you mean 'interrupt'?"),
        (["--target", "reference", "turns/plain-turn@kill@delta:9"], "unknown position 'delta:9'"),
        (["--target", "reference", "turns@kill"], "a race is of one scenario, and turns names 19"),
        (["--target", "reference", "rules::turn.complets"], "'turn.completes'"),
        (["--target", "reference", "findings::setup.not-started"], "name the scenarios"),
        (["--target", "reference", "docs/reports.md"], "ends in .scenario.yaml; rename it to"),
        (["--target", "reference", "--race", "kill,steal"], "did you mean 'steer'?"),
        (["--target", "reference", "--tag", "a,,b"], "--tag a,,b: found an empty word"),
        (["--target", "reference", "--json", "none/x.json"], "--json none/x.json: its folder"),
    ],
)
def test_a_run_that_cannot_begin_says_why(option: list[str], answer: str) -> None:
    said = call("harness", "run", *option)
    assert said.status == 2
    assert "Traceback" not in said.err
    (line,) = (line for line in said.err.splitlines() if line)
    assert answer in line


@pytest.mark.parametrize("option", ["--json", "--junit"])
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("{file}/x", "server.py is not a folder"),
        ("{file}/deep/x", "is not a folder|does not exist"),
        ("{folder}", "it is a folder; name a file"),
        ("/proc/nobody/x", "cannot be made|does not exist"),
    ],
    ids=["below-a-file", "deep-below-a-file", "a-folder", "a-folder-that-cannot-be"],
)
def test_a_report_that_cannot_be_written_is_told_before_anything_is_played(
    option: str, path: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "server.py"
    file.touch()
    path = path.format(file=file, folder=tmp_path)
    line = _one_line(call("harness", "run", "--target", "reference", option, path))
    assert line.startswith(f"harness: {option} {path}: ")
    assert re.search(why, line)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("words", [["--nope"], ["-n", "x"], ["-n", "-1"]], ids=" ".join)
def test_a_run_whose_command_line_cannot_be_used_has_the_documented_status(
    words: list[str],
) -> None:
    assert call("harness", "run", *words).status == 2
    assert call("harness", "fuzz", *words).status == 2, "as of every other command"


def test_agent_names_a_command_that_it_does_not_have() -> None:
    line = _one_line(call("agent", "sing"))
    assert line == "agent: there is no command `sing`; see agent --help"


def test_agent_names_a_scenario_that_is_not_there() -> None:
    line = _one_line(call("agent", "app-server", "--scenario", "missing.scenario.yaml"))
    assert line == (
        "--scenario missing.scenario.yaml: there is no such file, and no bundled scenario has this "
        "id; harness scenario list shows the ids"
    )


def test_agent_names_a_folder_that_is_no_scenario() -> None:
    line = _one_line(call("agent", "app-server", "--scenario", "scenarios"))
    assert line == (
        "--scenario scenarios: it is a folder; give the file of one scenario, or --listen, which "
        "plays all of them"
    )


def test_agent_takes_the_id_of_a_bundled_scenario() -> None:
    said = call("agent", "app-server", "--scenario", "turns/plain-turn")
    assert (said.status, said.err) == (0, "")


def test_agent_shows_the_place_of_a_mistake_in_a_scenario(tmp_path: Path) -> None:
    [path] = write_bad(tmp_path, "alias.scenario.yaml")
    said = call("agent", "app-server", "--scenario", str(path))
    assert _one_line(said).startswith(f"{path}:9:5: ")


def test_the_specification_is_not_shipped_and_its_page_is_named() -> None:
    line = _one_line(call("harness", "docs", "session-protocol"))
    assert "harness docs protocol has its requirements" in line
    clause = call("harness", "docs", "protocol#turn.completes")
    assert clause.status == 0
