"""Good conversations about skills.

A part of good_traces, which writes them.
"""

from collections.abc import Callable

from harness.trace.trace import Trace
from tests.rules.skill_talk import (
    FACE,
    HERE,
    ROOT,
    THERE,
    configures,
    entry,
    invokes,
    lists,
    mention,
    path_of,
    placed,
    puts,
    puts_of_user,
    removes,
    restarts,
    skill,
    skill_item,
    skill_text,
    with_companions,
    writes,
)


def listed_skills() -> Trace:
    """Skills of two projects are listed, one is disabled and enabled again."""
    talk = puts(placed("skills"), "tidy", "wash").start_thread().plain_turn()
    lists(talk, entry("tidy", "wash"), entry(cwd=THERE))
    off = entry(skill("tidy", enabled=False), "wash")
    lists(configures(talk, path_of("tidy"), enabled=False), off)
    lists(configures(talk, path_of("tidy"), enabled=True), entry("tidy", "wash"))
    return talk.asks("skills/list").answers({"data": [entry("tidy", "wash")]}).trace()


def skills_after_restart() -> Trace:
    """A skill is disabled, and still is when the server was started again."""
    talk = puts(placed("skills-after-restart"), "tidy").start_thread().plain_turn()
    off = entry(skill("tidy", enabled=False))
    lists(configures(lists(talk, entry("tidy")), path_of("tidy"), enabled=False), off)
    return lists(restarts(talk), off).trace()


def skill_errors() -> Trace:
    """A file without a name is told in the entry of its project, each time."""
    talk = writes(puts(placed("skill-errors"), "tidy"), path_of("knots"), "")
    talk.start_thread().plain_turn()
    errors = [{"path": path_of("knots"), "message": "there is no name"}]
    lists(talk, entry("tidy", errors=errors), entry(cwd=THERE))
    return lists(talk, entry("tidy", errors=errors), forceReload=False).trace()


def skill_companions() -> Trace:
    """A skill has two icons and a colour."""
    talk = with_companions(puts(placed("skill-companions"), "tidy", "wash"))
    return lists(
        talk.start_thread().plain_turn(), entry(skill("tidy", interface=FACE), "wash")
    ).trace()


def skill_scopes() -> Trace:
    """A skill of a project, one of the user and one in an extra root, listed for two projects."""
    talk = puts_of_user(puts(placed("skill-scopes"), "tidy").start_thread().plain_turn(), "wash")
    writes(talk, path_of("iron", ROOT), skill_text("iron"))
    lists(talk, entry("tidy", "wash"), entry("wash", cwd=THERE))
    roots = [{"cwd": HERE, "extraUserRoots": [ROOT]}]
    here, there = entry("iron", "tidy", "wash"), entry("wash", cwd=THERE)
    lists(talk, here, there, perCwdExtraUserRoots=roots)
    return lists(talk, entry("wash", cwd=THERE), perCwdExtraUserRoots=roots).trace()


def skill_reload() -> Trace:
    """Skills are written, changed and removed between listings, one of which is older."""
    talk = lists(placed("skill-reload").start_thread().plain_turn(), entry())
    lists(puts(talk, "tidy", "wash"), entry("tidy", "wash"))
    puts(talk, "tidy", description="Tidies as never before")
    lists(talk, entry("tidy", "wash"), forceReload=False)
    anew = skill("tidy", description="Tidies as never before")
    lists(talk, entry(anew, "wash"))
    return lists(removes(talk, path_of("wash")), entry(anew)).trace()


def skill_invoked() -> Trace:
    """A skill is invoked by an item, one by its name alone, an app is mentioned."""
    talk = lists(
        puts(placed("skill-invoked"), "tidy", "wash").start_thread(), entry("tidy", "wash")
    )
    told = ("To do tidy, do it slowly.",)
    invokes(talk, "$tidy the shed", skill_item("tidy"), held=told)
    invokes(talk, "$wash it", held=("description: Does wash well",), number=2)
    return invokes(talk, "ask $mail", mention("mail"), number=3).trace()


SKILLS: dict[str, Callable[[], Trace]] = {
    "skills": listed_skills,
    "skill-scopes": skill_scopes,
    "skill-reload": skill_reload,
    "skill-invoked": skill_invoked,
    "skills-after-restart": skills_after_restart,
    "skill-errors": skill_errors,
    "skill-companions": skill_companions,
}
