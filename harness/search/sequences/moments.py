"""Requests at each moment of a turn: while it replies, works or asks, at its end and after it.

A request may come at a bad time; most may be rejected. What it does to the turn is up to the
server, so the turn is brought to its end whatever happened, and the thread must take another one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.search.fuzz.sessions.plan import PlannedThread, PlannedTurn
from harness.search.fuzz.sessions.session import IN_WORKSPACE
from harness.search.sequences import thread_operations as threads
from harness.search.sequences import turn_operations as turns
from harness.search.sequences.draft import Draft
from harness.search.sequences.planning import Goal, PlannedSequence, Writer

MOMENTS_OF_TURN = "of a request and a moment of a turn"
# Requests in one conversation, each in a turn of its own.
REQUESTS_EACH = 4
_ASKS = ("command-execution", "command-approval")
Begin = Callable[[Draft, PlannedThread], PlannedTurn]
Send = Callable[[Draft, PlannedThread], None]


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a turn: `begin` starts the turn and brings it there.

    `times` is how often the request is sent then. After the end, `has_ended` is true.
    """

    name: str
    begin: Begin
    needs: tuple[str, ...] = ()
    times: int = 1
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class MomentRequest:
    """A request; `send` sends it once, and `mend` makes the thread usable again."""

    name: str
    send: Send
    needs: tuple[str, ...] = ()
    mend: Send = Draft.resume


def _run_to_end(draft: Draft, thread: PlannedThread) -> PlannedTurn:
    script = draft.script()
    script.add_command()
    turn = draft.start_turn(thread, script)
    draft.end_turn(thread)
    return turn


MOMENTS = (
    Moment("while the model replies", turns.hold_reply),
    Moment("while a command runs", turns.hold_command, _ASKS),
    Moment("while a question is open", turns.hold_question, _ASKS),
    Moment("twice while the model replies", turns.hold_reply, times=2),
    Moment("after the end", _run_to_end, _ASKS, has_ended=True),
    Moment("twice after the end", _run_to_end, _ASKS, times=2, has_ended=True),
)


def _start_turn(draft: Draft, thread: PlannedThread) -> None:
    script = draft.script().finish()
    thread.script.append(script)
    content = [{"type": "text", "text": f"also {script.nonce}"}]
    draft.thread_request("turn/start", thread, input=content)


def _steer(draft: Draft, thread: PlannedThread) -> None:
    turns.steer(draft, thread, thread.turns[-1])


def _interrupt(draft: Draft, thread: PlannedThread) -> None:
    turns.interrupt(draft, thread, thread.turns[-1])


def _request(method: str, **params: object) -> Send:
    def send(draft: Draft, thread: PlannedThread) -> None:
        draft.thread_request(method, thread, **params)

    return send


def _list(draft: Draft, _: PlannedThread) -> None:
    draft.request("thread/list", params=dict(IN_WORKSPACE))
    draft.request("thread/loaded/list", params={})


def _list_skills(draft: Draft, _: PlannedThread) -> None:
    draft.request("skills/list", params={"cwds": ["{cwd}"], "forceReload": True})


def _set_name(draft: Draft, thread: PlannedThread) -> None:
    threads.set_name(draft, thread)


def _unarchive(draft: Draft, thread: PlannedThread) -> None:
    draft.thread_request("thread/unarchive", thread)
    draft.resume(thread)


REQUESTS = (
    MomentRequest("turn/start", _start_turn),
    MomentRequest("turn/steer", _steer, ("steering",)),
    MomentRequest("turn/interrupt", _interrupt),
    MomentRequest("thread/read", _request("thread/read", includeTurns=True)),
    MomentRequest("thread/list", _list, ("thread-list",)),
    MomentRequest("thread/resume", _request("thread/resume"), ("history",)),
    MomentRequest("thread/fork", _request("thread/fork"), ("history",)),
    MomentRequest("thread/rollback", _request("thread/rollback", numTurns=1), ("history",)),
    MomentRequest("thread/name/set", _set_name, ("thread-name", "thread-list")),
    MomentRequest("skills/list", _list_skills, ("skills",)),
    MomentRequest("thread/compact/start", _request("thread/compact/start"), ("compaction",)),
    MomentRequest("thread/unsubscribe", _request("thread/unsubscribe"), ("subscription",)),
    MomentRequest("thread/archive", _request("thread/archive"), ("archive",), _unarchive),
)


def moment_goals() -> Iterator[tuple[Goal, tuple[str, ...]]]:
    """Yield every request at every moment, each with the capabilities that it needs."""
    for request in REQUESTS:
        for moment in MOMENTS:
            yield Goal(MOMENTS_OF_TURN, (request.name, moment.name)), request.needs + moment.needs


def plan_moments(goals: set[Goal]) -> Iterator[PlannedSequence]:
    """Yield conversations that send requests at the moments of `goals`."""
    cells = [
        (request, moment)
        for request in REQUESTS
        for moment in MOMENTS
        if Goal(MOMENTS_OF_TURN, (request.name, moment.name)) in goals
    ]
    for place in range(0, len(cells), REQUESTS_EACH):
        yield _conversation(cells[place : place + REQUESTS_EACH])


def _conversation(cells: Sequence[tuple[MomentRequest, Moment]]) -> PlannedSequence:
    writer = Writer(Draft(looks=False))
    draft = writer.draft
    thread = draft.start_thread()
    for request, moment in cells:
        turns.plain_turn(draft, thread)
        first = draft.step_count
        moment.begin(draft, thread)
        for _ in range(moment.times):
            request.send(draft, thread)
        goal = Goal(MOMENTS_OF_TURN, (request.name, moment.name))
        writer.close_span(" ".join(goal.operations), first, ANY_REQUEST, {goal: ()})
        # What the request did to the turn is not known.
        thread.doubtful = not moment.has_ended or request.name in BEGINS_WORK
        if request.mend is not Draft.resume or request.name == "thread/unsubscribe":
            request.mend(draft, thread)
        draft.end_turn(thread)
        draft.drop_settings(thread)
    turns.plain_turn(draft, thread)
    return writer.finish("Requests at moments of a turn")


# Requests after which the thread may be busy.
BEGINS_WORK = ("turn/start", "thread/compact/start")
# Every request of the cells may be rejected at a bad moment, and is covered by its answer.
ANY_REQUEST = tuple({request.name for request in REQUESTS} | {"thread/loaded/list"})
