"""Operations on a thread between its turns, on other threads, clients and the server."""

from collections.abc import Callable

from harness.scenario.client_steps import MAIN_CONNECTION
from harness.search.fuzz.sessions.actions import COMPACTED
from harness.search.fuzz.sessions.plan import PlannedThread
from harness.search.fuzz.sessions.session import IN_WORKSPACE
from harness.search.fuzz.sessions.turns import Json
from harness.search.sequences.draft import SECOND_CONNECTION, Draft
from harness.search.sequences.turn_operations import Act, hold_reply, plain_turn

SKILL = """---
name: {name}
description: {description}
---

# {name}

{description}

## Instructions

Count the things one by one, and say the number.

## Examples

Three apples: 3.

## Dependencies

None.
"""
SKILL_FILE = "{{agent}}/skills/{name}/SKILL.md"


def start_in_other_folder(draft: Draft) -> PlannedThread:
    """Start a thread in another folder."""
    draft.add_file("{cwd}/inner/notes.txt", "inner\n")
    return draft.start_thread(cwd="{cwd}/inner")


def start_elsewhere(draft: Draft) -> PlannedThread:
    """Start a thread in another folder, and run a turn on it."""
    thread = start_in_other_folder(draft)
    plain_turn(draft, thread)
    return thread


def start_pair(draft: Draft, *, forked: bool) -> tuple[PlannedThread, PlannedThread]:
    """Start a thread with a turn, and another one: a fork of it, or one in another folder."""
    thread = draft.start_thread()
    plain_turn(draft, thread)
    return thread, draft.fork(thread) if forked else start_elsewhere(draft)


def compact(draft: Draft, thread: PlannedThread) -> None:
    """Compact the history, and wait for the item and for the thread to be idle."""
    draft.request("thread/compact/start", expect="result", params={"threadId": thread.reference})
    draft.plan.add_step("wait", **COMPACTED)
    draft.plan.add_step("wait", idle=thread.alias)


def rollback(number: int) -> Act:
    """Return an operation that drops so many turns."""

    def act(draft: Draft, thread: PlannedThread) -> None:
        draft.thread_request("thread/rollback", thread, numTurns=number)
        thread.ended_turns -= number

    return act


def fork(draft: Draft, thread: PlannedThread) -> None:
    """Fork the thread, and run a turn on the fork."""
    plain_turn(draft, draft.fork(thread))


def go_on_with_fork(draft: Draft, thread: PlannedThread) -> PlannedThread:
    """Fork the thread; the sequence goes on with the fork."""
    return draft.fork(thread)


def resume(draft: Draft, thread: PlannedThread) -> None:
    """Resume the loaded thread."""
    draft.resume(thread)


def unsubscribe(draft: Draft, thread: PlannedThread) -> None:
    """Unsubscribe from the thread, look at it, and resume it."""
    draft.thread_request("thread/unsubscribe", thread)
    draft.drop_settings(thread)
    draft.look_at_all(thread)
    draft.resume(thread)


def archive(draft: Draft, thread: PlannedThread) -> None:
    """Archive the thread, list what is archived, unarchive and resume it."""
    draft.thread_request("thread/archive", thread)
    draft.drop_settings(thread)
    draft.look_at_all(thread)
    draft.request("thread/list", params={"archived": True, **IN_WORKSPACE})
    draft.thread_request("thread/unarchive", thread)
    draft.resume(thread)


def set_name(draft: Draft, thread: PlannedThread) -> None:
    """Name the thread, and search for the name."""
    # Named after the workspace, since other conversations have threads in the same home.
    name = f"name-{draft.plan.next_number():03d} in {{cwd}}"
    thread.names.append(name)
    draft.thread_request("thread/name/set", thread, name=name)
    search_for(draft, name)


def search_for(draft: Draft, name: str) -> None:
    """List the threads of all folders whose title contains a name: a turn may move its thread."""
    draft.request("thread/list", params={"searchTerm": name})


def read(draft: Draft, thread: PlannedThread) -> None:
    """Read the thread with its turns, and without."""
    draft.thread_request("thread/read", thread, includeTurns=True)
    draft.thread_request("thread/read", thread)


def list_threads(draft: Draft, _: PlannedThread) -> None:
    """List threads by each sort key, archived or not, and those in memory."""
    filters: tuple[Json, ...] = (
        {},
        {"sortKey": "updated_at"},
        {"archived": True},
        {"limit": 1},
        {"modelProviders": []},
    )
    for params in filters:
        draft.request("thread/list", params={**params, **IN_WORKSPACE})
    draft.request("thread/loaded/list", params={})


def list_pages(draft: Draft, thread: PlannedThread) -> None:
    """List threads page by page, after another one was started if there is but one."""
    if len(draft.plan.threads) == 1:
        another_thread(draft, thread)
    first, second = (f"page{draft.plan.next_number()}" for _ in range(2))
    draft.request(
        "thread/list", expect="result", params={"limit": 1, **IN_WORKSPACE}, **{"as": first}
    )
    draft.request(
        "thread/list",
        expect="result",
        params={"limit": 1, "cursor": f"${first}.nextCursor", **IN_WORKSPACE},
        **{"as": second},
    )


def another_thread(draft: Draft, _: PlannedThread) -> None:
    """Start another thread, and run a turn on it."""
    plain_turn(draft, draft.start_thread())


def ephemeral_thread(draft: Draft, _: PlannedThread) -> None:
    """Start an ephemeral thread, and run a turn on it."""
    plain_turn(draft, draft.start_thread(ephemeral=True))


def list_skills(draft: Draft, _: PlannedThread) -> None:
    """List the skills of the folder, and those of the session."""
    _add_skill(draft)
    draft.request("skills/list", params={"cwds": ["{cwd}"], "forceReload": True})
    draft.request("skills/list", params={})


def configure_skill(draft: Draft, _: PlannedThread) -> None:
    """Disable a skill and enable it again, and list each time."""
    _add_skill(draft)
    path = "{cwd}/" + SKILL_FILE.format(name="tally")
    for enabled in (False, True):
        draft.request("skills/config/write", params={"path": path, "enabled": enabled})
        draft.request("skills/list", params={"cwds": ["{cwd}"], "forceReload": True})


def change_skill(draft: Draft, _: PlannedThread) -> None:
    """Write a new skill, list with a reload, remove it, and list again."""
    name = f"new-{draft.plan.next_number()}"
    path = "{cwd}/" + SKILL_FILE.format(name=name)
    text = SKILL.format(name=name, description=f"Does {name}")
    draft.plan.add_step("write_file", path=path, text=text)
    draft.request("skills/list", params={"cwds": ["{cwd}"], "forceReload": True})
    draft.plan.add_step("remove_file", path=path)
    draft.request("skills/list", params={"cwds": ["{cwd}"], "forceReload": True})


def skills_of_two_folders(draft: Draft, _: PlannedThread) -> None:
    """List the skills of two folders, one with an extra root; the broken skill of one again."""
    _add_skill(draft)
    draft.files["one/notes.txt"] = ""
    # One without UTF-8, and one that cannot be read since its file is a folder.
    draft.files["two/" + SKILL_FILE.format(name="torn")] = {"base64": "IyD//v8K"}
    draft.files["two/" + SKILL_FILE.format(name="hollow") + "/notes.txt"] = ""
    draft.files["apart/iron/SKILL.md"] = SKILL.format(name="iron", description="Irons shirts")
    draft.request(
        "skills/list",
        params={
            "cwds": ["{cwd}/one", "{cwd}/two", "{cwd}"],
            "forceReload": True,
            "perCwdExtraUserRoots": [{"cwd": "{cwd}/one", "extraUserRoots": ["{cwd}/apart"]}],
        },
    )
    # An answer that is remembered says the same.
    remembered: Json = {"cwds": ["{cwd}/two"]}
    draft.request("skills/list", params=remembered)
    draft.request("skills/list", params=remembered)


def skill_turn(draft: Draft, thread: PlannedThread) -> None:
    """Run a turn that invokes a skill."""
    _add_skill(draft)
    path = "{cwd}/" + SKILL_FILE.format(name="tally")
    invocation: list[Json] = [
        {"type": "text", "text": "$tally the apples"},
        {"type": "skill", "name": "tally", "path": path},
    ]
    draft.run_turn(thread, draft.script(), further_input=invocation)


def _add_skill(draft: Draft) -> None:
    text = SKILL.format(name="tally", description="Counts what it is given")
    draft.files[SKILL_FILE.format(name="tally")] = text


def second_client(draft: Draft, thread: PlannedThread) -> None:
    """Let a second client join, run a turn, and leave."""
    draft.plan.add_bare_step("connect", SECOND_CONNECTION)
    draft.request("thread/resume", params={"threadId": thread.reference}, on=SECOND_CONNECTION)
    thread.lost_settings = True
    # Its end is awaited where it began: who else hears of it is another question.
    thread.followers.insert(0, SECOND_CONNECTION)
    draft.run_turn(thread, draft.script(), on=SECOND_CONNECTION)
    thread.remove_follower(SECOND_CONNECTION)
    draft.request("thread/unsubscribe", params={"threadId": thread.reference}, on=SECOND_CONNECTION)
    draft.plan.add_bare_step("disconnect", SECOND_CONNECTION)


def second_client_lost(draft: Draft, thread: PlannedThread) -> None:
    """Let a second client join, and lose its connection during a turn."""
    draft.plan.add_bare_step("connect", SECOND_CONNECTION)
    draft.request("thread/resume", params={"threadId": thread.reference}, on=SECOND_CONNECTION)
    thread.lost_settings = True
    script = draft.script()
    gate = script.add_message(hold=True)
    draft.start_turn(thread, script)
    draft.await_gate(gate)
    draft.plan.add_bare_step("disconnect", SECOND_CONNECTION)
    draft.end_turn(thread)


def restart(*steps: str, during_turn: bool = False) -> Callable[[Draft], None]:
    """Return an operation on all threads: these steps end the server and start it anew.

    With `during_turn`, the first thread has a turn then, whose model holds in its reply.
    """

    def act(draft: Draft) -> None:
        if during_turn:
            thread = draft.plan.threads[0]
            if not thread.is_followed:
                draft.resume(thread)
            hold_reply(draft, thread)
            # Whether the turn is kept is left open.
            thread.running_turn = None
        for step in steps:
            draft.plan.add_bare_step(step, True)
        draft.plan.connections = [MAIN_CONNECTION]
        for thread in draft.plan.threads:
            thread.drop_followers()
            draft.drop_settings(thread)
            thread.doubtful = False

    return act
