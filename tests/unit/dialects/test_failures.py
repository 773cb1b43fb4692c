"""Failures of the model as a release sees them: which it retries, and the errors that it tells."""

from typing import Any

import pytest

from harness.protocol.dialects.table import load_dialect
from reference_server.dialect.choice import failures_of
from reference_server.dialect.transport import DialectTransport
from reference_server.model.errors import (
    ModelError,
    connection_failed,
    http_failed,
    response_failed,
    stream_broken,
)
from tests.unit.dialects.test_dialect_transport import Lines, Wire

pytestmark = pytest.mark.anyio


def seen(name: str, failure: ModelError) -> tuple[str, bool]:
    read = failures_of({"AGENT_DIALECT": name})
    assert read is not None
    read_failure = read(failure)
    return read_failure.phase, read_failure.retryable


@pytest.mark.parametrize("name", ["codex-0.107", "codex-0.169"])
def test_a_release_retries_all_but_a_few_answers(name: str) -> None:
    for status in (302, 401, 404, 422, 500, 503):
        assert seen(name, http_failed(status, {}, b"")) == ("stream", True), status
    for status in (400, 429):
        assert seen(name, http_failed(status, {}, b"")) == ("stream", False), status
    assert seen(name, response_failed({"code": "insufficient_quota"})) == ("stream", False)
    assert seen(name, response_failed({"code": "unheard_of"})) == ("stream", True)
    full = b'{"error": {"code": "server_is_overloaded"}}'
    assert seen(name, http_failed(503, {}, full)) == ("stream", False)


def test_the_newer_release_does_not_retry_an_unknown_model() -> None:
    failure = response_failed({"code": "model_not_found"})
    assert seen("codex-0.107", failure) == ("stream", True)
    assert seen("codex-0.169", failure) == ("stream", False)


@pytest.mark.parametrize(
    "failure", [connection_failed("refused", retryable=True), stream_broken("cut")]
)
def test_a_failure_without_an_answer_is_as_in_the_text(failure: ModelError) -> None:
    assert seen("codex", failure) == (failure.phase, failure.retryable)


def test_without_a_dialect_failures_are_those_of_the_text() -> None:
    assert failures_of({}) is None


CUT = "The model's response stream was disconnected"


@pytest.mark.parametrize(
    ("release", "message", "retried", "expected"),
    [
        ("0.169", "HTTP status 404; trying again (1/3)", True, ("responseStreamDisconnected", 404)),
        (
            "0.107",
            "HTTP status 500; trying again (1/3)",
            True,
            ("responseStreamDisconnected", None),
        ),
        ("0.107", "HTTP status 404", False, "other"),
        ("0.169", "HTTP status 404", False, ("httpConnectionFailed", 404)),
        ("0.169", "HTTP status 429", False, ("responseTooManyFailedAttempts", 429)),
        ("0.169", CUT, False, "other"),
    ],
)
async def test_error_has_the_word_and_status_of_the_release(
    release: str, message: str, retried: bool, expected: Any
) -> None:
    wire = Wire()
    rows = load_dialect(f"codex-{release}")._replace(notifications=(), holds=())
    wire.lines = Lines()
    wire.edge = DialectTransport(wire.lines, rows, "/home")
    text = message if message == CUT else f"The model answered with {message}"
    error = {"message": text, "agentErrorInfo": "Other", "additionalDetails": "d"}
    params = {"threadId": "thr_1", "turnId": "turn_1", "error": error, "willRetry": retried}
    (written,) = await wire.written({"method": "error", "params": params})
    if isinstance(expected, tuple):
        expected = {expected[0]: {"httpStatusCode": expected[1]}}
    assert written["params"]["error"]["codexErrorInfo"] == expected
