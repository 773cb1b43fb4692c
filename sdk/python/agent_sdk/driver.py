"""`python -m agent_sdk.driver`: does what a request says, and prints what the SDK gave.

For programs that judge SDKs of any language by the same requests: options and members have the
names of the specification. A request is one JSON object on standard input, with `agent` and
`thread` (options; `resume` is the id of a thread that goes on) and `calls`, which are made one
after the other on one thread: `call` (`run` or `runStreamed`), `input`, `outputSchema`, `abort`
(`"before"`, `{"afterMs": N}` or `{"afterEvents": N}`) and `leaveAfter` (events after which a
stream is left).

Each line of the answer has the number of its `call` (-1 before the first) and one of `event`,
`result`, `error` (`name`, `message`), `ended` and `threadId`.
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
from agent_sdk.guards import is_mapping
from agent_sdk.thread import Thread

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
    """Read the request, make the calls. Status 2 where it is no request."""
    try:
        request: dict[str, Any] = json.load(sys.stdin)
        agent = _renamed(request.get("agent", {}), AGENT)
        options = dict(request.get("thread", {}))
        resumed: str | None = options.pop("resume", None)
        thread = _renamed(options, THREAD)
        calls: list[dict[str, Any]] = request["calls"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        sys.stderr.write(f"agent_sdk.driver: no request: {error!r}\n")
        return 2
    asyncio.run(_play(agent, thread, resumed, calls))
    return 0


def _renamed(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[name]: value for name, value in given.items()}


async def _play(
    agent: dict[str, Any], options: dict[str, Any], resumed: str | None, calls: list[dict[str, Any]]
) -> None:
    try:
        client = Agent(**agent)
        thread = (
            client.start_thread(**options)
            if resumed is None
            else client.resume_thread(resumed, **options)
        )
    except AgentError as error:
        _tell(-1, error=_error(error))
        return
    _tell(-1, threadId=thread.id)
    for number, call in enumerate(calls):
        try:
            await _call(thread, number, call)
        except AgentError as error:
            _tell(number, error=_error(error))
        _tell(number, threadId=thread.id)


async def _call(thread: Thread, number: int, call: Mapping[str, Any]) -> None:
    abort: object = call.get("abort")
    bounds: Mapping[Any, Any] = abort if is_mapping(abort) else {}
    signal = AbortSignal() if abort else None
    given: dict[str, Any] = {"output_schema": call.get("outputSchema"), "signal": signal}
    after = bounds.get("afterEvents")
    if signal is not None and abort == "before":
        signal.abort()
    elif signal is not None and after is None:
        asyncio.get_running_loop().call_later(bounds["afterMs"] / 1000, signal.abort)
    if call["call"] == "run":
        result = await thread.run(call["input"], **given)
        items = [plain(item) for item in result.items]
        answer = {"finalResponse": result.final_response, "items": items}
        _tell(number, result=answer | {"usage": plain(result.usage)})
        return
    received = 0
    async with thread.run_streamed(call["input"], **given) as events:
        async for event in events:
            received += 1
            _tell(number, event=plain(event))
            if received == after and signal is not None:
                signal.abort()
            if received == call.get("leaveAfter"):
                break
    _tell(number, ended=True)


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


def _error(error: AgentError) -> dict[str, str]:
    return {"name": type(error).__name__, "message": str(error)}


def _tell(call: int, **said: Any) -> None:
    sys.stdout.write(json.dumps({"call": call, **said}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
