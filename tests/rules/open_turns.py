"""Other choices at open points of turns, their errors, interrupts and steering."""

from typing import Any

from harness.trace.marks import Closed
from tests.rules.approval_talk import Approvals, command_item
from tests.rules.open_point import Otherwise, Untried, Why
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    command,
    stored_plain_turn,
    turn_object,
    user_message,
)

SECOND = "turn_2"


def _read_after_a_crash(status: str) -> Talk:
    """The server died in a turn; a new process, a new connection, shows it so."""
    talk = Talk().start_thread().start_turn().mark(Closed("c1")).on("c2")
    cut = turn_object(TURN, status, items=[user_message(f"{TURN}-user", "hello")])
    if status == "failed":
        cut["error"] = {"message": "the server ended"}
    return talk.read(cut)


def _failed(error: Any) -> Talk:
    return Talk().start_thread().start_turn().end_turn(status="failed", error=error)


def _input(*inputs: dict[str, Any]) -> Talk:
    return Talk().start_thread().asks("turn/start", threadId=THREAD, input=list(inputs))


def _shown_of_input(*inputs: dict[str, Any], status: str, error: Any = None) -> Talk:
    talk = _input(*inputs).reply_turn().status("active").turn_started()
    talk.item({"type": "userMessage", "id": "u", "content": list(inputs)})
    return talk.end_turn(status=status, error=error)


IMAGE = {"type": "localImage", "path": "/nowhere/x.png"}


def _second_while_active(how: str) -> Talk:
    talk = Talk().start_thread().start_turn().ask_turn(text="second")
    if how == "joins":
        talk.answers({"turn": turn_object()}).item(user_message("u2", "second"))
        return talk.message("m", "a").end_turn()
    if how == "replaces":
        talk.end_turn(status="interrupted")
    else:
        talk.message("m", "a").end_turn()
    talk.reply_turn(SECOND).status("active").turn_started(SECOND)
    talk.item(user_message("u2", "second"), SECOND).message("m2", "b", turn=SECOND)
    return talk.end_turn(SECOND)


def _interrupted(*, again: str = "", kept: bool = True, item: str = "") -> Talk:
    """A message is cut off; `again` is the answer to a second interrupt."""
    talk = Talk().start_thread().start_turn().started(agent_message("m", "")).delta("m", "Hel")
    talk.interrupt().answers({})
    if again:
        talk.interrupt().refuses(again)
    if item:
        talk.completed(agent_message("m", item))
    talk.end_turn(status="interrupted")
    items = [user_message(f"{TURN}-user", "hello")]
    if kept:
        items.append(agent_message("m", "Hel"))
    return talk.read(turn_object(TURN, "interrupted", items=items))


def _steer(talk: Talk, words: str = "more please", turn: str = TURN) -> Talk:
    said = [{"type": "text", "text": words}]
    return talk.asks("turn/steer", threadId=THREAD, expectedTurnId=turn, input=said)


def _steered(*, shown: bool = True) -> Talk:
    talk = _steer(Talk().start_thread().start_turn()).answers({"turnId": TURN})
    return talk.item(user_message("u2", "more please")) if shown else talk


def _image_rejected(later_images: tuple[str, ...]) -> Talk:
    talk = Talk().start_thread().start_turn().calls("hello", images=("a1",))
    talk.ends(outcome="status 400").end_turn(status="failed", error=TROUBLE)
    talk.start_turn(SECOND, text="again").calls("hello", "again", call=2, images=later_images)
    return talk.ends(2).message("m2", "b", turn=SECOND).end_turn(SECOND)


def _steered_and_cut(*, kept: bool) -> Talk:
    talk = _steered(shown=kept).interrupt().answers({}).end_turn(status="interrupted")
    talk.ask_turn(text="go on").reply_turn(SECOND).status("active").turn_started(SECOND)
    said = ["hello", "more please", "go on"] if kept else ["hello", "go on"]
    talk.calls(*said, call=2).item(user_message("u3", "go on"), SECOND).ends(2)
    return talk.message("m", "a", turn=SECOND).end_turn(SECOND)


def _compacted_with_the_turn_id() -> Talk:
    talk = Talk().start_thread().plain_turn().asks("thread/compact/start", threadId=THREAD)
    return (
        talk.answers({"turnId": SECOND})
        .status("active")
        .turn_started(SECOND)
        .item({"type": "contextCompaction", "id": "c"}, SECOND)
        .end_turn(SECOND)
    )


def _overridden_once() -> Talk:
    """The effort and the policy of one turn are gone with it."""
    talk = Approvals().policy("never").ask_turn(approvalPolicy="untrusted", effort="high")
    talk.reply_turn().status("active").turn_started().calls("hello", effort="high").ends()
    talk.item(user_message("u", "hello")).message("m", "a").end_turn()
    talk.ask_turn(text="again").reply_turn(SECOND).status("active").turn_started(SECOND)
    talk.calls("hello", "again", call=2).ends(2).item(user_message("u2", "again"), SECOND)
    talk.item(command_item("call_2", "completed"), SECOND)
    return talk.message("m2", "b", turn=SECOND).end_turn(SECOND)


def _schema_unmet(status: str) -> Talk:
    schema = {"type": "object", "required": ["n"]}
    talk = Talk().start_thread().ask_turn(outputSchema=schema).reply_turn().status("active")
    talk.turn_started().calls("hello", schema=True).ends().item(user_message("u", "hello"))
    talk.message("m", "no object")
    error = {"message": "not as asked"} if status == "failed" else None
    return talk.end_turn(status=status, error=error)


def _events_anywhere() -> Talk:
    talk = Talk().start_thread().ask_turn().reply_turn().status("active").turn_started()
    talk.usage().plan({"step": "a", "status": "pending"}).item(user_message("u", "hello"))
    talk.started(agent_message("m", "")).usage().failing(will_retry=True).delta("m", "Hi")
    talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff="")
    return talk.completed(agent_message("m", "Hi")).usage().end_turn()


def _status_last() -> Talk:
    talk = Talk().start_thread().start_turn().message("m", "a").turn_completed()
    return talk.status("idle")


TROUBLE: dict[str, Any] = {"message": "out of coffee"}

OTHERWISE = [
    Otherwise("turn.after-crash", "says failed", lambda: _read_after_a_crash("failed")),
    Otherwise("turn.after-crash", "says completed", lambda: _read_after_a_crash("completed")),
    Otherwise("turn-error.optional-fields", "leaves both out", lambda: _failed(TROUBLE)),
    Otherwise(
        "turn-error.optional-fields",
        "has null for both",
        lambda: _failed({**TROUBLE, "agentErrorInfo": None, "additionalDetails": None}),
    ),
    Otherwise(
        "turn-error.info-form",
        "has an object of its own",
        lambda: _failed({**TROUBLE, "agentErrorInfo": {"kitchen": {"cups": 0}}}),
    ),
    Otherwise(
        "turn-error.other-member",
        "has a word of its own for what fits none",
        lambda: _failed({**TROUBLE, "agentErrorInfo": "Unclassified"}),
    ),
    Otherwise(
        "turn-error.info-values",
        "has more values",
        lambda: _failed({**TROUBLE, "agentErrorInfo": "CoffeeMissing"}),
    ),
    Otherwise(
        "turn-start.missing-file",
        "refuses it",
        lambda: _input({"type": "text", "text": "look"}, IMAGE).refuses("no such file"),
    ),
    Otherwise(
        "turn-start.missing-file",
        "fails the turn",
        lambda: _shown_of_input(
            {"type": "text", "text": "look"},
            IMAGE,
            status="failed",
            error={"message": "no such file", "agentErrorInfo": "BadRequest"},
        ),
    ),
    Otherwise(
        "turn.interrupted-history", "forgets what was cut off", lambda: _interrupted(kept=False)
    ),
    Otherwise("turn.interrupted-history", "keeps what it never completed", _interrupted),
    Otherwise("item.completed-when-cut", "completes it", lambda: _interrupted(item="Hel")),
    Otherwise("item.completed-when-cut", "does not complete it", lambda: _interrupted(kept=False)),
    Otherwise("thread-compact.turn", "names the turn in its answer", _compacted_with_the_turn_id),
    Otherwise("turn-start.while-active", "joins the turn", lambda: _second_while_active("joins")),
    Otherwise(
        "turn-start.while-active",
        "puts it in the place of the first",
        lambda: _second_while_active("replaces"),
    ),
    Otherwise("turn-start.while-active", "waits", lambda: _second_while_active("waits")),
    Otherwise(
        "turn-start.loads",
        "loads the thread",
        lambda: (
            Talk()
            .start_thread()
            .plain_turn()
            .asks("thread/unsubscribe", threadId=THREAD)
            .answers({"status": "unsubscribed"})
            .status("notLoaded")
            .tells("thread/closed", threadId=THREAD)
            .status("idle")
            .start_turn(SECOND, text="again")
            .message("m2", "b", turn=SECOND)
            .end_turn(SECOND)
        ),
    ),
    Otherwise("turn-start.empty-input", "refuses it", lambda: _input().refuses("input is empty")),
    Otherwise(
        "turn-start.empty-input",
        "runs the turn",
        lambda: _input().reply_turn().status("active").turn_started().message("m", "a").end_turn(),
    ),
    Otherwise("turn-start.override-life", "holds them for one turn", _overridden_once),
    Otherwise("turn-start.schema-unmet", "completes the turn", lambda: _schema_unmet("completed")),
    Otherwise("turn-start.schema-unmet", "fails the turn at once", lambda: _schema_unmet("failed")),
    Otherwise(
        "turn-start.unresolved-skill",
        "refuses it",
        lambda: _input({"type": "text", "text": "$tidy up"}).refuses("no skill tidy"),
    ),
    Otherwise(
        "turn-start.unresolved-skill",
        "fails the turn",
        lambda: _shown_of_input(
            {"type": "text", "text": "$tidy up"},
            status="failed",
            error={"message": "no skill tidy"},
        ),
    ),
    Otherwise(
        "turn-interrupt.wrong-turn",
        "answers as if it were the right one",
        lambda: Talk().start_thread().plain_turn().interrupt("turn_9").answers({}),
    ),
    Otherwise(
        "turn-interrupt.wrong-turn",
        "interrupts the turn that runs",
        lambda: (
            Talk()
            .start_thread()
            .start_turn()
            .interrupt("turn_9")
            .answers({})
            .end_turn(status="interrupted")
        ),
    ),
    Otherwise(
        "turn-interrupt.twice",
        "refuses the second",
        lambda: _interrupted(again="under way", kept=False),
    ),
    Otherwise(
        "turn-steer.when-applied",
        "has it in a call two later",
        lambda: (
            _steered()
            .calls("hello", call=2)
            .ends(2)
            .item(command("c1", "completed"))
            .calls("hello", "more please", call=3)
            .ends(3)
            .message("m", "a")
            .end_turn()
        ),
    ),
    Otherwise(
        "turn-steer.shown",
        "shows no item",
        lambda: (
            _steered(shown=False)
            .calls("hello", "more please", call=2)
            .ends(2)
            .message("m", "a")
            .end_turn()
        ),
    ),
    Otherwise("errors.rejected-content", "sends it again", lambda: _image_rejected(("a1",))),
    Otherwise("errors.rejected-content", "leaves it out", lambda: _image_rejected(())),
    Otherwise("turn-steer.cut-turn", "has forgotten it", lambda: _steered_and_cut(kept=False)),
    Otherwise("turn-steer.cut-turn", "tells the next turn", lambda: _steered_and_cut(kept=True)),
    Otherwise(
        "turn-steer.while-interrupted",
        "takes it",
        lambda: (
            _steer(Talk().start_thread().start_turn().interrupt().answers({}))
            .answers({"turnId": TURN})
            .end_turn(status="interrupted")
        ),
    ),
    Otherwise(
        "event.token-usage-often",
        "tells none",
        lambda: Talk().start_thread().plain_turn(),
    ),
    Otherwise("turn.events-between", "tells them anywhere", _events_anywhere),
    Otherwise("turn.final-status-order", "changes it after turn/completed", _status_last),
    Otherwise(
        "thread-read.items",
        "leaves them empty",
        lambda: Talk().start_thread().plain_turn().read(turn_object(TURN, "completed")),
    ),
    Otherwise(
        "thread-read.items",
        "fills them",
        lambda: Talk().start_thread().plain_turn().read(stored_plain_turn()),
    ),
]

UNTRIED = [
    Untried(
        "turn-steer.stored",
        Why.NOT_ON_THE_WIRE,
        "when it is on the disk shows only where a process is killed, which leaves the trace open",
    ),
]
