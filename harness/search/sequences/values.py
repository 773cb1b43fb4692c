"""Combinations of values in which every two values of two settings meet (pairwise covering)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from covertable import make  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from harness.search.fuzz.sessions.plan import PlannedThread
from harness.search.fuzz.sessions.turns import COMMAND, FILE, Json
from harness.search.sequences import turn_operations as turns
from harness.search.sequences.draft import Draft
from harness.search.sequences.planning import Goal, PlannedSequence, Writer

VALUES = "of values"
# Rows of one conversation.
ROWS_EACH = 6
Row = Mapping[str, Any]
Valid = Callable[[Row], bool]
# A value that leaves a setting out.
UNSET = "unset"

LIST_FILTERS: dict[str, Sequence[Any]] = {
    "archived": (UNSET, False, True),
    "sortKey": (UNSET, "created_at", "updated_at"),
    "limit": (UNSET, 1, 2),
    "cwd": (UNSET, "{cwd}", "{cwd}/inner"),
    "searchTerm": (UNSET, "name-", "no such title"),
    "sourceKinds": (UNSET, ["cli"], ["cli", "vscode"]),
    "modelProviders": (UNSET, [], ["nobody"]),
}
APPROVALS: dict[str, Sequence[Any]] = {
    "policy": ("untrusted", "on-request", "never", "on-failure"),
    "sandbox": ("dangerFullAccess", "workspaceWrite", "readOnly"),
    "operation": ("command", "failing command", "patch"),
    "decision": (
        "accept",
        "acceptForSession",
        "acceptWithExecpolicyAmendment",
        "decline",
        "cancel",
    ),
    "times": (1, 2),
}
# The settings of which not all values go together.
LIMITED = ("operation", "decision")
SANDBOXES: dict[str, Json] = {
    "dangerFullAccess": {"type": "dangerFullAccess"},
    "workspaceWrite": {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False},
    "readOnly": {"type": "readOnly", "access": {"type": "fullAccess"}},
}
_NEEDS_OF_APPROVALS = (
    "command-execution",
    "command-approval",
    "file-change",
    "file-change-approval",
    "sandbox-policy",
)


def rows_of(
    settings: Mapping[str, Sequence[Any]],
    limited: Sequence[str] = (),
    is_valid: Valid | None = None,
) -> list[Row]:
    """Return rows in which every two valid values of two settings occur together.

    `is_valid` says of a row with the settings `limited` whether they go together. The rows are the
    same each time.
    """

    def row_of(indexes: Mapping[str, int]) -> Row:
        return {name: settings[name][index] for name, index in indexes.items()}

    def may_be(indexes: Mapping[str, int]) -> bool:
        return is_valid is None or is_valid(row_of({name: indexes[name] for name in limited}))

    constraint: Json = {"operator": "fn", "requires": list(limited), "evaluate": may_be}
    rows = cast(
        "Iterable[dict[str, int]]",
        # By index, since values may be lists, which have no hash.
        make(
            {name: list(range(len(values))) for name, values in settings.items()},
            constraints=[constraint] if limited else [],
        ),
    )
    return [row_of({name: row[name] for name in settings}) for row in rows]


def is_valid_approval(row: Row) -> bool:
    """Return whether the text lists the decision for the operation."""
    return row["operation"] != "patch" or row["decision"] in ("accept", "decline")


def value_goals() -> Iterator[tuple[Goal, tuple[str, ...]]]:
    """Yield every combination, with the capabilities that it needs."""
    for goal in _list_rows():
        yield goal, ("thread-list",)
    for goal in _approval_rows():
        yield goal, _NEEDS_OF_APPROVALS


def plan_values(goals: set[Goal]) -> Iterator[PlannedSequence]:
    """Yield conversations with the combinations of `goals`."""
    lists = [(goal, row) for goal, row in _list_rows().items() if goal in goals]
    if lists:
        yield _list_conversation(lists)
    approvals = [(goal, row) for goal, row in _approval_rows().items() if goal in goals]
    for place in range(0, len(approvals), ROWS_EACH):
        yield _approval_conversation(approvals[place : place + ROWS_EACH])


def _list_rows() -> dict[Goal, Row]:
    return {_goal("list", row): row for row in rows_of(LIST_FILTERS)}


def _approval_rows() -> dict[Goal, Row]:
    return {_goal("approval", row): row for row in rows_of(APPROVALS, LIMITED, is_valid_approval)}


def _goal(kind: str, row: Row) -> Goal:
    words = ", ".join(f"{name} {value}" for name, value in row.items() if value != UNSET)
    return Goal(VALUES, (f"{kind}: {words}",))


def _list_conversation(rows: Sequence[tuple[Goal, Row]]) -> PlannedSequence:
    """Return a conversation that lists threads of several kinds with each combination."""
    writer = Writer(Draft(looks=False))
    draft = writer.draft
    draft.files["inner/notes.txt"] = "inner\n"
    named, archived, _, _ = (
        draft.start_thread(),
        draft.start_thread(),
        draft.start_thread(cwd="{cwd}/inner"),
        draft.start_thread(),
    )
    for thread in draft.plan.threads:
        turns.plain_turn(draft, thread)
    draft.thread_request("thread/name/set", named, name=f"name-{draft.plan.next_number():03d}")
    draft.thread_request("thread/archive", archived)
    for goal, row in rows:
        first = draft.step_count
        params = {name: value for name, value in row.items() if value != UNSET}
        draft.request("thread/list", params=params)
        writer.close_span("list", first, (), {goal: ()})
    draft.thread_request("thread/unarchive", archived)
    draft.resume(archived)
    return writer.finish("Lists of threads with combined filters")


def _approval_conversation(rows: Sequence[tuple[Goal, Row]]) -> PlannedSequence:
    """Return a conversation with a thread for each combination."""
    writer = Writer(Draft(looks=False))
    for goal, row in rows:
        first = writer.draft.step_count
        thread = writer.draft.start_thread(approvalPolicy=row["policy"])
        thread.policy = row["policy"]
        for _ in range(row["times"]):
            _approve(writer.draft, thread, row)
        writer.close_span("approval", first, (), {goal: ()})
    # Rules of other conversations may cover its commands.
    writer.draft.needs_fresh_server = True
    return writer.finish("Approvals with combined settings")


def _approve(draft: Draft, thread: PlannedThread, row: Row) -> None:
    """Run a turn with the operation; answer what it asks, which may be nothing."""
    script = draft.script()
    if row["operation"] == "patch":
        add = {f"new-{script.next_text()}.txt": "new\n"}
        script.add_patch({"add": add})
    else:
        # A rule may cover other commands of its program, which no other operation runs.
        ending = "; exit 3" if row["operation"] == "failing command" else ""
        script.add_command(f"touch row-{script.next_text()}.txt{ending}")
    turn = draft.start_turn(thread, script, sandboxPolicy=SANDBOXES[row["sandbox"]])
    turn.drop_questions()
    question = FILE if row["operation"] == "patch" else COMMAND
    answer = partial(draft.plan.add_answer, thread, turn, question)
    answer(decision=row["decision"], standing=True)
    draft.end_turn(thread)
