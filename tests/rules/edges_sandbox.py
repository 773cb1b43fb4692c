"""Edge cases of the rules on sandbox values."""

from tests.rules.edge import Illegal, Legal
from tests.rules.traces import Talk, settings, thread_object

TAKEN = "thread.sandbox-taken"
HINT = frozenset({TAKEN})
WHERE = "/home/user/project"


def start(talk: Talk, sandbox: str, thread: str = "") -> Talk:
    """thread/start with a word, or none; it is refused where there is no thread for it."""
    more = {"sandbox": sandbox} if sandbox else {}
    talk.asks("thread/start", cwd=WHERE, **more)
    if not thread:
        return talk.refuses("it cannot be done")
    shown = thread_object(thread)
    kinds = {"read-only": "readOnly", "workspace-write": "workspaceWrite"}
    policies = {
        "readOnly": {"type": "readOnly", "access": {"type": "fullAccess"}},
        "workspaceWrite": {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False},
    }
    policy = policies.get(kinds.get(sandbox, ""), settings()["sandbox"])
    talk.answers({"thread": shown, **settings(), "sandbox": policy})
    return talk.tells("thread/started", thread=shown)


def no_room() -> Talk:
    """The server has as many threads as it can have."""
    return start(start(start(Talk(), "", "thr_1"), "", "thr_2"), "read-only")


def not_ready() -> Talk:
    return start(start(Talk(), "workspace-write"), "", "thr_1")


def ready_for_any() -> Talk:
    """The same word is taken the next time: it was refused for something else."""
    return start(start(start(Talk(), "", "thr_1"), "read-only"), "read-only", "thr_2")


def taken_before() -> Talk:
    """The same word was taken before and is refused once, while the server is overloaded."""
    return start(start(start(Talk(), "read-only", "thr_1"), "read-only"), "", "thr_2")


def between(word: str) -> Talk:
    return start(start(start(Talk(), "", "thr_1"), word), "", "thr_2")


LEGAL: list[Legal] = [
    Legal(TAKEN, "no room for another thread", no_room, HINT),
    Legal(TAKEN, "not ready yet", not_ready, HINT),
    Legal(TAKEN, "taken the next time", ready_for_any),
    Legal(TAKEN, "taken before, refused once", taken_before),
]
ILLEGAL: list[Illegal] = [
    Illegal(TAKEN, "read-only between two others", lambda: between("read-only")),
    Illegal(TAKEN, "workspace-write between two others", lambda: between("workspace-write")),
]
