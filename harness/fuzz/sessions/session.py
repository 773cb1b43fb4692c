"""One generated session being drawn: which action comes next, on which thread.

Here: the swarm (which actions, parts and faults this session has), its length, what belongs to no
single thread. Not here: what the actions do (actions, chains).
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from harness.fuzz.sessions.chooser import Chooser
from harness.fuzz.sessions.plan import Plan, PlannedThread
from harness.fuzz.sessions.turns import FAULTS, PARTS, Json, TurnWriter
from harness.scenario.client_steps import MAIN

MOST_THREADS = 3
LONGEST = 60
# Half of the sessions are short: they are played and shrunk faster, and what is judged at the end
# of a trace sees more of them.
SHORT = range(4, 13)
# The threads of this session alone, of all that the process knows.
HERE: Json = {"cwd": "{cwd}"}
_ALWAYS: Collection[str] = ("start_turn", "settle", "answer", "open", "look")
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

    def __init__(
        self, chooser: Chooser, actions: Sequence[Action], offers: Offers | None = None
    ) -> None:
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
        offered = [one for one in actions if not lacks.intersection(one.name.split("+"))]
        kept = [one for one in offered if one.name in _ALWAYS or chooser.chance(70)]
        self.pairs = [one for one in _PAIRS if not lacks.intersection(map(FEATURES.get, one))]
        self._weights = [(one, one.weight * chooser.one((1, 1, 2, 4))) for one in kept]
        self._apart = chooser.weighted([("", 57), ("several", 35), ("restart", 8)])
        self._most = chooser.weighted([(1, 5), (2, 3), (MOST_THREADS, 2)])

    def draw(self, longest: int = LONGEST) -> Json:
        """A whole document, every second one short, with at most so many steps and a final look."""
        long = self.choose.chance(50)
        length = longest if long else min(longest, self.choose.one(SHORT))
        if self._apart == "several" and "several" not in self._lacks:
            self.plan.client.append({"connect": "b"})
            self.plan.connections.append("b")
        self.start_thread()
        if self.choose.chance(85):
            next(one for one, _ in self._weights if one.name == "start_turn").do(
                self, self.plan.threads[0]
            )
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
        if self._apart == "restart" and choose.chance(15) and "restart" not in self._lacks:
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
        thread.home = self.connection()
        self.plan.step("start_thread", **{"as": thread.alias}, on=thread.home, params=params)

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
            thread.home = MAIN
            thread.forgets()

    def _leave(self) -> None:
        """The second client goes, or comes back; what it alone followed is taken up again."""
        plan, back = self.plan, self.choose.chance(70)
        plan.client.append({"disconnect": "b"})
        mine = [one for one in plan.threads if one.loaded and one.home == "b"]
        if back:
            plan.client.append({"connect": "b"})
        else:
            plan.connections.remove("b")
        for thread in plan.threads:
            # One that was archived or left still has its last home.
            thread.home = MAIN if thread.home == "b" and thread not in mine else thread.home
        for thread in mine:
            # Whether its questions are put again, and to whom, is open.
            thread.left_on("b")
            thread.doubtful = thread.doubtful or thread.running is not None
        for thread in mine or [self.choose.one(plan.threads)]:
            on = "b" if back else MAIN
            plan.request("thread/resume", params={"threadId": thread.reference}, on=on)
            if not thread.archived:
                thread.followed_on(on)
                thread.changed = True

    def look(self, thread: PlannedThread) -> None:
        """What is stored of a thread."""
        params = {"threadId": thread.reference, "includeTurns": True}
        self.plan.request("thread/read", params=params, on=self.connection())

    def search(self, thread: PlannedThread) -> None:
        """The thread is looked for by its name."""
        params: Json = {"searchTerm": thread.names[-1], **HERE}
        params |= {"archived": True} if thread.archived else {}
        self.plan.request("thread/list", params=params, on=self.connection())

    def _look_at_all(self) -> None:
        for thread in self.plan.threads:
            self.look(thread)
            if thread.names and "search" not in self._lacks:
                self.search(thread)
        if "search" in self._lacks:
            return
        self.plan.request("thread/list", params=HERE, on=self.connection())
        if any(thread.archived for thread in self.plan.threads):
            archived: Json = {"archived": True, **HERE}
            self.plan.request("thread/list", params=archived, on=self.connection())
