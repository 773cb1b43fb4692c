"""Faults of skills: how they are listed, configured and invoked."""

from dataclasses import replace

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.changes import first
from harness.faults.operators import answer, answer_by, edit, edit_by, refuse
from harness.faults.selectors import answer_to, our_request
from harness.faults.site import FaultSite
from harness.faults.skill_selectors import (
    WRITE,
    entries,
    forced_listing,
    has_changed_entries,
    has_extra_roots,
    is_another,
    is_configured,
    is_disabled,
    lacks_a_name,
    listing,
    names_in_all,
    of_the_session,
    only_first,
    previous_result,
    shows_another,
    shows_configured,
    shows_disabled,
    skill_names,
    toggle_enabled,
    turn_with,
    unforced_listing,
    with_all_errors,
    with_all_skills,
    with_colour,
    with_errors,
    with_icons,
    with_the_first_twice,
    without_skills,
    without_the_last,
)
from harness.faults.stored import replace_marks
from harness.trace.marks import ModelCall
from harness.trace.trace import Trace

DATA = ("result", "data")
SKILL = (*DATA, 0, "skills", 0)
FACE = (*SKILL, "interface")


def clear_held_texts(_: FaultSite, trace: Trace) -> Trace:
    """Clear the texts of the harness's files from all model calls."""
    calls = [mark for mark in trace.marks_of(ModelCall) if mark.body.held]
    if not calls:
        raise NotApplied("no model call with anything of our files")
    return replace_marks(trace, calls, lambda call: replace(call, held=()))


UNHEARD = StoredOnly("the change is in marks: model calls are not messages", clear_held_texts)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "skills-of-a-cwd-left-out",
        rule="skills.entry-per-cwd",
        on="skills",
        reason="A directory that was asked for has an entry, also one without skills.",
        change=first(listing(2), edit_by(*DATA, value=without_the_last)),
    ),
    Fault(
        "skills-of-a-cwd-in-two-entries",
        rule="skills.entry-per-cwd",
        on="skills",
        reason="Skills are grouped by working directory.",
        change=first(listing(), edit_by(*DATA, value=with_the_first_twice)),
    ),
    Fault(
        "skills-of-a-project-not-listed",
        rule="skills.project-listed",
        on="skills",
        reason="The skills of a project lie in its folder .agent/skills.",
        change=first(
            forced_listing().where(lambda _, f: bool(skill_names(entries(f)[0])), "with skills"),
            edit(*DATA, 0, "skills", to=[]),
        ),
    ),
    Fault(
        "skills-of-the-user-not-listed",
        rule="skills.user-listed",
        on="skill-scopes",
        reason="The skills of the user lie in the folder of skills of the home.",
        change=first(
            forced_listing(2).where(
                lambda _, f: bool(names_in_all(f)), "with a skill in every entry"
            ),
            edit_by(*DATA, value=without_skills(names_in_all)),
        ),
    ),
    Fault(
        "extra-roots-not-scanned",
        rule="skills.extra-roots-scanned",
        on="skill-scopes",
        reason="Extra roots are scanned as the user's scope for their directory.",
        change=first(
            forced_listing(2).where(has_extra_roots, "with extra roots"),
            edit_by(*DATA, value=without_skills(only_first)),
        ),
    ),
    Fault(
        "extra-roots-for-every-cwd",
        rule="skills.own-directory",
        on="skill-scopes",
        reason="Extra roots count for their own directory only, and a project's skills too.",
        change=first(
            forced_listing(2).where(
                lambda _, f: bool(only_first(f)), "with skills in one entry only"
            ),
            edit_by(*DATA, value=with_all_skills),
        ),
    ),
    Fault(
        "skills-from-the-cache",
        rule="skills.reload-rescans",
        on="skill-reload",
        reason="forceReload passes the cache by and scans the disk again.",
        change=first(
            forced_listing().where(has_changed_entries, "that changed"), answer_by(previous_result)
        ),
    ),
    Fault(
        "removed-skills-stay",
        rule="skills.reload-rescans",
        on="skill-reload",
        reason="A skill that was removed is no longer on the disk that is scanned again.",
        change=first(
            forced_listing().where(lacks_a_name, "that lacks a skill of the one before"),
            answer_by(previous_result),
        ),
    ),
    Fault(
        "skill-kept-from-the-model",
        rule="skills.invoked",
        on="skill-invoked",
        reason="A skill is invoked by its name and an item: the model must hear of it.",
        change=UNHEARD,
    ),
    Fault(
        "skills-never-told-to-the-model",
        rule="skills.found-by-name",
        on="skill-invoked",
        reason="Without the item the model tries to find the skill.",
        change=UNHEARD,
    ),
    Fault(
        "skill-invocation-refused",
        rule="skills.invocation-taken",
        on="skill-invoked",
        reason="A skill is invoked by its name in the text and a skill item beside it.",
        change=first(turn_with("skill"), refuse("no items but texts")),
    ),
    Fault(
        "mention-refused",
        rule="turn.mention-taken",
        on="skill-invoked",
        reason="An app is invoked by its slug in the text and a mention item beside it.",
        change=first(turn_with("mention"), refuse("no items but texts")),
    ),
    Fault(
        "skills-config-answered-with-null",
        rule="skills.config-reply-empty",
        on="skills",
        reason="The result of skills/config/write is {}, not null.",
        change=first(answer_to(WRITE), answer(result=None)),
    ),
    Fault(
        "skills-config-answered-with-members",
        rule="skills.config-reply-empty",
        on="skills",
        reason="The result of skills/config/write is {}; more than that is recorded.",
        change=first(answer_to(WRITE), edit("result", "enabled", to=True)),
    ),
    Fault(
        "disabled-skill-still-enabled",
        rule="skills.config-applies",
        on="skills",
        reason="enabled says whether the skill is enabled in the configuration.",
        change=first(
            forced_listing().where(shows_configured, "with a skill that was configured"),
            edit_by(*DATA, value=toggle_enabled(is_configured)),
        ),
    ),
    Fault(
        "skill-config-forgotten",
        rule="skills.config-lasts",
        on="skills-after-restart",
        reason="What is written to the configuration is not that of one process.",
        change=first(
            forced_listing().where(shows_disabled, "with a disabled skill"),
            edit_by(*DATA, value=toggle_enabled(is_disabled)),
        ),
    ),
    Fault(
        "all-skills-configured-at-once",
        rule="skills.config-one-skill",
        on="skills",
        reason="The path of skills/config/write names one skill.",
        change=first(
            forced_listing().where(shows_another, "with a skill that was not configured"),
            edit_by(*DATA, value=toggle_enabled(is_another)),
        ),
    ),
    Fault(
        "no-skills-of-the-session",
        rule="skills.session-directory",
        on="skills",
        reason="Without directories the one of the session is scanned.",
        change=first(of_the_session(), edit(*DATA, to=[])),
    ),
    Fault(
        "skills-of-some-other-directory",
        rule="skills.session-directory",
        on="skills",
        reason="Without directories the one of the session is scanned, and no other.",
        change=first(of_the_session(), edit(*DATA, 0, "cwd", to="/nowhere/at/all")),
    ),
    Fault(
        "broken-skill-fails-the-listing",
        rule="skills.listed-despite-errors",
        on="skill-errors",
        reason="Errors in loading skills are in the entry, and no error of the request.",
        change=first(listing().where(with_errors, "with errors"), refuse("a skill has no name")),
    ),
    Fault(
        "broken-skill-passed-over",
        rule="skills.error-told",
        on="skill-errors",
        reason="The entry has the errors that were met in loading its skills.",
        change=first(
            forced_listing().where(with_errors, "with errors"), edit(*DATA, 0, "errors", to=[])
        ),
    ),
    Fault(
        "errors-told-once",
        rule="skills.errors-told-again",
        on="skill-errors",
        reason="Each listing has the errors of its skills, a remembered one too.",
        change=first(
            unforced_listing().where(with_errors, "with errors"), edit(*DATA, 0, "errors", to=[])
        ),
    ),
    Fault(
        "errors-of-all-in-every-entry",
        rule="skills.errors-of-own-entry",
        on="skill-errors",
        reason="The errors of an entry are those met in loading its own skills.",
        change=first(
            forced_listing(2).where(with_errors, "with errors"),
            edit_by(*DATA, value=with_all_errors),
        ),
    ),
    Fault(
        "icon-as-a-path",
        rule="skills.icon-names",
        on="skill-companions",
        reason="An icon is named as a file.",
        change=first(
            listing().where(with_icons, "with an icon"),
            edit(*FACE, "iconSmall", to="/home/user/icons/icon.svg"),
        ),
    ),
    Fault(
        "icon-of-another-name",
        rule="skills.companions-shown",
        on="skill-companions",
        reason="The small icon of a skill is icon.svg, which lies beside SKILL.md.",
        change=first(
            forced_listing().where(with_icons, "with an icon"),
            edit(*FACE, "iconSmall", to="other.svg"),
        ),
    ),
    Fault(
        "colour-of-another-skill",
        rule="skills.companions-shown",
        on="skill-companions",
        reason="The colour of a skill is in its config.toml.",
        change=first(
            forced_listing().where(with_colour, "with a colour"),
            edit(*FACE, "brandColor", to="#123456"),
        ),
    ),
    Fault(
        "skill-described-otherwise",
        rule="skills.description-from-file",
        on="skill-companions",
        reason="The description of a skill is the brief one of its SKILL.md.",
        change=first(
            forced_listing().where(lambda _, f: bool(skill_names(entries(f)[0])), "with skills"),
            edit(*SKILL, "description", to="What nobody wrote"),
        ),
    ),
    Fault(
        "own-path-of-no-skill",
        rule="harness.own-skill-paths",
        on="skills",
        reason="The path that we send is that of a SKILL.md; anything else is our own defect.",
        change=first(our_request(WRITE), edit("params", "path", to="skills/tidy")),
    ),
)
