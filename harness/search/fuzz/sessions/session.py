"""One generated session being drawn: which action comes next, on which thread."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from harness.scenario.client_steps import MAIN
from harness.search.fuzz.sessions.chooser import Chooser
from harness.search.fuzz.sessions.novelty import Drawn
from harness.search.fuzz.sessions.plan import Plan, PlannedThread
from harness.search.fuzz.sessions.turns import FAULTS, PARTS, UNTRUSTED, Json, TurnWriter

MAX_THREADS = 3
# The policies of threads whose commands and patches are asked about.
ASKING = ("on-request", UNTRUSTED, UNTRUSTED)
MAX_STEPS = 48
# Each costs as much time as a whole session without.
MAX_RESTARTS = 2
# Most of the sessions are short: they are played and shrunk faster, and what is judged at the end
# of a trace sees more of them.
SHORT = range(6, 19)
# So many of a hundred sessions go from one situation to another; the others just go on.
IN_SITUATIONS = 70
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
    """Features of the server under test: what it was seen not to do is planned no more.

    `lacks` are names of actions, of parts of a turn, `approvals`, and those under a policy.
    """

    lacks: set[str] = field(default_factory=set[str])


def approvals_under(policy: str) -> str:
    """The name of what a server does not offer that asks nothing under this policy."""
    return f"approvals under {policy}"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do to a thread: its weight, and when it makes sense."""

    name: str
    weight: int
    do: Callable[["Session", PlannedThread], None]
    sensible: Callable[[PlannedThread], bool] = lambda _: True


class Session:
    """Draws one session.

    `begins` brings its threads into a situation to act in, `ends` asks of each what only a turn can
    show.
    """

    def __init__(
        self,
        chooser: Chooser,
        actions: Sequence[Action],
        offers: Offers | None = None,
        begins: Callable[["Session"], None] | None = None,
        ends: Callable[["Session", PlannedThread], None] | None = None,
    ) -> None:
        self.choose = chooser
        self._begins, self._ends = begins, ends
        self.plan = Plan()
        self.lacks = lacks = (offers or Offers()).lacks
        self._on = MAIN
        self._restarts = 0
        parts = set(chooser.some([part for part in PARTS if part not in lacks], 65))
        faults = set(chooser.some([fault for fault in FAULTS if fault not in lacks], 35))
        self.writer = TurnWriter(chooser, parts, faults)
        self.asking = "approvals" not in lacks and chooser.chance(80)
        offered = [action for action in actions if not lacks.intersection(action.name.split("+"))]
        kept_actions = [
            action for action in offered if action.name in _ALWAYS or chooser.chance(70)
        ]
        self.pairs = [pair for pair in _PAIRS if not lacks.intersection(map(FEATURES.get, pair))]
        self._weights = [
            (action, action.weight * chooser.one((1, 1, 2, 4))) for action in kept_actions
        ]
        self._apart = chooser.weighted([("", 48), ("several", 45), ("restart", 7)])
        self._most = chooser.weighted([(1, 4), (2, 4), (MAX_THREADS, 2)])

    def draw(self, longest: int = MAX_STEPS) -> Drawn:
        """A whole session, most of them short, with at most so many steps and a final look."""
        long = self.choose.chance(40)
        length = longest if long else min(longest, self.choose.one(SHORT))
        if self._apart == "several" and "several" not in self.lacks:
            self.plan.bare("connect", "b")
            self.plan.connections.append("b")
        self.start_thread()
        if self._begins is not None and self.choose.chance(IN_SITUATIONS):
            while len(self.plan.client) < length:
                self._restarted()
                self._begins(self)
                for _ in range(self.choose.one((1, 2, 2, 3))):
                    running = [thread for thread in self.plan.threads if thread.running is not None]
                    some = running if running and self.choose.chance(80) else self.plan.threads
                    self._act(self.choose.one(some))
        if self.choose.chance(85):
            next(action for action, _ in self._weights if action.name == "start_turn").do(
                self, self.plan.threads[0]
            )
        while len(self.plan.client) < length:
            self._any()
        for thread in self.plan.threads:
            self.plan.settle(thread)
            if self._ends is not None:
                self._ends(self, thread)
        self._look_at_all()
        document = partial(self.plan.document, "A generated session")
        return Drawn(len(self.plan.client), self.plan.meetings.found, document)

    def _any(self) -> None:
        """Something that belongs to no thread, or an action on any of them."""
        plan, choose = self.plan, self.choose
        if self.room and choose.chance(15):
            self.start_thread()
            return
        if self._restarted():
            return
        self._act(choose.one(plan.threads))

    def _act(self, thread: PlannedThread) -> None:
        self.acts(thread)
        possible = [(action, weight) for action, weight in self._weights if action.sensible(thread)]
        self.choose.weighted(possible).do(self, thread)

    def start_thread(self) -> None:
        """A new thread; every second one asks about each command, where the session does that."""
        asks = self.asking and self.choose.chance(85)
        policies = [policy for policy in ASKING if approvals_under(policy) not in self.lacks]
        thread = self.plan.thread(self.choose.one(policies) if asks else "never")
        params = {"approvalPolicy": thread.policy} if asks else None
        on = self._on = self.any_connection()
        thread.followed_on(on)
        self.plan.step("start_thread", **{"as": thread.alias}, on=on, params=params)
        other_connections = [connection for connection in self.plan.connections if connection != on]
        if other_connections and self.choose.chance(40):
            self.plan.request(
                "thread/resume", params={"threadId": thread.reference}, on=other_connections[0]
            )
            thread.followed_on(other_connections[0])
            thread.changed = True

    @property
    def room(self) -> bool:
        """Return whether this session wants another thread."""
        return len(self.plan.threads) < self._most

    @property
    def several_threads(self) -> bool:
        """Return whether the model's side has to tell the threads apart."""
        return len(self.plan.threads) > 1 or self._most > 1

    def acts(self, thread: PlannedThread) -> None:
        """Choose who acts on a thread, mostly one that follows it."""
        choose, plan = self.choose, self.plan
        self._on = thread.home if choose.chance(60) else choose.one(plan.connections)

    def connection(self) -> str:
        """The connection that acts."""
        return self._on if self._on in self.plan.connections else MAIN

    def any_connection(self) -> str:
        """Any of the connections."""
        return self.choose.one(self.plan.connections)

    def _restarted(self) -> bool:
        """In some sessions, now and then."""
        possible = self._apart == "restart" and "restart" not in self.lacks
        if not possible or self._restarts == MAX_RESTARTS or not self.choose.chance(15):
            return False
        self._restart()
        return True

    def _restart(self) -> None:
        self.plan.bare("restart", True)
        self.plan.connections = [MAIN]
        self._restarts += 1
        for thread in self.plan.threads:
            thread.running, thread.doubtful = None, False
            thread.put_away()

    def leave(self, thread: PlannedThread) -> None:
        """The second client goes, and mostly comes back; what it followed is taken up again.

        So is `thread`, by the first client where the second one stays away.
        """
        plan, back = self.plan, self.choose.chance(70)
        plan.bare("disconnect", "b")
        followed = [other for other in plan.threads if "b" in other.followers]
        if back:
            plan.bare("connect", "b")
        else:
            plan.connections.remove("b")
        on = "b" if back else MAIN
        for followed_thread in followed:
            # An open question is put again; else the turn may end while nobody follows it.
            asks_again = (
                followed_thread.running is not None
                and followed_thread.running.asks
                and not followed_thread.doubtful
            )
            followed_thread.left_on("b")
            followed_thread.doubtful = followed_thread.doubtful and (
                not asks_again or "asked-again" in self.lacks
            )
        for followed_thread in followed if thread in followed else [*followed, thread]:
            if followed_thread.archived:
                continue
            plan.request("thread/resume", params={"threadId": followed_thread.reference}, on=on)
            followed_thread.followed_on(on)
            followed_thread.changed = True

    def look(self, thread: PlannedThread) -> None:
        """Look at the stored files of a thread."""
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
            if thread.names and "search" not in self.lacks:
                self.search(thread)
        if "search" in self.lacks:
            return
        self.plan.request("thread/list", params=HERE, on=self.connection())
        if any(thread.archived for thread in self.plan.threads):
            archived: Json = {"archived": True, **HERE}
            self.plan.request("thread/list", params=archived, on=self.connection())
