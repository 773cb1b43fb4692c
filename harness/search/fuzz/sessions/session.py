"""Drawing of one generated session: the next action, and its thread."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from harness.scenario.client_steps import MAIN_CONNECTION
from harness.search.fuzz.sessions.chooser import Chooser
from harness.search.fuzz.sessions.novelty import DrawnSession
from harness.search.fuzz.sessions.plan import Plan, PlannedThread
from harness.search.fuzz.sessions.turns import FAULTS, PARTS, UNTRUSTED, Json, TurnWriter

MAX_THREADS = 3
# The policies of threads whose commands and patches need approval.
ASKING = ("on-request", UNTRUSTED, UNTRUSTED)
MAX_STEPS = 48
# A restart costs as much time as a session.
MAX_RESTARTS = 2
# Most sessions are short: faster to play and shrink, and more ends of traces are judged.
SHORT_LENGTHS = range(6, 19)
# Percentage of sessions that go from one situation to another.
SITUATION_PERCENT = 70
# Params that select the threads of this session among all of the server.
IN_WORKSPACE: Json = {"cwd": "{cwd}"}
_REQUIRED_ACTIONS: Collection[str] = ("start_turn", "settle", "answer", "open", "look")
# Method of a request -> its action, as `Offers` names it.
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
    """Features of the server under test; those in `lacks` are no longer planned.

    They are names of actions, of parts of a turn, `approvals`, and approvals under a policy.
    """

    lacks: set[str] = field(default_factory=set[str])


def approvals_under(policy: str) -> str:
    """Return the name of the feature: the server requests approval under this policy."""
    return f"approvals under {policy}"


@dataclass(frozen=True, slots=True)
class Action:
    """An action on a thread: its name, its weight, and the states in which it is sensible."""

    name: str
    weight: int
    do: Callable[["Session", PlannedThread], None]
    sensible: Callable[[PlannedThread], bool] = lambda _: True


class Session:
    """The drawing of one session.

    `begins` brings its threads into a situation to act in; `ends` checks each at the end.
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
        self._on = MAIN_CONNECTION
        self._restarts = 0
        parts = set(chooser.pick_some([part for part in PARTS if part not in lacks], 65))
        faults = set(chooser.pick_some([fault for fault in FAULTS if fault not in lacks], 35))
        self.writer = TurnWriter(chooser, parts, faults)
        self.asking = "approvals" not in lacks and chooser.chance(80)
        offered = [action for action in actions if not lacks.intersection(action.name.split("+"))]
        kept_actions = [
            action for action in offered if action.name in _REQUIRED_ACTIONS or chooser.chance(70)
        ]
        self.pairs = [pair for pair in _PAIRS if not lacks.intersection(map(FEATURES.get, pair))]
        self._weights = [
            (action, action.weight * chooser.pick((1, 1, 2, 4))) for action in kept_actions
        ]
        self._apart = chooser.pick_weighted([("", 48), ("several", 45), ("restart", 7)])
        self._most = chooser.pick_weighted([(1, 4), (2, 4), (MAX_THREADS, 2)])

    def draw(self, longest: int = MAX_STEPS) -> DrawnSession:
        """Draw a session, mostly a short one; after `longest` steps it ends turns and reads."""
        long = self.choose.chance(40)
        length = longest if long else min(longest, self.choose.pick(SHORT_LENGTHS))
        if self._apart == "several" and "several" not in self.lacks:
            self.plan.add_bare_step("connect", "b")
            self.plan.connections.append("b")
        self.start_thread()
        if self._begins is not None and self.choose.chance(SITUATION_PERCENT):
            while len(self.plan.client) < length:
                self._maybe_restart()
                self._begins(self)
                for _ in range(self.choose.pick((1, 2, 2, 3))):
                    running = [
                        thread for thread in self.plan.threads if thread.running_turn is not None
                    ]
                    some = running if running and self.choose.chance(80) else self.plan.threads
                    self._act(self.choose.pick(some))
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
        return DrawnSession(len(self.plan.client), self.plan.meetings.found, document)

    def _any(self) -> None:
        """Start a thread, restart, or act on any thread."""
        plan, choose = self.plan, self.choose
        if self.has_room and choose.chance(15):
            self.start_thread()
            return
        if self._maybe_restart():
            return
        self._act(choose.pick(plan.threads))

    def _act(self, thread: PlannedThread) -> None:
        self.choose_actor(thread)
        possible = [(action, weight) for action, weight in self._weights if action.sensible(thread)]
        self.choose.pick_weighted(possible).do(self, thread)

    def start_thread(self) -> None:
        """Start a thread, mostly with an approval policy if the session uses approvals."""
        asks = self.asking and self.choose.chance(85)
        policies = [policy for policy in ASKING if approvals_under(policy) not in self.lacks]
        thread = self.plan.add_thread(self.choose.pick(policies) if asks else "never")
        params = {"approvalPolicy": thread.policy} if asks else None
        on = self._on = self.any_connection()
        thread.add_follower(on)
        self.plan.add_step("start_thread", **{"as": thread.alias}, on=on, params=params)
        other_connections = [connection for connection in self.plan.connections if connection != on]
        if other_connections and self.choose.chance(40):
            self.plan.add_request(
                "thread/resume", params={"threadId": thread.reference}, on=other_connections[0]
            )
            thread.add_follower(other_connections[0])
            thread.lost_settings = True

    @property
    def has_room(self) -> bool:
        """Return whether this session may start another thread."""
        return len(self.plan.threads) < self._most

    @property
    def several_threads(self) -> bool:
        """Return whether the model's side must distinguish threads."""
        return len(self.plan.threads) > 1 or self._most > 1

    def choose_actor(self, thread: PlannedThread) -> None:
        """Choose the connection that acts on a thread, mostly one that is subscribed to it."""
        choose, plan = self.choose, self.plan
        self._on = thread.home if choose.chance(60) else choose.pick(plan.connections)

    def connection(self) -> str:
        """Return the acting connection, or the first one if that is closed."""
        return self._on if self._on in self.plan.connections else MAIN_CONNECTION

    def any_connection(self) -> str:
        """Choose any connection."""
        return self.choose.pick(self.plan.connections)

    def _maybe_restart(self) -> bool:
        """Restart the server now and then, in some sessions; return whether it was."""
        possible = self._apart == "restart" and "restart" not in self.lacks
        if not possible or self._restarts == MAX_RESTARTS or not self.choose.chance(15):
            return False
        self._restart()
        return True

    def _restart(self) -> None:
        self.plan.add_bare_step("restart", True)
        self.plan.connections = [MAIN_CONNECTION]
        self._restarts += 1
        for thread in self.plan.threads:
            thread.running_turn, thread.doubtful = None, False
            thread.drop_followers()

    def leave(self, thread: PlannedThread) -> None:
        """Disconnect the second client, mostly reconnect it, and resume its threads.

        `thread` is resumed too, by the first client if the second one stays away.
        """
        plan, back = self.plan, self.choose.chance(70)
        plan.add_bare_step("disconnect", "b")
        followed = [other for other in plan.threads if "b" in other.followers]
        if back:
            plan.add_bare_step("connect", "b")
        else:
            plan.connections.remove("b")
        on = "b" if back else MAIN_CONNECTION
        for followed_thread in followed:
            # An open request is sent again; else the turn may end without a subscriber.
            asks_again = (
                followed_thread.running_turn is not None
                and followed_thread.running_turn.asks
                and not followed_thread.doubtful
            )
            followed_thread.remove_follower("b")
            followed_thread.doubtful = followed_thread.doubtful and (
                not asks_again or "asked-again" in self.lacks
            )
        for followed_thread in followed if thread in followed else [*followed, thread]:
            if followed_thread.is_archived:
                continue
            plan.add_request("thread/resume", params={"threadId": followed_thread.reference}, on=on)
            followed_thread.add_follower(on)
            followed_thread.lost_settings = True

    def look(self, thread: PlannedThread) -> None:
        """Read a thread with its turns."""
        params = {"threadId": thread.reference, "includeTurns": True}
        self.plan.add_request("thread/read", params=params, on=self.connection())

    def search(self, thread: PlannedThread) -> None:
        """Search for the thread by its name."""
        params: Json = {"searchTerm": thread.names[-1], **IN_WORKSPACE}
        params |= {"archived": True} if thread.is_archived else {}
        self.plan.add_request("thread/list", params=params, on=self.connection())

    def _look_at_all(self) -> None:
        for thread in self.plan.threads:
            self.look(thread)
            if thread.names and "search" not in self.lacks:
                self.search(thread)
        if "search" in self.lacks:
            return
        self.plan.add_request("thread/list", params=IN_WORKSPACE, on=self.connection())
        if any(thread.is_archived for thread in self.plan.threads):
            archived: Json = {"archived": True, **IN_WORKSPACE}
            self.plan.add_request("thread/list", params=archived, on=self.connection())
