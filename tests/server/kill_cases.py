"""Plays of a client, with the model's replies, during which a server is killed.

Each play is a function that sends requests and waits for messages, by default on one thread. This
module neither kills nor judges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from model_side import (
    CREATED,
    CUT,
    PIXEL,
    Refused,
    Reply,
    calls,
    completed,
    delta,
    done,
    event,
    function_call,
    http_error,
    message,
    opened,
    patches,
    runs,
    says,
)

Message = dict[str, Any]
UNASKED = {"sandbox": "danger-full-access", "approvalPolicy": "never"}
ASKED = {"sandbox": "danger-full-access", "approvalPolicy": "on-request"}
BEFORE = {"changed.txt": "one\ntwo\n", "gone.txt": "old\n"}
CHANGES = (
    "*** Add File: folder/new.txt",
    "+new",
    "*** Update File: changed.txt",
    "@@",
    "-one",
    "+ONE",
    " two",
    "*** Delete File: gone.txt",
)
AFTER = {"folder/new.txt": "new\n", "changed.txt": "ONE\ntwo\n"}
LATER = {**AFTER, "later.txt": "x\n"}


class Client(Protocol):
    """Calls that a play makes; each raises if the server is gone."""

    def request(self, method: str, params: Any = None) -> Message:
        """Send a request and return its result."""
        ...

    def until(self, wanted: Callable[[Message], bool]) -> Message:
        """Return the first message for which `wanted` is true."""
        ...

    def decide(self, question: Message, decision: str) -> None:
        """Answer an approval request."""
        ...

    def answer(self, question: Message, result: Message) -> None:
        """Answer a request of the server."""
        ...


@dataclass(frozen=True)
class Case:
    """A play.

    `states` are the contents of the working directory before and after each patch. `unheard` are
    texts shown to the client but not necessarily sent to the model, of an answer that was cut off.
    """

    name: str
    play: Callable[[Client, str], None]
    replies: Callable[[], Sequence[Reply | Refused]]
    states: Sequence[Mapping[str, str]] = ({},)
    files: Mapping[str, bytes] = field(default_factory=dict)
    unheard: Sequence[str] = ()


def start(client: Client, cwd: str, **settings: Any) -> str:
    given = {"cwd": cwd, **UNASKED, **settings}
    return client.request("thread/start", given)["thread"]["id"]


def begin(client: Client, thread: str, text: str, **params: Any) -> str:
    given = {"threadId": thread, "input": [{"type": "text", "text": text}], **params}
    return client.request("turn/start", given)["turn"]["id"]


def told(client: Client, method: str, **fields: Any) -> Message:
    """Return the next notification or request whose params have these fields."""
    return client.until(
        lambda m: (
            m.get("method") == method
            and all(m["params"].get(name) == value for name, value in fields.items())
        )
    )


def ended(client: Client, turn: str) -> None:
    client.until(
        lambda m: m.get("method") == "turn/completed" and m["params"]["turn"]["id"] == turn
    )


def turns(*texts: str, **settings: Any) -> Callable[[Client, str], None]:
    """Return a play of turns, one after the other."""

    def play(client: Client, cwd: str) -> None:
        thread = start(client, cwd, **settings)
        for text in texts:
            ended(client, begin(client, thread, text))

    return play


def decides(kind: str, *decisions: str) -> Callable[[Client, str], None]:
    """Return a play of one turn with an approval request for each decision."""

    def play(client: Client, cwd: str) -> None:
        turn = begin(client, start(client, cwd, **ASKED), "do that")
        answered: list[int] = []
        for decision in decisions:
            question = client.until(
                lambda m: (
                    m.get("method") == f"item/{kind}/requestApproval" and m["id"] not in answered
                )
            )
            answered.append(question["id"])
            client.decide(question, decision)
        ended(client, turn)

    return play


def carries_out(client: Client, cwd: str) -> None:
    """Play two turns that each call a tool of the client."""
    tool = {"name": "look", "description": "looks", "inputSchema": {"type": "object"}}
    thread = start(client, cwd, dynamicTools=[tool])
    called: list[str] = []
    for text in ("look", "look again"):
        turn = begin(client, thread, text)
        question = client.until(
            lambda m: m.get("method") == "item/tool/call" and m["params"]["callId"] not in called
        )
        called.append(question["params"]["callId"])
        content = [{"type": "inputText", "text": f"{text}: seen"}]
        client.answer(question, {"success": text == "look", "contentItems": content})
        ended(client, turn)


def compacts(client: Client, cwd: str) -> None:
    thread = start(client, cwd)
    ended(client, begin(client, thread, "a long story"))
    client.request("thread/compact/start", {"threadId": thread})
    item = told(client, "item/completed")
    while item["params"]["item"]["type"] != "contextCompaction":
        item = _after(client, item, "item/completed")
    ended(client, item["params"]["turnId"])
    ended(client, begin(client, thread, "and then?"))


def _after(client: Client, earlier: Message, method: str) -> Message:
    passed = False

    def wanted(found: Message) -> bool:
        nonlocal passed
        matches = passed and found.get("method") == method
        passed = passed or found is earlier
        return matches

    return client.until(wanted)


def steers(client: Client, cwd: str) -> None:
    thread = start(client, cwd, **ASKED)
    turn = begin(client, thread, "do that")
    question = told(client, "item/commandExecution/requestApproval")
    for text in ("and this too", "and that"):
        given = [{"type": "text", "text": text}]
        params = {"threadId": thread, "expectedTurnId": turn, "input": given}
        client.request("turn/steer", params)
    client.decide(question, "accept")
    ended(client, turn)


def interrupts(method: str, **fields: Any) -> Callable[[Client, str], None]:
    """Return a play that interrupts a turn at a message, then runs another turn."""

    def play(client: Client, cwd: str) -> None:
        thread = start(client, cwd)
        turn = begin(client, thread, "begin")
        told(client, method, **fields)
        client.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        ended(client, turn)
        ended(client, begin(client, thread, "go on"))

    return play


def reviews(client: Client, cwd: str) -> None:
    thread = start(client, cwd)
    target = {"type": "custom", "instructions": "look at it"}
    params = {"threadId": thread, "target": target, "delivery": "inline"}
    ended(client, client.request("review/start", params)["turn"]["id"])


def reviews_apart(client: Client, cwd: str) -> None:
    thread = start(client, cwd)
    ended(client, begin(client, thread, "a thing"))
    target = {"type": "custom", "instructions": "look at it"}
    params = {"threadId": thread, "target": target, "delivery": "detached"}
    ended(client, client.request("review/start", params)["turn"]["id"])


def reasons() -> Reply:
    """Return a reply with reasoning (summary and raw text), and a message after it."""
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "First this."}],
        "content": [{"type": "reasoning_text", "text": "Raw."}],
        "encrypted_content": "secret",
    }
    return Reply(
        [
            CREATED,
            event("response.output_item.added", output_index=0, item={**item, "summary": []}),
            event("response.reasoning_summary_part.added", output_index=0, summary_index=0),
            event(
                "response.reasoning_summary_text.delta",
                output_index=0,
                summary_index=0,
                delta="First this.",
            ),
            event("response.reasoning_text.delta", output_index=0, content_index=0, delta="Raw."),
            done(item),
            *message("So ", "be it.", index=1),
            completed(),
        ]
    )


def several(*commands: str, text: str = "") -> Reply:
    """Return a reply with several commands, after a message if `text` is given."""
    said = message(text) if text else []
    made = [
        done(function_call("exec_command", f"call_{number}", cmd=command), number)
        for number, command in enumerate(commands, start=1)
    ]
    return Reply([CREATED, *said, *made, completed()])


def searches() -> Reply:
    item = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "herons"},
    }
    return Reply([CREATED, done(item), *message("Found.", index=1), completed()])


def plans() -> Reply:
    plan = [{"step": "one", "status": "completed"}, {"step": "two", "status": "in_progress"}]
    return calls("update_plan", plan=plan, explanation="so far")


def later() -> Reply:
    item = {
        "type": "custom_tool_call",
        "id": "ctc_2",
        "name": "apply_patch",
        "call_id": "call_2",
        "input": "*** Begin Patch\n*** Add File: later.txt\n+x\n*** End Patch",
    }
    return Reply([CREATED, done(item), completed()])


def held(*parts: bytes) -> Reply:
    """Return a reply that never ends after these parts."""
    return Reply([CREATED, *parts, anyio.Event()])


CASES = {
    case.name: case
    for case in (
        Case("two turns", turns("one", "two"), lambda: [says("First ", "one."), says("Two.")]),
        Case("reasoning", turns("think"), lambda: [reasons()]),
        Case(
            "two commands",
            turns("run", "again"),
            lambda: [
                several("echo one", "echo two >&2; exit 3", text="I look."),
                says("Done."),
                says("Again."),
            ],
        ),
        Case(
            "accepted commands",
            decides("commandExecution", "accept", "accept"),
            lambda: [several("echo one", "echo two"), says("Done.")],
        ),
        Case(
            "declined command",
            decides("commandExecution", "decline"),
            lambda: [runs("echo one"), says("Not done.")],
        ),
        Case(
            "cancelled command",
            decides("commandExecution", "cancel"),
            lambda: [several("echo one", "echo two")],
        ),
        Case(
            "tool of the client",
            carries_out,
            lambda: [calls("look"), says("Seen."), calls("look", "call_2"), says("Not again.")],
        ),
        Case(
            "patch",
            turns("patch"),
            lambda: [patches(*CHANGES), later(), says("Patched.")],
            states=(BEFORE, AFTER, LATER),
        ),
        Case(
            "accepted patch",
            decides("fileChange", "accept"),
            lambda: [patches(*CHANGES), says("Patched.")],
            states=(BEFORE, AFTER),
        ),
        Case(
            "declined patch",
            decides("fileChange", "decline"),
            lambda: [patches(*CHANGES), says("Not patched.")],
            states=(BEFORE,),
        ),
        Case(
            "compaction",
            compacts,
            lambda: [says("Long."), says("In short."), says("And so on.")],
        ),
        Case("steering", steers, lambda: [runs("echo one"), says("All of it.")]),
        Case(
            "interrupted text",
            interrupts("item/agentMessage/delta", delta="First"),
            lambda: [held(opened(), delta("First")), says("Go on.")],
        ),
        Case(
            "interrupted between messages",
            interrupts("item/agentMessage/delta", delta="Second"),
            lambda: [held(*message("First."), opened(1), delta("Second", 1)), says("Go on.")],
        ),
        Case(
            "interrupted command",
            interrupts("item/commandExecution/outputDelta", delta="begun\n"),
            lambda: [several("echo begun; exec tail -f /dev/null", "echo two"), says("Go on.")],
        ),
        Case("plan", turns("plan"), lambda: [plans(), says("Planned.")]),
        Case("failure", turns("fail", "go on"), lambda: [http_error(400), says("Works.")]),
        Case(
            "another try",
            turns("begin"),
            lambda: [Reply([CREATED, opened(), delta("Fir"), CUT]), says("First.")],
            unheard=["Fir"],
        ),
        Case("review", reviews, lambda: [says("It is good.")]),
        Case("detached review", reviews_apart, lambda: [says("A thing."), says("It is good.")]),
        Case(
            "image and search",
            turns("look"),
            lambda: [calls("view_image", path="pixel.png"), searches()],
            files={"pixel.png": PIXEL},
        ),
    )
}
"""By name."""
