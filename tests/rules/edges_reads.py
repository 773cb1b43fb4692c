"""Edge cases of thread/read, of previews, and of items with only one notification."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    command,
    settings,
    stored_plain_turn,
    thread_object,
    turn_object,
    user_message,
)

INCLUDES, EQUALS = "read.includes-turns", "read.stored-equals-live"
COMPLETES, STARTED = "item.completes", "item.completed-after-started"
PREVIEW, UNIQUE = "thread.preview-first-message", "turn.ids-unique"


def ephemeral_thread(*, said: bool = True) -> Talk:
    """An ephemeral thread, with a turn; `said` is whether its beginning says what it is."""
    kind: dict[str, Any] = {"ephemeral": True, "path": None} if said else {}
    talk = Talk().asks("thread/start", ephemeral=True)
    talk.answers({"thread": thread_object(**kind), **settings()})
    return talk.tells("thread/started", thread=thread_object(**kind)).plain_turn()


def read_ephemeral(preview: str, *turns: dict[str, Any], said: bool = True) -> Talk:
    """The answer of thread/read on an ephemeral thread."""
    kind: dict[str, Any] = {"ephemeral": True, "path": None, "status": {"type": "idle"}}
    talk = ephemeral_thread(said=said).asks("thread/read", threadId=THREAD, includeTurns=True)
    return talk.answers({"thread": thread_object(preview=preview, turns=list(turns), **kind)})


def ephemeral_with_its_last_turn() -> Talk:
    """Only the last turn of an ephemeral thread can be read."""
    talk = ephemeral_thread().plain_turn("turn_2")
    kind: dict[str, Any] = {"ephemeral": True, "path": None, "status": {"type": "idle"}}
    talk.asks("thread/read", threadId=THREAD, includeTurns=True)
    return talk.answers({"thread": thread_object(turns=[stored_plain_turn("turn_2")], **kind)})


def unreadable() -> Talk:
    """The turns of an ephemeral thread cannot be read at all."""
    talk = ephemeral_thread().asks("thread/read", threadId=THREAD, includeTurns=True)
    return talk.refuses("the thread is not stored")


def listed_without_preview() -> Talk:
    """An ephemeral thread is listed, without a preview."""
    talk = ephemeral_thread().asks("thread/list")
    kind: dict[str, Any] = {"ephemeral": True, "path": None, "status": {"type": "notLoaded"}}
    return talk.answers({"data": [thread_object(**kind)], "nextCursor": None})


def stored(*texts: str, turn: str = TURN) -> dict[str, Any]:
    """A stored turn with these messages."""
    said = [agent_message(f"stored-{at}", words) for at, words in enumerate(texts)]
    return turn_object(turn, "completed", items=[user_message("stored", "hello"), *said])


def id_used_again() -> Talk:
    """Two messages of a turn have one id, which nothing forbids outright."""
    talk = Talk().start_thread().start_turn().message("m", "One.").message("m", "Two.")
    return talk.end_turn()


def retried_under_its_id() -> Talk:
    """A retry opens the message again, under its id; the first was never completed."""
    talk = Talk().start_thread().start_turn().started(agent_message("m", "")).delta("m", "On")
    return talk.failing(will_retry=True).message("m", "Two.").end_turn().read(stored("Two."))


def left_behind(item: dict[str, Any]) -> Talk:
    """A retry leaves an item behind, and goes on with another."""
    talk = Talk().start_thread().start_turn().started(item)
    return talk.failing(will_retry=True).message("again", "Hello").end_turn()


def left_without_a_word(item: dict[str, Any]) -> Talk:
    """An item is left, and no retry was told."""
    return Talk().start_thread().start_turn().started(item).message("again", "Hello").end_turn()


def told_once(item: dict[str, Any], *, begun: bool) -> Talk:
    """An item has only its item/started, or only its item/completed."""
    talk = Talk().start_thread().start_turn()
    talk = talk.started(item) if begun else talk.completed(item)
    return talk.message("m", "Hello").end_turn()


def twice_in_an_answer(method: str = "thread/read") -> Talk:
    """An answer shows one turn twice."""
    talk = Talk().start_thread().plain_turn()
    more: dict[str, Any] = {"includeTurns": True} if method == "thread/read" else {}
    talk.asks(method, threadId=THREAD, **more)
    thread = thread_object(preview="hello", turns=[stored_plain_turn(), stored_plain_turn()])
    return talk.answers({"thread": thread, **settings()})


def newest_first() -> Talk:
    """The turns of a thread are given with the newest first."""
    talk = Talk().start_thread().plain_turn().plain_turn("turn_2")
    return talk.read(stored_plain_turn("turn_2"), stored_plain_turn())


IMAGE = {"type": "imageView", "id": "image", "path": "/home/user/project/a.png"}
ENTERED = {"type": "enteredReviewMode", "id": "review", "review": "the changes"}
EXITED = {"type": "exitedReviewMode", "id": "done", "review": "No findings."}
REASONING = {"type": "reasoning", "id": "why", "summary": [], "content": []}
MESSAGE = agent_message("first", "")

LEGAL: list[Legal] = [
    Legal(INCLUDES, "ephemeral-thread-without-turns", lambda: read_ephemeral("hello")),
    Legal(INCLUDES, "ephemeral-when-read", lambda: read_ephemeral("hello", said=False)),
    Legal(INCLUDES, "ephemeral-thread-that-cannot-be-read", unreadable),
    Legal(EQUALS, "ephemeral-thread-with-turns", lambda: read_ephemeral("", stored("Hello"))),
    Legal(EQUALS, "ephemeral-thread-with-its-last-turn", ephemeral_with_its_last_turn),
    Legal(PREVIEW, "ephemeral-thread-without-preview", lambda: read_ephemeral("")),
    Legal(PREVIEW, "ephemeral-thread-listed-without-preview", listed_without_preview),
    Legal(
        EQUALS,
        "both-items-of-one-id-kept",
        lambda: id_used_again().read(stored("One.", "Two.")),
        hints=frozenset({"item.ids-not-reused"}),
    ),
    Legal(
        EQUALS,
        "last-item-of-one-id-kept",
        lambda: id_used_again().read(stored("Two.")),
        hints=frozenset({"item.ids-not-reused"}),
    ),
    Legal(EQUALS, "retried-under-its-id", retried_under_its_id),
    Legal(EQUALS, "newest-turn-first", newest_first),
    Legal(
        COMPLETES, "message-left-by-a-retry", lambda: left_behind(MESSAGE), frozenset({COMPLETES})
    ),
    Legal(
        COMPLETES,
        "reasoning-left-by-a-retry",
        lambda: left_behind(REASONING),
        frozenset({COMPLETES}),
    ),
    Legal(
        COMPLETES,
        "marker-told-of-once",
        lambda: told_once(ENTERED, begun=True),
        hints=frozenset({COMPLETES}),
    ),
    Legal(
        STARTED, "image-told-of-once", lambda: told_once(IMAGE, begun=False), frozenset({STARTED})
    ),
    Legal(
        STARTED, "review-told-of-once", lambda: told_once(EXITED, begun=False), frozenset({STARTED})
    ),
]
ILLEGAL: list[Illegal] = [
    Illegal(
        EQUALS,
        "neither-item-of-one-id",
        lambda: id_used_again().read(stored("Three.")),
        Level.SHOULD,
        frozenset({"item.ids-not-reused"}),
    ),
    Illegal(
        EQUALS,
        "ephemeral-thread-with-other-words",
        lambda: read_ephemeral("", stored("Bye")),
        Level.SHOULD,
    ),
    Illegal(EQUALS, "newest-turn-first", newest_first, Level.INFO),
    Illegal(UNIQUE, "turn-read-twice", twice_in_an_answer),
    Illegal(UNIQUE, "turn-resumed-twice", lambda: twice_in_an_answer("thread/resume")),
    Illegal(COMPLETES, "message-left-without-a-word", lambda: left_without_a_word(MESSAGE)),
    Illegal(COMPLETES, "command-left-at-a-retry", lambda: left_behind(command("c"))),
    Illegal(STARTED, "message-told-of-once", lambda: told_once(MESSAGE, begun=False)),
    Illegal(
        STARTED, "command-told-of-once", lambda: told_once(command("c", "completed"), begun=False)
    ),
]
