"""The driver: what the SDK gave, as JSON, for whoever judges SDKs."""

import json
import subprocess
import sys
from typing import Any

import pytest
from fake_agents import BOUND, ECHO, WAITS, Fake

from agent_sdk.driver import AGENT, THREAD

pytestmark = [pytest.mark.socket, pytest.mark.slow]

MESSAGE = {"id": "item_0", "type": "agent_message", "text": "hi"}
USAGE = {"input_tokens": 1, "cached_input_tokens": 2, "output_tokens": 3}


def _said(lines: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "agent_sdk.driver"],
        input=lines,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


def _driven(
    program: Fake, *turns: dict[str, Any], agent: dict[str, Any] | None = None, **more: Any
) -> list[dict[str, Any]]:
    first = {"agent": {**(agent or {}), "agentPathOverride": str(program.path)}, **more}
    messages = [first, *({"turn": number, **one} for number, one in enumerate(turns, 1))]
    told = _said("".join(json.dumps(one) + "\n" for one in messages))
    assert (told.returncode, told.stderr) == (0, "")
    return [json.loads(line) for line in told.stdout.splitlines()]


def test_it_tells_what_calls_gave(fake) -> None:
    lines = _driven(
        fake(ECHO),
        {"id": 7, "call": "run", "input": "hi", "options": {}, "abort": ""},
        {"call": "runStreamed", "input": "hi"},
    )
    result = {"finalResponse": "hi", "items": [MESSAGE], "usage": USAGE}
    assert lines == [
        {"id": 7, "turn": 1, "over": "result", "result": result, "threadId": "thr_1"},
        {"turn": 2, "event": {"type": "thread.started", "thread_id": "thr_1"}},
        {"turn": 2, "event": {"type": "turn.started"}},
        {"turn": 2, "event": {"type": "item.completed", "item": MESSAGE}},
        {"turn": 2, "event": {"type": "turn.completed", "usage": USAGE}},
        {"turn": 2, "over": "events", "threadId": "thr_1"},
    ]


def test_all_options_have_the_names_of_the_specification(fake) -> None:
    program = fake(ECHO)
    agent = {"baseUrl": "http://b", "apiKey": "sk-12345", "env": {"A": "1"}, "config": {"c": 1}}
    thread = {
        "workingDirectory": "w",
        "sandboxMode": "read-only",
        "model": "m",
        "skipGitRepoCheck": True,
        "modelReasoningEffort": "low",
        "networkAccessEnabled": True,
        "webSearchMode": "live",
        "approvalPolicy": "never",
        "additionalDirectories": ["d"],
    }
    turn = {
        "call": "run",
        "input": [{"type": "local_image", "path": "i"}],
        "options": {"outputSchema": {}},
    }
    _driven(program, turn, agent=agent, thread=thread, resume="thr_7")
    run = program.run
    assert run["env"].items() >= {"A": "1", "PROVIDER_API_KEY": "sk-12345"}.items()
    words = ["--config", "--model", "--sandbox", "--cd", "--add-dir", "--skip-git-repo-check"]
    words += ["--output-schema", "resume", "thr_7", "--image"]
    assert [word for word in words if word not in run["argv"]] == []
    assert {*agent, *thread, "agentPathOverride"} == {*AGENT, *THREAD}


def test_what_was_not_sent_is_not_told_and_what_is_not_known_is(fake) -> None:
    sent = {"type": "item.completed", "item": {"type": "reasoning", "text": "", "odd": [1]}}
    lines = _driven(
        fake(f"read(); begin(); line({json.dumps(sent).encode()!r}); complete()"),
        {"call": "runStreamed", "input": ""},
    )
    assert {"turn": 1, "event": sent} in lines


@pytest.mark.parametrize(
    ("body", "call", "name"),
    [
        (
            'begin(); say("turn.failed", error={"message": "no"})',
            {"call": "run"},
            "TurnFailedError",
        ),
        ("sys.exit(3)", {"call": "run"}, "ProcessError"),
        ("sys.exit(3)", {"call": "runStreamed"}, "ProcessError"),
        (ECHO, {"call": "run", "abort": "before"}, "AbortError"),
        (WAITS, {"call": "run", "abort": "during"}, "AbortError"),
        (WAITS, {"call": "runStreamed", "abort": "during"}, "AbortError"),
    ],
)
def test_an_error_has_its_name_and_its_message(fake, body: str, call: dict, name: str) -> None:
    *_, last = _driven(fake(body), {"input": "x", **call})
    assert (last["over"], last["error"]["name"]) == ("error", name)
    assert last["error"]["message"]
    assert "threadId" in last


def test_options_that_are_refused_are_the_error_of_each_turn(fake) -> None:
    turn = {"call": "run", "input": "x"}
    for last in _driven(fake(ECHO), turn, turn, thread={"model": ""}):
        assert (last["over"], last["error"]["name"]) == ("error", "ConfigError")
        assert last["threadId"] is None


@pytest.mark.parametrize("lines", ["", "no JSON", "[]", '{"agent": {"base_url": 1}}', "{}\n[]\n"])
def test_what_is_no_message_is_refused(lines: str) -> None:
    told = _said(lines)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("agent_sdk.driver: no message: ")
    assert "Traceback" not in told.stderr
