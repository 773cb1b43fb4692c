"""Other choices at open points of skills: folders, listing, skills as input."""

from typing import Any

from tests.rules.open_point import Otherwise, Untried, Why
from tests.rules.traces import THREAD, Talk

HERE = "/home/user/project"
FILE = f"{HERE}/.agent/skills/tidy/SKILL.md"
ROOTS = [{"cwd": HERE, "extraUserRoots": ["/more"]}]


def _skill(name: str = "tidy") -> dict[str, Any]:
    return {"name": name, "description": "Tidies up", "enabled": True}


def _entry(*skills: dict[str, Any], errors: list[Any] | None = None, cwd: str = HERE) -> Any:
    return {"cwd": cwd, "skills": list(skills), "errors": errors or []}


def _listed(*entries: Any, **params: Any) -> Talk:
    given = {"cwds": [HERE], **params}
    return Talk().start_thread().asks("skills/list", **given).answers({"data": list(entries)})


def _with_relative_root(*entries: Any) -> Talk:
    roots = [{"cwd": HERE, "extraUserRoots": ["more"]}]
    talk = Talk().start_thread()
    talk.asks_wrongly("skills/list", cwds=[HERE], perCwdExtraUserRoots=roots)
    return talk.answers({"data": list(entries)})


def _said(*more: dict[str, Any]) -> Talk:
    content = [{"type": "text", "text": "$tidy up"}, *more]
    talk = Talk().start_thread()
    absolute = all(one["path"].startswith("/") for one in more)
    asks = talk.asks if absolute else talk.asks_wrongly
    return asks("turn/start", threadId=THREAD, input=content)


def _taken(*more: dict[str, Any]) -> Talk:
    content = [{"type": "text", "text": "$tidy up"}, *more]
    talk = _said(*more).reply_turn().status("active").turn_started()
    talk.item({"type": "userMessage", "id": "u", "content": content})
    return talk.message("m", "a").end_turn()


def _item(path: str = FILE) -> dict[str, Any]:
    return {"type": "skill", "name": "tidy", "path": path}


def _disabled(talk_of_turn: bool) -> Talk:
    talk = Talk().start_thread()
    talk.asks("skills/config/write", path=FILE, enabled=False).answers({})
    content = [{"type": "text", "text": "$tidy up"}, _item()]
    talk.asks("turn/start", threadId=THREAD, input=content)
    if not talk_of_turn:
        return talk.refuses("tidy is disabled")
    talk.reply_turn().status("active").turn_started()
    talk.item({"type": "userMessage", "id": "u", "content": content})
    return talk.message("m", "a").end_turn()


OTHERWISE = [
    Otherwise(
        "skills-list.nested",
        "lists what lies five folders deep, and a skill within a skill",
        lambda: _listed(_entry(_skill("a/b/c/d/tidy"), _skill("tidy/inner"))),
    ),
    Otherwise(
        "skill.broken-companion",
        "leaves the skill out",
        lambda: _listed(_entry(errors=[{"path": f"{FILE}/../icon.svg", "message": "no image"}])),
    ),
    Otherwise(
        "skill.broken-companion",
        "tells nothing of it",
        lambda: _listed(_entry({**_skill(), "interface": {"displayName": "Tidy"}})),
    ),
    Otherwise(
        "skills-list.same-cwd",
        "has one entry for a folder that is asked for twice",
        lambda: _listed(_entry(), cwds=[HERE, HERE]),
    ),
    Otherwise(
        "skills-list.same-cwd",
        "shows a relative folder as an absolute one",
        lambda: _listed(_entry(cwd="/home/user/project/sub"), cwds=["sub"]),
    ),
    Otherwise(
        "skills-list.same-cwd",
        "refuses a relative folder",
        lambda: Talk().start_thread().asks("skills/list", cwds=["sub"]).refuses("sub: relative"),
    ),
    Otherwise(
        "skills-list.same-cwd",
        "has an error for a folder that does not exist",
        lambda: _listed(
            _entry(errors=[{"path": "/nowhere", "message": "no folder"}], cwd="/nowhere"),
            cwds=["/nowhere"],
        ),
    ),
    Otherwise(
        "skills-list.extra-roots-life",
        "finds the skills of an extra root in later turns too",
        lambda: (
            _listed(_entry(_skill()), perCwdExtraUserRoots=ROOTS)
            .start_turn(text="$tidy up")
            .message("m", "a")
            .end_turn()
        ),
    ),
    Otherwise(
        "skills-list.relative-root",
        "looks for it in the working directory",
        lambda: _with_relative_root(_entry(_skill())),
    ),
    Otherwise(
        "skills-remote.already-there",
        "puts the new one in its place",
        lambda: (
            Talk()
            .start_thread()
            .asks("skills/remote/export", hazelnutId="tidy")
            .answers({"id": "tidy", "path": FILE})
            .asks("skills/remote/export", hazelnutId="tidy")
            .answers({"id": "tidy", "path": FILE})
        ),
    ),
    Otherwise("turn-start.skill-disabled", "refuses the turn", lambda: _disabled(False)),
    Otherwise("turn-start.skill-disabled", "uses it all the same", lambda: _disabled(True)),
    Otherwise(
        "turn-start.skill-item-wrong",
        "refuses it",
        lambda: _said(_item("/nowhere/SKILL.md")).refuses("/nowhere/SKILL.md: no such file"),
    ),
    Otherwise(
        "turn-start.skill-item-wrong",
        "takes a path that is not absolute",
        lambda: _taken(_item("tidy/SKILL.md")),
    ),
    Otherwise(
        "turn-start.skill-outside",
        "refuses it",
        lambda: _said(_item("/elsewhere/SKILL.md")).refuses("/elsewhere: no folder of skills"),
    ),
]

UNTRIED = [
    Untried(
        "skills-config-write.where",
        Why.NOT_ON_THE_WIRE,
        "clients see that a skill is disabled, and not in which file it is kept",
    ),
    Untried(
        "turn-start.skill-text",
        Why.NOTHING_LEFT,
        "the rules on invocation take the words of a skill or the path of its file, wherever in "
        "the model call they stand, and are no more than SHOULD",
    ),
]
