"""Faults of SDKs: the start of the agent, and the results of calls.

They change the harness's record of a turn, so they act on stored plays only.
"""

import copy
from collections.abc import Callable
from typing import Any

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.sdk_turns import WHY, Message, SdkTurn, edit_turn
from harness.faults.site import FaultSite
from harness.faults.stored import change, drop
from harness.protocol.values import arr, obj, text
from harness.trace.trace import Trace

Edit = Callable[[Message], None]


def edit_message(member: str, *, index: int = 0, do: Edit, reason: str = WHY) -> StoredOnly:
    """Return a change of one message with this member; `index` counts those messages."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        messages = [frame for frame in trace.frames if member in obj(frame.json)]
        if len(messages) <= (index if index >= 0 else -index - 1):
            raise NotApplied(f"no message {index} with {member}")
        return change(trace, [messages[index]], lambda value: _apply_edit(value, do))

    return StoredOnly(reason, make)


def edit_everywhere(do: Edit) -> StoredOnly:
    """Return a change of the agent's events and the call's result alike."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        messages = [frame for frame in trace.frames if {"wrote", "result"} & obj(frame.json).keys()]
        if not any("wrote" in obj(message.json) for message in messages):
            raise NotApplied("no event of a real agent")
        return change(trace, messages, lambda value: _apply_edit(value, do))

    return StoredOnly(WHY, make)


def drop_message(member: str) -> StoredOnly:
    """Return a change that drops the first message with this member."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        messages = [frame for frame in trace.frames if member in obj(frame.json)]
        if not messages:
            raise NotApplied(f"no message with {member}")
        return drop(trace, messages[0])

    return StoredOnly(WHY, make)


def _apply_edit(value: Message, do: Edit) -> Message:
    edited = copy.deepcopy(value)
    do(edited)
    return edited


def set_start(member: str, value: Any) -> Edit:
    """Return an edit that sets a member of the agent's start."""

    def edit(message: Message) -> None:
        obj(message["started"])[member] = value

    return edit


def set_result(member: str, value: Any) -> Edit:
    """Return an edit that sets a member of the result; it raises `NotApplied` without a result."""

    def edit(message: Message) -> None:
        if "result" not in message:
            raise NotApplied("no result")
        obj(message["result"])[member] = value

    return edit


def replace_message(message: Message) -> None:
    """Change the text of the agent's message to "No.", also in the result."""
    items = [obj(message.get("wrote")).get("item"), *arr(obj(message.get("result")).get("items"))]
    for item in map(obj, items):
        if item.get("type") == "agent_message":
            item["text"] = "No."
    if "result" in message:
        message["result"]["finalResponse"] = "No."


def set_member(member: str, value: Any) -> Edit:
    """Return an edit that sets a member of the message."""

    def edit(message: Message) -> None:
        message[member] = value

    return edit


def resolve(message: Message) -> None:
    """Make the call return an empty result."""
    message["over"] = "result"
    message.pop("error", None)
    message["result"] = {"finalResponse": "", "items": [], "usage": None}


def hide_failure(turn: SdkTurn) -> None:
    """Make run return a result although the agent reported that the turn failed."""
    fails = turn.request.get("call") == "run" and turn.ends_with == "turn.failed"
    if fails and not turn.abort_time and turn.message.get("over") == "error":
        resolve(turn.message)


def rename_abort_error(turn: SdkTurn) -> None:
    """Rename the error of a turn that was aborted while it ran."""
    aborted = (
        turn.request.get("call") == "run" and turn.abort_time == "during" and not turn.ends_with
    )
    if aborted and "error" in turn.message:
        turn.message["error"]["name"] = "Error"


def deny_failure(turn: SdkTurn) -> None:
    """Make run return a result although the turn of a real agent failed."""
    if "name" in turn.request and turn.message.get("over") == "error" and not turn.abort_time:
        resolve(turn.message)


def throw(message: Message) -> None:
    """Make the call throw an error."""
    message["over"], message["error"] = "error", {"name": "Error", "message": "no"}


def replace_word(turn: SdkTurn, old: str, new: str) -> None:
    """Replace a string in the arguments of the agent."""
    turn.start["argv"] = [word.replace(old, new) for word in turn.argv]


def replace_model(turn: SdkTurn) -> None:
    """Pass another model to the agent."""
    if turn.is_first and turn.thread.get("model"):
        replace_word(turn, turn.thread["model"], "another")


def replace_directory(turn: SdkTurn) -> None:
    """Pass another directory in place of the last additional one."""
    folders = arr(turn.thread.get("additionalDirectories"))
    if turn.is_first and folders:
        replace_word(turn, folders[-1], "/another")


def replace_image(turn: SdkTurn) -> None:
    """Pass another image to the agent."""
    for entry in map(obj, arr(turn.request.get("input"))):
        if entry.get("type") == "local_image":
            replace_word(turn, entry["path"], "another.png")
            return


def has_switch(turn: SdkTurn) -> bool:
    """Return whether the thread has a boolean option on."""
    return any(turn.thread.get(name) for name in ("skipGitRepoCheck", "networkAccessEnabled"))


def copy_start(turn: SdkTurn, other_turns: tuple[SdkTurn, ...]) -> None:
    """Give the agent the arguments and variables of a first turn with the opposite switch."""
    for other in other_turns:
        if other.is_first and turn.is_first and has_switch(other) is not has_switch(turn):
            turn.start.update(argv=other.start.get("argv"), env=other.start.get("env"))
            return


def forget_switch(turn: SdkTurn) -> None:
    """Do not pass a switch that is on; it needs an earlier turn without one."""
    if has_switch(turn):
        copy_start(turn, turn.earlier)


def assume_switch(turn: SdkTurn) -> None:
    """Pass a switch that is omitted as if it was on; it needs a later turn with one."""
    if not has_switch(turn):
        copy_start(turn, turn.later)


def nest_config(turn: SdkTurn) -> None:
    """Pass a nested config member within a table instead of as a dotted path."""
    for key, value in obj(turn.agent.get("config")).items():
        for inner, member in obj(value).items() if isinstance(value, dict) else ():
            path = f"{key}.{inner}="
            place = next((n for n, word in enumerate(turn.argv) if word.startswith(path)), None)
            if isinstance(member, str | int | float) and place is not None:
                value_text = turn.argv[place].removeprefix(path)
                turn.start["argv"][place] = f"{key}={{{inner}={value_text}}}"
                return


def inherit_env(turn: SdkTurn) -> None:
    """Pass the variables of the process too if env is given."""
    if turn.agent.get("env") is not None and turn.process:
        turn.start["env"] = {**turn.process, **obj(turn.start.get("env"))}


def drop_env(turn: SdkTurn) -> None:
    """Pass none of the variables of env to the agent."""
    own_env = obj(turn.agent.get("env"))
    agent_env = obj(turn.start.get("env"))
    turn.start["env"] = {name: item for name, item in agent_env.items() if name not in own_env}


def inherit_nothing(turn: SdkTurn) -> None:
    """Pass no variable of the process but the key if env is not given."""
    if turn.agent.get("env") is None:
        agent_env = obj(turn.start.get("env"))
        dropped = turn.process.keys() - {KEY}
        turn.start["env"] = {name: item for name, item in agent_env.items() if name not in dropped}


def lose_key(turn: SdkTurn) -> None:
    """Pass no key to the agent if apiKey is not given."""
    key = turn.process.get(KEY)
    if key and turn.agent.get("apiKey") is None and turn.agent.get("env") is None:
        agent_env = obj(turn.start.get("env"))
        turn.start["env"] = {name: item for name, item in agent_env.items() if item != key}
        replace_word(turn, key, "")


def show_key(turn: SdkTurn) -> None:
    """Pass apiKey as an argument of the agent."""
    if turn.agent.get("apiKey"):
        turn.start["argv"] = [*turn.argv, f"--key={turn.agent['apiKey']}"]


def forget_thread(turn: SdkTurn) -> None:
    """Do not pass the thread id in a later turn."""
    events = [obj(event) for event in arr(turn.request.get("writes"))]
    thread_ids = [
        text(event.get("thread_id")) for event in events if event.get("type") == "thread.started"
    ]
    thread_id = text(turn.driver.get("resume")) or next(filter(None, thread_ids), "")
    if thread_id and not turn.is_first:
        replace_word(turn, thread_id, "last")


KEY = "PROVIDER_API_KEY"


def fault(name: str, rule: str, reason: str, change: StoredOnly, on: str = "sdk-options") -> Fault:
    """Return a fault of this table; its id begins with `sdk-`."""
    return Fault(f"sdk-{name}", rule=rule, on=on, reason=reason, change=change)


RESULTS, LEFT_OUT, ON_AGENT = "sdk-results", "sdk-left-out", "sdk-on-agent"
FAULTS: tuple[Fault, ...] = (
    fault(
        "agent-of-path-not-started",
        "sdk-child.found-on-path",
        "The option is for a binary that is not on PATH.",
        drop_message("started"),
        LEFT_OUT,
    ),
    fault(
        "started-somewhere",
        "sdk-child.current-directory",
        "The thread works in the current directory.",
        edit_message("started", do=set_start("cwd", "/")),
        LEFT_OUT,
    ),
    fault(
        "check-left-out-by-default",
        "sdk-child.switches",
        "skipGitRepoCheck is false where it is left out.",
        edit_turn("started", assume_switch, "start beside one with a switch"),
    ),
    fault(
        "agent-not-started",
        "sdk-child.started",
        "The SDK starts the binary that it was given.",
        drop_message("started"),
    ),
    fault(
        "model-not-passed",
        "sdk-child.options",
        "The model is that of the thread's options.",
        edit_turn("started", replace_model, "start with a model"),
    ),
    fault(
        "one-directory-lost",
        "sdk-child.options",
        "Each additional directory is passed on.",
        edit_turn("started", replace_directory, "start with a directory"),
    ),
    fault(
        "switch-forgotten",
        "sdk-child.switches",
        "The agent is told not to look for a repository.",
        edit_turn("started", forget_switch, "start with a switch behind one without"),
    ),
    fault(
        "input-lost",
        "sdk-child.input",
        "The agent gets the input.",
        edit_message("started", index=-1, do=set_start("stdin", "")),
    ),
    fault(
        "image-lost",
        "sdk-child.input",
        "The agent gets the paths of images.",
        edit_turn("started", replace_image, "start with an image"),
    ),
    fault(
        "schema-lost",
        "sdk-child.schema",
        "The agent gets the output schema.",
        edit_message("started", index=-1, do=set_start("files", {})),
    ),
    fault(
        "config-nested",
        "sdk-child.config",
        "Nested members are joined by dots.",
        edit_turn("started", nest_config, "start with a nested config"),
    ),
    fault(
        "env-inherited-all-the-same",
        "sdk-child.env",
        "With env given nothing is inherited.",
        edit_turn("started", inherit_env, "start with env and a process of ours"),
    ),
    fault(
        "env-left-out",
        "sdk-child.env",
        "env is the environment of the child.",
        edit_turn("started", drop_env, "start with env"),
    ),
    fault(
        "nothing-inherited",
        "sdk-child.env-inherited",
        "Without env the process's own environment counts.",
        edit_turn("started", inherit_nothing, "start without env"),
    ),
    fault(
        "key-not-looked-for",
        "sdk-child.key",
        "Without apiKey the key is that of PROVIDER_API_KEY.",
        edit_turn("started", lose_key, "start with the key of the process"),
    ),
    fault(
        "key-among-the-words",
        "sdk-child.key-hidden",
        "Worth recording: everybody on the machine can read it.",
        edit_turn("started", show_key, "start with apiKey"),
    ),
    fault(
        "second-turn-of-no-thread",
        "sdk-child.resumed",
        "The second turn goes on with the thread.",
        edit_turn("started", forget_thread, "later turn"),
        RESULTS,
    ),
    fault(
        "run-rejects-all-the-same",
        "sdk-run.resolves",
        "run gives the result of a turn that was completed.",
        edit_message("over", do=throw),
        RESULTS,
    ),
    fault(
        "final-response-parsed",
        "sdk-run.result-shape",
        "finalResponse is a string, also with a schema.",
        edit_message("over", index=-1, do=set_result("finalResponse", {"a": 1})),
    ),
    fault(
        "usage-left-out",
        "sdk-run.usage",
        "run gives what its events add up to.",
        edit_message("over", do=set_result("usage", None)),
        RESULTS,
    ),
    fault(
        "usage-of-another",
        "sdk-run.usage",
        "run gives what its events add up to.",
        edit_message(
            "over",
            do=set_result(
                "usage", {"input_tokens": 6, "cached_input_tokens": 2, "output_tokens": 3}
            ),
        ),
        RESULTS,
    ),
    fault(
        "items-left-out",
        "sdk-run.items",
        "The items are those that were completed.",
        edit_message("over", do=set_result("items", [])),
        RESULTS,
    ),
    fault(
        "final-response-of-another",
        "sdk-run.final-response",
        "finalResponse is the last message.",
        edit_message("over", do=set_result("finalResponse", "No.")),
        RESULTS,
    ),
    fault(
        "failure-as-result",
        "sdk-run.rejects",
        "run rejects where the turn fails.",
        edit_turn("over", hide_failure, "turn that failed"),
        RESULTS,
    ),
    fault(
        "event-lost",
        "sdk-streamed.events",
        "Every event is yielded.",
        drop_message("event"),
        RESULTS,
    ),
    fault(
        "abort-by-another-name",
        "sdk-run.abort-error",
        "The error's name is AbortError.",
        edit_turn("over", rename_abort_error, "turn that was aborted"),
        RESULTS,
    ),
    fault(
        "id-not-set",
        "sdk-thread.id-known",
        "thread.id is there once the thread exists.",
        edit_message("over", do=set_member("threadId", None)),
    ),
    fault(
        "id-changes",
        "sdk-thread.same-id",
        "The id is that of the thread.",
        edit_message("over", index=1, do=set_member("threadId", "thr-2")),
        RESULTS,
    ),
    fault(
        "message-otherwise-than-the-session",
        "sdk-run.agrees-with-session",
        "One agent tells the same of the same work.",
        edit_everywhere(replace_message),
        ON_AGENT,
    ),
    fault(
        "failure-otherwise-than-the-session",
        "sdk-run.agrees-with-session",
        "The same turn fails on both.",
        edit_turn("over", deny_failure, "turn of a real agent that failed"),
        ON_AGENT,
    ),
)
