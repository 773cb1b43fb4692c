"""Readers of our files in other languages, written from the published schemas alone."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.report.json_form import to_plain
from harness.report.results.report import Report
from harness.trace.store import load
from harness.trace.surfaces import SESSION
from harness.trace.trace import Trace
from tests.suite_play import suite_play
from tests.unit.report.test_json_form import report as red_report

ROOT = Path(__file__).parents[2]
READERS = ROOT / "fixtures/readers"
BOUND_SECONDS = 120
TRACES = 20

pytestmark = pytest.mark.slow


@cache
def node() -> list[str]:
    program = shutil.which("node")
    assert program, "the tests need node; so does `make all`"
    return [program, str(READERS / "reader.mjs")]


@cache
def go() -> list[str]:
    program = shutil.which("go")
    if program is None:
        pytest.skip("no go here: `apt-get install golang-go` brings it")
    return [program, "run", str(READERS / "reader.go")]


LANGUAGES = [pytest.param(node, id="node"), pytest.param(go, id="go")]


def reading_of(command: list[str], file: Path) -> dict[str, Any]:
    ended = subprocess.run(
        [*command, file], capture_output=True, text=True, timeout=BOUND_SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def summary_of(trace: Trace, end: str) -> dict[str, Any]:
    objects = [_object(frame.raw) for frame in trace.frames]
    methods = (value.get("method") for value in objects if value is not None)
    return {
        "kind": "trace",
        "version": trace.header.version,
        "scenario": trace.header.scenario,
        "end": end,
        "messages": {
            direction: sum(str(frame.direction) == direction for frame in trace.frames)
            for direction in ("to-target", "from-target")
        },
        "origins": dict(Counter(str(frame.origin) for frame in trace.frames)),
        "not_json": sum(value is None for value in objects),
        "methods": dict(Counter(method for method in methods if isinstance(method, str))),
        "marks": dict(Counter(mark.kind for mark in trace.marks)),
        "deliberate": sum(frame.deliberate for frame in trace.frames),
        "damaged": sum(frame.damage is not None for frame in trace.frames),
        "last_at": round(trace.frames[-1].at, 3),
    }


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def traces() -> list[Path]:
    """Return traces of the session: one in so many of the whole suite."""
    played = [Path(one.trace) for one in suite_play().report.scenarios if one.trace]
    sessions = [path for path in played if "@" not in path.name]
    return sessions[:: max(1, len(sessions) // TRACES)][:TRACES]


def suite_report() -> Report:
    return suite_play().report


@pytest.mark.parametrize("command", LANGUAGES)
def test_traces_are_read_as_we_read_them(command: Callable[[], list[str]]) -> None:
    files = traces()
    assert len(files) == TRACES
    for file in files:
        trace = load(file)
        assert trace.header.surface == SESSION
        assert reading_of(command(), file) == summary_of(trace, str(trace.end)), file.name


@pytest.mark.parametrize("command", LANGUAGES)
def test_a_trace_that_was_cut_off_has_no_end(
    command: Callable[[], list[str]], tmp_path: Path
) -> None:
    whole = traces()[0].read_bytes().splitlines(keepends=True)
    file = tmp_path / "cut.jsonl"
    file.write_bytes(b"".join(whole[:-1])[:-5])
    assert reading_of(command(), file) == summary_of(load(file), "")


@pytest.mark.parametrize("command", LANGUAGES)
@pytest.mark.parametrize("make_report", [suite_report, red_report])
def test_a_report_is_read_as_we_read_it(
    command: Callable[[], list[str]], make_report: Callable[[], Report], tmp_path: Path
) -> None:
    report = make_report()
    file = tmp_path / "report.json"
    file.write_text(json.dumps(to_plain(report, 0)), "utf-8")
    verdicts = {
        "rules": dict(Counter(str(rule.verdict) for rule in report.rules)),
        "scenarios": dict(Counter(str(one.verdict) for one in report.scenarios)),
    }
    assert reading_of(command(), file) == {
        "kind": "report",
        "version": 1,
        "red": report.red,
        **verdicts,
        "failing_rules": [rule.id for rule in report.red_rules()],
        "proofs": sum(len(rule.proofs) for rule in report.rules),
        "issues": sorted(issue.id for issue in report.issues),
        "target": report.target,
    }


@pytest.mark.parametrize("command", LANGUAGES)
@pytest.mark.parametrize(
    "text", ['{"version": 99, "red": false}', '{"trace": {"version": 99, "marks": 2}}']
)
def test_another_version_is_refused(
    command: Callable[[], list[str]], text: str, tmp_path: Path
) -> None:
    file = tmp_path / "later"
    file.write_text(f"{text}\n")
    ended = subprocess.run(
        [*command(), file], capture_output=True, text=True, timeout=BOUND_SECONDS, check=False
    )
    assert ended.returncode == 1
    assert "99" in ended.stderr
