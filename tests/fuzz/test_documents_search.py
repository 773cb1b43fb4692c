"""Searches of documents: findings, and an unusable server is never GREEN."""

import shlex
import sys
from pathlib import Path

import pytest

from harness.errors import TargetError
from harness.play.config import configure
from harness.play.interruption import Interruption
from harness.search.fuzz.case import kinds_of
from harness.search.fuzz.documents import search_documents
from harness.search.fuzz.run import ENDLESS_SECONDS, Bounds, FuzzResult
from harness.search.fuzz.sessions.search import FoundFailure, SessionCampaign, search

SERVERS = Path(__file__).parents[2] / "fixtures" / "servers"
# Ends by itself in two ways, of which the first is met far more often.
CRASHER = f"""
import os, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class Crasher(Server):
    def turn_interrupt(self, params, reply):
        os._exit(7)
    def thread_read(self, params, reply):
        if not isinstance(params.get("threadId"), str):
            os._exit(9)
        super().thread_read(params, reply)
Crasher().serve()
"""
# Breaks one rule in two ways, never both in one message.
TWO_DEFECTS = f"""
import sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class TwoDefects(Server):
    def thread_read(self, params, reply):
        def wrong(result):
            member = "createdAt" if params.get("includeTurns") else "preview"
            reply({{"thread": {{**result["thread"], member: []}}}})
        super().thread_read(params, wrong)
TwoDefects().serve()
"""

pytestmark = pytest.mark.slow


@pytest.mark.socket
@pytest.mark.timeout(300)
def test_a_second_crash_is_not_hidden_behind_the_first(tmp_path: Path) -> None:
    script = tmp_path / "crasher.py"
    script.write_text(CRASHER)
    config = configure(server_cmd=shlex.join([sys.executable, str(script)]))
    told: list[FoundFailure] = []
    search_documents("inputs", config, 1, 60.0, Interruption(config.base), told.append, cases=20)
    occasions = {one.occasion for one in told if one.cause == "scenario.crash"}
    assert {"turn/interrupt, exit status 7", "thread/read, exit status 9"} <= occasions
    for one in told:
        method = one.occasion.split(",")[0]
        asked = [step["request"]["method"] for step in one.document["client"] if "request" in step]
        assert asked[-1:] == [method], one.document


@pytest.mark.socket
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["inputs", "sessions"])
def test_two_defects_under_one_rule_are_two_failures(kind: str, tmp_path: Path) -> None:
    script = tmp_path / "two_defects.py"
    script.write_text(TWO_DEFECTS)
    config = configure(server_cmd=shlex.join([sys.executable, str(script)]))
    told: list[FoundFailure] = []
    watch = Interruption(config.base)
    if kind == "inputs":
        search_documents(
            "inputs", config, 1, 60.0, watch, told.append, cases=6, method="thread/read"
        )
    else:
        search(config, 1, 60.0, watch, told.append, cases=6)
    occasions = [one.occasion for one in told if one.cause == "shape.response"]
    assert sorted(occasions) == [
        "thread/read, result.thread.createdAt",
        "thread/read, result.thread.preview",
    ]
    assert len({str(one.document["client"]) for one in told}) == len(told)


@pytest.mark.parametrize("kind", ["inputs", "frames"])
def test_a_server_that_cannot_be_used_is_told_and_not_green(kind: str) -> None:
    config = configure(target="spec", server_cmd="false")
    with pytest.raises(TargetError, match="initialize"):
        search_documents(
            kinds_of(kind)[0],
            config,
            1,
            # On a loaded machine any time can be over before the first case is begun.
            ENDLESS_SECONDS,
            Interruption(config.base),
            lambda found: pytest.fail(found.text),
            cases=1,
        )


def test_a_run_that_broke_off_is_red() -> None:
    result = FuzzResult(Bounds(["frames"]), searches={"frames": SessionCampaign(1)})
    assert (result.case_count, result.verdict) == (0, "GREEN")
    result.broke_off = True
    assert result.verdict == "RED"
