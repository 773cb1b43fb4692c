"""Generated requests of every method, sent to live servers with all rules on.

Whatever is sent, the server answers, lives on, and keeps every MUST of the protocol in what it
says. What breaks is found, confirmed on a fresh process, made smaller, and can be seen again.
FUZZ_SEED begins the search elsewhere.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.fuzz.campaign import Campaign, Fuzzer, open_fuzzer, what_is_wrong
from harness.fuzz.params import Request
from harness.fuzz.values import THREAD
from harness.runner.config import configure
from harness.trace.store import load

SERVERS = Path(__file__).parents[2] / "fixtures" / "servers"
COMMANDS = {"reference": "", "minimal": f"'{sys.executable}' '{SERVERS / 'minimal.py'}'"}
SEED = int(os.environ.get("FUZZ_SEED", "1"))
CORE = ["initialize", "thread/read", "thread/start", "turn/interrupt", "turn/start", "turn/steer"]

pytestmark = [pytest.mark.fuzz, pytest.mark.slow, pytest.mark.socket]


@pytest.fixture(scope="module", params=sorted(COMMANDS))
def fuzzer(request: pytest.FixtureRequest) -> Iterator[Fuzzer]:
    command = COMMANDS[request.param]
    config = configure(target="spec" if command else "reference", server_cmd=command)
    with open_fuzzer(config, f"fuzz-{request.param}") as live:
        yield live


def sound(campaign: Campaign) -> None:
    """Print what was done, with the seed, and fail with the story of what went wrong."""
    again = ["env", f"FUZZ_SEED={campaign.seed}", "pytest", "-m", "fuzz", "tests/fuzz"]
    story = "\n".join(campaign.lines(again))
    sys.stdout.write(story + "\n")
    assert campaign.worst is None, story
    assert campaign.unsteady == [], story


def test_server_keeps_every_must_whatever_is_asked(fuzzer: Fuzzer) -> None:
    campaign = fuzzer.search(SEED, 25)
    sound(campaign)
    assert campaign.conversations == 25
    assert campaign.requests > 200
    assert campaign.results > 10


@pytest.mark.parametrize("method", CORE)
def test_server_keeps_every_must_whatever_one_method_carries(fuzzer: Fuzzer, method: str) -> None:
    sound(fuzzer.search(SEED, 10, method))


def test_server_lives_on_after_params_nested_deeper_than_most_parsers_go(fuzzer: Fuzzer) -> None:
    deep: object = None
    for _ in range(400):
        deep = [deep]
    params = {"threadId": THREAD, "input": deep, "expectedTurnId": deep, "extra": deep}
    fuzzed = fuzzer.hold([Request(method, params) for method in CORE])
    assert what_is_wrong(fuzzed) == []
    assert fuzzed.errors > 0


# Correct but for what its argument says.
BROKEN = f"""
import os, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
adds = "add" in sys.argv
if "at-first" in sys.argv:
    with open(os.environ["HARNESS_TEST_COUNT"], "a+") as file:
        file.write("x")
        adds = file.tell() <= 2
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


def broken(folder: Path, how: str, method: str) -> Campaign:
    script = folder / "broken.py"
    script.write_text(BROKEN)
    config = configure(server_cmd=f"'{sys.executable}' '{script}' {how}", scale=0.2)
    with open_fuzzer(config, f"fuzz-{how}") as live:
        return live.search(1, 20, method)


def test_a_crash_is_found_made_smaller_and_can_be_seen_again(tmp_path: Path) -> None:
    campaign = broken(tmp_path, "die", "thread/read")
    assert campaign.worst is not None
    (said,) = what_is_wrong(campaign.worst)
    assert said == "the server ended by itself (exit status 7): cannot include"
    (request,) = campaign.smallest
    assert request.params["includeTurns"] is True
    assert campaign.trace is not None
    assert load(campaign.trace).end == "exited"
    lines = list(campaign.lines(["harness", "fuzz", "--seed", "1"]))
    assert "seed 1, " in lines[0]
    assert f"    thread/read {json.dumps(request.params)}" in lines
    assert "  again     harness fuzz --seed 1" in lines
    assert f"  judge     harness check {campaign.trace}" in lines


def test_an_answer_left_out_is_told_from_a_server_that_hangs(tmp_path: Path) -> None:
    campaign = broken(tmp_path, "forget", "turn/interrupt")
    assert campaign.worst is not None
    assert len(campaign.smallest) == 1
    told = what_is_wrong(campaign.worst)
    assert told[0].startswith("no answer to turn/interrupt ")
    assert told[0].endswith(", though it answered the next request")
    assert any(line.startswith("MUST request.answered: ") for line in told)


def test_what_goes_wrong_only_sometimes_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first two processes are broken: the shared one, and the one that confirms.
    monkeypatch.setenv("HARNESS_TEST_COUNT", str(tmp_path / "count"))
    campaign = broken(tmp_path, "at-first", "initialize")
    assert campaign.worst is not None
    assert campaign.flaky
    lines = list(campaign.lines(["again"]))
    assert any("MUST shape.notification: " in line for line in lines)
    assert "  it did not go wrong each time that the same was sent" in lines


def test_a_broken_must_is_told_with_its_rule(tmp_path: Path) -> None:
    campaign = broken(tmp_path, "add", "initialize")
    assert campaign.worst is not None
    assert any("MUST shape.notification: " in line for line in what_is_wrong(campaign.worst))
