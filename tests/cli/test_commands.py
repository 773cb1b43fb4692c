"""Commands that read files: judging stored traces, listing, validating."""

import json
import re
from pathlib import Path

import pytest
from command_line import ROOT, call

from harness.judge.rules.discovery import every_rule
from harness.scenario.bundled import bundled_files
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from harness.trace.surfaces import SESSION
from tests.bad_scenarios import write_bad

pytestmark = pytest.mark.slow

GOOD = sorted((ROOT / "fixtures/traces/good").glob("*.jsonl"))


def test_good_traces_are_judged_good() -> None:
    said = call("harness", "check", *(str(path.relative_to(ROOT)) for path in GOOD))
    assert said.status == 0
    assert len(GOOD) >= 10
    *lines, total = said.out.splitlines()
    assert total == f"{len(GOOD)} file(s): nothing found"
    for path, line in zip(GOOD, lines, strict=True):
        name = re.escape(str(path.relative_to(ROOT)))
        found = re.fullmatch(rf"{name}: \d+ messages, (\d+) rules passed", line)
        assert found, line
        # The other surfaces have fewer rules, and plays of a few steps.
        surface = load(path, classify_of=classify_of).header.surface
        assert int(found[1]) > (20 if surface == SESSION else 0)


def _completed_twice(folder: Path) -> Path:
    """A good trace with its last frame, the turn's end, twice."""
    lines = (ROOT / "fixtures/traces/good/plain-turn.jsonl").read_text("utf-8").splitlines()
    position, last = max((i, line) for i, line in enumerate(lines) if '{"frame"' in line)
    frame = json.loads(last)
    assert "turn/completed" in frame["raw"]
    again = json.dumps({**frame, "frame": frame["frame"] + 1})
    path = folder / "twice.jsonl"
    path.write_text("\n".join([*lines[: position + 1], again, *lines[position + 1 :]]) + "\n")
    return path


def test_a_broken_trace_is_judged_broken_with_its_messages(tmp_path: Path) -> None:
    said = call("harness", "check", str(_completed_twice(tmp_path)))
    assert said.status == 1
    assert re.search(
        r"^  MUST\s+turn\.completed-once: turn turn_1 \(#\d+, line \d+\)$", said.out, re.M
    )
    assert re.search(r"^ +\* +\d+\.\d ← #\d+ .*turn/completed", said.out, re.M)
    assert said.out.splitlines()[0].endswith("; MUST 1")


def test_the_list_names_every_rule_once() -> None:
    said = call("harness", "list")
    assert said.status == 0
    assert [line.split()[0] for line in said.out.splitlines()] == list(every_rule())


def test_the_bundled_scenarios_are_valid() -> None:
    said = call("harness", "scenario", "validate", "scenarios")
    assert said.status == 0
    count = len(bundled_files())
    assert count > len(list((ROOT / "scenarios").rglob("*.scenario.yaml")))
    assert said.out == f"{count} scenario(s), 0 bad"


def test_the_bad_scenarios_have_one_line_each(tmp_path: Path) -> None:
    files = write_bad(tmp_path)
    said = call("harness", "scenario", "validate", ".", cwd=tmp_path)
    assert said.status == 1
    assert said.out == f"{len(files)} scenario(s), {len(files)} bad"
    lines = said.err.splitlines()
    assert len(lines) == len(files)
    for path, line in zip(files, lines, strict=True):
        assert re.match(rf"{re.escape(path.name)}:\d+:\d+: \S", line)


def test_agent_gives_its_version() -> None:
    assert re.fullmatch(r"agent \d+\.\d+\.\d+", call("agent", "--version").out)


def test_scenarios_are_listed_with_what_they_need() -> None:
    said = call("harness", "scenario", "list")
    assert said.status == 0
    lines = said.out.splitlines()
    assert "turns/plain-turn: " in "\n".join(lines)
    assert any(line.startswith("tools/run-command [command-execution]: ") for line in lines)
    ids = [line.split(":")[0].split(" ")[0] for line in lines]
    assert len(ids) == len(set(ids)) >= 20


def test_list_names_a_bad_file_and_lists_the_others(tmp_path: Path) -> None:
    good = "title: Fine\nclient:\n  - start_thread: {as: t}\n"
    (tmp_path / "a.scenario.yaml").write_text(good)
    (tmp_path / "b.scenario.yaml").write_text(good.replace("client", "clinet"))
    said = call("harness", "scenario", "list", ".", cwd=tmp_path)
    assert said.status == 2
    assert said.out.splitlines() == ["a: Fine"]
    assert "b.scenario.yaml:2:1: unknown key 'clinet'" in said.err


def test_schema_is_printed_as_committed() -> None:
    said = call("harness", "scenario", "schema")
    assert said.status == 0
    committed = (ROOT / "docs/scenario.schema.json").read_text("utf-8")
    assert json.loads(said.out) == json.loads(committed)


def test_one_scenario_is_played_like_a_run_of_one_file() -> None:
    file = "scenarios/turns/plain-turn.scenario.yaml"
    said = call("harness", "scenario", "play", file, "--target", "reference")
    assert said.status == 0
    assert "scenarios: 1 (1 PASS)" in said.out


def test_fuzzing_says_its_seed_and_what_came() -> None:
    words = ["--target", "reference", "--seed", "3", "--conversations", "2"]
    said = call("harness", "fuzz", *words, "--method", "turn/start")
    assert said.status == 0
    assert re.fullmatch(
        r"fuzz inputs of turn/start: seed 3, 2 conversations, \d+ requests "
        r"\(\d+ answered, \d+ refused\), \d+ requests/s\n"
        r"  WARNING [^\n]+\nverdict: GREEN",
        said.out,
    )


def test_fuzzing_leaves_nothing_beside_the_folder_of_the_harness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A folder within the temporary one would keep its things elsewhere.
    (tmp_path / "tmp").mkdir()
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    words = ["--target", "reference", "--conversations", "1", "--method", "thread/list"]
    assert call("harness", "fuzz", *words, cwd=tmp_path / "mine").status == 0
    assert [path.name for path in (tmp_path / "mine").iterdir()] == [".harness"]
