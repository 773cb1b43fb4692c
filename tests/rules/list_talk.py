"""Builder of conversations about lists of threads."""

from typing import Any

from tests.rules.traces import CREATED, Talk, settings, thread_object

HOME = "/home/user/project"
MINUTE = 60


def listed(number: int, **more: Any) -> dict[str, Any]:
    """Return thread `thr_<number>` as a list shows it, created `number` minutes after the first."""
    created = CREATED + MINUTE * number
    shown = {"preview": "hello", "status": {"type": "notLoaded"}}
    times = {"createdAt": created, "updatedAt": created + 1}
    return thread_object(f"thr_{number}", **{**shown, **times, **more})


def begin(talk: Talk, *numbers: int, **more: Any) -> Talk:
    """Start threads, each with a whole turn of its own; `more` are members of the threads."""
    for number in numbers:
        start(talk, number, **more).plain_turn(f"turn_{number}", f"thr_{number}")
    return talk


def start(talk: Talk, number: int, **more: Any) -> Talk:
    """Start a thread."""
    created = CREATED + MINUTE * number
    thread = f"thr_{number}"
    shown = thread_object(thread, **{"createdAt": created, "updatedAt": created, **more})
    members = {name: more[name] for name in ("cwd", "modelProvider") if name in more}
    talk.asks("thread/start", cwd=more.get("cwd", HOME))
    talk.answers({"thread": shown, **settings(), **members})
    return talk.tells("thread/started", thread=shown)


def page(talk: Talk, *threads: dict[str, Any], then: str | None = None, **params: Any) -> Talk:
    """Add thread/list and its result; `then` is its nextCursor."""
    talk.asks("thread/list", **params)
    return answered(talk, *threads, then=then)


def answered(talk: Talk, *threads: dict[str, Any], then: str | None = None, to: int = 0) -> Talk:
    """Add the result of the last thread/list, or of the request `to`."""
    return talk.answers({"data": list(threads), "nextCursor": then}, to=to or None)


def pages(talk: Talk, *threads: dict[str, Any], size: int = 2, **params: Any) -> Talk:
    """Add all pages of thread/list that these threads need."""
    for at in range(0, len(threads), size):
        cursor = {"cursor": f"after-{at}"} if at else {}
        more = at + size < len(threads)
        then = f"after-{at + size}" if more else None
        page(talk, *threads[at : at + size], then=then, limit=size, **cursor, **params)
    return talk


def names(talk: Talk, name: str, number: int = 1) -> Talk:
    """Add thread/name/set, its answer and thread/name/updated."""
    thread = f"thr_{number}"
    talk.asks("thread/name/set", threadId=thread, name=name).answers({})
    return talk.tells("thread/name/updated", threadId=thread, threadName=name)
