"""The turns of a legal server: concurrent items of all kinds, and an end."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.rules.approval_talk import COMMAND, CWD, FILE
from tests.rules.legal_server import Item, LegalServer, Thread, Turn, question_of
from tests.rules.traces import TROUBLE, agent_message, command, mcp_call, turn_object, user_message

OUTPUT = "item/commandExecution/outputDelta"
SUMMARY = "item/reasoning/summaryTextDelta"
Part = Callable[[LegalServer, Turn], Iterator[None]]


def live(server: LegalServer, turn: Turn, first: Callable[[], None] | None) -> Iterator[None]:
    """Run a turn step by step; `first` emits its first item."""
    thread = turn.thread
    _begin(server, turn)
    yield
    if first is not None and not turn.cut:
        first()
    parts: list[Iterator[None]] = []
    for _ in range(12):
        yield
        _show_steered(server, turn)
        if turn.cut:
            break
        if parts and (len(parts) > 2 or server.tape.chance()):
            _step(server, parts)
        else:
            part = server.tape.one(PARTS)
            if part is None:
                break
            parts.append(part(server, turn))
    while parts and not turn.cut:
        _step(server, parts)
        yield
    _show_steered(server, turn)
    _end(server, thread, turn)


def _step(server: LegalServer, parts: list[Iterator[None]]) -> None:
    at = server.tape.below(len(parts))
    try:
        next(parts[at])
    except StopIteration:
        del parts[at]


def _begin(server: LegalServer, turn: Turn) -> None:
    def known() -> None:
        turn.known = True

    started = {"threadId": turn.thread.id, "turn": turn_object(turn.id)}
    if server.habits.status_first:
        server.move(turn.thread, "active")
    server.tell(turn.thread, "turn/started", known, **started)
    server.move(turn.thread, "active")


def _end(server: LegalServer, thread: Thread, turn: Turn) -> None:
    status, error = "interrupted" if turn.cut else "completed", None
    if not turn.cut and server.tape.chance(4):
        status, error = "failed", TROUBLE
        _error(server, turn, will_retry=False)
    for question in server.questions:
        if question.turn is turn and not question.over:
            server.resolve(question)
    for item in list(turn.open.values()):
        if status == "completed" or server.habits.completes_cut_off:
            _complete(server, turn, _cut_off(item))
    turn.open.clear()
    after = "systemError" if error and not server.habits.failed_is_idle else "idle"
    thread.active = None
    thread.turns.append(turn.stored(status, error))
    ended = {"threadId": thread.id, "turn": turn_object(turn.id, status, error=error)}
    if server.habits.status_first:
        server.move(thread, after)
    server.tell(thread, "turn/completed", **ended)
    server.move(thread, after)


def _cut_off(item: Item) -> Item:
    if item["type"] == "mcpToolCall":
        return {**item, "status": "failed", "error": {"message": "cut off"}}
    return {**item, "status": "failed"} if "status" in item else item


def _show_steered(server: LegalServer, turn: Turn) -> None:
    while turn.steered:
        says(server, turn, turn.steered.pop(0))


def says(server: LegalServer, turn: Turn, text: str) -> None:
    """Emit the user's message as an item, if the server shows it."""
    if server.habits.echoes:
        _whole(server, turn, user_message(_id(server, turn), text))


def compacts(server: LegalServer, turn: Turn) -> None:
    """Emit a contextCompaction item."""
    _whole(server, turn, {"type": "contextCompaction", "id": _id(server, turn)})


def _id(server: LegalServer, turn: Turn) -> str:
    begun = len(turn.items) + len(turn.open)
    return f"item_{begun}" if server.habits.items_per_turn else f"item_{server.number()}"


def _tell(server: LegalServer, turn: Turn, method: str, **params: Any) -> None:
    server.tell(turn.thread, method, threadId=turn.thread.id, turnId=turn.id, **params)


def _start(server: LegalServer, turn: Turn, item: Item) -> Item:
    turn.open[item["id"]] = item
    _tell(server, turn, "item/started", item={**item, **server.habits.extra()})
    return item


def _complete(server: LegalServer, turn: Turn, item: Item) -> None:
    turn.open.pop(item["id"])
    turn.items.append(item)
    _tell(server, turn, "item/completed", item=item)


def _whole(server: LegalServer, turn: Turn, item: Item) -> None:
    _start(server, turn, item)
    _complete(server, turn, item)


def _error(server: LegalServer, turn: Turn, *, will_retry: bool) -> None:
    _tell(server, turn, "error", error=TROUBLE, willRetry=will_retry)


def _message(server: LegalServer, turn: Turn) -> Iterator[None]:
    item = agent_message(_id(server, turn), "")
    item |= server.habits.optional(phase=None)
    _start(server, turn, dict(item))
    pieces = ["Hel", "", "lo ", "\u00e9\U0001f600"][: server.tape.below(5)]
    for piece in pieces:
        yield
        item["text"] += piece
        turn.open[item["id"]] = dict(item)
        _tell(server, turn, "item/agentMessage/delta", itemId=item["id"], delta=piece)
    yield
    _complete(server, turn, {**item, "text": item["text"] or "Hello."})


def _command(server: LegalServer, turn: Turn) -> Iterator[None]:
    thread, tape = turn.thread, server.tape
    fresh = not thread.remembered or not tape.chance()
    words = f"touch made-{server.number()}" if fresh else thread.remembered[-1]
    empty = server.habits.optional(processId=None, aggregatedOutput=None, exitCode=None)
    item = _start(server, turn, command(_id(server, turn), command=words, **empty))
    yield
    output = ""
    if fresh and _asks(server, turn):
        if turn.policy == "on-failure":
            output = "not allowed\n"
            _tell(server, turn, OUTPUT, itemId=item["id"], delta=output)
            yield
        question = server.ask(turn, COMMAND, item["id"], **question_of(COMMAND, words))
        while not question.decision:
            yield
        server.resolve(question)
        if question.decision in ("decline", "cancel"):
            _complete(server, turn, {**item, "status": "declined"})
            return
        if question.decision == "acceptForSession":
            thread.remembered.append(words)
        yield
    elif fresh and turn.policy != "on-request" and tape.chance(4):
        _complete(server, turn, {**item, "status": "declined"})
        return
    for piece in ("one\n", "two\n")[: tape.below(3)]:
        output += piece
        _tell(server, turn, OUTPUT, itemId=item["id"], delta=piece)
        yield
    code = tape.below(2)
    shows: Item = {"aggregatedOutput": output, "exitCode": code, "durationMs": 0.5}
    shows = shows if tape.chance() else {}
    _complete(server, turn, {**item, "status": "failed" if code else "completed", **shows})


def _asks(server: LegalServer, turn: Turn) -> bool:
    if turn.policy in ("never", "reject"):
        return False
    return turn.policy == "on-request" or server.tape.chance()


def _file_change(server: LegalServer, turn: Turn) -> Iterator[None]:
    name = f"made-{server.number()}.txt"
    change = {"path": f"{CWD}/{name}", "kind": {"type": "add"}, "diff": "new\n"}
    shows = {"type": "fileChange", "id": _id(server, turn), "changes": [change]}
    item = _start(server, turn, {**shows, "status": "inProgress"})
    yield
    status = "completed"
    if turn.policy != "on-failure" and _asks(server, turn):
        question = server.ask(turn, FILE, item["id"])
        while not question.decision:
            yield
        server.resolve(question)
        status = "declined" if question.decision != "accept" else status
    elif turn.policy != "on-request":
        status = server.tape.one(("completed", "failed", "declined"))
    _complete(server, turn, {**item, "status": status})
    if status == "completed":
        turn.changed.append(name)
        parts = [f"--- /dev/null\n+++ b/{one}\n@@ -0,0 +1 @@\n+new\n" for one in turn.changed]
        _tell(server, turn, "turn/diff/updated", diff="".join(parts))


def _call(server: LegalServer, turn: Turn) -> Iterator[None]:
    empty = server.habits.optional(result=None, error=None, durationMs=None)
    item = _start(server, turn, mcp_call(_id(server, turn), **empty))
    yield
    if server.tape.chance():
        server.tell(turn.thread, "item/mcpToolCall/progress", message="half")
        yield
    if server.tape.chance():
        _complete(server, turn, {**item, "status": "failed", "error": {"message": "no"}})
    else:
        _complete(server, turn, {**item, "status": "completed", "result": {"content": []}})


def _tool(server: LegalServer, turn: Turn) -> Iterator[None]:
    shows = {"type": "dynamicToolCall", "id": _id(server, turn), "tool": "look", "arguments": {}}
    shows |= server.habits.optional(contentItems=None, success=None)
    item = _start(server, turn, {**shows, "status": "inProgress"})
    yield
    done = not server.tape.chance()
    status = "completed" if done else "failed"
    _complete(server, turn, {**item, "status": status, "success": done, "contentItems": []})


def _reasoning(server: LegalServer, turn: Turn) -> Iterator[None]:
    item: Item = {"type": "reasoning", "id": _id(server, turn), "summary": [], "content": []}
    _start(server, turn, item)
    for index in range(server.tape.below(3)):
        where = {"itemId": item["id"], "summaryIndex": index}
        _tell(server, turn, "item/reasoning/summaryPartAdded", **where)
        yield
        item = {**item, "summary": [*item["summary"], "so "]}
        turn.open[item["id"]] = item
        _tell(server, turn, SUMMARY, **where, delta="so ")
        yield
    _complete(server, turn, item)


def _plan(server: LegalServer, turn: Turn) -> Iterator[None]:
    item = _start(server, turn, {"type": "plan", "id": _id(server, turn), "text": ""})
    if server.tape.chance():
        _tell(server, turn, "item/plan/delta", itemId=item["id"], delta="draft")
        yield
    _complete(server, turn, {**item, "text": "1. look"})


def _short(server: LegalServer, turn: Turn) -> Iterator[None]:
    """Emit an item that starts and completes at once."""
    whole: Item = server.tape.one(
        (
            {"type": "webSearch", "query": "q", **server.habits.optional(action=None)},
            {"type": "webSearch", "query": "q", "action": {"type": "open_page"}},
            {"type": "imageView", "path": f"{CWD}/a.png"},
            {"type": "enteredReviewMode", "review": "changes"},
            {"type": "exitedReviewMode", "review": "Fine."},
            {"type": "contextCompaction"},
        )
    )
    _whole(server, turn, {**whole, "id": _id(server, turn)})
    yield


def _notice(server: LegalServer, turn: Turn) -> Iterator[None]:
    """Emit a notification that belongs to no item."""
    match server.tape.below(5):
        case 0:
            server.tell(turn.thread, "thread/tokenUsage/updated", threadId=turn.thread.id)
        case 1:
            plan = [{"step": "look", "status": "inProgress"}]
            _tell(server, turn, "turn/plan/updated", explanation=None, plan=plan)
        case 2:
            models = {"fromModel": "mock-model", "toModel": "other", "reason": "busy"}
            _tell(server, turn, "model/rerouted", **models)
        case 3:
            _error(server, turn, will_retry=True)
        case _:
            server.tell(turn.thread, "x/notice", text="no name of the text")
    yield


# None ends the turn.
PARTS: tuple[Part | None, ...] = (
    None,
    _message,
    _command,
    _file_change,
    _call,
    _tool,
    _reasoning,
    _plan,
    _short,
    _notice,
    _message,
    _command,
)
