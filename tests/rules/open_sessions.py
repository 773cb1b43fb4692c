"""Other choices at open points of forks, names and rollback, and of sessions."""

from typing import Any

from tests.rules.approval_talk import Approvals, command_item
from tests.rules.history_talk import FORK, Past, past, stored
from tests.rules.open_point import Otherwise
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    settings,
    thread_object,
    turn_object,
    user_message,
)

PREVIEW = {"preview": "hello"}


def _fork_of_named(**shown: Any) -> Talk:
    """A thread that was named is forked; the fork is shown so."""
    talk = past().asks("thread/name/set", threadId=THREAD, name="The trunk").answers({})
    talk.tells("thread/name/updated", threadId=THREAD, name="The trunk")
    talk.asks("thread/fork", threadId=THREAD)
    talk.answers({"thread": thread_object(FORK, turns=stored(), **PREVIEW, **shown), **settings()})
    return talk.tells("thread/started", thread=thread_object(FORK, **PREVIEW, **shown))


def _fork_of_ephemeral() -> Talk:
    """The fork of an ephemeral thread is stored."""
    talk = Past().asks("thread/start", ephemeral=True)
    shown = thread_object(ephemeral=True, path=None)
    talk.answers({"thread": shown, **settings()}).tells("thread/started", thread=shown)
    return talk.plain_turn().forks(*stored()).announced().plain_turn("turn_2", FORK)


def _fork_with_other_settings() -> Talk:
    """The thread has a model of its own, the fork that of the configuration."""
    talk = Past().asks("thread/start", model="m-2")
    talk.answers({"thread": thread_object(), **settings(), "model": "m-2"})
    talk.tells("thread/started", thread=thread_object())
    talk.plain_turn().asks("thread/fork", threadId=THREAD)
    talk.answers({"thread": thread_object(FORK, turns=stored(), **PREVIEW), **settings()})
    return talk.announced()


def _named(asked: str, taken: str | None) -> Talk:
    """A name is set; it is taken so, None for refused."""
    talk = past().asks("thread/name/set", threadId=THREAD, name=asked)
    if taken is None:
        return talk.refuses("no such name")
    return talk.answers({}).tells("thread/name/updated", threadId=THREAD, name=taken)


def _named_when_left() -> Talk:
    talk = past().leaves().asks("thread/name/set", threadId=THREAD, name="Left")
    return talk.refuses("not loaded")


def _rolled_back_when_left(*, refused: bool) -> Talk:
    talk = past(TURN, "turn_2").leaves()
    if refused:
        talk.asks("thread/rollback", threadId=THREAD, numTurns=1)
        return talk.refuses("not loaded")
    return talk.rolls_back(*stored()).status("idle").loads(THREAD)


def _two_servers() -> Talk:
    """Another server on the same home resumes the thread too, and both give it turns."""
    talk = past().on("c2").resumes(*stored()).plain_turn("turn_2")
    return talk.on("c1").plain_turn("turn_3")


def _unread_by_another_server() -> Talk:
    """A server does not read what another one has in memory."""
    return past().on("c2").asks("thread/read", threadId=THREAD).refuses("in use")


def _news(*, told: bool) -> Talk:
    """A client that opened no thread is told nothing, or all there is, turns and items too."""
    talk = Past().on("c2").loads().on("c1").start_thread()
    if told:
        talk.on("c2").announced(THREAD).on("c1")
    talk.plain_turn()
    if told:
        talk.on("c2").status("active").turn_started()
        talk.item(user_message(f"{TURN}-user", "hello")).message(f"{TURN}-msg", "Hel", "lo")
        talk.end_turn()
    return talk


def _asked_later(*, again: str) -> Talk:
    """A client comes while a question is open; it is put to it never, or at once."""
    talk = Approvals().running().started(command := command_item()).question()
    talk.on("c2").asks("thread/resume", threadId=THREAD)
    shown = thread_object(
        status={"type": "active", "activeFlags": []},
        turns=[turn_object(items=[user_message(f"{TURN}-user", "hello"), command])],
        **PREVIEW,
    )
    if again == "before":
        talk.question()
    talk.answers({"thread": shown, **settings(), "approvalPolicy": "untrusted"})
    talk.on("c1").decides("accept", to=0)
    for client in ("c1", "c2"):
        talk.on(client).resolved(0)
        if again == "before" and client == "c2":
            talk.resolved(1)
        talk.completed(command_item(status="completed")).end_turn()
    return talk


OTHERWISE = [
    Otherwise("thread-fork.keeps", "keeps the name", lambda: _fork_of_named(name="The trunk")),
    Otherwise("thread-fork.keeps", "has no name for it", lambda: _fork_of_named(name=None)),
    Otherwise("thread-fork.keeps", "stores the fork of an ephemeral one", _fork_of_ephemeral),
    Otherwise("thread-fork.keeps", "takes settings anew", _fork_with_other_settings),
    Otherwise("thread-name.words", "refuses blanks", lambda: _named("  ", None)),
    Otherwise("thread-name.words", "keeps blanks", lambda: _named(" a name ", " a name ")),
    Otherwise("thread-name.words", "cuts blanks off", lambda: _named(" a name ", "a name")),
    Otherwise("thread-name.words", "refuses a long name", lambda: _named("a" * 81, None)),
    Otherwise("thread-name.words", "takes any length", lambda: _named("a" * 5000, "a" * 5000)),
    Otherwise("thread-name.words", "names loaded threads alone", _named_when_left),
    Otherwise(
        "thread-rollback.loads",
        "refuses it",
        lambda: _rolled_back_when_left(refused=True),
    ),
    Otherwise(
        "thread-rollback.loads",
        "loads the thread by it",
        lambda: _rolled_back_when_left(refused=False),
    ),
    Otherwise("loading.two-servers", "lets both have it", _two_servers),
    Otherwise("loading.two-servers", "refuses to read it", _unread_by_another_server),
    Otherwise("subscription.news", "tells nobody else", lambda: _news(told=False)),
    Otherwise("subscription.news", "tells everybody everything", lambda: _news(told=True)),
    Otherwise("subscription.open-questions", "does not ask again", lambda: _asked_later(again="")),
    Otherwise(
        "subscription.open-questions",
        "asks before it answers, under an id of its own",
        lambda: _asked_later(again="before"),
    ),
]
