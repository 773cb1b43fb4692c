"""State that a thread or the server keeps: set again and again, used after every operation.

Each use sets one more, and comes back to the first and to the last one before: a server that keeps
one of a kind, or loses it in another operation, is noticed.
"""

from collections.abc import Callable
from dataclasses import dataclass

from harness.search.fuzz.sessions.plan import PlannedThread
from harness.search.fuzz.sessions.session import IN_WORKSPACE
from harness.search.fuzz.sessions.turns import Json
from harness.search.sequences import thread_operations as threads
from harness.search.sequences import turn_operations as turns
from harness.search.sequences.draft import ALWAYS_ASK, Draft

ASKS = ("command-execution", "command-approval")
_PROGRAMS = ("touch", "mkdir -p")
_SKILLS = ("weigh", "measure")


@dataclass(frozen=True, slots=True)
class KeptState:
    """A state that lasts: `use` sets it anew, and uses the earlier ones.

    `group` names those that share a conversation: an approval may hold in its folder alone, and
    after one that lasts a server may ask about nothing.
    """

    name: str
    group: str
    use: Callable[[Draft, PlannedThread], None]
    needs: tuple[str, ...] = ()


def _values(draft: Draft, thread: PlannedThread, name: str) -> list[str]:
    return draft.notes(thread).kept.setdefault(name, [])


def _first_and_last(values: list[str]) -> list[str]:
    return [*values[:1], *values[1:][-1:]]


def use_session_approvals(draft: Draft, thread: PlannedThread) -> None:
    """Accept a new command for the session; run the first and the last one of those before."""
    commands, script = _values(draft, thread, "session approvals"), draft.script()
    new = script.add_command()
    for command in _first_and_last(commands):
        script.add_command(command)
    turn = draft.start_turn(thread, script)
    turns.answer_what_is_asked(draft, thread, turn, "acceptForSession")
    commands.append(new)


def use_rules(draft: Draft, thread: PlannedThread) -> None:
    """Accept a new command by a rule; run the first and the last one of those before."""
    commands, script = _values(draft, thread, "rules"), draft.script()
    program = _PROGRAMS[len(commands) % len(_PROGRAMS)]
    new = script.add_command(f"{program} ruled-{script.next_text()}")
    for command in _first_and_last(commands):
        script.add_command(command)
    turns.run_ruled_turn(draft, thread, script)
    commands.append(new)


def use_declined(draft: Draft, thread: PlannedThread) -> None:
    """Decline the same command in two turns, twice in the second; then accept another one."""
    commands = _values(draft, thread, "declined")
    for times in (1, 2):
        script = draft.script()
        command = script.add_command(*commands)
        for _ in range(times - 1):
            script.add_command(command)
        commands[:] = [command]
        turn = draft.start_turn(thread, script)
        turns.answer_what_is_asked(draft, thread, turn, "decline")
    turns.answered_command("accept")(draft, thread)


def use_settings(draft: Draft, thread: PlannedThread) -> None:
    """Run a command with the settings so far; change them in a turn that is cut off; run another.

    The cut-off turn fails, is interrupted, or is completed, in turn.
    """
    folders, script = _values(draft, thread, "folders"), draft.script()
    script.add_command()
    draft.run_turn(thread, script)
    number = len(folders)
    folder = f"{draft.notes(thread).folder}/place{number}"
    draft.add_file(f"{folder}/notes.txt", "a place\n")
    params: Json = {"cwd": folder, "model": f"model-{draft.plan.next_number()}"}
    match number % 3:
        case 0:
            turns.interrupted_reply(draft, thread, **params)
        case 1:
            turns.failed_turn(draft, thread, **params)
        case _:
            draft.run_turn(thread, draft.script(), **params)
    folders.append(folder)
    draft.notes(thread).place = folder
    script = draft.script()
    script.add_command()
    draft.run_turn(thread, script)
    for listed in folders[-2:]:
        draft.request("thread/list", params={"cwd": listed})


def use_schemas(draft: Draft, thread: PlannedThread) -> None:
    """Run turns with a schema: interrupted, failed and completed, each before one without."""
    turns.interrupted_reply(draft, thread, outputSchema=turns.SCHEMA)
    turns.plain_turn(draft, thread)
    turns.failed_turn(draft, thread, outputSchema=turns.SCHEMA)
    turns.plain_turn(draft, thread)
    turns.schema_turn(draft, thread)
    turns.plain_turn(draft, thread)


def use_names(draft: Draft, thread: PlannedThread) -> None:
    """Search for the last name, set a new one, and search for the new and the first ones."""
    for name in thread.names[-1:]:
        threads.search_for(draft, name)
    threads.set_name(draft, thread)
    for name in _first_and_last(thread.names[:-1]):
        threads.search_for(draft, name)


def use_pages(draft: Draft, thread: PlannedThread) -> None:
    """Begin lists of several filters, and go on with each by its cursor, the first one last."""
    if len(draft.plan.threads) == 1:
        threads.another_thread(draft, thread)
    filters: tuple[Json, ...] = ({}, {"archived": False, "sortKey": "updated_at"})
    pages: list[str] = []
    for params in filters:
        pages.append(f"page{draft.plan.next_number()}")
        body = {"limit": 1, **params, **IN_WORKSPACE}
        draft.request("thread/list", expect="result", params=body, **{"as": pages[-1]})
    draft.request("thread/list", params={"limit": 1, "archived": True, **IN_WORKSPACE})
    for page, params in reversed(list(zip(pages, filters, strict=True))):
        body = {"limit": 1, "cursor": f"${page}.nextCursor", **params, **IN_WORKSPACE}
        draft.request("thread/list", params=body)


def use_order(draft: Draft, thread: PlannedThread) -> None:
    """List three threads by their last change, and again after a turn of the oldest one."""
    names = _values(draft, thread, "order")
    if not names:
        names.append(thread.alias)
        for _ in range(2):
            other = draft.start_thread()
            turns.slow_turn(draft, other)
            names.append(other.alias)
    oldest = next(other for other in draft.plan.threads if other.alias == names[0])
    if not oldest.is_followed:
        draft.resume(oldest)
    names.append(names.pop(0))
    body = {"sortKey": "updated_at", "limit": 10, **IN_WORKSPACE}
    draft.request("thread/list", params=body)
    turns.slow_turn(draft, oldest)
    draft.request("thread/list", params=body)


def use_skills(draft: Draft, thread: PlannedThread) -> None:
    """Disable two skills and enable the first, listing each time, with extra roots and without."""
    folder = "{cwd}"
    paths: list[str] = []
    for name in _SKILLS:
        paths.append(threads.SKILL_FILE.format(name=name))
        draft.files[paths[-1]] = threads.SKILL.format(name=name, description=f"Does {name}")
    # A skill of the same name in another folder, which nobody disables.
    draft.files[f"twin/{paths[0]}"] = draft.files[paths[0]]
    draft.files["aside/iron/SKILL.md"] = threads.SKILL.format(name="iron", description="Irons")
    roots = [{"cwd": folder, "extraUserRoots": ["{cwd}/aside"]}]
    first, second = (f"{folder}/{path}" for path in paths)
    states = [(first, False), (second, False), (first, True), (first, False), (second, True)]
    listed: Json = {"cwds": [folder, f"{folder}/twin"], "forceReload": True}
    draft.request("skills/list", params=listed)
    draft.request("skills/list", params={**listed, "perCwdExtraUserRoots": roots})
    for path, enabled in states:
        draft.request("skills/config/write", params={"path": path, "enabled": enabled})
        draft.request("skills/list", params=listed)
    invocation: list[Json] = [
        {"type": "text", "text": "$weigh the apples"},
        {"type": "skill", "name": "weigh", "path": first},
    ]
    draft.request("skills/config/write", params={"path": first, "enabled": True})
    draft.run_turn(thread, draft.script(), further_input=invocation)


KEPT_STATES = (
    KeptState("session approvals", "approvals", use_session_approvals, ASKS),
    KeptState("rules", "approvals", use_rules, ASKS),
    KeptState("declined command", "changes", use_declined, ASKS),
    KeptState(
        "patches",
        "changes",
        turns.patches_in_a_row,
        ("file-change", "file-change-approval"),
    ),
    KeptState("settings", "settings", use_settings, ASKS),
    KeptState("schemas", "names", use_schemas, ("output-schema",)),
    KeptState("names", "names", use_names, ("thread-name", "thread-list")),
    KeptState("pages", "names", use_pages, ("thread-list",)),
    KeptState("order", "names", use_order, ("thread-list",)),
    KeptState("skills", "names", use_skills, ("skills",)),
)
GROUPS = tuple(dict.fromkeys(state.group for state in KEPT_STATES))
# Policies of their threads: on-request asks about everything, however often it was answered.
POLICIES = {"changes": ALWAYS_ASK}
