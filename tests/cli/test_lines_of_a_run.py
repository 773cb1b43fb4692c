"""Output of a run: short by default, every rule with -v."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from command_line import call

from tests.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SERVERS = ROOT / "fixtures/servers"
PLAIN = ["--target", "reference", "turns/plain-turn"]


def test_a_run_of_one_scenario_names_no_rule_that_it_did_not_exercise() -> None:
    said = call("harness", "run", *PLAIN)
    assert said.status == 0
    assert "approval.accepted-runs" not in said.out
    (line,) = [one for one in said.out.splitlines() if one.startswith("NOT_EXERCISED")]
    assert line.endswith("no scenario of this run gave it anything to judge (-v names them)")
    assert len(said.out.splitlines()) < 20


def test_with_v_it_names_them() -> None:
    said = call("harness", "run", *PLAIN, "-v")
    assert said.status == 0
    _, summary = said.out.split("conformance of reference", 1)
    assert "  approval.accepted-runs approval.always-asked" in summary


def on(*servers: str) -> list[str]:
    """The options for example servers, the first of which may start the next."""
    words = [word for name in servers for word in (sys.executable, str(SERVERS / f"{name}.py"))]
    return ["--server-cmd", shlex.join(words)]


@pytest.mark.parametrize("words", [("run",), ("scenario", "play")])
def test_without_v_a_rule_that_found_nothing_has_no_letter(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    said = call("harness", *words, *on("minimal"), "turns/plain-turn", cwd=tmp_path)
    assert said.status == 0
    assert re.fullmatch(r"\. +\[100%\]", said.out.splitlines()[0])
    assert "rules::" not in said.out
    assert re.search(r"^6\d passed, 1\d\d skipped in ", said.out, re.MULTILINE)


def test_a_rule_that_failed_has_one_and_the_rest_are_counted(tmp_path: Path) -> None:
    said = call(
        "harness", "scenario", "play", *on("twice", "minimal"), "turns/plain-turn", cwd=tmp_path
    )
    assert said.status == 1
    assert re.fullmatch(r"\.F +\[100%\]", said.out.splitlines()[0])
    assert "FAILED rules::turn.completed-once" in said.out
    assert re.search(r"^1 failed, \d+ passed, \d+ skipped in ", said.out, re.MULTILINE)


def test_with_v_every_rule_has_a_line_and_a_finding_that_does_not_count_its_level(
    tmp_path: Path,
) -> None:
    odd = "threads/sandbox-word-of-the-example"
    said = call("harness", "run", "-v", *on("minimal"), odd, cwd=tmp_path)
    assert said.status == 0
    (total,) = re.findall(r"^rules: (\d+) ", said.out, re.MULTILINE)
    lines = [line for line in said.out.splitlines() if re.match(r"rules::\S+ +[A-Z]", line)]
    assert len(lines) == int(total) > 200
    assert re.search(r"^rules::thread\.sandbox-camel-taken INFO ", said.out, re.MULTILINE)
    assert lines[-1].endswith("[100%]")


def test_findings_that_do_not_count_are_reported_once(tmp_path: Path) -> None:
    odd = "threads/sandbox-word-of-the-example"
    said = call("harness", "run", *on("minimal"), odd, cwd=tmp_path)
    assert said.status == 0
    assert said.out.count("thread.sandbox-camel-taken") == 1
    assert "warnings summary" not in said.out


def test_beside_tests_of_the_user_it_is_one_of_their_warnings(tmp_path: Path) -> None:
    odd = ROOT / "scenarios/threads/sandbox-word-of-the-example.scenario.yaml"
    (tmp_path / odd.name).write_text(odd.read_text("utf-8"), "utf-8")
    said = call("pytest", *on("minimal"), odd.name, cwd=tmp_path)
    assert said.status == 0
    told, summary = said.out.split("conformance of", 1)
    assert "PytestWarning: INFO   thread.sandbox-camel-taken" in told
    assert "INFO thread.sandbox-camel-taken" in summary


def test_with_workers_the_letters_are_the_same(tmp_path: Path) -> None:
    words = [*on("twice", "minimal"), "turns/plain-turn", "turns/many-deltas", "-n", "2"]
    said = call("harness", "run", *words, cwd=tmp_path)
    assert said.status == 1
    (letters,) = (line.split()[0] for line in said.out.splitlines() if line.endswith("[100%]"))
    assert sorted(letters.replace("s", ".")) == [".", ".", "F"]
