"""Other choices at open points of threads, their storage and subscriptions."""

from typing import Any

from tests.rules.open_point import Otherwise, Untried, Why
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    settings,
    stored_plain_turn,
    thread_object,
    turn_object,
    user_message,
)

OTHER = "thr_2"
HERE = "/home/user/project"


def _started(shown: dict[str, Any], *, announced: dict[str, Any] | None = None) -> Talk:
    """A thread that is shown so when it starts."""
    talk = Talk().asks("thread/start", cwd=HERE)
    talk.answers({"thread": shown, **settings()})
    return talk.tells("thread/started", thread=shown if announced is None else announced)


def _without(member: str, **more: Any) -> dict[str, Any]:
    return {key: value for key, value in thread_object(**more).items() if key != member}


def _shown(**more: Any) -> Talk:
    """A turn, and the thread as it is read then."""
    talk = Talk().start_thread().plain_turn().asks("thread/read", threadId=THREAD)
    return talk.answers({"thread": thread_object(**{"preview": "hello", **more})})


def _restarted_ids() -> Talk:
    """After a restart the server counts from one again, and has forgotten the first thread."""
    return Talk().start_thread().plain_turn().on("c2").start_thread().plain_turn()


def _relative(cwd: str, shown: str) -> Talk:
    talk = Talk().asks("thread/start", cwd=cwd)
    thread = thread_object(cwd=shown)
    talk.answers({"thread": thread, **settings(), "cwd": shown})
    return talk.tells("thread/started", thread=thread)


def _flags(*flags: Any) -> Talk:
    talk = Talk().start_thread().ask_turn().reply_turn()
    status = {"type": "active", "activeFlags": list(flags)}
    talk.tells("thread/status/changed", threadId=THREAD, status=status)
    talk.turn_started().item(user_message("u", "hello")).message("m", "Hello")
    return talk.end_turn()


def _statuses(*kinds: str) -> Talk:
    talk = Talk().start_thread().plain_turn()
    for kind in kinds:
        talk.status(kind)
    return talk


def _after_failure(*kinds: str) -> Talk:
    talk = Talk().start_thread().start_turn()
    for kind in kinds:
        talk.status(kind)
    return talk.turn_completed(status="failed", error={"message": "no"})


def _sessions(*asked: tuple[str, Any], **params: Any) -> Talk:
    """Requests about the thread with their answers; an answer that is a text refuses."""
    talk = Talk().start_thread().plain_turn()
    for method, answer in asked:
        talk.asks(method, threadId=THREAD, **params)
        talk.refuses(answer) if isinstance(answer, str) else talk.answers(answer)
    return talk


def _opened(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answer to a request that opens the thread again."""
    shown = thread_object(preview="hello", turns=list(turns), **more)
    return {"thread": shown, **settings()}


def _forked(*turns: dict[str, Any], announced: list[Any] | None = None) -> Talk:
    talk = Talk().start_thread().plain_turn().asks("thread/fork", threadId=THREAD)
    shown = thread_object(OTHER, preview="hello", turns=list(turns))
    talk.answers({"thread": shown, **settings()})
    told = thread_object(OTHER, preview="hello", turns=announced or [])
    return talk.tells("thread/started", thread=told)


def _archived_in_a_turn(*, refused: bool) -> Talk:
    talk = Talk().start_thread().start_turn().asks("thread/archive", threadId=THREAD)
    if refused:
        return talk.refuses("a turn is active").message("m", "a").end_turn()
    talk.answers({}).tells("thread/archived", threadId=THREAD)
    return talk.message("m", "a").end_turn()


def _left(*told: str, status: str = "unsubscribed") -> Talk:
    """The client leaves; what it is told, in this order, `reply` among it."""
    talk = Talk().start_thread().plain_turn().asks("thread/unsubscribe", threadId=THREAD)
    for one in told:
        if one == "reply":
            talk.answers({"status": status})
        elif one == "status":
            talk.status("notLoaded")
        else:
            talk.tells("thread/closed", threadId=THREAD)
    return talk


def _left_in_a_turn() -> Talk:
    """The turn goes on after its last subscriber has left; nobody hears of it."""
    talk = Talk().start_thread().start_turn().asks("thread/unsubscribe", threadId=THREAD)
    return talk.answers({"status": "unsubscribed"})


def _read_so(*turns: dict[str, Any], active: bool = False) -> Talk:
    talk = Talk().start_thread().plain_turn()
    if active:
        talk.start_turn("turn_2", text="again")
    talk.read(*turns)
    if active:
        talk.message("m2", "more", turn="turn_2").end_turn("turn_2")
    return talk


def _not_ephemeral() -> Talk:
    """The member is taken and means nothing: the thread is kept."""
    talk = Talk().asks("thread/start", cwd=HERE, ephemeral=True)
    talk.answers({"thread": thread_object(), **settings()})
    return talk.tells("thread/started", thread=thread_object()).plain_turn()


def _unknown_word(method_answer: str | dict[str, Any]) -> Talk:
    talk = Talk().asks("thread/start", model="never-heard-of", modelProvider="nobody")
    if isinstance(method_answer, str):
        return talk.refuses(method_answer)
    return talk.answers(method_answer).tells("thread/started", thread=method_answer["thread"])


def _sandboxed(policy: dict[str, Any]) -> Talk:
    talk = Talk().asks("thread/start", cwd=HERE)
    talk.answers({"thread": thread_object(), **settings(), "sandbox": policy})
    return talk.tells("thread/started", thread=thread_object()).plain_turn()


OTHERWISE = [
    Otherwise("thread.id-scope", "counts from one in each process", _restarted_ids),
    Otherwise("thread.preview-absent", "has null", lambda: _started(thread_object(preview=None))),
    Otherwise("thread.preview-absent", "has no member", lambda: _started(_without("preview"))),
    Otherwise("thread.preview-length", "shows a part", lambda: _shown(preview="hel")),
    Otherwise("thread.preview-length", "shows a part and dots", lambda: _shown(preview="hel…")),
    Otherwise(
        "thread.updated-when",
        "never changes it",
        lambda: _shown(updatedAt=1_700_000_000),
    ),
    Otherwise(
        "thread.cwd-relative",
        "refuses a folder that is relative",
        lambda: Talk().asks("thread/start", cwd="project").refuses("cwd must be absolute"),
    ),
    Otherwise(
        "thread.cwd-relative",
        "takes it from the home of the user",
        lambda: _relative("project", "/home/user/project"),
    ),
    Otherwise("thread.turns-null", "leaves them out", lambda: _started(_without("turns"))),
    Otherwise(
        "thread.turns-null",
        "has an empty array",
        lambda: _started(thread_object(turns=[])),
    ),
    Otherwise("thread-status.flag-values", "has words of its own", lambda: _flags("thinking")),
    Otherwise("thread-status.flag-values", "has objects", lambda: _flags({"kind": 3}, 7)),
    Otherwise("thread-status.after-failure", "is idle", lambda: _after_failure("idle")),
    Otherwise(
        "thread-status.after-failure",
        "is systemError, then idle",
        lambda: _after_failure("systemError", "idle"),
    ),
    Otherwise(
        "thread-status.transitions",
        "goes over systemError and notLoaded",
        lambda: _statuses("systemError", "notLoaded", "idle"),
    ),
    Otherwise(
        "thread-status.loaded-shown",
        "reads as idle",
        lambda: _shown(status={"type": "idle"}),
    ),
    Otherwise(
        "thread-status.loaded-shown",
        "reads as notLoaded",
        lambda: _shown(status={"type": "notLoaded"}),
    ),
    Otherwise(
        "storage.archive-loaded",
        "refuses it in a turn",
        lambda: _archived_in_a_turn(refused=True),
    ),
    Otherwise(
        "storage.archive-loaded",
        "lets the turn go on",
        lambda: _archived_in_a_turn(refused=False),
    ),
    Otherwise(
        "storage.archived-use",
        "refuses to read it",
        lambda: (
            Talk()
            .start_thread()
            .plain_turn()
            .asks("thread/archive", threadId=THREAD)
            .answers({})
            .tells("thread/archived", threadId=THREAD)
            .asks("thread/read", threadId=THREAD)
            .refuses("archived")
        ),
    ),
    Otherwise(
        "storage.archived-use",
        "resumes it",
        lambda: (
            Talk()
            .start_thread()
            .plain_turn()
            .asks("thread/archive", threadId=THREAD)
            .answers({})
            .tells("thread/archived", threadId=THREAD)
            .asks("thread/resume", threadId=THREAD)
            .answers(_opened(stored_plain_turn()))
            .plain_turn("turn_2")
        ),
    ),
    Otherwise(
        "storage.archive-twice",
        "takes it twice",
        lambda: (
            Talk()
            .start_thread()
            .plain_turn()
            .asks("thread/archive", threadId=THREAD)
            .answers({})
            .tells("thread/archived", threadId=THREAD)
            .asks("thread/archive", threadId=THREAD)
            .answers({})
            .tells("thread/archived", threadId=THREAD)
        ),
    ),
    Otherwise(
        "storage.unused-thread",
        "refuses all three",
        lambda: (
            Talk()
            .start_thread()
            .asks("thread/archive", threadId=THREAD)
            .refuses("no rollout yet")
            .asks("thread/resume", threadId=THREAD)
            .refuses("no rollout yet")
            .asks("thread/fork", threadId=THREAD)
            .refuses("no rollout yet")
        ),
    ),
    Otherwise(
        "storage.folders",
        "keeps rollouts elsewhere, in a format of its own",
        lambda: _started(thread_object(path="/var/lib/agent/db.sqlite#thr_1")),
    ),
    Otherwise(
        "subscription.begins",
        "takes who reads for a subscriber",
        lambda: (
            Talk()
            .start_thread()
            .on("c2")
            .asks("thread/read", threadId=THREAD)
            .answers({"thread": thread_object()})
            .on("c1")
            .start_turn()
            .on("c2")
            .status("active")
            .turn_started()
            .item(user_message("u", "hello"))
            .message("m", "a")
            .end_turn()
            .on("c1")
            .message("m", "a")
            .end_turn()
        ),
    ),
    Otherwise("loading.active-turn", "lets the turn go on, untold", _left_in_a_turn),
    Otherwise("loading.order", "closes before it answers", lambda: _left("closed", "reply")),
    Otherwise("loading.order", "tells the status last", lambda: _left("reply", "closed", "status")),
    Otherwise("loading.order", "tells no status", lambda: _left("reply", "closed")),
    Otherwise(
        "sandbox-policy.read-only-access",
        "has another type of access",
        lambda: _sandboxed({"type": "readOnly", "access": {"type": "listed", "folders": [HERE]}}),
    ),
    Otherwise(
        "sandbox-policy.external-values",
        "has another word",
        lambda: _sandboxed({"type": "externalSandbox", "networkAccess": "by-proxy"}),
    ),
    Otherwise("thread-start.ephemeral", "keeps the thread all the same", _not_ephemeral),
    Otherwise(
        "thread-start.ephemeral",
        "refuses the member",
        lambda: Talk().asks("thread/start", ephemeral=True).refuses("unknown field ephemeral"),
    ),
    Otherwise(
        "thread-start.defaults",
        "has defaults of its own",
        lambda: (
            Talk()
            .asks("thread/start")
            .answers(
                {
                    "thread": thread_object(cwd="/srv", modelProvider="house"),
                    "model": "house-model",
                    "modelProvider": "house",
                    "cwd": "/srv",
                    "approvalPolicy": "untrusted",
                    "sandbox": {"type": "externalSandbox", "networkAccess": "enabled"},
                }
            )
            .tells("thread/started", thread=thread_object(cwd="/srv", modelProvider="house"))
        ),
    ),
    Otherwise("thread-start.unknown-values", "refuses", lambda: _unknown_word("no such model")),
    Otherwise(
        "thread-start.unknown-values",
        "takes them as they are",
        lambda: _unknown_word(
            {
                "thread": thread_object(modelProvider="nobody"),
                **settings(),
                "model": "never-heard-of",
                "modelProvider": "nobody",
            }
        ),
    ),
    Otherwise(
        "thread-resume.loaded",
        "refuses it",
        lambda: _sessions(("thread/resume", "loaded already")),
    ),
    Otherwise(
        "thread-resume.settings",
        "comes back with those of the configuration",
        lambda: (
            Talk()
            .start_thread()
            .ask_turn(model="m-2", approvalPolicy="on-request")
            .reply_turn()
            .status("active")
            .turn_started()
            .item(user_message("u", "hello"))
            .message("m", "Hello")
            .end_turn()
            .asks("thread/resume", threadId=THREAD)
            .answers(
                _opened(
                    turn_object(
                        TURN,
                        "completed",
                        items=[
                            user_message("u", "hello"),
                            {"type": "agentMessage", "id": "m", "text": "Hello"},
                        ],
                    )
                )
            )
        ),
    ),
    Otherwise(
        "thread-fork.active",
        "leaves the active turn out",
        lambda: (
            Talk()
            .start_thread()
            .plain_turn()
            .start_turn("turn_2", text="again")
            .asks("thread/fork", threadId=THREAD)
            .answers(
                {
                    "thread": thread_object(OTHER, preview="hello", turns=[stored_plain_turn()]),
                    **settings(),
                }
            )
            .tells("thread/started", thread=thread_object(OTHER, preview="hello"))
            .message("m2", "a", turn="turn_2")
            .end_turn("turn_2")
        ),
    ),
    Otherwise("thread-fork.ids", "keeps all ids", lambda: _forked(stored_plain_turn())),
    Otherwise(
        "thread-fork.ids", "has new ids for all", lambda: _forked(stored_plain_turn("turn_9"))
    ),
    Otherwise(
        "thread-fork.turns-shown",
        "shows turns without items when it tells of the thread",
        lambda: _forked(stored_plain_turn(), announced=[turn_object(TURN, "completed")]),
    ),
    Otherwise(
        "thread-read.unknown",
        "makes a thread of that name",
        lambda: (
            Talk()
            .asks("thread/read", threadId="thr_77")
            .answers({"thread": thread_object("thr_77", status={"type": "notLoaded"})})
        ),
    ),
    Otherwise(
        "thread-read.active",
        "leaves the active turn out",
        lambda: _read_so(stored_plain_turn(), active=True),
    ),
]

UNTRIED = [
    Untried(
        "subscription.lost-connection",
        Why.NOT_ON_THE_WIRE,
        "of a connection that is closed nothing comes, and no other one is told who is counted",
    ),
    Untried(
        "thread-start.personality",
        Why.NOT_ON_THE_WIRE,
        "instructions of the model are no part of what a trace keeps of a call",
    ),
]
