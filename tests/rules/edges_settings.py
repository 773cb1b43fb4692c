"""Edge cases of the rules on threads, their settings, and model calls."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.approval_talk import CWD, Approvals
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import (
    CREATED,
    THREAD,
    TURN,
    Talk,
    command,
    settings,
    thread_object,
    user_message,
)

SHOULD = Level.SHOULD
SCHEMA = {"type": "object"}


def opened() -> Talk:
    return Talk().start_thread()


def hint(rule: str) -> frozenset[str]:
    return frozenset({rule})


def failed_with(info: Any) -> Talk:
    """A turn that failed, with this classification."""
    error = {"message": "it broke", "agentErrorInfo": info}
    return opened().start_turn().end_turn(status="failed", error=error)


def calling(
    talk: Talk, number: int, called: str, *, schemas: tuple[bool, ...] = (), **more: Any
) -> Talk:
    """A turn with one call of this model, or one for each of `schemas`."""
    turn, words = f"turn_{number}", f"say {number}"
    talk.ask_turn(text=words, **more).reply_turn(turn).status("active").turn_started(turn)
    for call, schema in enumerate(schemas or (False,), start=10 * number):
        talk.calls(words, model=called, call=call, schema=schema).ends(call)
    talk.item(user_message(f"u-{number}", words), turn)
    return talk.message(f"m-{number}", "{}", turn=turn).end_turn(turn)


def uncalled(talk: Talk, number: int, **more: Any) -> Talk:
    """A turn of which no model call is known."""
    turn, words = f"turn_{number}", f"say {number}"
    talk.ask_turn(text=words, **more).reply_turn(turn).status("active").turn_started(turn)
    return talk.item(user_message(f"u-{number}", words), turn).end_turn(turn)


def shown_in(asked: str, reply: str, *later: str) -> Talk:
    """A thread whose cwd is written otherwise in each message that shows it."""
    talk = Talk().asks("thread/start", cwd=asked)
    talk.answers({"thread": thread_object(cwd=reply), **settings(), "cwd": reply})
    talk.tells("thread/started", thread=thread_object(cwd=later[0] if later else reply))
    for cwd in later:
        status = {"type": "idle"}
        talk.asks("thread/read", threadId=THREAD)
        talk.answers({"thread": thread_object(cwd=cwd, status=status)})
    return talk


def listing_in(folder: str, *, talk: Talk | None = None, **more: Any) -> Talk:
    """A turn with one command, told with this folder."""
    talk = (
        (talk or opened())
        .ask_turn(text="list", **more)
        .reply_turn()
        .status("active")
        .turn_started()
    )
    talk.calls("list").ends().item(user_message("u", "list"))
    return talk.item(command("c", "completed", cwd=folder, exitCode=0)).end_turn()


def made_at(**times: Any) -> Talk:
    """A thread with these times."""
    thread = thread_object(**times)
    talk = Talk().asks("thread/start").answers({"thread": thread, **settings()})
    return talk.tells("thread/started", thread=thread)


def reannounced() -> Talk:
    """A thread that is archived and taken back, and announced again then."""
    talk = opened().plain_turn().asks("thread/archive", threadId=THREAD).answers({})
    talk.tells("thread/archived", threadId=THREAD).asks("thread/unarchive", threadId=THREAD)
    talk.answers({"thread": thread_object(preview="hello")})
    talk.tells("thread/unarchived", threadId=THREAD)
    return talk.tells("thread/started", thread=thread_object(preview="hello"))


def asks_before_the_turn_is_told(method: str) -> Approvals:
    """A server request about a turn whose turn/started has not been told yet."""
    talk = Approvals().policy("untrusted")
    talk.ask_turn().reply_turn()
    talk.says({"method": method, "id": 0, "params": {"threadId": THREAD, "turnId": TURN}})
    talk.sends({"id": 0, "result": {}})
    talk.status("active").turn_started()
    talk.item(user_message("u", "hello")).end_turn()
    return talk


LEGAL: list[Legal] = [
    Legal(
        "turn-error.info-spelling",
        "object-with-a-key-in-camel-case",
        lambda: failed_with({"httpConnectionFailed": {"httpStatusCode": 502}}),
        hints=hint("turn-error.info-spelling"),
    ),
    Legal(
        "turn-error.info-spelling",
        "object-with-a-key-in-snake-case",
        lambda: (
            opened()
            .start_turn()
            .tells(
                "error",
                threadId=THREAD,
                turnId=TURN,
                willRetry=True,
                error={"message": "cut", "agentErrorInfo": {"response_stream_disconnected": {}}},
            )
            .end_turn()
        ),
        hints=hint("turn-error.info-spelling"),
    ),
    Legal(
        "model.named",
        "name-that-stands-for-another",
        lambda: calling(opened(), 1, "vendor/large-3", model="best"),
        hints=hint("model.named"),
    ),
    Legal(
        "model.named",
        "longer-name-with-a-date",
        lambda: calling(calling(opened(), 1, "m-2026-01-01", model="m"), 2, "m-2026-01-01"),
    ),
    Legal(
        "model.named",
        "name-that-stands-for-another-in-the-second-turn",
        lambda: calling(calling(opened(), 1, "mock-model"), 2, "vendor/large-3", model="best"),
        hints=hint("model.named"),
    ),
    Legal(
        "model.schema-this-turn",
        "thread-is-named-by-a-call-with-a-schema",
        lambda: calling(
            calling(opened(), 1, "mock-model", schemas=(True, True), outputSchema=SCHEMA),
            2,
            "mock-model",
            schemas=(False, True),
        ),
        hints=hint("model.schema-this-turn"),
    ),
    Legal(
        "model.schema-this-turn",
        "own-call-with-a-schema-comes-first",
        lambda: calling(
            calling(opened(), 1, "mock-model", schemas=(True,), outputSchema=SCHEMA),
            2,
            "mock-model",
            schemas=(True, False, False),
        ),
        hints=hint("model.schema-this-turn"),
    ),
    Legal(
        "thread.cwd-captured",
        "temporary-folder-under-its-real-name",
        lambda: shown_in("/tmp/x", "/tmp/x", "/private/tmp/x", "/tmp/x"),
    ),
    Legal(
        "thread.cwd-captured",
        "slashes-and-dots",
        lambda: shown_in("/home/user/project", "/home/user/project", "/home/user/./project/"),
    ),
    Legal(
        "thread.cwd-captured",
        "home-that-is-a-link",
        lambda: shown_in("/home/user/project", "/home/user/project", "/data/users/project"),
        hints=hint("thread.cwd-captured"),
    ),
    Legal(
        "thread.cwd-captured",
        "path-as-it-was-asked-for",
        lambda: shown_in("/srv/current", "/srv/releases/42", "/srv/current"),
        hints=frozenset({"thread.cwd-captured", "thread.settings-echo"}),
    ),
    Legal(
        "thread.cwd-used",
        "command-tells-the-folder-behind-a-link",
        lambda: listing_in("/data/users/project"),
        hints=hint("thread.cwd-used"),
    ),
    Legal(
        "thread.cwd-used",
        "command-tells-a-slash-more",
        lambda: listing_in("/home/user/project/"),
    ),
    Legal(
        "thread.cwd-used",
        "command-in-the-folder-of-an-earlier-turn-without-a-call",
        lambda: listing_in("/srv/w/other", talk=uncalled(opened(), 2, cwd="/srv/w/other")),
    ),
    Legal(
        "model.named",
        "model-of-an-earlier-turn-without-a-call",
        lambda: calling(
            uncalled(calling(opened(), 1, "one", model="one"), 2, model="two"), 3, "two"
        ),
    ),
    Legal(
        "turn.cwd-applies",
        "command-tells-the-folder-behind-a-link",
        lambda: listing_in("/mnt/1/other", cwd="/srv/w/other"),
        hints=hint("turn.cwd-applies"),
    ),
    Legal(
        "turn.cwd-applies",
        "temporary-folder-under-its-real-name",
        lambda: listing_in("/private/var/w", cwd="/var/w/"),
    ),
    Legal(
        "thread.timestamps-seconds",
        "no-clock",
        lambda: made_at(createdAt=0, updatedAt=0),
        hints=hint("thread.timestamps-seconds"),
    ),
    Legal(
        "thread.timestamps-seconds",
        "clock-that-began-when-the-machine-did",
        lambda: made_at(createdAt=86_400.5, updatedAt=86_401),
        hints=hint("thread.timestamps-seconds"),
    ),
    Legal(
        "thread.updated-not-before-created",
        "one-of-the-two-has-a-fraction",
        lambda: made_at(createdAt=CREATED + 0.7, updatedAt=CREATED),
    ),
    Legal(
        "thread.updated-not-before-created",
        "both-in-one-second",
        lambda: made_at(createdAt=CREATED + 0.9, updatedAt=CREATED + 0.2),
    ),
    Legal(
        "thread.started-announced",
        "again-when-it-is-taken-out-of-the-archive",
        reannounced,
    ),
    Legal(
        "thread.started-announced",
        "again-when-it-is-resumed",
        lambda: (
            opened()
            .asks("thread/resume", threadId=THREAD)
            .answers({"thread": thread_object(turns=[]), **settings()})
            .tells("thread/started", thread=thread_object())
        ),
        frozenset({"resume.not-announced"}),
    ),
    Legal(
        "turn.streamed",
        "question-that-the-text-does-not-have-before-turn-started",
        lambda: asks_before_the_turn_is_told("item/tool/call"),
    ),
    Legal(
        "turn.streamed",
        "elicitation-before-turn-started",
        lambda: asks_before_the_turn_is_told("mcpServer/elicitation/request"),
    ),
]

ILLEGAL: list[Illegal] = [
    Illegal(
        "turn-error.info-spelling",
        "listed-word-in-camel-case",
        lambda: failed_with("httpConnectionFailed"),
    ),
    Illegal(
        "turn-error.info-spelling",
        "listed-word-with-underscores",
        lambda: failed_with("CONTEXT_WINDOW_EXCEEDED"),
    ),
    Illegal(
        "model.named",
        "override-is-ignored",
        lambda: calling(opened(), 1, "mock-model", model="other"),
    ),
    Illegal(
        "model.named",
        "override-is-forgotten-in-the-next-turn",
        lambda: calling(calling(opened(), 1, "other", model="other"), 2, "mock-model"),
    ),
    Illegal(
        "model.named",
        "second-override-leads-to-the-first",
        lambda: calling(calling(opened(), 1, "one", model="one"), 2, "one", model="two"),
    ),
    Illegal(
        "model.schema-this-turn",
        "schema-kept-in-each-call",
        lambda: calling(
            calling(opened(), 1, "mock-model", schemas=(True,), outputSchema=SCHEMA),
            2,
            "mock-model",
            schemas=(True, True),
        ),
    ),
    Illegal(
        "model.schema-this-turn",
        "schema-kept-in-the-only-call",
        lambda: calling(
            calling(opened(), 1, "mock-model", schemas=(True,), outputSchema=SCHEMA),
            2,
            "mock-model",
            schemas=(True,),
        ),
    ),
    Illegal(
        "thread.cwd-captured",
        "another-folder",
        lambda: shown_in("/srv/w/a", "/srv/w/a", "/srv/w/b"),
    ),
    Illegal(
        "thread.cwd-captured",
        "another-folder-before-the-reply",
        lambda: (
            Talk()
            .asks("thread/start", cwd=CWD)
            .tells("thread/started", thread=thread_object(cwd="/"))
            .answers({"thread": thread_object(), **settings()})
        ),
    ),
    Illegal(
        "thread.cwd-captured",
        "folder-above",
        lambda: shown_in("/srv/w/a", "/srv/w/a", "/srv/w"),
    ),
    Illegal(
        "thread.cwd-used",
        "command-in-another-folder",
        lambda: listing_in("/"),
    ),
    Illegal(
        "thread.cwd-used",
        "command-in-a-folder-below",
        lambda: listing_in(f"{CWD}/sub"),
    ),
    Illegal(
        "turn.cwd-applies",
        "command-where-the-thread-is",
        lambda: listing_in(CWD, cwd="/srv/w/other"),
    ),
    Illegal(
        "turn.cwd-applies",
        "command-in-a-folder-whose-name-begins-alike",
        lambda: listing_in("/srv/w/others", cwd="/srv/w/other"),
    ),
    Illegal(
        "thread.timestamps-seconds",
        "minutes",
        lambda: made_at(createdAt=28_333_333, updatedAt=28_333_333.5),
    ),
    Illegal(
        "thread.timestamps-seconds",
        "minutes-in-one-of-the-two",
        lambda: made_at(updatedAt=29_900_000),
    ),
    Illegal(
        "thread.timestamps-seconds",
        "zero",
        lambda: made_at(createdAt=0),
        level=SHOULD,
    ),
    Illegal(
        "thread.timestamps-seconds",
        "days",
        lambda: made_at(createdAt=20_400, updatedAt=20_400),
        level=SHOULD,
    ),
]
