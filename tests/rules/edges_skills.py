"""Edge cases of the rules on skills: listing, and skills as input."""

from collections.abc import Callable

from harness.judge.verdict import Level
from tests.rules.edge import Illegal, Legal
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
from tests.rules.traces import Talk, command

ENTRY, LISTED, OWN = "skills.entry-per-cwd", "skills.project-listed", "skills.own-directory"
RELOAD, APPLIES, ONE = "skills.reload-rescans", "skills.config-applies", "skills.config-one-skill"
USER, EXTRA, SESSION = (
    "skills.user-listed",
    "skills.extra-roots-scanned",
    "skills.session-directory",
)
ERRORS, TOLD = "skills.errors-of-own-entry", "skills.error-told"
AGAIN = "skills.errors-told-again"
TAKEN, INVOKED, BY_NAME = "skills.invocation-taken", "skills.invoked", "skills.found-by-name"
ICONS, SHOWN, LASTS = "skills.icon-names", "skills.companions-shown", "skills.config-lasts"
BELOW = f"{HERE}/below"
OFF = skill("tidy", enabled=False)


def hinted(rule: str, name: str, talk: Callable[[], Talk], *hints: str) -> Legal:
    """A legal conversation of which a rule has something to say all the same."""
    return Legal(rule, name, talk, frozenset(hints or (rule,)))


def asked_for_more() -> Talk:
    """A turn is refused on a thread that is being compacted."""
    talk = known().asks("thread/compact/start", threadId="thr_1").answers({})
    return refused(skill_item("tidy"), talk=talk)


def older_than_the_error() -> Talk:
    """A file breaks after a first listing; without a reload that one is answered again."""
    talk = lists(puts(placed(), "tidy"), entry("tidy"))
    lists(writes(talk, path_of("tidy"), None), entry(errors=["tidy?"]))
    return lists(talk, entry("tidy"), forceReload=False)


def disabled_with_an_error() -> Talk:
    """A skill that is disabled need not be loaded."""
    talk = lists(writes(placed(), path_of("knots"), ""), entry(errors=["knots?"]))
    return lists(configures(talk, path_of("knots"), enabled=False), entry())


def two(talk: Talk | None = None) -> Talk:
    """Two projects with a skill each."""
    talk = placed() if talk is None else talk
    return puts(puts(talk, "tidy"), "wash", cwd=THERE)


def after_a_command() -> Talk:
    """A command of the model may have removed the skill."""
    talk = puts(placed(), "tidy").start_thread().start_turn()
    talk.item(command("c-1", "completed")).end_turn()
    return lists(talk, entry())


def written_while_listed() -> Talk:
    """The file comes while the server looks."""
    talk = puts(asks_list(placed(), HERE), "tidy")
    return talk.answers({"data": [entry()]})


def at_once() -> Talk:
    """The configuration is written while the skills are listed."""
    talk = asks_list(puts(placed(), "tidy"), HERE)
    talk.asks("skills/config/write", path=path_of("tidy"), enabled=False)
    return talk.answers({"data": [entry(OFF)]}, to=1).answers({})


def two_requests(shown: str) -> Talk:
    """Two requests about one skill are under way at once: either may be the last."""
    talk = puts(placed(), "tidy").asks("skills/config/write", path=path_of("tidy"), enabled=False)
    talk.asks("skills/config/write", path=path_of("tidy"), enabled=True).answers({}, to=1)
    talk.answers({}, to=2)
    return lists(talk, entry(OFF if shown == "off" else "tidy"))


def another_disabled(shown: str) -> Talk:
    """The skill of one project is disabled, and then that of another one listed."""
    talk = puts(puts(placed(), "tidy"), "tidy", cwd=THERE)
    lists(talk, entry("tidy"), entry("tidy", cwd=THERE))
    configures(talk, path_of("tidy"), enabled=False)
    there = entry(OFF if shown == "off" else "tidy", cwd=THERE)
    return lists(talk, entry(OFF), there)


def configured_by_hand() -> Talk:
    """The other skill was configured in the file of the home meanwhile."""
    talk = lists(puts(placed(), "tidy", "wash"), entry("tidy", "wash"))
    writes(configures(talk, path_of("tidy"), enabled=False), f"{HOME}/config.toml", "x = 1")
    return lists(talk, entry(OFF, skill("wash", enabled=False)))


def root_of_another() -> Talk:
    """The extra root of one directory is the project folder of another."""
    roots = [{"cwd": THERE, "extraUserRoots": [f"{HERE}/.agent/skills"]}]
    here, there = entry("tidy"), entry("tidy", "wash", cwd=THERE)
    return lists(two(), here, there, perCwdExtraUserRoots=roots)


def in_extra_root(*names: str) -> Talk:
    """A skill lies in a root that is given for this directory."""
    talk = writes(placed(), path_of("iron", ROOT), skill_text("iron"))
    roots = [{"cwd": HERE, "extraUserRoots": [ROOT]}]
    return lists(talk, entry(*names), perCwdExtraUserRoots=roots)


def removed(*shown: str) -> Talk:
    """A skill of a project is removed."""
    talk = lists(puts(placed(), "tidy", "wash"), entry("tidy", "wash"))
    return lists(removes(talk, path_of("wash")), entry(*shown))


def removed_here_alone() -> Talk:
    """A skill is removed from the project, and one of its name is the user's."""
    talk = puts_of_user(puts(placed(), "wash"), "wash")
    return lists(removes(lists(talk, entry("wash")), path_of("wash")), entry("wash"))


def broken(text: str | None, *shown: str, errors: list[str] | None = None) -> Talk:
    """A file that is no skill lies among those of a project."""
    return lists(writes(placed(), path_of("knots"), text), entry(*shown, errors=errors))


def threads(*cwds: str) -> Talk:
    """The skills of the session are listed after a thread was started."""
    talk = placed().start_thread().asks("skills/list", forceReload=True)
    return talk.answers({"data": [entry(cwd=one) for one in cwds]})


def busy() -> Talk:
    """A second turn is refused while one is active."""
    talk = known().start_turn()
    given = [{"type": "text", "text": "$tidy"}, skill_item("tidy")]
    talk.asks("turn/start", threadId="thr_1", input=given).refuses("a turn is active")
    return talk.end_turn()


def refused(*items: dict[str, str], said: str = "$tidy up", talk: Talk | None = None) -> Talk:
    """A turn/start is refused."""
    talk = known() if talk is None else talk
    given = [{"type": "text", "text": said}, *items]
    return talk.asks("turn/start", threadId="thr_1", input=given).refuses("not so")


def disabled_and_named() -> Talk:
    """A skill that is disabled is invoked, and the model hears nothing of it."""
    talk = lists(configures(known(), path_of("tidy"), enabled=False), entry(OFF, "wash"))
    return invokes(talk, "$tidy up", skill_item("tidy"))


def shown_as(face: dict[str, str]) -> Talk:
    """A skill with companions is listed with an interface."""
    talk = with_companions(puts(placed(), "tidy"))
    return lists(talk, entry(skill("tidy", interface=face)))


LEGAL: list[Legal] = [
    Legal(ENTRY, "asked-twice-once", lambda: lists(placed(), entry(), cwds=[HERE, f"{HERE}/."])),
    Legal(ENTRY, "asked-twice-twice", lambda: lists(placed(), entry(), entry(), cwds=[HERE, HERE])),
    hinted(ENTRY, "linked", lambda: lists(placed(), entry(cwd="/data/project"), cwds=[HERE])),
    hinted(
        ENTRY, "more-than-asked", lambda: lists(placed(), entry(), entry(cwd="/srv"), cwds=[HERE])
    ),
    Legal(LISTED, "after-a-command", after_a_command),
    Legal(LISTED, "written-while-listed", written_while_listed),
    Legal(
        LISTED,
        "disabled-and-left-out",
        lambda: lists(configures(puts(placed(), "tidy"), path_of("tidy"), enabled=False), entry()),
    ),
    Legal(
        LISTED, "from-a-cache", lambda: lists(puts(placed(), "tidy"), entry(), forceReload=False)
    ),
    Legal(
        LISTED,
        "no-sections",
        lambda: lists(writes(placed(), path_of("x"), "# x\n\nDoes x.\n"), entry(errors=["x"])),
    ),
    Legal(
        USER,
        "in-one-of-two-homes",
        lambda: lists(writes(placed(), path_of("x", f"{HOME}/skills"), skill_text("x")), entry()),
    ),
    Legal(
        USER,
        "hidden-by-the-project",
        lambda: lists(puts_of_user(puts(placed(), "x"), "x"), entry("x")),
    ),
    Legal(
        OWN,
        "listed-below",
        lambda: lists(puts(placed(), "tidy"), entry("tidy"), entry("tidy", cwd=BELOW)),
    ),
    Legal(OWN, "root-of-another", root_of_another),
    Legal(RELOAD, "removed-here-alone", removed_here_alone),
    Legal(
        RELOAD,
        "described-by-a-part",
        lambda: lists(
            puts(lists(puts(placed(), "tidy"), entry("tidy")), "tidy", description="Tidies a lot"),
            entry(skill("tidy", description="Tidies a…")),
        ),
    ),
    Legal(APPLIES, "at-once", at_once),
    Legal(APPLIES, "either-of-two", lambda: two_requests("on")),
    Legal(APPLIES, "the-other-of-two", lambda: two_requests("off")),
    Legal(ONE, "configured-by-hand", configured_by_hand),
    Legal(ONE, "another-of-its-name", lambda: another_disabled("on")),
    hinted(
        LASTS,
        "forgotten",
        lambda: lists(
            restarts(configures(puts(placed(), "tidy"), path_of("tidy"), enabled=False)),
            entry("tidy"),
        ),
    ),
    Legal(
        LASTS,
        "left-out",
        lambda: lists(
            restarts(configures(puts(placed(), "tidy"), path_of("tidy"), enabled=False)), entry()
        ),
    ),
    Legal(SESSION, "that-of-the-server", lambda: threads("/srv")),
    Legal(SESSION, "no-thread-yet", lambda: placed().asks("skills/list").answers({"data": []})),
    hinted(SESSION, "some-other", lambda: threads("/nowhere/at/all")),
    Legal(AGAIN, "as-old-as-the-first-listing", older_than_the_error),
    hinted(AGAIN, "after-it-was-disabled", disabled_with_an_error, TOLD),
    Legal(TOLD, "named-by-its-folder", lambda: broken("no name", "knots")),
    hinted(TOLD, "passed-over", lambda: broken("")),
    hinted(TOLD, "read-as-it-can-be", lambda: broken(None, "\ufffd")),
    Legal(
        ERRORS,
        "of-the-project-above",
        lambda: lists(
            writes(placed(), path_of("knots"), "no name"),
            entry(cwd=BELOW, errors=[path_of("knots")]),
        ),
    ),
    hinted(
        ERRORS, "of-its-own", lambda: lists(placed(), entry(errors=["a built-in skill is torn"]))
    ),
    Legal(TAKEN, "busy", busy),
    Legal(TAKEN, "compacting", asked_for_more),
    Legal(TAKEN, "of-no-skill", lambda: refused(skill_item("knots"), said="$knots")),
    Legal(TAKEN, "with-something-else", lambda: refused(skill_item("tidy"), mention("mail"))),
    Legal(
        INVOKED,
        "by-its-path",
        lambda: invokes(known(), "$tidy up", skill_item("tidy"), held=(path_of("tidy"),)),
    ),
    Legal(INVOKED, "disabled", disabled_and_named),
    Legal(
        BY_NAME,
        "disabled",
        lambda: invokes(
            lists(configures(known(), path_of("tidy"), enabled=False), entry("wash")), "$tidy up"
        ),
    ),
    Legal(BY_NAME, "never-listed", lambda: invokes(puts(placed(), "tidy").start_thread(), "$tidy")),
    hinted(BY_NAME, "in-passing", lambda: invokes(known(), "$tidy, which Does tidy well")),
    Legal(
        SHOWN,
        "no-colour",
        lambda: shown_as({"iconSmall": "icon.svg", "iconLarge": "icon-large.svg"}),
    ),
    hinted(SHOWN, "no-interface", lambda: shown_as({})),
    hinted(ICONS, "in-a-folder", lambda: shown_as({**FACE, "iconSmall": "tidy/icon.svg"})),
    Legal(ICONS, "by-its-name", lambda: shown_as({**FACE, "displayName": "/etc"})),
    Legal("turn.mention-taken", "no-slug", lambda: refused(mention("mail"), said="any mail?")),
    hinted(
        "turn.mention-taken", "no-such-app", lambda: refused(mention("mail"), said="any $mail?")
    ),
]

ILLEGAL: list[Illegal] = [
    Illegal(ENTRY, "none-at-all", lambda: lists(placed(), cwds=[HERE])),
    Illegal(ENTRY, "one-for-all", lambda: lists(placed(), entry(), cwds=[HERE, BELOW])),
    Illegal(
        LISTED,
        "in-the-entry-of-another",
        lambda: lists(two(), entry("wash"), entry("tidy", cwd=THERE)),
        also=frozenset({OWN}),
    ),
    Illegal(
        LISTED,
        "as-an-error",
        lambda: lists(puts(placed(), "tidy"), entry(errors=["tidy is not to my liking"])),
        also=frozenset(),
    ),
    Illegal(
        OWN,
        "everything-everywhere",
        lambda: lists(two(), entry("tidy", "wash"), entry("tidy", "wash", cwd=THERE)),
    ),
    Illegal(
        OWN,
        "in-one-too-many",
        lambda: lists(puts(placed(), "tidy"), entry("tidy"), entry("tidy", cwd=THERE)),
    ),
    Illegal(EXTRA, "not-scanned", lambda: in_extra_root()),
    Illegal(EXTRA, "scanned-for-another", lambda: in_extra_root("tidy")),
    Illegal(RELOAD, "still-there", lambda: removed("tidy", "wash")),
    Illegal(
        RELOAD,
        "not-there-yet",
        lambda: lists(puts(lists(placed(), entry()), "tidy"), entry()),
        also=frozenset({LISTED}),
    ),
    Illegal(
        APPLIES,
        "enabled-all-the-same",
        lambda: lists(
            configures(puts(placed(), "tidy"), path_of("tidy"), enabled=False), entry("tidy")
        ),
    ),
    Illegal(
        APPLIES,
        "never-enabled-again",
        lambda: lists(
            configures(puts(placed(), "tidy"), path_of("tidy"), enabled=True), entry(OFF)
        ),
    ),
    Illegal(ONE, "by-name", lambda: another_disabled("off"), Level.SHOULD),
    Illegal(
        ONE,
        "all-but-that-one",
        lambda: lists(
            configures(
                lists(puts(placed(), "tidy", "wash"), entry("tidy", "wash")),
                path_of("tidy"),
                enabled=True,
            ),
            entry("tidy", skill("wash", enabled=False)),
        ),
        Level.SHOULD,
    ),
    Illegal(SESSION, "several", lambda: threads(HERE, THERE)),
    Illegal(SESSION, "nothing", threads),
    Illegal(TAKEN, "refused", lambda: refused(skill_item("tidy"))),
    Illegal(
        TAKEN,
        "two-refused",
        lambda: refused(skill_item("tidy"), skill_item("wash"), said="$tidy and $wash"),
    ),
    Illegal(
        ICONS,
        "an-address",
        lambda: shown_as({**FACE, "iconSmall": "file:///icon.svg"}),
        Level.SHOULD,
    ),
    Illegal(
        ICONS, "a-path", lambda: shown_as({**FACE, "iconLarge": "/x/icon-large.svg"}), Level.SHOULD
    ),
]
