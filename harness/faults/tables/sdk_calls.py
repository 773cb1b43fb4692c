"""Faults of SDKs: what the agent is given, and what a call gives.

They change what the harness wrote down of a turn, so they act on stored plays only.
"""

import copy
from collections.abc import Callable
from typing import Any

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.site import FaultSite
from harness.faults.stored import change, drop
from harness.trace.trace import Trace
from harness.trace.values import arr, obj

WHY = "what a driver tells of its calls is no stream between a client and a server"
Message = dict[str, Any]
Edit = Callable[[Message], None]


def having(member: str, *, at: int = 0, do: Edit, why: str = WHY) -> StoredOnly:
    """The message with this member, by its place among those, changed."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        found = [one for one in trace.frames if member in obj(one.json)]
        if len(found) <= (at if at >= 0 else -at - 1):
            raise NotApplied(f"no message {at} with {member}")
        return change(trace, [found[at]], lambda value: _edited(value, do))

    return StoredOnly(why, make)


def everywhere(do: Edit) -> StoredOnly:
    """What the agent wrote and what the call gave of it, changed alike."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        found = [one for one in trace.frames if {"wrote", "result"} & obj(one.json).keys()]
        return change(trace, found, lambda value: _edited(value, do))

    return StoredOnly(WHY, make)


def without(member: str) -> StoredOnly:
    """The first message with this member is not there."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        found = [one for one in trace.frames if member in obj(one.json)]
        if not found:
            raise NotApplied(f"no message with {member}")
        return drop(trace, found[0])

    return StoredOnly(WHY, make)


def _edited(value: Message, do: Edit) -> Message:
    edited = copy.deepcopy(value)
    do(edited)
    return edited


def word(old: str, new: str) -> Edit:
    """A word of the agent is another one."""

    def edit(message: Message) -> None:
        started = obj(message["started"])
        started["argv"] = [new if one == old else one for one in arr(started.get("argv"))]

    return edit


def started(member: str, value: Any) -> Edit:
    """A member of the agent's start has another value."""

    def edit(message: Message) -> None:
        obj(message["started"])[member] = value

    return edit


def result(member: str, value: Any) -> Edit:
    """A member of the result has another value."""

    def edit(message: Message) -> None:
        if "result" not in message:
            raise NotApplied("no result")
        obj(message["result"])[member] = value

    return edit


def another_message(message: Message) -> None:
    """The agent says something else."""
    given = [obj(message.get("wrote")).get("item"), *arr(obj(message.get("result")).get("items"))]
    for item in map(obj, given):
        if item.get("type") == "agent_message":
            item["text"] = "No."
    if "result" in message:
        message["result"]["finalResponse"] = "No."


def said(member: str, value: Any) -> Edit:
    """A member of the message has another value."""

    def edit(message: Message) -> None:
        message[member] = value

    return edit


def resolved(message: Message) -> None:
    """The call gave a result all the same."""
    message["over"] = "result"
    message.pop("error", None)
    message["result"] = {"finalResponse": "", "items": [], "usage": None}


def nameless(message: Message) -> None:
    """The error has a name of its own."""
    if "error" not in message:
        raise NotApplied("no error")
    message["error"]["name"] = "Error"


def thrown(message: Message) -> None:
    """The call ended with an error."""
    message["over"], message["error"] = "error", {"name": "Error", "message": "no"}


def fault(name: str, rule: str, reason: str, change: StoredOnly, on: str = "sdk-options") -> Fault:
    """A row of this table."""
    return Fault(f"sdk-{name}", rule=rule, on=on, reason=reason, change=change)


RESULTS, LEFT_OUT, ON_AGENT = "sdk-results", "sdk-left-out", "sdk-on-agent"
FAULTS: tuple[Fault, ...] = (
    fault(
        "agent-of-path-not-started",
        "sdk-child.found-on-path",
        "The option is for a binary that is not on PATH.",
        without("started"),
        LEFT_OUT,
    ),
    fault(
        "started-somewhere",
        "sdk-child.current-directory",
        "The thread works in the current directory.",
        having("started", do=started("cwd", "/")),
        LEFT_OUT,
    ),
    fault(
        "check-left-out-by-default",
        "sdk-child.switches",
        "skipGitRepoCheck is false where it is left out.",
        having("started", do=started("argv", ["exec", "--skip-git-repo-check"])),
    ),
    fault(
        "agent-not-started",
        "sdk-child.started",
        "The SDK starts the binary that it was given.",
        without("started"),
    ),
    fault(
        "model-not-passed",
        "sdk-child.options",
        "The model is that of the thread's options.",
        having("started", at=-1, do=word("m-1", "m-2")),
    ),
    fault(
        "one-directory-lost",
        "sdk-child.options",
        "Each additional directory is passed on.",
        having("started", at=-1, do=word("/extra", "/w")),
    ),
    fault(
        "switch-forgotten",
        "sdk-child.switches",
        "The agent is told not to look for a repository.",
        having("started", at=1, do=started("argv", ["exec"])),
    ),
    fault(
        "input-lost",
        "sdk-child.input",
        "The agent gets the input.",
        having("started", at=-1, do=started("stdin", "")),
    ),
    fault(
        "image-lost",
        "sdk-child.input",
        "The agent gets the paths of images.",
        having("started", at=-1, do=word("/i.png", "/other.png")),
    ),
    fault(
        "schema-lost",
        "sdk-child.schema",
        "The agent gets the output schema.",
        having("started", at=-1, do=started("files", {})),
    ),
    fault(
        "config-nested",
        "sdk-child.config",
        "Nested members are joined by dots.",
        having("started", at=-1, do=word("x.y='z'", "x={y='z'}")),
    ),
    fault(
        "env-inherited-all-the-same",
        "sdk-child.env",
        "With env given nothing is inherited.",
        having(
            "started",
            at=-1,
            do=started("env", {"A": "b", "MARK": "x", "PROVIDER_API_KEY": "key-1"}),
        ),
    ),
    fault(
        "env-left-out",
        "sdk-child.env",
        "env is the environment of the child.",
        having("started", at=-1, do=started("env", {"PROVIDER_API_KEY": "key-1"})),
    ),
    fault(
        "nothing-inherited",
        "sdk-child.env-inherited",
        "Without env the process's own environment counts.",
        having("started", do=started("env", {"PROVIDER_API_KEY": "key-of-process"})),
    ),
    fault(
        "key-not-looked-for",
        "sdk-child.key",
        "Without apiKey the key is that of PROVIDER_API_KEY.",
        having("started", do=started("env", {"MARK": "of-the-process"})),
    ),
    fault(
        "key-among-the-words",
        "sdk-child.key-hidden",
        "Worth recording: everybody on the machine can read it.",
        having("started", at=-1, do=word("exec", "--key=key-1")),
    ),
    fault(
        "second-turn-of-no-thread",
        "sdk-child.resumed",
        "The second turn goes on with the thread.",
        having("started", at=1, do=word("thr-1", "last")),
        RESULTS,
    ),
    fault(
        "run-rejects-all-the-same",
        "sdk-run.resolves",
        "run gives the result of a turn that was completed.",
        having("over", do=thrown),
        RESULTS,
    ),
    fault(
        "final-response-parsed",
        "sdk-run.result-shape",
        "finalResponse is a string, also with a schema.",
        having("over", at=-1, do=result("finalResponse", {"a": 1})),
    ),
    fault(
        "usage-left-out",
        "sdk-run.usage",
        "run gives what its events add up to.",
        having("over", do=result("usage", None)),
        RESULTS,
    ),
    fault(
        "usage-of-another",
        "sdk-run.usage",
        "run gives what its events add up to.",
        having(
            "over",
            do=result("usage", {"input_tokens": 6, "cached_input_tokens": 2, "output_tokens": 3}),
        ),
        RESULTS,
    ),
    fault(
        "items-left-out",
        "sdk-run.items",
        "The items are those that were completed.",
        having("over", do=result("items", [])),
        RESULTS,
    ),
    fault(
        "final-response-of-another",
        "sdk-run.final-response",
        "finalResponse is the last message.",
        having("over", do=result("finalResponse", "No.")),
        RESULTS,
    ),
    fault(
        "failure-as-result",
        "sdk-run.rejects",
        "run rejects where the turn fails.",
        having("over", at=2, do=resolved),
        RESULTS,
    ),
    fault(
        "event-lost",
        "sdk-streamed.events",
        "Every event is yielded.",
        without("event"),
        RESULTS,
    ),
    fault(
        "abort-by-another-name",
        "sdk-run.abort-error",
        "The error's name is AbortError.",
        having("over", at=-1, do=nameless),
        RESULTS,
    ),
    fault(
        "id-not-set",
        "sdk-thread.id-known",
        "thread.id is there once the thread exists.",
        having("over", do=said("threadId", None)),
    ),
    fault(
        "id-changes",
        "sdk-thread.same-id",
        "The id is that of the thread.",
        having("over", at=1, do=said("threadId", "thr-2")),
        RESULTS,
    ),
    fault(
        "message-otherwise-than-the-session",
        "sdk-run.agrees-with-session",
        "One agent tells the same of the same work.",
        everywhere(another_message),
        ON_AGENT,
    ),
    fault(
        "failure-otherwise-than-the-session",
        "sdk-run.agrees-with-session",
        "The same turn fails on both.",
        having("over", at=1, do=resolved),
        ON_AGENT,
    ),
)
