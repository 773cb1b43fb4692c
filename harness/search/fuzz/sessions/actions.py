"""The steps of a generated session: what a client may do next, and what it then knows.

What the text lets a server refuse is sent with `expect: any`.
"""

from collections.abc import Callable

from harness.search.fuzz.sessions.plan import PlannedThread, PlannedTurn
from harness.search.fuzz.sessions.session import HERE, MAX_THREADS, Action, Session
from harness.search.fuzz.sessions.turns import COMMAND, Json, ModelTurn

COMPACTED = {"notification": "item/completed", "where": {"item.type": "contextCompaction"}}


def start_turn(session: Session, thread: PlannedThread) -> None:
    """A turn on a thread that takes one; else whatever becomes of it."""
    plan, choose = session.plan, session.choose
    if thread.running is not None and choose.chance(15):
        second_turn(session, thread)
        return
    plan.settle(thread)
    if not thread.loaded and choose.chance(85):
        resume_one(session, thread)
    if thread.archived and choose.chance(85):
        unarchive(session, thread)
    if not thread.ready:
        second_turn(session, thread)
        return
    nonce = plan.nonce()
    script = (
        session.writer.plain(nonce)
        if thread.plain
        else session.writer.turn(nonce, policy=thread.policy, before=thread.commands)
    )
    turn = take_turn(session, thread, script)
    if choose.chance(10 if turn.asks else 35):
        plan.settle(thread)
    elif choose.chance(60):
        wait_for_it(session, thread, turn)


def take_turn(session: Session, thread: PlannedThread, script: ModelTurn) -> PlannedTurn:
    """A turn of this script on a thread that takes one."""
    plan, alias = session.plan, f"{script.nonce}{thread.alias}"
    policy = {"approvalPolicy": thread.policy}
    body = {"as": alias, "params": policy if thread.changed else None}
    on = session.connection()
    plan.step("start_turn", thread=thread.alias, text=f"do {script.nonce}", on=on, **body)
    asks = list(script.asks) if thread.asks else []
    turn = PlannedTurn(alias, script, list(script.gates), asks, script.commands[: len(asks)])
    turn.asks_first = script.asks_first
    turn.asks_no_more_about(thread.allowed)
    thread.commands += [command for command in turn.commands if command]
    thread.script.append(script)
    thread.turns.append(turn)
    thread.running = turn
    return turn


def wait_for_it(session: Session, thread: PlannedThread, turn: PlannedTurn) -> None:
    """Wait until the turn asks, or holds, where it certainly will."""
    plan = session.plan
    if thread.doubtful:
        return
    if turn.asks:
        if turn.asks_now and not turn.script.faulty:
            plan.meet(thread, turn)
    elif _holds_first(turn):
        plan.step("wait", gate=turn.gates[0])


def _holds_first(turn: PlannedTurn) -> bool:
    """Return whether the model will certainly come to hold before anything else is waited for."""
    if not turn.gates or turn.asks or turn.script.faulty:
        return False
    return not turn.gates[0].startswith("pipe")


def second_turn(session: Session, thread: PlannedThread) -> None:
    """A turn that may well be refused."""
    params = {"threadId": thread.reference, "input": [_also(session, thread)]}
    session.plan.request("turn/start", params=params, on=session.connection())
    thread.doubtful = True


def _also(session: Session, thread: PlannedThread) -> Json:
    """The input of a turn that may be refused; the model's side says one thing in it."""
    nonce = session.plan.nonce()
    thread.script.append(session.writer.plain(nonce))
    return {"type": "text", "text": f"also {nonce}"}


def settle(session: Session, thread: PlannedThread) -> None:
    """Wait for what runs."""
    session.plan.settle(thread)


def open_gate(session: Session, thread: PlannedThread) -> None:
    """Let the model, or a command, go on to its next gate."""
    if thread.running is not None:
        session.plan.open_gates(thread.running, 1)


def steer(session: Session, thread: PlannedThread) -> None:
    """Input for the turn that runs, or did."""
    turn = _one_of_the_turns(session, thread)
    params = {
        "threadId": thread.reference,
        "input": [{"type": "text", "text": f"and {session.plan.number()}"}],
        "expectedTurnId": f"${turn.alias}.turn.id",
    }
    session.plan.request("turn/steer", params=params, on=session.connection())


def _one_of_the_turns(session: Session, thread: PlannedThread) -> PlannedTurn:
    """Mostly the last one."""
    choose = session.choose
    return choose.one(thread.turns[::-1]) if choose.chance(20) else thread.turns[-1]


def interrupt(session: Session, thread: PlannedThread) -> None:
    """The end of the turn that runs, or of one that is over."""
    turn = _one_of_the_turns(session, thread)
    params = {"threadId": thread.reference, "turnId": f"${turn.alias}.turn.id"}
    session.plan.request("turn/interrupt", params=params, on=session.connection())
    if turn is thread.running:
        thread.doubtful = True


def answer(session: Session, thread: PlannedThread) -> None:
    """An answer to the next question: right, twice, or one that no server knows."""
    turn, plan, choose = thread.running, session.plan, session.choose
    if turn is None or thread.doubtful:
        return
    while not turn.asks_now and choose.chance(70):
        plan.open_gates(turn, 1)
    if not turn.asks_now:
        return
    question, command = turn.asked()
    if choose.chance(5):
        plan.answer(thread, turn, question, result={"decision": "perhaps"}, deliberate=True)
        thread.doubtful = True
        interrupt(session, thread)
        return
    some = ["accept", "decline"] if question != COMMAND else _DECISIONS
    decision = choose.one(some)
    plan.answer(thread, turn, question, decision=decision)
    if decision == "acceptForSession" and command:
        thread.allowed.add(command)
        turn.asks_no_more_about(thread.allowed)
    if decision == "cancel":
        thread.doubtful = True
    if choose.chance(10):
        plan.answer(thread, turn, question, decision=choose.one(some), again=True)


def answer_all(session: Session, thread: PlannedThread) -> None:
    """Answers to all questions that come before the model, or a command, holds."""
    turn = thread.running
    while turn is not None and turn.asks_now and not thread.doubtful:
        answer(session, thread)


_DECISIONS = ["accept", "accept", "decline", *["acceptForSession"] * 4, "cancel"]


def simple(method: str, **more: object) -> Callable[[Session, PlannedThread], None]:
    """A request about a thread that leaves what is known of it as it is."""

    def do(session: Session, thread: PlannedThread) -> None:
        session.plan.request(
            method, params={"threadId": thread.reference, **more}, on=session.connection()
        )

    return do


def list_loaded(session: Session, thread: PlannedThread) -> None:
    """The threads in memory."""
    session.plan.request("thread/loaded/list", on=session.connection())


def resume_one(session: Session, thread: PlannedThread) -> None:
    """A thread is taken up again."""
    on = session.connection()
    session.plan.request("thread/resume", params={"threadId": thread.reference}, on=on)
    thread.followed_on(on)
    thread.changed = True


def fork(session: Session, thread: PlannedThread) -> None:
    """A thread with the same history, where there is room for one more."""
    plan, on = session.plan, session.connection()
    if len(plan.threads) > MAX_THREADS or not session.choose.chance(70):
        plan.request("thread/fork", params={"threadId": thread.reference}, on=on)
        return
    plan.settle(thread)
    if session.choose.chance(60):
        session.look(thread)
    forked = plan.thread(thread.policy)
    forked.ended, forked.changed = thread.ended, True
    forked.followed_on(on)
    body = {"params": {"threadId": thread.reference}, "as": forked.alias}
    plan.request("thread/fork", expect="result", on=on, **body)


def archive(session: Session, thread: PlannedThread) -> None:
    """A thread goes to the archive."""
    if session.choose.chance(80):
        session.plan.settle(thread)
    params = {"threadId": thread.reference}
    session.plan.request("thread/archive", params=params, on=session.connection())
    thread.archived = True
    thread.put_away()


def unarchive(session: Session, thread: PlannedThread) -> None:
    """A thread comes back from the archive, and is taken up again."""
    params = {"threadId": thread.reference}
    session.plan.request("thread/unarchive", params=params, on=session.connection())
    thread.archived = False
    resume_one(session, thread)


def unsubscribe(session: Session, thread: PlannedThread) -> None:
    """The client leaves a thread."""
    on = session.connection()
    session.plan.request("thread/unsubscribe", params={"threadId": thread.reference}, on=on)
    thread.left_on(on)


def name_thread(session: Session, thread: PlannedThread) -> None:
    """A new name."""
    name = f"name-{session.plan.number():03d}"
    thread.names.append(name)
    params = {"threadId": thread.reference, "name": name}
    session.plan.request("thread/name/set", params=params, on=session.connection())


def rollback(session: Session, thread: PlannedThread) -> None:
    """The last turns are dropped, mostly of a thread where none runs, looked at before."""
    plan, choose = session.plan, session.choose
    if choose.chance(85):
        plan.settle(thread)
    if choose.chance(60):
        session.look(thread)
    number = choose.one((1, 1, 2))
    params = {"threadId": thread.reference, "numTurns": number}
    plan.request("thread/rollback", params=params, on=session.connection())
    thread.ended = max(0, thread.ended - number)
    thread.plain = thread.plain or (not thread.ended and session.several_threads)
    if choose.chance(40):
        session.look(thread)


def compact(session: Session, thread: PlannedThread) -> None:
    """The history is summed up; it is over when its item is."""
    plan = session.plan
    plan.settle(thread)
    if not thread.ready:
        plan.request("thread/compact/start", params={"threadId": thread.reference}, on=thread.home)
        thread.doubtful = True
        return
    params, on = {"threadId": thread.reference}, session.connection()
    plan.request("thread/compact/start", expect="result", params=params, on=on)
    plan.step("wait", **COMPACTED, on=thread.home)
    plan.step("wait", idle=thread.alias, on=thread.home)
    thread.plain = thread.plain or session.several_threads


def overlapping(session: Session, thread: PlannedThread) -> None:
    """Two requests, the second sent before the first is answered."""
    plan, choose = session.plan, session.choose
    if choose.chance(60):
        plan.settle(thread)
    names: list[str] = []
    for method in choose.one(session.pairs):
        alias = f"r{plan.number()}"
        names.append(alias)
        params: Json = {"threadId": thread.reference}
        match method:
            case "thread/name/set":
                thread.names.append(f"name-{plan.number():03d}")
                params["name"] = thread.names[-1]
            case "thread/rollback":
                params["numTurns"] = 1
            case "thread/list":
                params = dict(HERE)
            case "thread/read":
                params["includeTurns"] = True
            case "turn/start":
                params["input"] = [_also(session, thread)]
            case "thread/archive" | "thread/unsubscribe":
                thread.archived = thread.archived or method == "thread/archive"
                thread.put_away()
            case _:
                pass
        plan.request(
            method, params=params, wait=False, on=session.any_connection(), **{"as": alias}
        )
    for alias in names:
        plan.step("wait", answer=alias)
    thread.doubtful = True
    if choose.chance(50):
        session.look(thread)


def _runs(thread: PlannedThread) -> bool:
    return thread.running is not None


def _asked(thread: PlannedThread) -> bool:
    return thread.running is not None and bool(thread.running.asks) and not thread.doubtful


def _held(thread: PlannedThread) -> bool:
    return thread.running is not None and bool(thread.running.gates)


def _had_turns(thread: PlannedThread) -> bool:
    return bool(thread.turns)


ACTIONS = (
    Action("start_turn", 14, start_turn),
    Action("settle", 3, settle, _runs),
    Action("open", 6, open_gate, _held),
    Action("answer", 12, answer, _asked),
    Action("look", 2, Session.look),
    Action("steer", 5, steer, _had_turns),
    Action("interrupt", 7, interrupt, _had_turns),
    Action("list", 1, list_loaded),
    Action("resume", 2, resume_one),
    Action("fork", 2, fork, _had_turns),
    Action("archive", 2, archive, lambda thread: not thread.archived),
    Action("unarchive", 6, unarchive, lambda thread: thread.archived),
    Action("unsubscribe", 2, unsubscribe, lambda thread: thread.loaded),
    Action("name", 3, name_thread),
    Action("search", 2, Session.search, lambda thread: bool(thread.names)),
    Action("rollback", 3, rollback, _had_turns),
    Action("compact", 2, compact, _had_turns),
    Action("overlap", 3, overlapping),
)
