"""Faults of SDKs: what the agent is given, and what a call gives.

They change what the harness wrote down of a turn, so they act on stored plays only.
"""

import copy
from collections.abc import Callable
from typing import Any

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.sdk_turns import WHY, Message, SdkTurn, turn_with
from harness.faults.site import FaultSite
from harness.faults.stored import change, drop
from harness.protocol.values import arr, obj, text
from harness.trace.trace import Trace

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
    """Change the agent's output and the call's result alike."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        found = [one for one in trace.frames if {"wrote", "result"} & obj(one.json).keys()]
        if not any("wrote" in obj(one.json) for one in found):
            raise NotApplied("no event of a real agent")
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


def failure_hidden(turn: SdkTurn) -> None:
    """run gives a result although the agent wrote that the turn failed."""
    fails = turn.asked.get("call") == "run" and turn.ends_with == "turn.failed"
    if fails and not turn.aborted and turn.message.get("over") == "error":
        resolved(turn.message)


def nameless(turn: SdkTurn) -> None:
    """The error of a turn that was aborted while it ran has a name of its own."""
    mine = turn.asked.get("call") == "run" and turn.aborted == "during" and not turn.ends_with
    if mine and "error" in turn.message:
        turn.message["error"]["name"] = "Error"


def failure_denied(turn: SdkTurn) -> None:
    """run gives a result although the turn of a real agent failed."""
    if "name" in turn.asked and turn.message.get("over") == "error" and not turn.aborted:
        resolved(turn.message)


def thrown(message: Message) -> None:
    """The call ended with an error."""
    message["over"], message["error"] = "error", {"name": "Error", "message": "no"}


def said_otherwise(turn: SdkTurn, old: str, new: str) -> None:
    """Words of the agent say something else."""
    turn.started["argv"] = [one.replace(old, new) for one in turn.argv]


def model_replaced(turn: SdkTurn) -> None:
    """The agent is told of another model."""
    if turn.is_first and turn.thread.get("model"):
        said_otherwise(turn, turn.thread["model"], "another")


def directory_replaced(turn: SdkTurn) -> None:
    """The agent is told of another directory in the place of the last additional one."""
    folders = arr(turn.thread.get("additionalDirectories"))
    if turn.is_first and folders:
        said_otherwise(turn, folders[-1], "/another")


def image_replaced(turn: SdkTurn) -> None:
    """The agent is told of another image."""
    for entry in map(obj, arr(turn.asked.get("input"))):
        if entry.get("type") == "local_image":
            said_otherwise(turn, entry["path"], "another.png")
            return


def switched(turn: SdkTurn) -> bool:
    """Return whether the thread has a switch on."""
    return any(turn.thread.get(name) for name in ("skipGitRepoCheck", "networkAccessEnabled"))


def told_alike(turn: SdkTurn, others: tuple[SdkTurn, ...]) -> None:
    """The agent is told the same as in another turn, with the switch the other way."""
    for other in others:
        if other.is_first and turn.is_first and switched(other) is not switched(turn):
            turn.started.update(argv=other.started.get("argv"), env=other.started.get("env"))
            return


def forgotten(turn: SdkTurn) -> None:
    """A switch that is on is not told."""
    if switched(turn):
        told_alike(turn, turn.earlier)


def unasked(turn: SdkTurn) -> None:
    """A switch that is left out is told as if it was on."""
    if not switched(turn):
        told_alike(turn, turn.later)


def flattened(turn: SdkTurn) -> None:
    """A member of a nested table in config is no dotted path, but within a table."""
    for key, value in obj(turn.agent.get("config")).items():
        for inner, one in obj(value).items() if isinstance(value, dict) else ():
            path = f"{key}.{inner}="
            place = next((n for n, word in enumerate(turn.argv) if word.startswith(path)), None)
            if isinstance(one, str | int | float) and place is not None:
                said = turn.argv[place].removeprefix(path)
                turn.started["argv"][place] = f"{key}={{{inner}={said}}}"
                return


def inherited(turn: SdkTurn) -> None:
    """With env given the agent has the variables of the process too."""
    if turn.agent.get("env") is not None and turn.process:
        turn.started["env"] = {**turn.process, **obj(turn.started.get("env"))}


def env_left_out(turn: SdkTurn) -> None:
    """Of env nothing reaches the agent."""
    mine = obj(turn.agent.get("env"))
    there = obj(turn.started.get("env"))
    turn.started["env"] = {name: one for name, one in there.items() if name not in mine}


def nothing_inherited(turn: SdkTurn) -> None:
    """Without env the agent has no variable of the process but the key."""
    if turn.agent.get("env") is None:
        there = obj(turn.started.get("env"))
        gone = turn.process.keys() - {KEY}
        turn.started["env"] = {name: one for name, one in there.items() if name not in gone}


def key_lost(turn: SdkTurn) -> None:
    """Without apiKey the agent gets no key."""
    key = turn.process.get(KEY)
    if key and turn.agent.get("apiKey") is None and turn.agent.get("env") is None:
        there = obj(turn.started.get("env"))
        turn.started["env"] = {name: one for name, one in there.items() if one != key}
        said_otherwise(turn, key, "")


def key_shown(turn: SdkTurn) -> None:
    """The key is among the words."""
    if turn.agent.get("apiKey"):
        turn.started["argv"] = [*turn.argv, f"--key={turn.agent['apiKey']}"]


def thread_forgotten(turn: SdkTurn) -> None:
    """A later turn does not say which thread it is of."""
    written = [obj(one) for one in arr(turn.asked.get("writes"))]
    told = [text(one.get("thread_id")) for one in written if one.get("type") == "thread.started"]
    known = text(turn.driver.get("resume")) or next(filter(None, told), "")
    if known and not turn.is_first:
        said_otherwise(turn, known, "last")


KEY = "PROVIDER_API_KEY"


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
        turn_with("started", unasked, "start beside one with a switch"),
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
        turn_with("started", model_replaced, "start with a model"),
    ),
    fault(
        "one-directory-lost",
        "sdk-child.options",
        "Each additional directory is passed on.",
        turn_with("started", directory_replaced, "start with a directory"),
    ),
    fault(
        "switch-forgotten",
        "sdk-child.switches",
        "The agent is told not to look for a repository.",
        turn_with("started", forgotten, "start with a switch behind one without"),
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
        turn_with("started", image_replaced, "start with an image"),
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
        turn_with("started", flattened, "start with a nested config"),
    ),
    fault(
        "env-inherited-all-the-same",
        "sdk-child.env",
        "With env given nothing is inherited.",
        turn_with("started", inherited, "start with env and a process of ours"),
    ),
    fault(
        "env-left-out",
        "sdk-child.env",
        "env is the environment of the child.",
        turn_with("started", env_left_out, "start with env"),
    ),
    fault(
        "nothing-inherited",
        "sdk-child.env-inherited",
        "Without env the process's own environment counts.",
        turn_with("started", nothing_inherited, "start without env"),
    ),
    fault(
        "key-not-looked-for",
        "sdk-child.key",
        "Without apiKey the key is that of PROVIDER_API_KEY.",
        turn_with("started", key_lost, "start with the key of the process"),
    ),
    fault(
        "key-among-the-words",
        "sdk-child.key-hidden",
        "Worth recording: everybody on the machine can read it.",
        turn_with("started", key_shown, "start with apiKey"),
    ),
    fault(
        "second-turn-of-no-thread",
        "sdk-child.resumed",
        "The second turn goes on with the thread.",
        turn_with("started", thread_forgotten, "later turn"),
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
        turn_with("over", failure_hidden, "turn that failed"),
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
        turn_with("over", nameless, "turn that was aborted"),
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
        turn_with("over", failure_denied, "turn of a real agent that failed"),
        ON_AGENT,
    ),
)
