"""The method table: its rows and what may be read from them."""

from harness.wire.methods import BY_METHOD, BY_PARAMS, METHODS, Direction, Scope, Stability


def test_every_method_has_one_row() -> None:
    assert len(BY_METHOD) == len(METHODS)


def test_the_table_holds_exactly_these_methods() -> None:
    assert sorted(BY_METHOD) == [
        "error",
        "initialize",
        "initialized",
        "item/agentMessage/delta",
        "item/completed",
        "item/reasoning/summaryPartAdded",
        "item/reasoning/summaryTextDelta",
        "item/reasoning/textDelta",
        "item/started",
        "thread/read",
        "thread/start",
        "thread/started",
        "thread/status/changed",
        "thread/tokenUsage/updated",
        "turn/completed",
        "turn/interrupt",
        "turn/start",
        "turn/started",
    ]


def test_requests_have_results_and_notifications_have_none() -> None:
    for spec in METHODS:
        is_request = spec.direction in (Direction.CLIENT_REQUEST, Direction.SERVER_REQUEST)
        assert (spec.result is not None) is is_request, spec.method


def test_each_server_notification_has_a_params_class_of_its_own() -> None:
    notifications = [s for s in METHODS if s.direction is Direction.SERVER_NOTIFICATION]
    assert len(BY_PARAMS) == len(notifications)
    assert all(BY_PARAMS[s.params] == s.method for s in notifications)


def test_requests_that_name_a_thread_queue_behind_each_other() -> None:
    for spec in METHODS:
        names_a_thread = "thread_id" in spec.params.model_fields
        if spec.direction is Direction.CLIENT_REQUEST:
            assert (spec.scope is Scope.THREAD) is names_a_thread, spec.method


def test_nothing_here_is_experimental_in_the_document() -> None:
    assert {spec.stability for spec in METHODS} == {Stability.STABLE}
