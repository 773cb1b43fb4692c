"""Builder of conversations about skills: files on disk, and listings."""

import json
from typing import Any

from harness.trace.marks import Closed, FileWritten, Place, ServerEnded, StepBegins
from tests.rules.traces import Talk

HOME = "/home/user/.agent"
HERE = "/home/user/project"
THERE = "/home/user/other"
AGENT = ".agent"
ROOT = "/srv/skills"
CONFIG = 'display_name = "Tidy up"\nbrand_color = "#0aA0ff"\ndefault_prompt = "Tidy, please"\n'
FACE = {
    "displayName": "Tidy up",
    "iconSmall": "icon.svg",
    "iconLarge": "icon-large.svg",
    "brandColor": "#0AA0FF",
}


def skill_text(name: str, description: str = "", *, marker: str = "") -> str:
    """Return the text of a SKILL.md with front matter, heading and every section."""
    said = description or f"Does {name} well"
    told = marker or f"To do {name}, do it slowly."
    return (
        f"---\nname: {name}\ndescription: {said}\n---\n\n# {name}\n\n{said}\n\n"
        f"## Instructions\n\n{told}\n\n## Examples\n\nLike this.\n\n## Dependencies\n\nNone.\n"
    )


def placed(scenario: str = "") -> Talk:
    """Return a talk with known folders that contain no skills."""
    return Talk(scenario).mark(Place(home=HOME, cwd=HERE, server_cwd="/srv", agent=AGENT))


def path_of(folder: str, root: str = f"{HERE}/{AGENT}/skills") -> str:
    """Return the path of a skill's file."""
    return f"{root}/{folder}/SKILL.md"


def writes(talk: Talk, path: str, text: str | None) -> Talk:
    """Add the writing of a file; `text` is None if its content is not text."""
    return talk.mark(FileWritten(path=path, text=text))


def puts(talk: Talk, *names: str, cwd: str = HERE, **more: str) -> Talk:
    """Add skills in the folder of a project."""
    for name in names:
        writes(talk, path_of(name, f"{cwd}/{AGENT}/skills"), skill_text(name, **more))
    return talk


def removes(talk: Talk, path: str) -> Talk:
    """Add the removal of a file."""
    return talk.mark(FileWritten(path=path, exists=False))


def puts_of_user(talk: Talk, *names: str) -> Talk:
    """Add skills of the user, in both folders that the specification may mean."""
    for name in names:
        for root in (f"{HOME}/skills", f"{HOME}/.agent/skills"):
            writes(talk, path_of(name, root), skill_text(name))
    return talk


def skill(name: str, **more: Any) -> dict[str, Any]:
    """Return a skill as a server lists it."""
    return {"name": name, "description": f"Does {name} well", "enabled": True, **more}


def entry(
    *skills: str | dict[str, Any], cwd: str = HERE, errors: list[Any] | None = None
) -> dict[str, Any]:
    """The entry of a working directory; a text stands for a skill, or an error, with it."""
    shown = [skill(one) if isinstance(one, str) else one for one in skills]
    told = [{"message": one} if isinstance(one, str) else one for one in errors or []]
    return {"cwd": cwd, "skills": shown, "errors": told}


def asks_list(talk: Talk, *cwds: str, **params: Any) -> Talk:
    """Add skills/list with forceReload, without its result."""
    return talk.asks("skills/list", cwds=list(cwds), **{"forceReload": True, **params})


def lists(talk: Talk, *entries: dict[str, Any], **params: Any) -> Talk:
    """Add skills/list with forceReload for the directories of these entries, and its result."""
    cwds = params.pop("cwds", [one["cwd"] for one in entries])
    return asks_list(talk, *cwds, **params).answers({"data": json.loads(json.dumps(entries))})


def configures(talk: Talk, path: str, *, enabled: bool) -> Talk:
    """Add skills/config/write and its result."""
    return talk.asks("skills/config/write", path=path, enabled=enabled).answers({})


def invokes(
    talk: Talk, said: str, *items: dict[str, str], held: tuple[str, ...] = (), number: int = 1
) -> Talk:
    """Add a turn with a text and further input, one model call, and its end: eight messages."""
    given = [{"type": "text", "text": said}, *items]
    turn, shown = f"turn_{number}", {"type": "userMessage", "id": f"u-{number}", "content": given}
    talk.asks("turn/start", threadId="thr_1", input=given).reply_turn(turn)
    talk.status("active").turn_started(turn).item(shown, turn)
    return talk.calls(said, call=number, held=held).end_turn(turn)


def skill_item(name: str) -> dict[str, str]:
    """Return the input item of a skill."""
    return {"type": "skill", "name": name, "path": path_of(name)}


def mention(slug: str) -> dict[str, str]:
    """Return the input item of an app."""
    return {"type": "mention", "name": slug, "path": f"app://{slug}-1"}


def known() -> Talk:
    """Return a talk with a thread in a project with two listed skills: messages 0 to 4."""
    return lists(puts(placed(), "tidy", "wash").start_thread(), entry("tidy", "wash"))


def with_companions(talk: Talk) -> Talk:
    """Add companion files of the skill tidy."""
    folder = path_of("tidy").removesuffix("/SKILL.md")
    for name, text in (
        ("icon.svg", "<svg/>"),
        ("icon-large.svg", "<svg/>"),
        ("config.toml", CONFIG),
    ):
        writes(talk, f"{folder}/{name}", text)
    return talk


def restarts(talk: Talk) -> Talk:
    """Add a restart of the server, with a new connection."""
    talk.mark(StepBegins("restart", 9)).mark(ServerEnded(killed=False)).mark(Closed("c1"))
    return talk.on("c2")
