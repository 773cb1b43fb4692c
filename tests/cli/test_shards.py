"""`harness run --shard K/N` and `harness merge`: as one run, and never green if a part is lost."""

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from command_line import Said, call

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SCENARIOS = ("threads/read-turns", "turns/usage")
PROGRAMS = ("exec/model", "mcp-command/http-server")
SERVER = ("--server-cmd", "agent app-server", "--agent-cmd", "agent")
OPTIONS = ("--baseline", "known.toml", "--snapshots", "kept")
PLAYED = (*SERVER, *SCENARIOS, *PROGRAMS, *OPTIONS)
STALE = '[[deviations]]\nrule = "turn.id-shape"\nscenario = "turns/usage"\nreason = "r"\n'
PARTS = ("1.json", "2.json")


def run(folder: Path, *words: str) -> Said:
    return call("harness", "run", *words, cwd=folder)


@pytest.fixture(scope="module", autouse=True)
def outside_ci() -> Generator[None]:
    """In CI a new snapshot that waits for review is an error, and each shard would be red."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CI", raising=False)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the reports of two shards, one of them by workers."""
    folder = tmp_path_factory.mktemp("shards")
    (folder / "known.toml").write_text(STALE, "utf-8")
    for number, workers in ((1, "0"), (2, "2")):
        words = ("--shard", f"{number}/2", "-n", workers, "--json", f"{number}.json")
        said = run(folder, *PLAYED, *words)
        assert (said.status, f"verdict: GREEN of shard {number}/2 alone" in said.out) == (0, True)
    return folder


def essence(path: Path) -> dict[str, Any]:
    """Return what a report says, without times and the frames of one play."""
    plain = json.loads(path.read_text("utf-8"))
    rows = {name: plain[name] for name in ("red", "exit", "unchecked", "requirements", "command")}
    for name, keys in {
        "rules": ("id", "verdict", "level", "reason", "missing", "counts"),
        "scenarios": ("id", "verdict", "reason", "snapshot"),
        "issues": ("id", "message", "where", "paste", "repeat"),
    }.items():
        rows[name] = [{key: row.get(key) for key in keys} for row in plain[name]]
    return rows


def test_merged_shards_say_what_one_run_says(folder: Path) -> None:
    assert run(folder, *PLAYED, "--json", "one.json").status == 1
    said = call("harness", "merge", *PARTS, "--json", "all.json", "--html", "-", cwd=folder)
    assert (said.status, "<html" in said.out) == (1, True)
    assert essence(folder / "all.json") == essence(folder / "one.json")
    assert {one["id"] for one in essence(folder / "all.json")["issues"]} == {
        "baseline.stale",
        "snapshots.pending",
    }


def test_recorded_durations_are_of_every_play(folder: Path) -> None:
    assert call("harness", "merge", *PARTS, "--write-durations", "d.json", cwd=folder).status == 1
    seconds = json.loads((folder / "d.json").read_text("utf-8"))["seconds"]
    played = json.loads((folder / "1.json").read_text("utf-8"))["shard"]["items"]
    played += json.loads((folder / "2.json").read_text("utf-8"))["shard"]["items"]
    assert set(seconds) == set(played) > set(SCENARIOS)
    assert all(value > 0 for value in seconds.values())


def test_other_options_and_scenarios_are_named(folder: Path) -> None:
    (folder / "e.json").write_text('{"durations": 1, "seconds": {"turns/usage": 9}}', "utf-8")
    run(
        folder,
        *SERVER,
        *SCENARIOS,
        "--strict",
        "--durations",
        "e.json",
        "--shard",
        "2/2",
        "--json",
        "o.json",
    )
    said = call("harness", "merge", "1.json", "o.json", cwd=folder)
    assert said.status == 2
    for words in (
        "ids of scenarios",
        "texts of scenarios",
        "known deviations",
        "snapshots",
        "--strict ('True'",
    ):
        assert words in said.err


def test_a_missing_shard_is_never_green(folder: Path) -> None:
    said = call("harness", "merge", "1.json", cwd=folder)
    assert (said.status, "shard 2/2 is missing" in said.out) == (1, True)
    assert "verdict: RED because of shard.missing" in said.out


@pytest.mark.parametrize(
    ("damage", "status", "words"),
    [
        (lambda plain: plain.update(interrupted="SIGINT"), 130, "2/2 was interrupted (SIGINT)"),
        (lambda plain: plain["shard"].update(number=1), 2, "shard 1/2 was given twice: 1.json"),
        (lambda plain: plain.update(shard=None), 2, "bad.json: the report of a whole run"),
        (lambda plain: plain.update(version=2), 2, "report version 2; this reads 1"),
        (lambda plain: plain.clear(), 2, "bad.json: no report of a run that this can read"),
        (
            lambda plain: plain["shard"]["conditions"].update({"version of the harness": "9.0"}),
            2,
            "bad.json differs from 1.json in: version of the harness ('9.0', not",
        ),
        (
            lambda plain: plain["shard"]["conditions"].update(target="other"),
            2,
            "bad.json differs from 1.json in: target ('other', not",
        ),
    ],
)
def test_a_damaged_shard_is_one_clear_message(
    damage: Callable[[dict[str, Any]], None], status: int, words: str, folder: Path, tmp_path: Path
) -> None:
    plain = json.loads((folder / "2.json").read_text("utf-8"))
    damage(plain)
    (tmp_path / "bad.json").write_text(json.dumps(plain), "utf-8")
    (tmp_path / "1.json").write_bytes((folder / "1.json").read_bytes())
    said = call("harness", "merge", "1.json", "bad.json", cwd=tmp_path)
    assert (said.status, words in said.out + said.err) == (status, True), said


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--shard", "3/2"], "--shard 3/2: give K/N"),
        (["--shard", "0/2"], "--shard 0/2: give K/N"),
        (["--shard", "1/2", "--update-baseline"], "--shard and --update-baseline"),
        (["--shard", "1/2", "--durations", "known.toml"], "not a file of durations of version 1"),
        (["--shard", "1/2", "--durations", "no.json"], "--durations no.json: No such file"),
    ],
)
def test_bad_options_of_a_shard_are_refused(words: list[str], error: str, folder: Path) -> None:
    said = run(folder, *PLAYED, *words)
    assert (said.status, error in said.out + said.err) == (2, True), said
