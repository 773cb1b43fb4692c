"""Cases of the rules on skills: listing and configuration."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, silent
from tests.rules.skill_talk import (
    FACE,
    HERE,
    HOME,
    ROOT,
    THERE,
    asks_list,
    configures,
    entry,
    invokes,
    known,
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
from tests.rules.traces import Talk

LISTED = "request skills/list id 1"
LISTED_AGAIN = "request skills/list id 2"
WRITTEN = "request skills/config/write id 1"


def of(name: str, cwd: str = HERE, number: int = 1) -> str:
    """Return the name of a skill in an entry, as findings write it."""
    return f"request skills/list id {number}, skill {name} in {cwd}"


def again(name: str) -> str:
    """The same, of the second listing."""
    return of(name, number=2)


def with_root(*entries: dict[str, Any], project: str = "") -> Talk:
    """A listing with an extra root for the first project, and perhaps a skill of that."""
    talk = writes(placed(), path_of("iron", ROOT), skill_text("iron"))
    roots = [{"cwd": HERE, "extraUserRoots": [ROOT]}]
    return lists(puts(talk, *filter(None, [project])), *entries, perCwdExtraUserRoots=roots)


def listed_with_error() -> Talk:
    """A skill that cannot be loaded, with its error in a first listing."""
    return lists(with_broken(), entry(errors=["knots?"]))


def reloaded(shown: dict[str, Any]) -> Talk:
    """One skill was removed since the first listing, one was written, one has other words."""
    talk = lists(puts(placed(), "iron", "tidy"), entry("iron", "tidy"))
    puts(removes(talk, path_of("iron")), "wash")
    return lists(puts(talk, "tidy", description="Tidies as never before"), shown)


def asks_turn(said: str, *items: dict[str, str]) -> Talk:
    """turn/start alone, in a project with known skills: seq 5."""
    given = [{"type": "text", "text": said}, *items]
    return known().asks("turn/start", threadId="thr_1", input=given)


def disabled_and_restarted() -> Talk:
    """A skill was disabled before the server was started again: messages 0 and 1."""
    return restarts(configures(puts(placed(), "tidy"), path_of("tidy"), enabled=False))


def one_disabled() -> Talk:
    """One of two listed skills is disabled: messages 0 to 3."""
    talk = lists(puts(placed(), "tidy", "wash"), entry("tidy", "wash"))
    return configures(talk, path_of("tidy"), enabled=False)


def with_broken() -> Talk:
    """A file without a name lies among the skills of a project."""
    return writes(placed(), path_of("knots"), "nothing but words")


CASES = [
    Case(
        rule="skills.entry-per-cwd",
        good=lists(placed(), entry("tidy"), entry(cwd=THERE)),
        witnesses=(LISTED,),
        bad=lists(placed(), entry("tidy"), entry(cwd=HERE), cwds=[HERE, THERE]),
        found=(Found(LISTED, (0, 1)), Found(LISTED, (0, 1))),
        not_exercised=asks_list(placed(), HERE).refuses(),
    ),
    Case(
        rule="skills.project-listed",
        good=lists(puts(placed(), "tidy", "wash"), entry("tidy", "wash"), entry(cwd=THERE)),
        witnesses=(of("tidy"), of("wash")),
        bad=lists(puts(placed(), "tidy", "wash"), entry("wash", "iron"), entry("tidy", cwd=THERE)),
        found=(Found(of("tidy"), (0, 1)),),
        # An answer may come from a cache, or the file may be no whole skill.
        not_exercised=lists(
            writes(
                lists(puts(placed(), "tidy"), entry(), forceReload=False), path_of("x"), "# other\n"
            ),
            entry(cwd=THERE),
        ),
    ),
    Case(
        rule="skills.user-listed",
        good=lists(puts_of_user(placed(), "wash"), entry("wash"), entry("wash", cwd=THERE)),
        witnesses=(of("wash"), of("wash", THERE)),
        bad=lists(puts_of_user(placed(), "wash", "iron"), entry("wash"), entry(cwd=THERE)),
        found=(
            Found(of("iron"), (0, 1)),
            Found(of("wash", THERE), (0, 1), Level.SHOULD),
            Found(of("iron", THERE), (0, 1)),
        ),
        not_exercised=lists(
            writes(placed(), path_of("wash", f"{HOME}/skills"), skill_text("wash")), entry()
        ),
    ),
    Case(
        rule="skills.extra-roots-scanned",
        good=with_root(entry("iron"), entry(cwd=THERE)),
        witnesses=(of("iron"),),
        bad=with_root(entry(), entry(cwd=THERE)),
        found=(Found(of("iron"), (0, 1)),),
        not_exercised=with_root(entry(cwd=THERE)),
    ),
    Case(
        rule="skills.own-directory",
        good=with_root(entry("iron", "tidy"), entry(cwd=THERE), project="tidy"),
        witnesses=(of("iron", THERE), of("tidy", THERE)),
        bad=with_root(entry("iron", "tidy"), entry("iron", "tidy", cwd=THERE), project="tidy"),
        found=(Found(of("tidy", THERE), (0, 1)), Found(of("iron", THERE), (0, 1))),
        not_exercised=with_root(
            entry("iron", "tidy"), entry("tidy", cwd=f"{HERE}/below"), project="tidy"
        ),
    ),
    Case(
        rule="skills.reload-rescans",
        good=reloaded(entry(skill("tidy", description="Tidies as never before"), "wash")),
        witnesses=(again("iron"), again("tidy"), again("wash")),
        bad=reloaded(entry("iron", "tidy")),
        found=(
            Found(again("wash"), (2, 3)),
            Found(again("tidy"), (2, 3)),
            Found(again("iron"), (2, 3)),
        ),
        not_exercised=lists(
            lists(puts(placed(), "tidy"), entry("tidy")), entry("tidy"), forceReload=False
        ),
    ),
    Case(
        rule="skills.config-reply-empty",
        good=configures(placed(), path_of("tidy"), enabled=False),
        witnesses=(WRITTEN,),
        bad=placed().asks("skills/config/write", path=path_of("x"), enabled=True).answers(None),
        found=(Found(WRITTEN, (0, 1)),),
        not_exercised=silent(),
    ),
    Case(
        rule="skills.invoked",
        good=invokes(known(), "$tidy up", skill_item("tidy"), held=(path_of("tidy"),)),
        witnesses=("turn turn_1, skill tidy",),
        bad=invokes(known(), "$tidy up", skill_item("tidy"), held=("description: Does tidy well",)),
        found=(Found("turn turn_1, skill tidy", (5, 12), Level.SHOULD),),
        # No name, no item, or nobody said that the server has the skill.
        not_exercised=invokes(invokes(known(), "do it", skill_item("tidy")), "$tidy up", number=2),
    ),
    Case(
        rule="skills.found-by-name",
        good=invokes(known(), "$tidy up", held=("Does tidy well",)),
        witnesses=("turn turn_1, skill tidy",),
        bad=invokes(known(), "$tidy up", held=("Does wash well", "Like this.")),
        found=(Found("turn turn_1, skill tidy", (5, 12), Level.INFO),),
        not_exercised=invokes(puts(placed(), "tidy").start_thread(), "$tidy up"),
    ),
    Case(
        rule="skills.invocation-taken",
        good=invokes(known(), "$tidy up", skill_item("tidy")),
        witnesses=("request turn/start id 3",),
        bad=asks_turn("$tidy up", skill_item("tidy")).refuses(),
        found=(Found("request turn/start id 3", (5, 6)),),
        not_exercised=asks_turn("$knots", skill_item("knots")).refuses(),
    ),
    Case(
        rule="turn.mention-taken",
        good=invokes(known(), "ask $mail", mention("mail")),
        witnesses=("request turn/start id 3",),
        bad=asks_turn("ask $mail", mention("mail")).refuses(),
        found=(Found("request turn/start id 3", (5, 6), Level.SHOULD),),
        not_exercised=asks_turn("ask somebody", mention("mail")).refuses(),
    ),
    Case(
        rule="skills.config-applies",
        good=lists(
            configures(puts(placed(), "tidy"), path_of("tidy"), enabled=False),
            entry(skill("tidy", enabled=False)),
        ),
        witnesses=(of("tidy", number=2),),
        bad=lists(
            configures(puts(placed(), "tidy"), path_of("tidy"), enabled=False), entry("tidy")
        ),
        found=(Found(of("tidy", number=2), (0, 2, 3)),),
        # It was refused, or it is not listed.
        not_exercised=lists(
            lists(
                puts(placed(), "tidy")
                .asks("skills/config/write", path=path_of("tidy"), enabled=False)
                .refuses(),
                entry("tidy"),
            ),
            entry(),
        ),
    ),
    Case(
        rule="skills.config-lasts",
        good=lists(disabled_and_restarted(), entry(skill("tidy", enabled=False))),
        witnesses=(of("tidy", number=2),),
        bad=lists(disabled_and_restarted(), entry("tidy")),
        found=(Found(of("tidy", number=2), (0, 2, 3), Level.SHOULD),),
        not_exercised=lists(disabled_and_restarted(), entry()),
    ),
    Case(
        rule="skills.config-one-skill",
        good=lists(one_disabled(), entry(skill("tidy", enabled=False), "wash")),
        witnesses=(of("wash", number=3),),
        bad=lists(one_disabled(), entry("tidy", skill("wash", enabled=False))),
        found=(Found(of("wash", number=3), (1, 2, 4, 5), Level.SHOULD),),
        not_exercised=lists(one_disabled(), entry("tidy", skill("wash", enabled=False), cwd=THERE)),
    ),
    Case(
        rule="skills.session-directory",
        good=placed().start_thread().asks("skills/list").answers({"data": [entry()]}),
        witnesses=("request skills/list id 2",),
        bad=placed().start_thread().asks("skills/list", cwds=[]).answers({"data": []}),
        found=(Found("request skills/list id 2", (3, 4)),),
        not_exercised=placed().asks("skills/list").answers({"data": []}),
    ),
    Case(
        rule="skills.listed-despite-errors",
        good=lists(with_broken(), entry(errors=[{"path": "x"}])),
        witnesses=(LISTED,),
        bad=asks_list(with_broken(), HERE).refuses(),
        found=(Found(LISTED, (0, 1)),),
        not_exercised=asks_list(with_broken(), THERE).refuses(),
    ),
    Case(
        rule="skills.error-told",
        good=lists(with_broken(), entry(errors=["knots?"])),
        witnesses=(f"{LISTED}, knots in {HERE}",),
        bad=lists(writes(with_broken(), path_of("void"), ""), entry()),
        found=(
            Found(f"{LISTED}, knots in {HERE}", (0, 1), Level.INFO),
            Found(f"{LISTED}, void in {HERE}", (0, 1), Level.SHOULD),
        ),
        # It is a skill all the same.
        not_exercised=lists(with_broken(), entry("knots")),
    ),
    Case(
        rule="skills.errors-told-again",
        good=lists(listed_with_error(), entry(errors=["void?"]), forceReload=False),
        witnesses=(f"{LISTED_AGAIN}, entry {HERE}",),
        bad=lists(listed_with_error(), entry(), forceReload=False),
        found=(Found(f"{LISTED_AGAIN}, entry {HERE}", (0, 1, 2, 3)),),
        # The file was mended meanwhile.
        not_exercised=lists(
            writes(listed_with_error(), path_of("knots"), skill_text("knots")), entry("knots")
        ),
    ),
    Case(
        rule="skills.errors-of-own-entry",
        good=lists(
            writes(with_broken(), f"{THERE}/notes.txt", ""),
            entry(errors=[{"at": path_of("knots")}]),
            entry(cwd=THERE),
        ),
        witnesses=(f"{LISTED}, {path_of('knots')} in {THERE}", f"{LISTED}, entry {THERE}"),
        bad=lists(
            writes(with_broken(), f"{THERE}/notes.txt", ""),
            entry(cwd=THERE, errors=[{"at": path_of("knots")}]),
        ),
        found=(
            Found(f"{LISTED}, {path_of('knots')} in {THERE}", (0, 1)),
            Found(f"{LISTED}, entry {THERE}", (0, 1), Level.SHOULD),
        ),
        not_exercised=lists(with_broken(), entry(errors=[{"at": path_of("knots")}])),
    ),
    Case(
        rule="skills.icon-names",
        good=lists(placed(), entry(skill("tidy", interface=FACE))),
        witnesses=("skill tidy iconSmall", "skill tidy iconLarge"),
        bad=lists(
            placed(),
            entry(skill("tidy", interface={"iconSmall": "/x/icon.svg", "iconLarge": "a/b.svg"})),
        ),
        found=(
            Found("skill tidy iconSmall", (1,), Level.SHOULD),
            Found("skill tidy iconLarge", (1,), Level.INFO),
        ),
        not_exercised=lists(placed(), entry(skill("tidy", interface={"iconSmall": None}))),
    ),
    Case(
        rule="skills.description-from-file",
        good=lists(puts(placed(), "tidy"), entry("tidy")),
        witnesses=(of("tidy"),),
        bad=lists(puts(placed(), "tidy"), entry(skill("tidy", description="Another"))),
        found=(Found(of("tidy"), (0, 1), Level.SHOULD),),
        not_exercised=lists(puts(placed(), "tidy"), entry("wash")),
    ),
    Case(
        rule="skills.companions-shown",
        good=lists(with_companions(puts(placed(), "tidy")), entry(skill("tidy", interface=FACE))),
        witnesses=tuple(
            f"{of('tidy')} {name}" for name in ("iconSmall", "iconLarge", "brandColor")
        ),
        bad=lists(
            with_companions(puts(placed(), "tidy")),
            entry(skill("tidy", interface={"iconLarge": "x.svg", "brandColor": "#000000"})),
        ),
        found=tuple(
            Found(f"{of('tidy')} {name}", (0, 1), Level.SHOULD)
            for name in ("iconSmall", "iconLarge", "brandColor")
        ),
        not_exercised=lists(puts(placed(), "tidy"), entry(skill("tidy", interface=FACE))),
    ),
    Case(
        rule="harness.own-skill-paths",
        good=configures(placed(), path_of("tidy"), enabled=True),
        witnesses=("own request skills/config/write id 1",),
        bad=configures(placed(), "/x/tidy", enabled=True),
        found=(Found("own request skills/config/write id 1", (0,)),),
        not_exercised=lists(placed(), entry()),
    ),
]
