"""Shapes and transcripts of a release and of its double, compared."""

from pathlib import Path
from typing import Any

import pytest

from harness.report.drift.comparison import Play, compare_plays
from harness.report.drift.messages import Message
from harness.report.drift.reasons import Reason, read_reasons
from harness.report.drift.release_schemas import Part
from harness.report.drift.report import DriftReport
from harness.report.drift.transcripts import normal_form, transcript_of, unordered_pairs


def _note(method: str, **params: Any) -> Message:
    return Message(method, method, Part.NOTIFICATION, params, "a/b", "c1", True)


def _play(*messages: Message) -> Play:
    return Play("play", {"a/b": list(messages)})


STATUS = _note("thread/status/changed", status={"type": "idle"})
ENDED = _note("turn/completed", turn={"id": "1", "items": []})
USAGE = _note("thread/tokenUsage/updated", used=1)


def test_equal_plays_have_no_difference() -> None:
    found = compare_plays([_play(STATUS, ENDED)], _play(STATUS, ENDED))
    assert (found.shape_share, found.transcript_share) == (1.0, 1.0)


def test_another_type_of_a_member_is_another_shape() -> None:
    text = _note("thread/tokenUsage/updated", used="1")
    found = compare_plays([_play(USAGE)], _play(text))
    assert [one.line for one in found.shape_differences] == [
        "thread/tokenUsage/updated: lacks used: number; adds used: string (1, a/b)"
    ]


def test_elements_of_an_array_have_a_shape_of_their_own() -> None:
    turn = {"id": "1", "items": [{"type": "plan", "id": "p"}]}
    found = compare_plays([_play(_note("turn/completed", turn=turn))], _play(ENDED))
    assert (found.shared_shapes, found.release_shapes) == (1, 2)
    assert found.shape_differences[0].shape.place == "turn/completed turn.items[] plan"


def test_order_counts_unless_the_release_does_not_keep_it() -> None:
    strict = compare_plays([_play(STATUS, ENDED)], _play(ENDED, STATUS))
    assert strict.transcript_share == 0.0
    plays = [_play(STATUS, ENDED), _play(ENDED, STATUS)]
    assert compare_plays(plays, _play(ENDED, STATUS)).transcript_share == 1.0


def test_missing_and_added_messages_are_named_with_the_one_before() -> None:
    found = compare_plays([_play(STATUS, USAGE)], _play(STATUS, ENDED))
    assert found.transcript_differences["a/b"] == [
        "lacks thread/tokenUsage/updated after thread/status/changed",
        "adds turn/completed after thread/status/changed",
    ]


def test_repeated_deltas_count_once() -> None:
    delta = _note("item/agentMessage/delta", delta="a")
    found = compare_plays([_play(delta, ENDED)], _play(delta, delta, ENDED))
    assert found.transcript_share == 1.0


def test_start_and_end_of_one_type_of_item_keep_their_order() -> None:
    start = _note("item/started", item={"type": "plan"})
    end = _note("item/completed", item={"type": "plan"})
    plays = [transcript_of([start, end]), transcript_of([end, start])]
    assert unordered_pairs(plays) == set()


def test_normal_form_moves_a_step_only_past_its_partners() -> None:
    free = {frozenset(("a", "c"))}
    assert normal_form({"client 1": ("c", "a")}, free) == {"client 1": ("a", "c")}
    assert normal_form({"client 1": ("c", "b", "a")}, free) == {"client 1": ("c", "b", "a")}


def test_page_gives_the_reason_of_a_difference() -> None:
    comparison = compare_plays([_play(STATUS, USAGE)], _play(STATUS))
    report = DriftReport(
        "codex-0.169",
        comparison=comparison,
        reasons=(Reason("thread/tokenUsage/*", "the double counts no tokens"),),
    )
    assert "| `thread/tokenUsage/updated` | 1 | the double counts no tokens |" in list(
        report.markdown_lines()
    )


def test_scenario_that_the_release_plays_in_several_ways_is_left_out() -> None:
    plays = [_play(STATUS, USAGE), _play(STATUS)]
    found = compare_plays(plays, _play(STATUS))
    assert (found.varied, found.compared_transcripts, found.same_transcripts) == (["a/b"], 0, 0)
    assert found.transcript_differences == {}
    assert "left out: 1 scenarios that the release plays in several ways" in (
        DriftReport("codex-0.169", comparison=found).figures
    )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (Reason("lacks *", "r"), "r"),
        (Reason("lacks *", "r", scenarios=("a/*",)), "r"),
        (Reason("lacks *", "r", scenarios=("b/*",)), ""),
        (Reason("lacks *", "r", releases=("codex-0.169",)), "r"),
        (Reason("lacks *", "r", releases=("codex-0.107",)), ""),
    ],
)
def test_reason_can_be_limited_to_scenarios_and_releases(row: Reason, reason: str) -> None:
    comparison = compare_plays([_play(STATUS, USAGE)], _play(STATUS))
    report = DriftReport("codex-0.169", comparison=comparison, reasons=(row,))
    explained = 1 if reason else 0
    figure = f"explained: {explained} of 1 scenarios that differ, each difference by a reason below"
    assert figure in report.figures
    lines = list(report.markdown_lines())
    words = "lacks thread/tokenUsage/updated after thread/status/changed"
    assert (f"| {words}, and 0 like it | 1 | r |" in lines) == bool(reason)
    assert (f"| {words} | 1 |  |" in lines) != bool(reason)


def test_reasons_are_read_with_their_limits(tmp_path: Path) -> None:
    path = tmp_path / "reasons.toml"
    path.write_text('[[difference]]\nplace = "a*"\nreason = "r"\nreleases = ["codex-0.107"]\n')
    assert read_reasons(path) == (Reason("a*", "r", (), ("codex-0.107",)),)
