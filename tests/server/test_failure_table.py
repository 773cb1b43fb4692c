"""Every row of docs/failures.md, played: a failure of the model, and the client's messages."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from model_side import CREATED, CUT, Refused, Reply, delta, event, http_error, opened
from session_peer import config, session

from harness.model.parts import Delay, Disconnect, Malformed
from harness.model.script import Fail
from harness.protocol.wire.error import AgentErrorInfo
from harness.scenario.bundled import bundled_folder
from harness.scenario.client_steps import ModelListensStep
from harness.scenario.loader import load
from harness.scenario.model import Scenario
from reference_server.model.errors import BY_CODE, BY_KIND, BY_STATUS

PAGE = (Path(__file__).parents[2] / "docs" / "failures.md").read_text("utf-8")
CAUSES = PAGE.split("## Causes")[1].split("\n## ")[0]
_ROW = re.compile(r"^\| ([^|]+?) \| `(\w+)` \| (yes|no) \| `([\w/-]+)` \|$", re.M)
ROWS = _ROW.findall(CAUSES)

ODD: dict[str, Reply | Refused] = {
    "nobody listens at its address": Refused(),
    "the stream is cut off": Reply([CREATED, opened(), delta("par"), CUT]),
    "an event that is not JSON": Reply([CREATED, b"data: {broken\n\n"]),
    "status 200, no stream of events": Reply([b"<html>"], headers={"content-type": "text/html"}),
    "an answer that is incomplete": Reply(
        [
            CREATED,
            event(
                "response.incomplete", response={"incomplete_details": {"reason": "content_filter"}}
            ),
        ]
    ),
}


def reply_of(cause: str) -> Reply | Refused:
    """Return the reply of the model's side, from the words of the page."""
    if cause == "the stream falls silent":
        return Reply([CREATED, opened(), delta("par"), anyio.Event()])
    if cause in ODD:
        return ODD[cause]
    what, _, name = cause.partition(" ")
    if what == "status":
        return http_error(int(name), "")
    return Reply([CREATED, event("response.failed", response={"error": {"code": name.strip("`")}})])


@pytest.mark.parametrize(("cause", "info", "again"), [row[:3] for row in ROWS])
async def test_the_page_says_what_the_server_does(
    tmp_path: Path, cause: str, info: str, again: str
) -> None:
    retry = again == "yes"
    settings = config(
        request_max_retries=1, stream_max_retries=1, retry_delay_ms=0, stream_idle_timeout_ms=50
    )
    async with session(tmp_path, [reply_of(cause)] * (1 + retry), settings=settings) as peer:
        end = await peer.run_turn(await peer.start_thread())
    told: list[dict[str, Any]] = peer.params_of("error")
    assert [error["willRetry"] for error in told] == [True] * retry + [False]
    assert {error["error"]["agentErrorInfo"] for error in told} == {info}
    assert end["error"]["agentErrorInfo"] == info
    assert end["error"]["additionalDetails"]


def test_every_row_of_the_page_is_whole() -> None:
    heading, line, *rows = [line for line in CAUSES.splitlines() if line.startswith("|")]
    assert (heading.count("|"), line.count("|")) == (5, 5)
    assert len(rows) == len(ROWS) == len({cause for cause, *_ in ROWS})


def holds(*kinds: type) -> Callable[[Scenario], bool]:
    """Return a check whether a scenario has such an entry on the model's side."""
    return lambda scenario: any(isinstance(entry, kinds) for _, entry in scenario.model_entries())


def sends(words: bytes) -> Callable[[Scenario], bool]:
    return lambda scenario: any(
        isinstance(entry, Malformed) and words in entry.malformed.raw
        for _, entry in scenario.model_entries()
    )


def fails(matches: Callable[[Fail], bool]) -> Callable[[Scenario], bool]:
    return lambda scenario: any(
        step.fail is not None and matches(step.fail)
        for script in scenario.scripts().values()
        for step in script
    )


ODD_IN_SCENARIOS: dict[str, Callable[[Scenario], bool]] = {
    "nobody listens at its address": lambda scenario: any(
        isinstance(step, ModelListensStep) and not step.model_listens for step in scenario.client
    ),
    "the stream is cut off": holds(Disconnect),
    "the stream falls silent": holds(Delay),
    "an event that is not JSON": sends(b"data: {broken\n\n"),
    "status 200, no stream of events": fails(lambda fail: fail.status == 200),
    "an answer that is incomplete": sends(b"response.incomplete"),
}


def plays(cause: str) -> Callable[[Scenario], bool]:
    """Return a check whether the model's side of a scenario shows a cause of the page.

    A status counts if its code is not in `BY_CODE`, a kind if the failure has no status.
    """
    if cause in ODD_IN_SCENARIOS:
        return ODD_IN_SCENARIOS[cause]
    what, _, name = cause.partition(" ")
    if what == "status":
        return fails(lambda fail: fail.status == int(name) and fail.code not in BY_CODE)
    given = name.strip("`")
    return fails(lambda fail: fail.code == given and (what == "code" or fail.status is None))


@pytest.mark.parametrize(("cause", "scenario"), [(row[0], row[3]) for row in ROWS])
def test_the_scenario_that_a_row_names_plays_it(cause: str, scenario: str) -> None:
    path = bundled_folder() / f"{scenario}.scenario.yaml"
    assert plays(cause)(load(path).scenario)


def test_the_scenario_of_another_row_does_not_play_it() -> None:
    good = load(bundled_folder() / "turns" / "plain-turn.scenario.yaml").scenario
    assert [cause for cause, *_ in ROWS if plays(cause)(good)] == []


def test_the_page_has_every_code_kind_and_status_that_the_server_knows() -> None:
    causes = {cause.replace("`", "") for cause, *_ in ROWS}
    known = {f"code {code}" for code in BY_CODE} | {f"kind {kind}" for kind in BY_KIND}
    assert known | {f"status {status}" for status in BY_STATUS} <= causes


def test_every_word_that_the_text_gives_has_a_cause() -> None:
    words = {info for _, info, _, _ in ROWS}
    assert words == set(get_args(AgentErrorInfo))


@pytest.mark.parametrize("code", [cause[6:-1] for cause, *_ in ROWS if cause.startswith("code")])
async def test_a_code_says_more_than_a_status(tmp_path: Path, code: str) -> None:
    [(info, _)] = [(row[1], row[2]) for row in ROWS if row[0] == f"code `{code}`"]
    async with session(tmp_path, [http_error(400, code)]) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert end["error"]["agentErrorInfo"] == info
    assert "words of the provider" in end["error"]["additionalDetails"]
