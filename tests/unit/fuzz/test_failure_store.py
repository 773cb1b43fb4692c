"""The store of failures: atomic files, one run at a time, errors for unreadable files."""

import dataclasses
import errno
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.errors import UsageError
from harness.report.progress.events import Found
from harness.report.progress.log import SILENT, ProgressLog
from harness.scenario.loader import load
from harness.search.fuzz import run
from harness.search.fuzz.case import failure_id, kinds_of
from harness.search.fuzz.sessions.search import FoundFailure, SessionCampaign
from harness.search.fuzz.store import Failure, Store, open_store
from harness.trace.trace import Trace
from tests.rules.traces import Talk

DOCUMENT = {"title": "Found", "client": [{"send_raw": {"hex": "ff0a"}}]}


def _found(cause: str = "scenario.crash") -> FoundFailure:
    return FoundFailure(DOCUMENT, cause, "it ended", Talk().asks("a").answers({}).trace())


def test_a_stored_failure_comes_back_and_can_be_played(tmp_path: Path) -> None:
    store = Store(tmp_path)
    kept = store.keep("frames", _found(), "spec")
    assert list(store.failures()) == [kept]
    assert store.find(kept.id) == kept
    assert load(store.scenario(kept.id)).document.value == DOCUMENT
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        f"{kept.id}{end}" for end in (".json", ".jsonl", ".scenario.yaml")
    ]


def test_a_failure_found_in_place_of_another_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _found()
    better = dataclasses.replace(first, document={**DOCUMENT, "title": "x"}, instead_of=first)

    def search(*about: Any, **_: Any) -> SessionCampaign:
        keep = about[4]
        keep(first)
        keep(_found("another"))
        keep(better)
        return SessionCampaign(1, cases=3)

    monkeypatch.setattr(run.sessions, "search", search)
    config = _config("server")
    bounds = run.Bounds(["sessions"], seconds=9.0)
    told = run.fuzz(config, bounds, Store(tmp_path), cast("Any", None))
    ids = [failure_id("sessions", one.cause, one.document) for one in (_found("another"), better)]
    assert [one.id for one in told.failures] == ids
    assert sorted(one.name.split(".")[0] for one in tmp_path.iterdir()) == sorted(ids * 3)


@pytest.mark.parametrize(
    ("found_on", "fixed", "notes"), [("server", 1, 0), ("", 1, 0), ("other --x", 0, 1)]
)
def test_a_failure_is_fixed_on_the_server_that_had_it(
    found_on: str, fixed: int, notes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Store(tmp_path).keep("sessions", _found(), "spec", found_on)
    shown_no_more = SimpleNamespace(verdict="fixed", interrupted_by="")
    monkeypatch.setattr(run, "replay", lambda *_: shown_no_more)
    monkeypatch.setattr(run.sessions, "search", lambda *_, **__: SessionCampaign(1, cases=3))
    bounds = run.Bounds(["sessions"], seconds=9.0)
    result = run.fuzz(_config("server"), bounds, Store(tmp_path), cast("Any", None))
    assert result.fixed_ids == [kept.id] * fixed
    note = f"{kept.id} was found on another server (other --x); this one does not show it"
    assert result.notes == [note] * notes


def test_known_and_new_failures_are_in_the_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Store(tmp_path).keep("sessions", _found("known"), "spec", "server")

    def search(_config: Any, _seed: int, _seconds: float, _: Any, keep: Any, **__: Any) -> Any:
        keep(_found("new"))
        return SessionCampaign(1, cases=3)

    monkeypatch.setattr(
        run, "replay", lambda *_: SimpleNamespace(verdict="failing", interrupted_by="")
    )
    monkeypatch.setattr(run.sessions, "search", search)
    log, events = ProgressLog(), list[Any]()
    log.listeners.append(events.append)
    bounds = run.Bounds(["sessions"], seconds=9.0)
    run.fuzz(_config("server", log), bounds, Store(tmp_path), cast("Any", None))
    found = [event for event in events if isinstance(event, Found)]
    assert [one.rule for one in found] == ["known", "new"]
    assert found[0].scenario == known.id
    assert all(Path(one.trace).is_file() for one in found)


def _config(command: str, progress: ProgressLog = SILENT) -> Any:
    profile = SimpleNamespace(name="spec", command=[command])
    return SimpleNamespace(progress=progress, option="spec", profile=profile)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": 1}', '{"format": 9}', "[" * 100_000]
)
def test_a_file_that_is_no_failure_is_told_and_left_alone(tmp_path: Path, text: str) -> None:
    store = Store(tmp_path)
    kept = store.keep("frames", _found(), "spec")
    bad = tmp_path / "a-bad.json"
    bad.write_text(text)
    told, failure = store.failures()
    assert str(bad) in str(told)
    assert "left alone" in str(told)
    assert failure == kept
    assert bad.read_text() == text


def test_a_failure_under_the_name_of_another_is_not_taken(tmp_path: Path) -> None:
    store = Store(tmp_path)
    kept = store.keep("frames", _found(), "spec")
    (tmp_path / f"{kept.id}.json").rename(tmp_path / "other.json")
    assert all(isinstance(one, str) for one in store.failures())


def test_a_second_run_on_the_same_store_is_refused(tmp_path: Path) -> None:
    twice = pytest.raises(UsageError, match="in use by another run")
    with open_store(tmp_path), twice, open_store(tmp_path):
        pytest.fail("opened twice")
    with open_store(tmp_path):
        pass


def test_a_store_that_is_a_file_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"), open_store(tmp_path / "file"):
        pytest.fail("opened")


def test_a_full_disk_leaves_no_half_file_and_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    kept = store.keep("frames", _found(), "spec")

    def full(trace: Trace, path: Path) -> None:
        path.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("harness.search.fuzz.store.save", full)
    with pytest.raises(OSError, match="No space left"):
        store.keep("inputs", _found(), "spec")
    assert list(store.failures()) == [kept]
    assert not list(tmp_path.glob("*.part"))


def test_an_id_depends_on_the_case_and_the_cause_alone() -> None:
    one = failure_id("frames", "scenario.crash", DOCUMENT)
    assert one == failure_id("frames", "scenario.crash", {**DOCUMENT, "title": "other"})
    assert one != failure_id("frames", "liveness.hangs", DOCUMENT)
    assert one != failure_id("frames", "scenario.crash", {**DOCUMENT, "client": []})
    assert "/" not in failure_id("frames", "../../x y\n" * 40, DOCUMENT)


def test_kinds_are_named_and_others_are_refused() -> None:
    assert kinds_of("") == ["inputs", "frames", "sessions"]
    assert kinds_of("sessions, frames") == ["frames", "sessions"]
    with pytest.raises(UsageError, match="frame"):
        kinds_of("frame")


def test_a_failure_is_plain_data(tmp_path: Path) -> None:
    kept = Store(tmp_path).keep("frames", _found(), "spec")
    plain = json.loads((tmp_path / f"{kept.id}.json").read_text())
    assert plain.pop("format") == 1
    assert Failure(**plain) == kept
