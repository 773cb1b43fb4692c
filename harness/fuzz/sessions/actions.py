"""The steps of a generated session: what a client may do next, and what it then knows.

Here: drawing one document, with the shadow of the server beside it (plan). Each session has a
choice of actions of its own, so that rare combinations come up (swarm testing). What the text lets
a server refuse is sent with `expect: any`.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from harness.fuzz.sessions.chooser import Chooser
from harness.fuzz.sessions.plan import Plan, PlannedThread, PlannedTurn
from harness.fuzz.sessions.turns import COMMAND, FAULTS, PARTS, Json, TurnWriter
from harness.scenario.client_steps import MAIN

MOST_THREADS = 3
LONGEST = 60
# The threads of this session alone, of all that the process knows.
HERE: Json = {"cwd": "{cwd}"}
COMPACTED = {"notification": "item/completed", "where": {"item.type": "contextCompaction"}}


@dataclass(slots=True)
class Offers:
    """What is known of the server under test: what it was seen not to do is planned no more.

    `lacks` are names of actions, of parts of a turn, and `approvals`. `pairs` counts which action
    on a thread was planned right after which other, so that rare pairs can be preferred.
    """

    lacks: set[str] = field(default_factory=set[str])
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do to a thread: its weight, and when it makes sense."""

    name: str
    weight: int
    do: Callable[["Session", PlannedThread], None]
    sensible: Callable[[PlannedThread], bool] = lambda _: True


class Session:
    """Draws one session."""

    def __init__(self, chooser: Chooser, offers: Offers | None = None) -> None:
        self.choose = chooser
        self.plan = Plan()
        offers = offers or Offers()
        lacks = offers.lacks
        self._lacks, self._pairs = lacks, offers.pairs
        self._last: dict[str, str] = {}
        parts = set(chooser.some([one for one in PARTS if one not in lacks], 65))
        faults = set(chooser.some([one for one in FAULTS if one not in lacks], 35))
        self.writer = TurnWriter(chooser, parts, faults)
        self.asking = "approvals" not in lacks and chooser.chance(70)
        offered = [one for one in ACTIONS if one.name not in lacks]
        kept = [one for one in offered if one.name in _ALWAYS or chooser.chance(70)]
        self.pairs = [one for one in _PAIRS if not lacks.intersection(map(FEATURES.get, one))]
        self._weights = [(one, one.weight * chooser.one((1, 1, 2, 4))) for one in kept]
        self._apart = chooser.weighted([("", 80), ("several", 15), ("restart", 5)])
        self._most = chooser.weighted([(1, 5), (2, 3), (MOST_THREADS, 2)])

    def draw(self, length: int = LONGEST) -> Json:
        """A whole document with about so many steps before the final look."""
        self.start_thread()
        if self._apart == "several" and "several" not in self._lacks:
            self.plan.client.append({"connect": "b"})
            self.plan.connections.append("b")
        while len(self.plan.client) < length:
            self._next()
        for thread in self.plan.threads:
            self.plan.settle(thread)
        self._look_at_all()
        return self.plan.document("A generated session")

    def _next(self) -> None:
        plan, choose = self.plan, self.choose
        if len(plan.threads) < self._most and choose.chance(15):
            self.start_thread()
            return
        if self._apart == "restart" and choose.chance(6) and "restart" not in self._lacks:
            self._restart()
            return
        if len(plan.connections) > 1 and choose.chance(4):
            self._leave()
            return
        thread = choose.one(plan.threads)
        last = self._last.get(thread.alias, "")
        possible = [
            (one, max(1, 60 * weight // (1 + self._pairs[last, one.name])))
            for one, weight in self._weights
            if one.sensible(thread)
        ]
        action = choose.weighted(possible)
        self._pairs[last, action.name] += 1
        self._last[thread.alias] = action.name
        action.do(self, thread)

    def start_thread(self) -> None:
        """A new thread; every second one asks about each command, where the session does that."""
        asks = self.asking and self.choose.chance(80)
        thread = self.plan.thread(asks=asks)
        params = {"approvalPolicy": "on-request"} if asks else None
        self.plan.step("start_thread", **{"as": thread.alias}, params=params)

    @property
    def several_threads(self) -> bool:
        """Whether the model's side has to tell the threads apart."""
        return len(self.plan.threads) > 1 or self._most > 1

    def connection(self) -> str:
        """A connection to speak on."""
        return self.choose.one(self.plan.connections)

    def _restart(self) -> None:
        self.plan.client.append({"restart": True})
        self.plan.connections = [MAIN]
        for thread in self.plan.threads:
            thread.running, thread.loaded, thread.doubtful = None, False, False

    def _leave(self) -> None:
        """The second client goes, or comes back."""
        self.plan.client.append({"disconnect": "b"})
        if self.choose.chance(60):
            self.plan.client.append({"connect": "b"})
            thread = self.choose.one(self.plan.threads)
            self.plan.request("thread/resume", params={"threadId": thread.reference}, on="b")
        else:
            self.plan.connections.remove("b")

    def _look_at_all(self) -> None:
        for thread in self.plan.threads:
            look(self, thread)
            if thread.names and "search" not in self._lacks:
                search(self, thread)
        if "search" in self._lacks:
            return
        self.plan.request("thread/list", params=HERE)
        if any(thread.archived for thread in self.plan.threads):
            self.plan.request("thread/list", params={"archived": True, **HERE})


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
    writer = session.writer
    script = writer.plain(nonce) if thread.plain else writer.turn(nonce, asks=thread.asks)
    alias = f"{nonce}{thread.alias}"
    policy = {"approvalPolicy": "on-request" if thread.asks else "never"}
    body = {"as": alias, "params": policy if thread.changed else None}
    on = session.connection()
    plan.step("start_turn", thread=thread.alias, text=f"do {nonce}", on=on, **body)
    asks = list(script.asks) if thread.asks else []
    turn = PlannedTurn(alias, script, list(script.gates), asks)
    thread.script.append(script)
    thread.turns.append(turn)
    thread.running = turn
    if choose.chance(10 if asks else 35):
        plan.settle(thread)
    elif turn.asks and choose.chance(60):
        if not turn.gates and not script.faulty:
            plan.step("wait", request=turn.asks[0])
    elif _holds_first(turn) and choose.chance(60):
        plan.step("wait", gate=turn.gates[0])


def _holds_first(turn: PlannedTurn) -> bool:
    """Whether the model will certainly come to hold before anything else is waited for."""
    if not turn.gates or turn.asks or turn.script.faulty:
        return False
    return not turn.gates[0].startswith("pipe")


def second_turn(session: Session, thread: PlannedThread) -> None:
    """A turn that may well be refused."""
    text = f"also {session.plan.number()}"
    params = {"threadId": thread.reference, "input": [{"type": "text", "text": text}]}
    session.plan.request("turn/start", params=params, on=session.connection())
    thread.doubtful = True


def settle(session: Session, thread: PlannedThread) -> None:
    """Wait for what runs."""
    session.plan.settle(thread)


def open_gate(session: Session, thread: PlannedThread) -> None:
    """Let the model, or a command, go on to its next gate."""
    if thread.running is not None:
        session.plan.open_gates(thread.running, 1)


def steer(session: Session, thread: PlannedThread) -> None:
    """Input for the turn that runs, or did."""
    turn = session.choose.one(thread.turns[::-1])
    params = {
        "threadId": thread.reference,
        "input": [{"type": "text", "text": f"and {session.plan.number()}"}],
        "expectedTurnId": f"${turn.alias}.turn.id",
    }
    session.plan.request("turn/steer", params=params, on=session.connection())


def interrupt(session: Session, thread: PlannedThread) -> None:
    """The end of the turn that runs, or of one that is over."""
    turn = session.choose.one(thread.turns[::-1])
    params = {"threadId": thread.reference, "turnId": f"${turn.alias}.turn.id"}
    session.plan.request("turn/interrupt", params=params, on=session.connection())
    if turn is thread.running:
        thread.doubtful = True


def answer(session: Session, thread: PlannedThread) -> None:
    """An answer to the next question: right, twice, or one that no server knows."""
    turn, plan, choose = thread.running, session.plan, session.choose
    if turn is None or thread.doubtful:
        return
    while turn.gates and choose.chance(70):
        plan.open_gates(turn, 1)
    if turn.gates:
        return
    asked = turn.asks.pop(0)
    if choose.chance(5):
        plan.step("answer", to=asked, result={"decision": "perhaps"}, deliberate=True)
        thread.doubtful = True
        interrupt(session, thread)
        return
    some = ["accept", "decline"] if asked != COMMAND else _DECISIONS
    decision = choose.one(some)
    plan.step("answer", to=asked, decision=decision)
    if decision == "cancel":
        thread.doubtful = True
    if choose.chance(10):
        plan.step("answer", to=asked, decision=choose.one(some), again=True)


_DECISIONS = ["accept", "accept", "decline", "acceptForSession", "cancel"]


def look(session: Session, thread: PlannedThread) -> None:
    """What is stored of a thread."""
    params = {"threadId": thread.reference, "includeTurns": True}
    session.plan.request("thread/read", params=params)


def simple(method: str, **more: object) -> Callable[[Session, PlannedThread], None]:
    """A request about a thread that leaves what is known of it as it is."""

    def do(session: Session, thread: PlannedThread) -> None:
        session.plan.request(
            method, params={"threadId": thread.reference, **more}, on=session.connection()
        )

    return do


resume = simple("thread/resume")


def list_loaded(session: Session, thread: PlannedThread) -> None:
    """The threads in memory."""
    session.plan.request("thread/loaded/list", on=session.connection())


def resume_one(session: Session, thread: PlannedThread) -> None:
    """A thread is taken up again."""
    resume(session, thread)
    thread.loaded = thread.changed = True


def fork(session: Session, thread: PlannedThread) -> None:
    """A thread with the same history, where there is room for one more."""
    plan = session.plan
    if len(plan.threads) > MOST_THREADS or not session.choose.chance(70):
        plan.request("thread/fork", params={"threadId": thread.reference})
        return
    plan.settle(thread)
    if session.choose.chance(60):
        look(session, thread)
    made = plan.thread(asks=thread.asks)
    made.ended, made.changed = thread.ended, True
    body = {"params": {"threadId": thread.reference}, "as": made.alias}
    plan.request("thread/fork", expect="result", **body)


def archive(session: Session, thread: PlannedThread) -> None:
    """A thread goes to the archive."""
    if session.choose.chance(80):
        session.plan.settle(thread)
    session.plan.request("thread/archive", params={"threadId": thread.reference})
    thread.archived, thread.loaded = True, False


def unarchive(session: Session, thread: PlannedThread) -> None:
    """A thread comes back from the archive, and is taken up again."""
    session.plan.request("thread/unarchive", params={"threadId": thread.reference})
    thread.archived = False
    resume_one(session, thread)


def unsubscribe(session: Session, thread: PlannedThread) -> None:
    """The client leaves a thread."""
    session.plan.request("thread/unsubscribe", params={"threadId": thread.reference})
    thread.loaded = False


def name_thread(session: Session, thread: PlannedThread) -> None:
    """A new name."""
    name = f"name-{session.plan.number():03d}"
    thread.names.append(name)
    params = {"threadId": thread.reference, "name": name}
    session.plan.request("thread/name/set", params=params, on=session.connection())


def search(session: Session, thread: PlannedThread) -> None:
    """The thread is looked for by its name."""
    params: Json = {"searchTerm": thread.names[-1], **HERE}
    params |= {"archived": True} if thread.archived else {}
    session.plan.request("thread/list", params=params)


def rollback(session: Session, thread: PlannedThread) -> None:
    """The last turns are dropped, mostly of a thread where none runs, looked at before."""
    plan, choose = session.plan, session.choose
    if choose.chance(85):
        plan.settle(thread)
    if choose.chance(60):
        look(session, thread)
    number = choose.one((1, 1, 2))
    params = {"threadId": thread.reference, "numTurns": number}
    plan.request("thread/rollback", params=params, on=session.connection())
    thread.ended = max(0, thread.ended - number)
    thread.plain = thread.plain or (not thread.ended and session.several_threads)
    if choose.chance(40):
        look(session, thread)


def compact(session: Session, thread: PlannedThread) -> None:
    """The history is summed up; it is over when its item is."""
    plan = session.plan
    plan.settle(thread)
    if not thread.ready:
        plan.request("thread/compact/start", params={"threadId": thread.reference})
        thread.doubtful = True
        return
    plan.request("thread/compact/start", expect="result", params={"threadId": thread.reference})
    plan.step("wait", **COMPACTED)
    plan.step("wait", idle=thread.alias)
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
                params["input"] = [{"type": "text", "text": f"also {plan.number()}"}]
            case "thread/archive" | "thread/unsubscribe":
                thread.archived = thread.archived or method == "thread/archive"
                thread.loaded = False
            case _:
                pass
        plan.request(method, params=params, wait=False, **{"as": alias})
    for alias in names:
        plan.step("wait", answer=alias)
    thread.doubtful = True
    if choose.chance(50):
        look(session, thread)


# The action of a request, as `Offers` names it.
FEATURES = {
    "thread/fork": "fork",
    "thread/compact/start": "compact",
    "thread/rollback": "rollback",
    "thread/name/set": "name",
    "thread/archive": "archive",
    "thread/unsubscribe": "unsubscribe",
    "thread/unarchive": "unarchive",
    "thread/resume": "resume",
    "thread/loaded/list": "list",
    "thread/list": "search",
    "turn/steer": "steer",
    "turn/interrupt": "interrupt",
}
_PAIRS = [
    ("thread/name/set", "thread/archive"),
    ("thread/archive", "thread/name/set"),
    ("thread/name/set", "thread/name/set"),
    ("thread/rollback", "thread/read"),
    ("thread/read", "thread/rollback"),
    ("turn/start", "turn/start"),
    ("turn/start", "thread/archive"),
    ("turn/start", "thread/fork"),
    ("turn/start", "thread/rollback"),
    ("thread/fork", "turn/start"),
    ("thread/unsubscribe", "thread/resume"),
    ("thread/name/set", "thread/list"),
    ("thread/compact/start", "turn/start"),
    ("thread/resume", "thread/resume"),
    ("thread/unsubscribe", "turn/start"),
]


def _runs(thread: PlannedThread) -> bool:
    return thread.running is not None


def _asked(thread: PlannedThread) -> bool:
    return thread.running is not None and bool(thread.running.asks) and not thread.doubtful


def _held(thread: PlannedThread) -> bool:
    return thread.running is not None and bool(thread.running.gates)


def _had_turns(thread: PlannedThread) -> bool:
    return bool(thread.turns)


_ALWAYS: Collection[str] = ("start_turn", "settle", "answer", "open", "look")
ACTIONS = (
    Action("start_turn", 14, start_turn),
    Action("settle", 3, settle, _runs),
    Action("open", 6, open_gate, _held),
    Action("answer", 12, answer, _asked),
    Action("look", 2, look),
    Action("steer", 5, steer, _had_turns),
    Action("interrupt", 3, interrupt, _had_turns),
    Action("list", 1, list_loaded),
    Action("resume", 2, resume_one),
    Action("fork", 2, fork, _had_turns),
    Action("archive", 2, archive, lambda thread: not thread.archived),
    Action("unarchive", 6, unarchive, lambda thread: thread.archived),
    Action("unsubscribe", 2, unsubscribe, lambda thread: thread.loaded),
    Action("name", 3, name_thread),
    Action("search", 2, search, lambda thread: bool(thread.names)),
    Action("rollback", 3, rollback, _had_turns),
    Action("compact", 2, compact, _had_turns),
    Action("overlap", 3, overlapping),
)


def generated(chooser: Chooser, offers: Offers | None = None, length: int = LONGEST) -> Json:
    """One generated scenario document."""
    return Session(chooser, offers).draw(length)
