"""Generated requests of every method, sent to live servers with all rules on.

Whatever is sent, the server answers, lives on, and keeps every MUST of the protocol in what it
says. What breaks is found, confirmed on a fresh process, made smaller, and can be seen again.
FUZZ_SEED begins the search elsewhere.
"""

import os
import shlex
import sys
from pathlib import Path

import pytest

from harness.play.config import Config, configure
from harness.play.interruption import Interruption
from harness.search.fuzz.documents import input_document
from harness.search.fuzz.params import Request
from harness.search.fuzz.result_text import lines
from harness.search.fuzz.run import Bounds, FuzzResult, fuzz
from harness.search.fuzz.sessions.play import play
from harness.search.fuzz.sessions.search import open_search_bench
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.store import Failure, Store
from harness.search.fuzz.values import THREAD
from harness.trace.frame import Kind
from harness.trace.store import load

SERVERS = Path(__file__).parents[2] / "fixtures" / "servers"
COMMANDS = {"reference": "", "minimal": shlex.join([sys.executable, str(SERVERS / "minimal.py")])}
SEED = int(os.environ.get("FUZZ_SEED", "1"))
CORE = ["initialize", "thread/read", "thread/start", "turn/interrupt", "turn/start", "turn/steer"]

pytestmark = [pytest.mark.fuzz, pytest.mark.slow, pytest.mark.socket]


@pytest.fixture(params=sorted(COMMANDS))
def config(request: pytest.FixtureRequest) -> Config:
    command = COMMANDS[request.param]
    return configure(target="spec" if command else "reference", server_cmd=command)


def searched(config: Config, folder: Path, seed: int, cases: int, method: str = "") -> FuzzResult:
    """So many documents of inputs, as `harness fuzz --what inputs` plays them."""
    bounds = Bounds(["inputs"], seed, cases=cases, method=method)
    result = fuzz(config, bounds, Store(folder), Interruption(config.base))
    # With the seed, for who wants to see it again.
    sys.stdout.write(story(result, folder) + "\n")
    return result


def story(result: FuzzResult, folder: Path) -> str:
    return "\n".join(lines(result, Store(folder), ["--server-cmd", "mine"]))


def sound(result: FuzzResult, folder: Path) -> None:
    """Fail with the story of what went wrong."""
    assert result.verdict == "GREEN", story(result, folder)
    assert result.searches["inputs"].unsteady == [], story(result, folder)


def test_server_keeps_every_must_whatever_is_asked(config: Config, tmp_path: Path) -> None:
    result = searched(config, tmp_path, SEED, 20)
    sound(result, tmp_path)
    campaign = result.searches["inputs"]
    assert campaign.cases == 20
    assert campaign.requests > 400
    assert campaign.results > 100


@pytest.mark.parametrize("method", CORE)
def test_server_keeps_every_must_whatever_one_method_carries(
    config: Config, tmp_path: Path, method: str
) -> None:
    sound(searched(config, tmp_path, SEED, 8, method), tmp_path)


def test_server_lives_on_after_params_nested_deeper_than_most_parsers_go(config: Config) -> None:
    deep: object = None
    for _ in range(400):
        deep = [deep]
    params = {"threadId": THREAD, "input": deep, "expectedTurnId": deep, "extra": deep}
    document = input_document(config.book, [Request(method, params) for method in CORE])
    with open_search_bench(config, "fuzz-deep") as (portal, bench):
        played = portal.call(lambda: play(bench, config, document, looks=False))
    assert (played.problems, played.unmet) == ([], "")
    refused = [one for one in played.run.trace.frames if one.kind is Kind.ERROR]
    assert len(refused) >= 3


# Correct but for what its argument says.
BROKEN = f"""
import os, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
adds = "add" in sys.argv
if "now-and-then" in sys.argv:
    with open(os.environ["HARNESS_TEST_COUNT"], "a+") as file:
        file.write("x")
        adds = file.tell() % 2 == 1
class Broken(Server):
    def thread_read(self, params, reply):
        if "die" in sys.argv and params.get("includeTurns") is True:
            sys.stderr.write("cannot include")
            sys.stderr.flush()
            os._exit(7)
        super().thread_read(params, reply)
    def turn_interrupt(self, params, reply):
        if "forget" not in sys.argv:
            super().turn_interrupt(params, reply)
    def send(self, message):
        super().send(message)
        if adds and message.get("method") == "thread/started":
            super().send({{**message, "params": {{}}}})
Broken().serve()
"""


def broken(folder: Path, how: str, method: str) -> tuple[Failure, str]:
    """The failure that is found in such a server, and the story."""
    script = folder / "broken.py"
    script.write_text(BROKEN)
    command = shlex.join([sys.executable, str(script), how])
    result = searched(configure(server_cmd=command, scale=0.2), folder, 1, 12, method)
    (failure,) = result.failures
    return failure, story(result, folder)


def requests(failure: Failure) -> list[Json]:
    return [step["request"] for step in failure.document["client"] if "request" in step]


def test_a_crash_is_found_made_smaller_and_can_be_seen_again(tmp_path: Path) -> None:
    failure, told = broken(tmp_path, "die", "thread/read")
    assert failure.cause == "scenario.crash"
    assert failure.occasion == "thread/read, exit status 7"
    (request,) = requests(failure)
    assert request["params"]["includeTurns"] is True
    assert len(request["params"]) <= 2
    trace = load(tmp_path / f"{failure.id}.jsonl")
    assert trace.end == "exited"
    case = tmp_path / f"{failure.id}.scenario.yaml"
    assert "seed 1, " in told.splitlines()[0]
    assert f"  again     harness replay {case} --server-cmd mine" in told.splitlines()


def test_an_answer_left_out_is_told_from_a_server_that_hangs(tmp_path: Path) -> None:
    failure, _ = broken(tmp_path, "forget", "turn/interrupt")
    assert (failure.cause, failure.occasion) == ("request.answered", "turn/interrupt")
    assert [one["method"] for one in requests(failure)] == ["turn/interrupt"]
    # The harness's own request after it was answered.
    assert load(tmp_path / f"{failure.id}.jsonl").end == "quiescent"


def test_occasional_failures_are_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every second process is broken, the first among them.
    monkeypatch.setenv("HARNESS_TEST_COUNT", str(tmp_path / "count"))
    failure, told = broken(tmp_path, "now-and-then", "initialize")
    assert (failure.cause, failure.flaky) == ("shape.notification", True)
    assert "FAIL shape.notification (inputs, not each time): thread/started" in told


def test_a_broken_must_is_told_with_its_rule(tmp_path: Path) -> None:
    failure, told = broken(tmp_path, "add", "initialize")
    assert (failure.cause, failure.flaky) == ("shape.notification", False)
    assert "FAIL shape.notification (inputs): thread/started" in told
    assert requests(failure) == []
