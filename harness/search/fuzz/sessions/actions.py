"""Actions of a generated session, and their effects on its plan.

Requests that a server may reject are sent with `expect: any`.
"""

from collections.abc import Callable

from harness.scenario.filler import foreign_name
from harness.search.fuzz.sessions.plan import PlannedThread, PlannedTurn
from harness.search.fuzz.sessions.session import IN_WORKSPACE, MAX_THREADS, Action, Session
from harness.search.fuzz.sessions.turns import COMMAND, Json, ModelTurn, with_foreign_name

COMPACTED = {"notification": "item/completed", "where": {"item.type": "contextCompaction"}}


def start_turn(session: Session, thread: PlannedThread) -> None:
    """Start a turn, in most cases on a thread that is ready for one."""
    plan, choose = session.plan, session.choose
    if thread.running_turn is not None and choose.chance(15):
        start_doubtful_turn(session, thread)
        return
    plan.settle(thread)
    if not thread.is_followed and choose.chance(85):
        resume(session, thread)
    if thread.is_archived and choose.chance(85):
        unarchive(session, thread)
    if not thread.ready:
        start_doubtful_turn(session, thread)
        return
    nonce = plan.next_nonce()
    script = (
        session.writer.plain_turn(nonce)
        if thread.plain
        else session.writer.any_turn(nonce, policy=thread.policy, before=thread.commands)
    )
    turn = take_turn(session, thread, script)
    if choose.chance(10 if turn.asks else 35):
        plan.settle(thread)
    elif choose.chance(60):
        wait_for_it(session, thread, turn)


def take_turn(session: Session, thread: PlannedThread, script: ModelTurn) -> PlannedTurn:
    """Add a step that starts a turn with this script on a ready thread; return the turn."""
    plan, alias = session.plan, f"{script.nonce}{thread.alias}"
    policy = {"approvalPolicy": thread.policy}
    body = {"as": alias, "params": policy if thread.lost_settings else None}
    on = session.connection()
    words = with_foreign_name(f"do {script.nonce}", len(thread.turns))
    plan.add_step("start_turn", thread=thread.alias, text=words, on=on, **body)
    asks = list(script.asks) if thread.asks else []
    turn = PlannedTurn(alias, script, list(script.gates), asks, script.commands[: len(asks)])
    turn.asks_first = script.asks_first
    turn.drop_allowed_questions(thread.allowed_commands)
    thread.commands += [command for command in turn.commands if command]
    thread.script.append(script)
    thread.turns.append(turn)
    thread.running_turn = turn
    return turn


def wait_for_it(session: Session, thread: PlannedThread, turn: PlannedTurn) -> None:
    """Wait until the turn sends a request or holds at a gate, if it certainly will."""
    plan = session.plan
    if thread.doubtful:
        return
    if turn.asks:
        if turn.asks_now and not turn.script.faulty:
            plan.wait_for_question(thread, turn)
    elif _holds_first(turn):
        plan.add_step("wait", gate=turn.gates[0])


def _holds_first(turn: PlannedTurn) -> bool:
    """Return whether the turn certainly holds at a gate of the model first."""
    if not turn.gates or turn.asks or turn.script.faulty:
        return False
    return not turn.gates[0].startswith("pipe")


def start_doubtful_turn(session: Session, thread: PlannedThread) -> None:
    """Start a turn that the server may reject."""
    params = {"threadId": thread.reference, "input": [_extra_input(session, thread)]}
    session.plan.add_request("turn/start", params=params, on=session.connection())
    thread.doubtful = True


def _extra_input(session: Session, thread: PlannedThread) -> Json:
    """Return the input of a turn that may be rejected, and script one message for it."""
    nonce = session.plan.next_nonce()
    thread.script.append(session.writer.plain_turn(nonce))
    return {"type": "text", "text": f"also {nonce}"}


def settle(session: Session, thread: PlannedThread) -> None:
    """Add a wait for the end of the running turn."""
    session.plan.settle(thread)


def open_gate(session: Session, thread: PlannedThread) -> None:
    """Open the next gate of the running turn."""
    if thread.running_turn is not None:
        session.plan.open_gates(thread.running_turn, 1)


def steer(session: Session, thread: PlannedThread) -> None:
    """Steer the running turn, or an earlier one."""
    turn = _one_of_the_turns(session, thread)
    params = {
        "threadId": thread.reference,
        "input": [{"type": "text", "text": f"and {session.plan.next_number()}"}],
        "expectedTurnId": f"${turn.alias}.turn.id",
    }
    session.plan.add_request("turn/steer", params=params, on=session.connection())


def _one_of_the_turns(session: Session, thread: PlannedThread) -> PlannedTurn:
    """Choose a turn, in most cases the last one."""
    choose = session.choose
    return choose.pick(thread.turns[::-1]) if choose.chance(20) else thread.turns[-1]


def interrupt(session: Session, thread: PlannedThread) -> None:
    """Interrupt the running turn, or an earlier one."""
    turn = _one_of_the_turns(session, thread)
    params = {"threadId": thread.reference, "turnId": f"${turn.alias}.turn.id"}
    session.plan.add_request("turn/interrupt", params=params, on=session.connection())
    if turn is thread.running_turn:
        thread.doubtful = True


def answer(session: Session, thread: PlannedThread) -> None:
    """Answer the next server request: validly, twice, or with an unknown decision."""
    turn, plan, choose = thread.running_turn, session.plan, session.choose
    if turn is None or thread.doubtful:
        return
    while not turn.asks_now and choose.chance(70):
        plan.open_gates(turn, 1)
    if not turn.asks_now:
        return
    question, command = turn.take_question()
    if choose.chance(5):
        plan.add_answer(thread, turn, question, result={"decision": "perhaps"}, deliberate=True)
        thread.doubtful = True
        interrupt(session, thread)
        return
    some = ["accept", "decline"] if question != COMMAND else _DECISIONS
    decision = choose.pick(some)
    plan.add_answer(thread, turn, question, decision=decision)
    if decision == "acceptForSession" and command:
        thread.allowed_commands.add(command)
        turn.drop_allowed_questions(thread.allowed_commands)
    if decision == "cancel":
        thread.doubtful = True
    if choose.chance(10):
        plan.add_answer(thread, turn, question, decision=choose.pick(some), again=True)


def answer_all(session: Session, thread: PlannedThread) -> None:
    """Answer all server requests that come before the next gate."""
    turn = thread.running_turn
    while turn is not None and turn.asks_now and not thread.doubtful:
        answer(session, thread)


_DECISIONS = ["accept", "accept", "decline", *["acceptForSession"] * 4, "cancel"]


def simple(method: str, **more: object) -> Callable[[Session, PlannedThread], None]:
    """Return an action that sends a request without an effect on the plan."""

    def do(session: Session, thread: PlannedThread) -> None:
        session.plan.add_request(
            method, params={"threadId": thread.reference, **more}, on=session.connection()
        )

    return do


def list_loaded(session: Session, thread: PlannedThread) -> None:
    """List the threads in memory."""
    session.plan.add_request("thread/loaded/list", on=session.connection())


def resume(session: Session, thread: PlannedThread) -> None:
    """Resume a thread."""
    on = session.connection()
    session.plan.add_request("thread/resume", params={"threadId": thread.reference}, on=on)
    thread.add_follower(on)
    thread.lost_settings = True


def fork(session: Session, thread: PlannedThread) -> None:
    """Fork a thread; it joins the session if there is room for one more."""
    plan, on = session.plan, session.connection()
    if len(plan.threads) > MAX_THREADS or not session.choose.chance(70):
        plan.add_request("thread/fork", params={"threadId": thread.reference}, on=on)
        return
    plan.settle(thread)
    if session.choose.chance(60):
        session.look(thread)
    forked = plan.add_thread(thread.policy)
    forked.ended_turns, forked.lost_settings = thread.ended_turns, True
    forked.add_follower(on)
    body = {"params": {"threadId": thread.reference}, "as": forked.alias}
    plan.add_request("thread/fork", expect="result", on=on, **body)


def archive(session: Session, thread: PlannedThread) -> None:
    """Archive a thread."""
    if session.choose.chance(80):
        session.plan.settle(thread)
    params = {"threadId": thread.reference}
    session.plan.add_request("thread/archive", params=params, on=session.connection())
    thread.is_archived = True
    thread.drop_followers()


def unarchive(session: Session, thread: PlannedThread) -> None:
    """Unarchive a thread, and resume it."""
    params = {"threadId": thread.reference}
    session.plan.add_request("thread/unarchive", params=params, on=session.connection())
    thread.is_archived = False
    resume(session, thread)


def unsubscribe(session: Session, thread: PlannedThread) -> None:
    """Unsubscribe from a thread."""
    on = session.connection()
    session.plan.add_request("thread/unsubscribe", params={"threadId": thread.reference}, on=on)
    thread.remove_follower(on)


def name_thread(session: Session, thread: PlannedThread) -> None:
    """Give the thread a new name."""
    number = session.plan.next_number()
    name = f"name-{number:03d} {foreign_name(number)}"
    thread.names.append(name)
    params = {"threadId": thread.reference, "name": name}
    session.plan.add_request("thread/name/set", params=params, on=session.connection())


def rollback(session: Session, thread: PlannedThread) -> None:
    """Roll back the last turns, in most cases of an idle thread that was read before."""
    plan, choose = session.plan, session.choose
    if choose.chance(85):
        plan.settle(thread)
    if choose.chance(60):
        session.look(thread)
    number = choose.pick((1, 1, 2))
    params = {"threadId": thread.reference, "numTurns": number}
    plan.add_request("thread/rollback", params=params, on=session.connection())
    thread.ended_turns = max(0, thread.ended_turns - number)
    thread.plain = thread.plain or (not thread.ended_turns and session.several_threads)
    if choose.chance(40):
        session.look(thread)


def compact(session: Session, thread: PlannedThread) -> None:
    """Compact the history, and wait for the compaction's item."""
    plan = session.plan
    plan.settle(thread)
    if not thread.ready:
        plan.add_request(
            "thread/compact/start", params={"threadId": thread.reference}, on=thread.home
        )
        thread.doubtful = True
        return
    params, on = {"threadId": thread.reference}, session.connection()
    plan.add_request("thread/compact/start", expect="result", params=params, on=on)
    plan.add_step("wait", **COMPACTED, on=thread.home)
    plan.add_step("wait", idle=thread.alias, on=thread.home)
    thread.plain = thread.plain or session.several_threads


def overlap(session: Session, thread: PlannedThread) -> None:
    """Send a pair of requests, the second before the first is answered."""
    plan, choose = session.plan, session.choose
    if choose.chance(60):
        plan.settle(thread)
    names: list[str] = []
    for method in choose.pick(session.pairs):
        alias = f"r{plan.next_number()}"
        names.append(alias)
        params: Json = {"threadId": thread.reference}
        match method:
            case "thread/name/set":
                thread.names.append(f"name-{plan.next_number():03d}")
                params["name"] = thread.names[-1]
            case "thread/rollback":
                params["numTurns"] = 1
            case "thread/list":
                params = dict(IN_WORKSPACE)
            case "thread/read":
                params["includeTurns"] = True
            case "turn/start":
                params["input"] = [_extra_input(session, thread)]
            case "thread/archive" | "thread/unsubscribe":
                thread.is_archived = thread.is_archived or method == "thread/archive"
                thread.drop_followers()
            case _:
                pass
        plan.add_request(
            method, params=params, wait=False, on=session.any_connection(), **{"as": alias}
        )
    for alias in names:
        plan.add_step("wait", answer=alias)
    thread.doubtful = True
    if choose.chance(50):
        session.look(thread)


def _is_running(thread: PlannedThread) -> bool:
    return thread.running_turn is not None


def _has_question(thread: PlannedThread) -> bool:
    return (
        thread.running_turn is not None and bool(thread.running_turn.asks) and not thread.doubtful
    )


def _has_gate(thread: PlannedThread) -> bool:
    return thread.running_turn is not None and bool(thread.running_turn.gates)


def _had_turns(thread: PlannedThread) -> bool:
    return bool(thread.turns)


ACTIONS = (
    Action("start_turn", 14, start_turn),
    Action("settle", 3, settle, _is_running),
    Action("open", 6, open_gate, _has_gate),
    Action("answer", 12, answer, _has_question),
    Action("look", 2, Session.look),
    Action("steer", 5, steer, _had_turns),
    Action("interrupt", 7, interrupt, _had_turns),
    Action("list", 1, list_loaded),
    Action("resume", 2, resume),
    Action("fork", 2, fork, _had_turns),
    Action("archive", 2, archive, lambda thread: not thread.is_archived),
    Action("unarchive", 6, unarchive, lambda thread: thread.is_archived),
    Action("unsubscribe", 2, unsubscribe, lambda thread: thread.is_followed),
    Action("name", 3, name_thread),
    Action("search", 2, Session.search, lambda thread: bool(thread.names)),
    Action("rollback", 3, rollback, _had_turns),
    Action("compact", 2, compact, _had_turns),
    Action("overlap", 3, overlap),
)
