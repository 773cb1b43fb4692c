"""Generated parameters of `turn/start`, sent to a live server with all rules on.

Whatever is sent, the server answers, lives on, and keeps every MUST of the protocol in what it
says. The reference server and the minimal one must both survive it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings

from harness.fuzz.live import Fuzzed, send_turn
from harness.fuzz.turn_params import nearly_right, right, turn_params
from harness.spec.book import load_book
from harness.suite.bench import Bench, open_bench
from harness.suite.session import Config, configure
from harness.trace.trace import End

MINIMAL = f"python {Path(__file__).parents[2] / 'fixtures' / 'servers' / 'minimal.py'}"
COMMANDS = {"reference": "", "minimal": MINIMAL}

pytestmark = [pytest.mark.fuzz, pytest.mark.slow, pytest.mark.socket]


class Live:
    """A live server; hypothesis prints it with every example, so it has a short name."""

    def __init__(self, name: str, portal: BlockingPortal, bench: Bench, config: Config) -> None:
        self.name, self.portal, self.bench, self.config = name, portal, bench, config

    def __repr__(self) -> str:
        return self.name

    def send(self, params: dict[str, Any]) -> Fuzzed:
        config = self.config
        return self.portal.call(send_turn, self.bench, config.book, config.rules, params)


@pytest.fixture(scope="module", params=sorted(COMMANDS))
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    command = COMMANDS[request.param]
    config = configure(target="spec" if command else "reference", server_cmd=command)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(
                config.profile, config.book, base=config.base, worker=f"fuzz-{request.param}"
            )
        ) as bench,
    ):
        yield Live(request.param, portal, bench, config)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
@given(params=turn_params())
def test_server_keeps_every_must_whatever_turn_start_carries(
    live: Live, params: dict[str, Any]
) -> None:
    fuzzed = live.send(params)
    assert fuzzed.violations == ()
    assert fuzzed.run.unmet is None
    assert fuzzed.run.ended.end is End.QUIESCENT


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=25)
@given(params=right())
def test_right_parameters_start_a_turn_that_ends(live: Live, params: dict[str, Any]) -> None:
    # What an image or a skill that does not exist does to a turn is not shown: it ends somehow.
    params["input"] = [item for item in params["input"] if item["type"] == "text"]
    fuzzed = live.send(params)
    assert fuzzed.accepted
    assert fuzzed.violations == ()
    assert len(fuzzed.run.model.calls) == 1


@given(params=right())
def test_right_parameters_are_right_by_the_book(params: dict[str, Any]) -> None:
    assert load_book().is_valid_params("turn/start", {"threadId": "thr_1", **params})


def test_some_nearly_right_parameters_are_wrong_by_the_book() -> None:
    book = load_book()
    wrong: list[dict[str, Any]] = []

    @settings(database=None, max_examples=60, derandomize=True)
    @given(params=nearly_right())
    def collect(params: dict[str, Any]) -> None:
        if not book.is_valid_params("turn/start", {"threadId": "thr_1", **params}):
            wrong.append(params)

    collect()
    assert len(wrong) > 10
