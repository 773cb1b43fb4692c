"""The method table: its rows and their properties."""

import json
import subprocess
import sys

import pytest

from harness.protocol.wire.item_events import ItemStartedNotification, PlanDeltaNotification
from harness.protocol.wire.methods import BY_METHOD, BY_PARAMS, METHODS, Direction, Scope, Stability
from harness.protocol.wire.turn import TurnStartParams


def of(direction: Direction) -> list[str]:
    return sorted(spec.method for spec in METHODS if spec.direction is direction)


def test_every_method_has_one_row() -> None:
    assert len(BY_METHOD) == len(METHODS)


def test_the_table_holds_exactly_these_methods() -> None:
    assert of(Direction.CLIENT_REQUEST) == [
        "initialize",
        "review/start",
        "skills/config/write",
        "skills/list",
        "skills/remote/export",
        "skills/remote/list",
        "thread/archive",
        "thread/compact/start",
        "thread/fork",
        "thread/list",
        "thread/loaded/list",
        "thread/name/set",
        "thread/read",
        "thread/resume",
        "thread/rollback",
        "thread/start",
        "thread/unarchive",
        "thread/unsubscribe",
        "turn/interrupt",
        "turn/start",
        "turn/steer",
    ]
    assert of(Direction.CLIENT_NOTIFICATION) == ["initialized"]
    assert of(Direction.SERVER_REQUEST) == [
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/tool/call",
    ]
    assert of(Direction.SERVER_NOTIFICATION) == [
        "error",
        "item/agentMessage/delta",
        "item/commandExecution/outputDelta",
        "item/completed",
        "item/fileChange/outputDelta",
        "item/mcpToolCall/progress",
        "item/plan/delta",
        "item/reasoning/summaryPartAdded",
        "item/reasoning/summaryTextDelta",
        "item/reasoning/textDelta",
        "item/started",
        "model/rerouted",
        "serverRequest/resolved",
        "thread/archived",
        "thread/closed",
        "thread/name/updated",
        "thread/started",
        "thread/status/changed",
        "thread/tokenUsage/updated",
        "thread/unarchived",
        "turn/completed",
        "turn/diff/updated",
        "turn/plan/updated",
        "turn/started",
    ]


def test_requests_have_results_and_notifications_have_none() -> None:
    for spec in METHODS:
        is_request = spec.direction in (Direction.CLIENT_REQUEST, Direction.SERVER_REQUEST)
        assert (spec.result is not None) is is_request, spec.method


def test_each_server_notification_has_a_params_class_of_its_own() -> None:
    notifications = [s for s in METHODS if s.direction is Direction.SERVER_NOTIFICATION]
    assert len({spec.params for spec in notifications}) == len(notifications)
    assert all(BY_PARAMS[spec.params] == spec.method for spec in notifications)


def test_params_that_are_of_no_notification_have_no_name() -> None:
    with pytest.raises(KeyError):
        BY_PARAMS[TurnStartParams]


def test_a_delta_is_the_last_field_of_its_notification() -> None:
    deltas = [spec.params for spec in METHODS if "delta" in spec.params.model_fields]
    assert PlanDeltaNotification in deltas
    assert ItemStartedNotification not in deltas
    assert {list(params.model_fields)[-1] for params in deltas} == {"delta"}


def test_requests_that_name_a_thread_queue_behind_each_other() -> None:
    for spec in METHODS:
        names_a_thread = "thread_id" in spec.params.model_fields
        if spec.direction is Direction.CLIENT_REQUEST:
            assert (spec.scope is Scope.THREAD) is names_a_thread, spec.method


def test_unstable_methods_are_marked() -> None:
    marked = {
        stability: sorted(s.method for s in METHODS if s.stability is stability)
        for stability in Stability
        if stability is not Stability.STABLE
    }
    assert marked == {
        Stability.EXPERIMENTAL: ["item/plan/delta"],
        Stability.UNDER_DEVELOPMENT: ["skills/remote/export", "skills/remote/list"],
        Stability.SILENT: ["initialize", "initialized", "item/tool/call", "review/start"],
    }


def loaded(code: str) -> set[str]:
    script = f"import json, sys; {code}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return {name for name in found if name.startswith("harness.protocol.wire.")}


@pytest.mark.slow
def test_the_table_imports_no_model_until_one_is_asked_for() -> None:
    table = "from harness.protocol.wire.methods import BY_METHOD"
    assert loaded(table) == {"harness.protocol.wire.base", "harness.protocol.wire.methods"}
    asked = loaded(f"{table}; BY_METHOD['skills/list'].params")
    assert asked == {
        "harness.protocol.wire.base",
        "harness.protocol.wire.methods",
        "harness.protocol.wire.skills",
    }
