"""Retries of a failed call, and the pauses before them."""

import pytest

from reference_server.config.model import Provider
from reference_server.model.errors import (
    ModelError,
    connection_failed,
    http_failed,
    no_address,
    response_failed,
    response_incomplete,
    stream_broken,
)
from reference_server.model.retry import MAX_DELAY_SECONDS, Retries


def retries(requests: int = 4, streams: int = 5, jitter: float = 0.5) -> Retries:
    provider = Provider("p", request_max_retries=requests, stream_max_retries=streams)
    return Retries(provider, lambda: jitter)


def body(code: str) -> bytes:
    return b'{"error":{"code":"%b","message":"words"}}' % code.encode()


def test_the_pause_doubles_up_to_a_longest() -> None:
    left = retries(streams=9)
    delays = [left.delay(stream_broken("x")) for _ in range(9)]
    assert delays[:3] == [0.2, 0.4, 0.8]
    assert delays[-1] == MAX_DELAY_SECONDS


@pytest.mark.parametrize(("drawn", "first"), [(0.0, 0.18), (1.0, 0.22)])
def test_the_pause_varies_by_a_tenth(drawn: float, first: float) -> None:
    assert retries(jitter=drawn).delay(stream_broken("x")) == pytest.approx(first)


def test_requests_and_streams_have_budgets_of_their_own() -> None:
    left = retries(requests=1, streams=1)
    assert left.delay(stream_broken("x")) is not None
    assert left.delay(stream_broken("x")) is None
    assert left.delay(connection_failed("x", retryable=True)) is not None
    assert left.delay(connection_failed("x", retryable=True)) is None
    assert left.count("stream") == "1/1"


def test_a_wish_of_the_provider_is_the_pause() -> None:
    error = http_failed(429, {"retry-after": "7"}, body("rate_limit_exceeded"))
    assert retries().delay(error) == 7


def test_a_wish_may_be_a_date_of_the_providers_clock() -> None:
    headers = {
        "date": "Wed, 21 Oct 2026 07:28:00 GMT",
        "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
    }
    assert retries().delay(http_failed(503, headers, b"")) == 30


@pytest.mark.parametrize("wish", ["soon", "-1", "inf", "nan"])
def test_a_wish_that_is_no_time_is_none(wish: str) -> None:
    assert retries().delay(http_failed(503, {"retry-after": wish}, b"")) == 0.2


def test_a_pause_too_long_for_a_turn_makes_the_failure_final() -> None:
    assert retries().delay(http_failed(503, {"retry-after": "3600"}, b"")) is None


CASES: list[tuple[ModelError, str, bool]] = [
    (http_failed(500, {}, b""), "InternalServerError", True),
    (http_failed(503, {}, body("server_is_overloaded")), "InternalServerError", True),
    (http_failed(401, {}, body("invalid_api_key")), "Unauthorized", False),
    (http_failed(403, {}, b"<html>"), "Unauthorized", False),
    (http_failed(400, {}, body("odd")), "BadRequest", False),
    (http_failed(400, {}, body("context_length_exceeded")), "ContextWindowExceeded", False),
    (http_failed(404, {}, b""), "Other", False),
    (http_failed(429, {}, body("usage_limit_reached")), "UsageLimitExceeded", False),
    (http_failed(429, {}, body("insufficient_quota")), "UsageLimitExceeded", False),
    (http_failed(429, {}, body("rate_limit_exceeded")), "Other", True),
    (http_failed(429, {}, b"[]"), "Other", True),
    (connection_failed("refused", retryable=True), "HttpConnectionFailed", True),
    (no_address("p"), "HttpConnectionFailed", False),
    (stream_broken("cut"), "ResponseStreamDisconnected", True),
    (
        response_failed({"code": "context_length_exceeded", "message": "m"}),
        "ContextWindowExceeded",
        False,
    ),
    (response_failed({"code": "insufficient_quota"}), "UsageLimitExceeded", False),
    (response_failed({"code": "server_error"}), "InternalServerError", True),
    (response_failed({"type": "invalid_request_error"}), "BadRequest", False),
    (response_failed({"code": "never_heard_of"}), "Other", False),
    (response_failed({}), "Other", False),
    (response_incomplete("max_output_tokens"), "Other", False),
]


@pytest.mark.parametrize(("error", "info", "retried"), CASES, ids=str)
def test_each_cause_has_its_name_and_its_chance(
    error: ModelError, info: str, retried: bool
) -> None:
    assert error.info == info
    assert (retries().delay(error) is not None) is retried
    assert error.details
