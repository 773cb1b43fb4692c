"""`python -m agent_sdk.driver`: makes the calls that it is asked for, and prints what they gave.

For programs that judge SDKs of any language by the same messages; options and members have the
names of the specification. Each line of standard input is a JSON object. The first says what the
client and the thread are made with, each other one is a turn, made before the next is read:

    {"agent": {…}, "thread": {…}, "resume": null}
    {"turn": 1, "call": "run", "input": "…", "options": {"outputSchema": {…}}, "abort": ""}

`resume` is the id of a thread that goes on. `call` is `run` or `runStreamed`; `abort` says when the
turn's signal is aborted: `before` the call, `during` the turn (once the thread has its id), or ""
for never. Each line of standard output is a JSON object with the number of its turn:

    {"turn": 1, "event": {…}}
    {"turn": 1, "over": "result", "result": {"finalResponse", "items", "usage"}, "threadId": "…"}
    {"turn": 1, "over": "events", "threadId": "…"}
    {"turn": 1, "over": "error", "error": {"name", "message"}, "threadId": null}

Other members of a message are repeated in the answers if they are called `id`.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from agent_sdk.abort import AbortSignal
from agent_sdk.agent import Agent
from agent_sdk.errors import AgentError
from agent_sdk.thread import Thread

SOON = 0.5
"""Seconds for the agent to start, where nothing tells that it has."""
AGENT = {
    "baseUrl": "base_url",
    "apiKey": "api_key",
    "agentPathOverride": "agent_path",
    "env": "env",
    "config": "config",
}
THREAD = {
    "workingDirectory": "working_directory",
    "sandboxMode": "sandbox_mode",
    "model": "model",
    "skipGitRepoCheck": "skip_git_repo_check",
    "modelReasoningEffort": "model_reasoning_effort",
    "networkAccessEnabled": "network_access_enabled",
    "webSearchMode": "web_search_mode",
    "approvalPolicy": "approval_policy",
    "additionalDirectories": "additional_directories",
}


def main() -> int:
    """Make the calls. Status 2 where a line is no message."""
    lines = (json.loads(line) for line in sys.stdin if line.strip())
    try:
        thread = _thread(next(lines))
        for message in lines:
            asyncio.run(_turn(thread, message))
    except (StopIteration, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.stderr.write(f"agent_sdk.driver: no message: {error!r}\n")
        return 2
    return 0


def _thread(message: Mapping[str, Any]) -> Thread | AgentError:
    """The thread, or why there is none."""
    agent = _renamed(message.get("agent") or {}, AGENT)
    options = _renamed(message.get("thread") or {}, THREAD)
    resumed: str | None = message.get("resume")
    try:
        client = Agent(**agent)
        if resumed is None:
            return client.start_thread(**options)
        return client.resume_thread(resumed, **options)
    except AgentError as error:
        return error


def _renamed(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[name]: value for name, value in given.items()}


async def _turn(thread: Thread | AgentError, message: Mapping[str, Any]) -> None:
    about = {name: message[name] for name in ("id", "turn") if name in message}
    try:
        if isinstance(thread, AgentError):
            raise thread
        over = await _call(thread, message, about)
    except AgentError as error:
        over = {"over": "error", "error": {"name": type(error).__name__, "message": str(error)}}
    _tell({**about, **over, "threadId": thread.id if isinstance(thread, Thread) else None})


async def _call(
    thread: Thread, message: Mapping[str, Any], about: Mapping[str, Any]
) -> dict[str, Any]:
    options: Mapping[str, Any] = message.get("options") or {}
    schema, given = options.get("outputSchema"), message["input"]
    signal = AbortSignal() if message.get("abort") else None
    if signal is not None and message["abort"] == "before":
        signal.abort()
    aborting = asyncio.create_task(_abort_during(thread, signal))
    try:
        if message["call"] == "run":
            result = await thread.run(given, output_schema=schema, signal=signal)
            items = [plain(item) for item in result.items]
            answer = {"finalResponse": result.final_response, "items": items}
            return {"over": "result", "result": answer | {"usage": plain(result.usage)}}
        async with thread.run_streamed(given, output_schema=schema, signal=signal) as events:
            async for event in events:
                _tell({**about, "event": plain(event)})
        return {"over": "events"}
    finally:
        aborting.cancel()


async def _abort_during(thread: Thread, signal: AbortSignal | None) -> None:
    """Abort once the agent has told that the thread exists; if it did in an earlier turn, soon."""
    if signal is None:
        return
    if thread.id is not None:
        await asyncio.sleep(SOON)
    while thread.id is None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    signal.abort()


def plain(value: Any) -> Any:
    """A value as JSON: the fields as their classes have them, and what is only in `raw`.

    A field that is empty is left out where nothing was sent for it.
    """
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    raw: Mapping[str, Any] = getattr(value, "raw", {})
    return {**raw, **dict(_members(value, raw))}


def _members(value: Any, raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for one in fields(value):
        member = getattr(value, one.name)
        if one.name != "raw" and (one.name in raw or member not in (None, "", ())):
            yield one.name, plain(member)


def _tell(said: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
