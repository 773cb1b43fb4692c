"""The fixture `agent_server` in the test suite of a user's client, with only the wheel."""

import re
from pathlib import Path

import pytest
from fresh import Fresh, Said

from tests.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.wheel]

EXAMPLE = (ROOT / "examples" / "python-client" / "test_client.py").read_text("utf-8")
PLAYED = "\n\ndef test_mine(agent_server):\n"
CONNECTED = "    with connect(agent_server({}).url, proxy=None) as line:\n"
CLIENT = "        client = Client(line.send, lambda: line.recv(timeout=SECONDS))\n"
HELLO = "turns/plain-turn"

ASYNC = """
import asyncio
import json

import pytest
from websockets.asyncio.client import connect


async def play(url):
    async with connect(url, proxy=None) as line:
        for number, method in enumerate(["initialize", "thread/start"]):
            params = {} if number else {"clientInfo": {"name": "c", "version": "1"}}
            await line.send(json.dumps({"id": number, "method": method, "params": params}))
            while json.loads(await line.recv()).get("id") != number:
                pass
            if not number:
                await line.send('{"method": "initialized"}')


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_anyio(agent_server):
    await play(agent_server("mine.scenario.yaml").url)


def test_plain(agent_server):
    asyncio.run(play(agent_server("mine.scenario.yaml").url))
"""


def run(fresh: Fresh, folder: Path, body: str) -> Said:
    """Run one test of the client, whose body this is, beside those of the example."""
    (folder / "test_all.py").write_text(EXAMPLE + PLAYED + body, "utf-8")
    return fresh.fork("pytest", "-q", "-W", "error", "-k", "test_mine", cwd=folder)


def connected(*lines: str, scenario: str = repr(HELLO)) -> str:
    steps = "".join(f"        {line}\n" for line in lines)
    return CONNECTED.format(scenario) + CLIENT + steps


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_the_tests_of_a_good_client_pass(fresh: Fresh, empty: Path, workers: list[str]) -> None:
    (empty / "test_all.py").write_text(EXAMPLE + PLAYED + connected("client.say('hi')"), "utf-8")
    # Alone, pytest is started as a user starts it, and rewrites assertions.
    call = fresh.fork if workers else fresh.call
    said = call("pytest", "-q", "-W", "error", "test_all.py", *workers, cwd=empty)
    assert said.status == 0, said.out
    assert "3 passed" in said.out
    assert not (empty.parent / ".agent").exists(), "a home of its own"


def test_a_broken_duty_fails_the_test_with_its_clause_and_the_line(
    fresh: Fresh, empty: Path
) -> None:
    answer = """line.send('{"id": "nobody", "result": {}}')"""
    said = run(fresh, empty, connected(answer, "client.say('hi')"))
    assert said.status == 1
    assert "1 passed, 2 deselected, 1 error" in said.out
    assert "duty.answer-known (MUST): rpc.answer-form: " in said.out
    assert re.search(r'^ +\* +\d+\.\d → #\d+ \{"id": "nobody", "result": \{\}\}$', said.out, re.M)
    assert "Traceback" not in said.out


@pytest.mark.parametrize("strict", [False, True])
def test_a_broken_should_is_a_warning_or_with_strict_a_failure(
    fresh: Fresh, empty: Path, strict: bool
) -> None:
    (empty / "test_all.py").write_text(
        EXAMPLE
        + PLAYED
        + connected(
            """line.send('{"method": "turn/started", "params": {}}')""",
            "client.say('hi')",
            scenario=f"{HELLO!r}, strict={strict}",
        ),
        "utf-8",
    )
    said = fresh.fork("pytest", "-q", "-k", "test_mine", cwd=empty)
    assert said.status == int(strict), said.out
    assert "duty.right-direction (SHOULD): rpc.messages-of-the-server: " in said.out
    assert ("AgentServerWarning" in said.out) is not strict


def test_a_finding_of_level_info_is_a_warning_even_if_warnings_are_errors(
    fresh: Fresh, empty: Path
) -> None:
    body = connected("client.say('hi')", """line.send('{"method": "bye"}')""")
    said = run(fresh, empty, body)
    assert said.status == 0, said.out
    assert "AgentServerNote" in said.out
    assert "duty.method-known (INFO): rpc.client-methods: " in said.out


def test_a_script_that_is_not_played_fails_the_test(fresh: Fresh, empty: Path) -> None:
    said = run(fresh, empty, connected("client.ask('thread/start')"))
    assert said.status == 1
    assert "plain-turn.scenario.yaml:30: model calls: expected 1; found 0" in said.out


def test_a_client_that_never_comes_fails_the_test(fresh: Fresh, empty: Path) -> None:
    body = f"    agent_server({HELLO!r}).url\n    agent_server({HELLO!r}).command\n"
    said = run(fresh, empty, body)
    assert said.status == 1
    assert "no client connected" in said.out
    assert "the client did not start its command" in said.out


STARTED = """
    import os, shutil
    server = agent_server("turns/plain-turn", name={name!r})
    server.program
    assert shutil.which({name!r}, path=server.env["PATH"]) == server.program
    assert server.env["CODEX_HOME"] == server.env["AGENT_HOME"] != os.environ["HOME"]
    for _ in range(2):
        words = [{name!r}, "--config", "model=x", "app-server", "--listen", "stdio://"]
        pipes = {{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}}
        with subprocess.Popen(words, env=server.env, **pipes) as process:

            def send(line):
                process.stdin.write(line + "\\n")
                process.stdin.flush()

            client = Client(send, process.stdout.readline)
            client.say("hi")
            {end}
"""


@pytest.mark.parametrize("name", ["codex", "my agent"])
@pytest.mark.parametrize("end", ["process.stdin.close()", "process.kill()"])
def test_a_client_that_starts_its_agent_may_start_it_often(
    fresh: Fresh, empty: Path, name: str, end: str
) -> None:
    said = run(fresh, empty, STARTED.format(name=name, end=end))
    assert said.status == 0, said.out


def test_without_a_scenario_the_default_script_is_played(fresh: Fresh, empty: Path) -> None:
    body = connected("assert client.say('echo this') == 'echo this'", scenario="")
    said = run(fresh, empty, body)
    assert said.status == 0, said.out


def test_a_program_that_was_not_started_fails_the_test(fresh: Fresh, empty: Path) -> None:
    said = run(fresh, empty, f"    agent_server({HELLO!r}).program\n")
    assert said.status == 1
    assert "no client connected" in said.out


def test_one_server_has_one_use(fresh: Fresh, empty: Path) -> None:
    body = f"    server = agent_server({HELLO!r})\n    server.program\n    server.url\n"
    said = run(fresh, empty, body)
    assert said.status == 1
    assert "agent_server: its program was used before; make another for its url" in said.out


def test_of_several_scenarios_each_must_be_played(fresh: Fresh, empty: Path) -> None:
    two = f"[{HELLO!r}, 'turns/two-turns']"
    said = run(fresh, empty, connected("client.say('hi')", scenario=two))
    assert said.status == 1
    assert "no connection played turns/two-turns (allow_unused=True accepts that)" in said.out
    accepted = run(
        fresh, empty, connected("client.say('hi')", scenario=f"{two}, allow_unused=True")
    )
    assert accepted.status == 0, accepted.out


def test_an_own_scenario_is_found_beside_the_test(fresh: Fresh, empty: Path) -> None:
    (empty / "deep").mkdir()
    text = "title: t\nmodel: [{reply: [{message: mine}]}]\n"
    (empty / "deep" / "mine.scenario.yaml").write_text(text, "utf-8")
    play = connected("assert client.say('hi') == 'mine'", scenario="'mine.scenario.yaml'")
    (empty / "deep" / "test_own.py").write_text(EXAMPLE + PLAYED + play, "utf-8")
    said = fresh.fork("pytest", "-q", "-k", "test_mine", cwd=empty)
    assert said.status == 0, said.out


def test_a_scenario_that_is_not_there_fails_the_test_with_one_line(
    fresh: Fresh, empty: Path
) -> None:
    said = run(fresh, empty, connected("client.say('hi')", scenario="'turns/plain-tun'"))
    assert said.status == 1
    assert "1 failed" in said.out
    assert "error" not in said.out.splitlines()[-1]
    assert "did you mean 'turns/plain-turn'?" in said.out
    assert "Traceback" not in said.out


def test_it_works_in_tests_of_asyncio_and_anyio(fresh: Fresh, empty: Path) -> None:
    (empty / "mine.scenario.yaml").write_text("title: t\n", "utf-8")
    (empty / "test_async.py").write_text(ASYNC, "utf-8")
    said = fresh.fork("pytest", "-q", "-W", "error", cwd=empty)
    assert said.status == 0, said.out
    assert "2 passed" in said.out


def test_a_suite_that_does_not_use_it_imports_nothing_of_it(fresh: Fresh, empty: Path) -> None:
    text = (
        "import sys\n\n\ndef test_nothing():\n"
        "    ours = [one for one in sys.modules if one.startswith('harness.')]\n"
        "    assert ours == ['harness.cli', 'harness.cli.plugin']\n"
        "    assert 'pydantic' not in sys.modules\n"
    )
    (empty / "test_other.py").write_text(text, "utf-8")
    said = fresh.call("pytest", "-q", cwd=empty)
    assert said.status == 0, said.out
