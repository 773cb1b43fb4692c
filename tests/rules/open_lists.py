"""Other choices at open points of skills, lists, rollback and compaction."""

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


def _sessions(*asked: tuple[str, Any], **params: Any) -> Talk:
    """Requests about the thread with their answers; an answer that is a text refuses."""
    talk = Talk().start_thread().plain_turn()
    for method, answer in asked:
        talk.asks(method, threadId=THREAD, **params)
        talk.refuses(answer) if isinstance(answer, str) else talk.answers(answer)
    return talk


def _listed(*threads: dict[str, Any], cursor: str | None = None, **params: Any) -> Talk:
    talk = Talk().start_thread().plain_turn().start_thread(OTHER).plain_turn("turn_2", OTHER)
    return talk.asks("thread/list", **params).answers({"data": list(threads), "nextCursor": cursor})


def _row(thread: str = THREAD, **more: Any) -> dict[str, Any]:
    return thread_object(thread, preview="hello", status={"type": "notLoaded"}, **more)


def _list_refused(**params: Any) -> Talk:
    return Talk().start_thread().asks("thread/list", **params).refuses("not so")


def _ephemeral(*, listed: bool) -> Talk:
    shown = thread_object(ephemeral=True, path=None)
    talk = Talk().asks("thread/start", cwd=HERE, ephemeral=True)
    talk.answers({"thread": shown, **settings()}).tells("thread/started", thread=shown)
    talk.plain_turn().asks("thread/list")
    row = {**shown, "preview": "hello"}
    return talk.answers({"data": [row] if listed else [], "nextCursor": None})


def _skills(entry: dict[str, Any], **params: Any) -> Talk:
    return Talk().start_thread().asks("skills/list", **params).answers({"data": [entry]})


def _skill(**more: Any) -> dict[str, Any]:
    return {"name": "tidy", "description": "Tidies up", "enabled": True, **more}


def _entry(*skills: dict[str, Any], errors: list[Any] | None = None, cwd: str = HERE) -> Any:
    return {"cwd": cwd, "skills": list(skills), "errors": errors or []}


def _rolled_back(turns: list[Any] | str, count: int = 1) -> Talk:
    talk = (
        Talk().start_thread().plain_turn().asks("thread/rollback", threadId=THREAD, numTurns=count)
    )
    if isinstance(turns, str):
        return talk.refuses(turns)
    return talk.answers({"thread": thread_object(preview="hello", turns=turns)})


def _compacted_in_a_turn() -> Talk:
    """A compaction is taken while a turn is active, and waits for its end."""
    talk = Talk().start_thread().start_turn().asks("thread/compact/start", threadId=THREAD)
    talk.answers({}).message("m", "a").end_turn()
    talk.status("active").turn_started("turn_2")
    return talk.item({"type": "contextCompaction", "id": "c"}, "turn_2").end_turn("turn_2")


def _compaction_without_a_turn() -> Talk:
    """The item comes under an id that no turn/started has named."""
    talk = Talk().start_thread().plain_turn().asks("thread/compact/start", threadId=THREAD)
    return talk.answers({}).item({"type": "contextCompaction", "id": "c"}, "compact_1")


def _compaction_told_otherwise() -> Talk:
    talk = Talk().start_thread().plain_turn().asks("thread/compact/start", threadId=THREAD)
    talk.answers({}).tells("thread/compaction/progress", threadId=THREAD, done=0.5)
    talk.status("active").turn_started("turn_2")
    talk.item({"type": "contextCompaction", "id": "c"}, "turn_2")
    talk.tells("thread/compaction/done", threadId=THREAD)
    return talk.end_turn("turn_2")


OTHERWISE = [
    Otherwise(
        "skills-list.disabled-listed",
        "leaves a disabled skill out",
        lambda: (
            Talk()
            .start_thread()
            .asks("skills/config/write", path=f"{HERE}/.agent/skills/tidy/SKILL.md", enabled=False)
            .answers({})
            .asks("skills/list", cwds=[HERE])
            .answers({"data": [_entry()]})
        ),
    ),
    Otherwise("skill.interface-optional", "leaves it out", lambda: _skills(_entry(_skill()))),
    Otherwise(
        "skill.interface-optional",
        "has null, and null members",
        lambda: _skills(
            _entry(
                _skill(interface=None),
                _skill(name="b", interface={"displayName": None, "brandColor": "#102030"}),
            )
        ),
    ),
    Otherwise(
        "skill-error.fields",
        "has members of its own",
        lambda: _skills(_entry(errors=[{"where": 3, "why": ["unreadable"]}])),
    ),
    Otherwise(
        "skills-list.same-name",
        "lists one of the two",
        lambda: _skills(_entry(_skill(description="the built-in one"))),
    ),
    Otherwise(
        "skill.front-matter",
        "takes the heading for the name",
        lambda: _skills(_entry(_skill(name="Tidy up"))),
    ),
    Otherwise(
        "skill.missing-sections",
        "reports it as an error",
        lambda: _skills(_entry(errors=[{"message": "no Examples section"}])),
    ),
    Otherwise(
        "skill.config-keys",
        "finds none of the keys",
        lambda: _skills(_entry(_skill(interface={}))),
    ),
    Otherwise(
        "skills-list.session-cwd",
        "scans the home of the user",
        lambda: Talk().asks("skills/list").answers({"data": [_entry(cwd="/home/user")]}),
    ),
    Otherwise(
        "skills-list.session-cwd",
        "has no entry at all",
        lambda: Talk().asks("skills/list").answers({"data": []}),
    ),
    Otherwise(
        "skills-list.cache-life",
        "scans each time",
        lambda: (
            Talk()
            .start_thread()
            .asks("skills/list", cwds=[HERE])
            .answers({"data": [_entry()]})
            .asks("skills/list", cwds=[HERE])
            .answers({"data": [_entry(_skill())]})
        ),
    ),
    Otherwise(
        "skills-config-write.unknown",
        "takes it",
        lambda: (
            Talk()
            .start_thread()
            .asks("skills/config/write", path="/nowhere/SKILL.md", enabled=True)
            .answers({})
        ),
    ),
    Otherwise(
        "skills-remote.shapes",
        "answers them in a shape of its own",
        lambda: (
            Talk()
            .start_thread()
            .asks("skills/remote/list", page=2)
            .answers({"skills": [3], "next": False})
            .asks("skills/remote/export", hazelnutId="x")
            .answers({"saved": True})
        ),
    ),
    Otherwise("thread-list.ephemeral", "lists them", lambda: _ephemeral(listed=True)),
    Otherwise(
        "thread-list.cursor-life",
        "takes an unknown cursor for none",
        lambda: _listed(_row(), _row(OTHER), cursor=None, limit=5),
    ),
    Otherwise(
        "thread-list.cursor-life",
        "refuses a cursor with other filters",
        lambda: _list_refused(cursor="c-1", archived=True),
    ),
    Otherwise(
        "thread-list.limit-range",
        "refuses a large one",
        lambda: _list_refused(limit=100_000),
    ),
    Otherwise(
        "thread-list.limit-range",
        "gives one for nought",
        lambda: _listed(_row(), cursor="next", limit=0),
    ),
    Otherwise(
        "thread-list.direction",
        "lists the oldest first",
        lambda: _listed(_row(createdAt=1_700_000_000), _row(OTHER, createdAt=1_700_000_001)),
    ),
    Otherwise(
        "thread-list.source-words",
        "knows none of ours",
        lambda: _listed(sourceKinds=["cli", "vscode"]),
    ),
    Otherwise(
        "thread-list.source-words",
        "has nothing for an empty list",
        lambda: _listed(sourceKinds=[]),
    ),
    Otherwise(
        "thread-list.title",
        "does not look at the preview",
        lambda: _listed(searchTerm="hello"),
    ),
    Otherwise(
        "thread-name.empty",
        "refuses an empty name",
        lambda: _sessions(("thread/name/set", "a name cannot be empty"), name=""),
    ),
    Otherwise(
        "thread-loaded-list.paging",
        "gives all at once whatever the limit",
        lambda: (
            Talk()
            .start_thread()
            .start_thread(OTHER)
            .asks("thread/loaded/list", limit=1)
            .answers({"data": [THREAD, OTHER], "nextCursor": None})
        ),
    ),
    Otherwise("thread-rollback.too-many", "refuses more", lambda: _rolled_back("too many", 9)),
    Otherwise(
        "thread-rollback.too-many",
        "takes none",
        lambda: _rolled_back([stored_plain_turn()], 0),
    ),
    Otherwise(
        "thread-rollback.active",
        "drops the turn that runs",
        lambda: (
            Talk()
            .start_thread()
            .plain_turn()
            .start_turn("turn_2", text="again")
            .asks("thread/rollback", threadId=THREAD, numTurns=1)
            .answers({"thread": thread_object(preview="hello", turns=[stored_plain_turn()])})
            .end_turn("turn_2", status="interrupted")
        ),
    ),
    Otherwise(
        "thread-rollback.items",
        "returns turns without items",
        lambda: (
            Talk()
            .start_thread()
            .plain_turn()
            .plain_turn("turn_2")
            .asks("thread/rollback", threadId=THREAD, numTurns=1)
            .answers(
                {"thread": thread_object(preview="hello", turns=[turn_object(TURN, "completed")])}
            )
        ),
    ),
    Otherwise(
        "thread-compact.active",
        "takes it while a turn is active",
        _compacted_in_a_turn,
    ),
    Otherwise("thread-compact.turn", "has an item without a turn", _compaction_without_a_turn),
    Otherwise(
        "thread-compact.history",
        "sends the summary alone",
        lambda: (
            Talk()
            .start_thread()
            .plain_turn()
            .asks("thread/compact/start", threadId=THREAD)
            .answers({})
            .status("active")
            .turn_started("turn_2")
            .item({"type": "contextCompaction", "id": "c"}, "turn_2")
            .end_turn("turn_2")
            .ask_turn(text="and now")
            .reply_turn("turn_3")
            .status("active")
            .turn_started("turn_3")
            .calls("a summary", "and now", call=3)
            .ends(3)
            .item(user_message("u3", "and now"), "turn_3")
            .message("m3", "well", turn="turn_3")
            .end_turn("turn_3")
        ),
    ),
    Otherwise("event.compaction-names", "tells by names of its own", _compaction_told_otherwise),
    Otherwise(
        "thread-operations.params",
        "wants other names for them",
        lambda: _sessions(("thread/name/set", "title is missing"), name="x"),
    ),
]

UNTRIED = [
    Untried(
        "thread-rollback.files",
        Why.NOT_ON_THE_WIRE,
        "files that were changed are on the disk, which no rule looks at",
    ),
]
