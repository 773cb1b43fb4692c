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


def _driven(fake_agent: Fake, *calls: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    request = {"agent": {"agentPathOverride": str(fake_agent.path)}, "calls": calls, **more}
    told = subprocess.run(
        [sys.executable, "-m", "agent_sdk.driver"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )
    assert told.stderr == ""
    return [json.loads(line) for line in told.stdout.splitlines()]


def test_it_tells_what_calls_gave(fake) -> None:
    lines = _driven(
        fake(ECHO), {"call": "run", "input": "hi"}, {"call": "runStreamed", "input": "hi"}
    )
    result = {"finalResponse": "hi", "items": [MESSAGE], "usage": USAGE}
    assert lines == [
        {"call": -1, "threadId": None},
        {"call": 0, "result": result},
        {"call": 0, "threadId": "thr_1"},
        {"call": 1, "event": {"type": "thread.started", "thread_id": "thr_1"}},
        {"call": 1, "event": {"type": "turn.started"}},
        {"call": 1, "event": {"type": "item.completed", "item": MESSAGE}},
        {"call": 1, "event": {"type": "turn.completed", "usage": USAGE}},
        {"call": 1, "ended": True},
        {"call": 1, "threadId": "thr_1"},
    ]


def test_all_options_have_the_names_of_the_specification(fake) -> None:
    agent = fake(ECHO)
    client = {"baseUrl": "http://b", "apiKey": "sk-12345", "env": {"A": "1"}, "config": {"c": 1}}
    thread = {
        "resume": "thr_7",
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
    call = {"call": "run", "input": [{"type": "local_image", "path": "i"}], "outputSchema": {}}
    lines = _driven(
        agent, call, agent={**client, "agentPathOverride": str(agent.path)}, thread=thread
    )
    assert lines[0] == {"call": -1, "threadId": "thr_7"}
    run = agent.run
    assert run["env"].items() >= {"A": "1", "PROVIDER_API_KEY": "sk-12345"}.items()
    words = ["--config", "--model", "--sandbox", "--cd", "--add-dir", "--skip-git-repo-check"]
    words += ["--output-schema", "resume", "--image"]
    assert [word for word in words if word not in run["argv"]] == []
    assert set(client) | set(thread) >= {*AGENT, *THREAD} - {"agentPathOverride"}


def test_what_was_not_sent_is_not_told_and_what_is_not_known_is(fake) -> None:
    sent = {"type": "item.completed", "item": {"type": "reasoning", "text": "", "odd": [1]}}
    lines = _driven(
        fake(f"read(); begin(); line({json.dumps(sent).encode()!r}); complete()"),
        {"call": "runStreamed", "input": ""},
    )
    assert {"call": 0, "event": sent} in lines


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
        (WAITS, {"call": "run", "abort": {"afterMs": 100}}, "AbortError"),
        (WAITS, {"call": "runStreamed", "abort": {"afterEvents": 1}}, "AbortError"),
    ],
)
def test_an_error_has_its_name_and_its_message(fake, body: str, call: dict, name: str) -> None:
    lines = _driven(fake(body), {"input": "x", **call})
    (error,) = [line["error"] for line in lines if "error" in line]
    assert error["name"] == name
    assert error["message"]
    assert list(lines[-1]) == ["call", "threadId"]


def test_a_stream_can_be_left(fake) -> None:
    agent = fake(WAITS)
    lines = _driven(agent, {"call": "runStreamed", "input": "x", "leaveAfter": 1})
    assert [next(iter(set(line) - {"call"})) for line in lines] == [
        "threadId",
        "event",
        "ended",
        "threadId",
    ]
    assert agent.living() == []


def test_options_that_are_refused_are_an_error_before_any_call(fake) -> None:
    (line,) = _driven(fake(ECHO), thread={"model": ""})
    assert (line["call"], line["error"]["name"]) == (-1, "ConfigError")


@pytest.mark.parametrize("request_", ["", "[]", "{}", '{"agent": {"base_url": 1}, "calls": []}'])
def test_what_is_no_request_is_refused(request_: str) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "agent_sdk.driver"],
        input=request_,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("agent_sdk.driver: no request: ")
    assert "Traceback" not in told.stderr
