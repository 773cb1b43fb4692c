"""Shards merged from their JSON reports: equal to the report of one run of all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.profile import Deviation, Profile
from harness.errors import UsageError
from harness.judge.ledger.record import Record
from harness.judge.ledger.trace_observer import Sighting
from harness.judge.verdict import Level, Row, Verdict
from harness.report.json_form import DISTRIBUTION, from_plain, to_plain
from harness.report.results.merge import merge
from harness.report.results.outcome import (
    Finding,
    RaceOutcome,
    ScenarioOutcome,
    SnapshotResult,
)
from harness.report.results.report import Report
from harness.report.shards.merging import merge_reports
from harness.report.shards.partition import shards_of
from harness.report.shards.values import IDS, VERSION, Shard, SnapshotSettings, digest
from harness.report.terminal import verdict_words
from tests.unit.results.outcomes import BOOK, LAST, ONCE, RULES, entry, failed, outcome, passed

POINT = "errors.retry-limits"
SHARDS = 4
PLACES = dict.fromkeys((entry(ONCE, scenario="area/s1"),), "known.toml:3")
Outcome = ScenarioOutcome | RaceOutcome


def play(number: int, *rows: Row, **more: Any) -> ScenarioOutcome:
    """Return a made outcome that saw one of two choices."""
    record = Record([Sighting(POINT, f"value {number % 2}", "", number, 1)])
    fields: dict[str, Any] = {"seconds": 0.25 * number, "record": record, **more}
    return outcome(f"area/s{number}", *(rows or (passed(ONCE),)), **fields)


def plays(*others: Outcome) -> list[Outcome]:
    known = failed(ONCE, "turn k", actual="known one")
    probe = outcome("probe/core", passed(LAST))
    return [
        *(play(number) for number in range(12) if number not in (1, 5, 7)),
        play(1, passed(ONCE, "turn a"), passed(ONCE, "turn b"), before=[probe]),
        play(5, replace(known, verdict=Verdict.KNOWN), verdict=Verdict.KNOWN, before=[probe]),
        play(7, verdict=Verdict.NOT_APPLICABLE, played=False, missing=("skills",), reason="no"),
        RaceOutcome("area/s1~kill", "area/s1", "/there", "t", "kill", Verdict.PASS),
        *others,
    ]


RED = play(20, failed(ONCE, "turn x"), verdict=Verdict.FAIL, findings=[Finding("scenario.x", "m")])
RACED = RaceOutcome(
    "area/s2~kill",
    "area/s2",
    "/there",
    "t",
    "kill",
    Verdict.FAIL,
    placements=[
        play(30, failed(LAST, "turn p"), verdict=Verdict.FAIL, record=None),
        play(31, passed(LAST), record=None),
    ],
)
SHOULD = play(21, failed(ONCE, "turn y", level=Level.SHOULD))
KNOWN = entry(ONCE, scenario="area/s5", pinned="known one")
STALE = entry(ONCE, scenario="area/s1")
NOT_PLAYED = entry(LAST, scenario="area/elsewhere")


def run_of(
    outcomes: list[Outcome],
    entries: tuple[Deviation, ...],
    capabilities: Any,
    loose: tuple[Finding, ...] = (),
    shard: Shard | None = None,
) -> Report:
    report = merge(
        [one for one in outcomes if isinstance(one, ScenarioOutcome)],
        loose,
        races=[one for one in outcomes if isinstance(one, RaceOutcome)],
        profile=Profile(name="p", command=["server"], capabilities=capabilities),
        entries=entries,
        rules=RULES,
        book=BOOK,
        places=PLACES,
        user_scenarios=lambda _: ("area/elsewhere",),
        shard=shard,
    )
    report.started, report.took = "2026-11-29T07:00:00Z", 3.0
    return report


def shards(
    outcomes: list[Outcome],
    entries: tuple[Deviation, ...] = (),
    capabilities: Any = "probe",
    snapshots: SnapshotSettings | None = None,
    loose: tuple[Finding, ...] = (),
) -> list[Report]:
    """Return the reports of four shards, each through JSON."""
    ids = sorted(one.id for one in outcomes)
    division = shards_of(ids, {}, SHARDS)
    assert set(division.values()) == set(range(1, SHARDS + 1))
    conditions = {VERSION: version(DISTRIBUTION), IDS: f"{len(ids)} ({digest(ids)})"}
    reports: list[Report] = []
    for number in range(1, SHARDS + 1):
        items = [name for name in ids if division[name] == number]
        shard = Shard(number, SHARDS, conditions, items, snapshots=snapshots)
        part = [one for one in outcomes if one.id in items]
        found = loose if number == 2 else ()
        report = run_of(part, entries, capabilities, found, shard)
        shard.status = int(report.red)
        reports.append(from_plain(json.loads(json.dumps(to_plain(report)))))
    return reports


def merged(reports: list[Report]) -> Report:
    return merge_reports((f"shard-{n}.json", one) for n, one in enumerate(reports))[0]


@pytest.mark.parametrize(
    ("others", "entries", "capabilities", "red"),
    [
        ((), (KNOWN,), "probe", False),
        ((SHOULD,), (KNOWN,), ["core"], False),
        ((RED, RACED), (KNOWN,), "probe", True),
        ((RED, SHOULD), (), ["core", "skills"], True),
        ((), (KNOWN, STALE), "probe", True),
        ((), (KNOWN, NOT_PLAYED), "probe", False),
    ],
    ids=["green", "should", "red", "required", "stale", "of-unplayed"],
)
def test_merged_shards_equal_one_run(
    others: tuple[Outcome, ...], entries: tuple[Deviation, ...], capabilities: Any, red: bool
) -> None:
    loose = (Finding("setup.config-ignored", "m", level=Level.INFO),)
    whole = run_of(plays(*others), entries, capabilities, loose)
    parts = shards(plays(*others), entries, capabilities, loose=loose)
    report = merged(parts)
    assert whole.red == red
    assert to_plain(report) == to_plain(whole)
    assert len(report.choices[POINT]) == 2


def test_a_shard_does_not_judge_a_baseline_alone() -> None:
    parts = shards(plays(), (KNOWN, STALE))
    assert not any(part.red for part in parts)
    (stale,) = merged(parts).issues
    assert (stale.id, stale.where) == ("baseline.stale", "known.toml:3")


def test_unused_snapshots_are_those_of_all_shards() -> None:
    settings = SnapshotSettings("kept", strict=True, surfaces=(), accepted=("area/s3", "area/gone"))
    new = play(22, snapshot=SnapshotResult("new", ()))
    found = {one.id: one for one in merged(shards(plays(new), (KNOWN,), snapshots=settings)).issues}
    assert set(found) == {"snapshots.pending", "snapshots.unused"}
    assert "1 snapshot(s) are of no scenario" in found["snapshots.unused"].message


def test_a_missing_shard_is_named_and_not_green() -> None:
    report = merged(shards(plays())[:2])
    (lost,) = report.issues
    assert (lost.id, report.red) == ("shard.missing", True)
    assert lost.message.startswith("shards 3/4, 4/4 are missing")
    assert verdict_words(report) == "ERROR"


def _unplay(report: Report) -> None:
    assert report.shard is not None
    report.shard.unplayed = report.shard.items[:1]


def _interrupt(report: Report) -> None:
    report.interrupted = "SIGINT"


def _fail_outside(report: Report) -> None:
    assert report.shard is not None
    report.shard.status = 1


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_unplay, "shard 1/4 ended before 1 of its "),
        (_interrupt, "shard 1/4 was interrupted (SIGINT)"),
        (_fail_outside, "shard 1/4 ended with exit status 1, and its report does not say why"),
    ],
)
def test_a_shard_that_ended_early_is_named_and_not_green(
    damage: Callable[[Report], None], words: str
) -> None:
    parts = shards(plays(), (KNOWN,))
    damage(parts[0])
    report = merged(parts)
    assert [one.id for one in report.issues] == ["shard.incomplete"]
    assert report.issues[0].message.startswith(words)
    assert report.red


def _lose_an_id(reports: list[Report]) -> None:
    assert reports[3].shard is not None
    reports[3].shard.items = reports[3].shard.items[1:]


def _change(name: str) -> Callable[[list[Report]], None]:
    def change(reports: list[Report]) -> None:
        assert reports[3].shard is not None
        reports[3].shard.conditions[name] = "other"

    return change


def _name_a_rule(reports: list[Report]) -> None:
    reports[0].rules[0].id = "no.such-rule"


def _make_whole(reports: list[Report]) -> None:
    reports[3].shard = None


def _of_another_number(reports: list[Report]) -> None:
    assert reports[3].shard is not None
    reports[3].shard.of = 5


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_lose_an_id, "the shards do not add up to the scenarios of one run"),
        (_change(VERSION), "differs from shard-0.json in: version of the harness ('other', not"),
        (_change("target"), "shard-3.json differs from shard-0.json in: target ('other', not '')"),
        (_make_whole, "shard-3.json: the report of a whole run"),
        (_name_a_rule, "shard-0.json: unknown rule 'no.such-rule'"),
        (_of_another_number, "shard-3.json is shard 4/5, and shard-0.json is shard 1/4"),
        (lambda reports: reports.append(reports[0]), "shard 1/4 was given twice: shard-0.json and"),
        (lambda reports: reports.clear(), "no report of a shard was given"),
    ],
)
def test_reports_that_are_not_shards_of_one_run_are_refused(
    damage: Callable[[list[Report]], None], words: str
) -> None:
    parts = shards(plays())
    damage(parts)
    with pytest.raises(UsageError) as error:
        merged(parts)
    assert words in str(error.value)


def test_shards_of_another_version_of_the_harness_are_refused() -> None:
    parts = shards(plays())
    for part in parts:
        assert part.shard is not None
        part.shard.conditions[VERSION] = "0.0.1"
    with pytest.raises(UsageError, match=r"written by version 0\.0\.1 of the harness"):
        merged(parts)


def test_the_merge_lasts_from_the_first_begin_to_the_last_end() -> None:
    parts = shards(plays())
    parts[1].started, parts[1].took = "2026-11-29T06:59:50Z", 1.0
    parts[2].took = 20.5
    report = merged(parts)
    assert (report.started, report.took) == ("2026-11-29T06:59:50Z", 30.5)


def test_recorded_durations_are_of_what_was_played(tmp_path: Path) -> None:
    _, seconds = merge_reports((str(n), one) for n, one in enumerate(shards(plays())))
    assert seconds == {f"area/s{n}": 0.25 * n for n in range(1, 12)}
