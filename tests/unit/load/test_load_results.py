"""Results of a load: percentiles, the server's share, the last clean step; what is judged."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.load.judging import BrokenRule, judge_recordings
from harness.load.model import ModelTimes
from harness.load.operations import Sample, parse_mix
from harness.load.results import LoadReport, Row, Step, summarise
from harness.play.config import configure
from harness.report.html.other_pages import load_page
from harness.trace.time_limits import percentile

CLEAN = Step(10, 2.0, [Row.of("turn", [0.1, 0.2])], {}, judged=1, broken=[], cpu=0.1, lag=0.001)
BROKEN = BrokenRule("turn.completes", "a turn <script>", "user-1.jsonl")
HANDSHAKE = [
    ("C>S", {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "x"}}}),
    ("S>C", {"id": 1, "result": {"userAgent": "x/1"}}),
    ("C>S", {"method": "initialized"}),
]


def test_percentiles_are_values_of_the_sample() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, percent) for percent in (50, 95, 99, 100)] == [50, 95, 99, 100]
    assert percentile([7.0], 50) == 7.0


def test_servers_share_is_without_the_models_time() -> None:
    samples = [Sample("turn", 0, 0.5, 0.2, "load-1-1"), Sample("turn", 0, 9, error="timeout: t")]
    rows, errors = summarise(samples, {"load-1-1": ModelTimes(0.15, 0.4)})
    shares = {row.name: row.percentiles and round(row.percentiles[0], 6) for row in rows}
    assert shares == {
        "turn": 0.5,
        "turn: first delta": 0.2,
        "turn: first delta, server's share": 0.05,
        "turn: server's share": 0.1,
    }
    assert (rows[0].count, rows[0].failed) == (2, 1)
    assert errors == {"turn: timeout: t": 1}


@pytest.mark.parametrize(
    "second",
    [replace(CLEAN, users=20, errors={"turn: timeout": 1}), replace(CLEAN, broken=[BROKEN])],
    ids=["failure", "finding"],
)
def test_last_clean_step_is_the_conclusion(second: Step) -> None:
    report = LoadReport("s", [CLEAN, second, replace(CLEAN, users=30)])
    assert report.conclusion == "correct under load up to 10 users"
    assert not report.is_clean
    assert LoadReport("s", [CLEAN]).is_clean
    assert not LoadReport("s", [replace(CLEAN, rows=[])]).is_clean, "no turn proves nothing"


def test_busy_generator_is_a_warning() -> None:
    assert "bottleneck" in "\n".join(replace(CLEAN, cpu=0.95).lines())
    assert "bottleneck" not in "\n".join(CLEAN.lines())


def test_findings_of_one_rule_are_one_note() -> None:
    notes = list(replace(CLEAN, broken=[BROKEN, replace(BROKEN, text="x")]).notes())
    shown = [note for note in notes if note.startswith("turn.completes")]
    assert shown == [f"turn.completes (2 times): {BROKEN.text}; harness show user-1.jsonl"]


def test_page_escapes_texts_of_the_server() -> None:
    page = load_page(LoadReport("s", [replace(CLEAN, broken=[BROKEN])]).to_plain())
    assert "a turn &lt;script&gt;" in page
    assert "a turn <script>" not in page


def test_page_lists_all_steps_first_and_those_that_failed() -> None:
    failed = replace(CLEAN, users=20, errors={"turn: timeout": 3}, rows=[])
    page = load_page(LoadReport("s", [CLEAN, failed]).to_plain())
    overview = page[page.index("<table") : page.index("</table")]
    (first, second) = re.findall(
        r'<tr class="(\w+)"><th.*?>(\d+)</a>.*?<td>(\d+)</td><td>0</td>', overview
    )
    assert (first, second) == (("pass", "10", "0"), ("fail", "20", "3"))
    assert 'id="users-20"' in page


@pytest.mark.parametrize("words", ["turn=x", "walk=1", "turn=-1", "turn=0"])
def test_mistake_in_the_mix_is_reported(words: str) -> None:
    with pytest.raises(UsageError, match="--mix"):
        parse_mix(words)


@pytest.mark.parametrize("at_rest", [False, True])
def test_missing_answer_is_judged_only_if_the_session_came_to_rest(
    tmp_path: Path, at_rest: bool
) -> None:
    request = ("C>S", {"id": 2, "method": "thread/list", "params": {}})
    path = tmp_path / "user-1-1.jsonl"
    path.write_text(
        "".join(
            json.dumps({"t": at, "dir": direction, "msg": message}) + "\n"
            for at, (direction, message) in enumerate([*HANDSHAKE, request])
        )
    )
    count, broken = judge_recordings(configure(server_cmd="true"), [(path, at_rest)])
    assert count == 1
    assert bool(broken) is at_rest
    assert path.exists() is at_rest, "a recording is kept for its finding"
