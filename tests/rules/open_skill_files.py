"""Other choices at open points of skills whose files are known."""

from tests.rules.open_point import Otherwise
from tests.rules.skill_talk import (
    HERE,
    ROOT,
    configures,
    entry,
    invokes,
    known,
    lists,
    path_of,
    placed,
    puts,
    skill,
    skill_item,
    skill_text,
    writes,
)
from tests.rules.traces import Talk

OFF = skill("tidy", enabled=False)


def _broken_beside() -> Talk:
    """A skill with a config.toml that is none is an error."""
    talk = writes(puts(placed(), "tidy"), f"{HERE}/.agent/skills/tidy/config.toml", "no = no")
    return lists(talk, entry(errors=["tidy: config.toml is broken"]))


def _refused(*items: dict[str, str], said: str) -> Talk:
    given = [{"type": "text", "text": said}, *items]
    return known().asks("turn/start", threadId="thr_1", input=given).refuses("no such skill")


def _of_an_extra_root() -> Talk:
    """A skill of an extra root is told to the model by its name in a later turn."""
    talk = writes(placed().start_thread(), path_of("iron", ROOT), skill_text("iron"))
    roots = [{"cwd": HERE, "extraUserRoots": [ROOT]}]
    lists(talk, entry("iron"), perCwdExtraUserRoots=roots)
    return invokes(talk, "$iron this", held=("To do iron, do it slowly.",))


def _disabled(held: tuple[str, ...]) -> Talk:
    talk = configures(known(), path_of("tidy"), enabled=False)
    return invokes(lists(talk, entry(OFF, "wash")), "$tidy", skill_item("tidy"), held=held)


OTHERWISE: list[Otherwise] = [
    Otherwise(
        "skills-list.nested",
        "lists what lies in the folder of the project alone, and nothing below",
        lambda: lists(
            writes(placed(), path_of("group/tidy"), skill_text("tidy")),
            entry(),
        ),
    ),
    Otherwise("skill.broken-companion", "does not list such a skill", _broken_beside),
    Otherwise(
        "skills-list.same-cwd",
        "gives one entry for what is asked twice, and an error for what is not there",
        lambda: lists(
            placed(), entry(), entry(cwd="/none", errors=["no folder"]), cwds=[HERE, HERE, "/none"]
        ),
    ),
    Otherwise("skills-list.extra-roots-life", "goes on knowing them", _of_an_extra_root),
    Otherwise(
        "turn-start.skill-disabled",
        "tells the model of it all the same",
        lambda: _disabled((path_of("tidy"),)),
    ),
    Otherwise("turn-start.skill-disabled", "says nothing of it", lambda: _disabled(())),
    Otherwise(
        "turn-start.skill-item-wrong",
        "refuses the turn",
        lambda: _refused({"type": "skill", "name": "x", "path": "/x/SKILL.md"}, said="$x"),
    ),
    Otherwise(
        "turn-start.skill-outside",
        "refuses the turn",
        lambda: _refused(
            {"type": "skill", "name": "iron", "path": path_of("iron", ROOT)}, said="$iron"
        ),
    ),
]
