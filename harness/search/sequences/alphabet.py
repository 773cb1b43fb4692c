"""The alphabet of sequences: each operation with what it needs of the server and of its thread.

Each is self-contained: it finds its thread idle and loaded, and leaves it so. Which sentences speak
of one operation after another is in `harness/protocol/spec/sequences.yaml`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from harness.search.fuzz.sessions.plan import PlannedThread
from harness.search.sequences import thread_operations as threads
from harness.search.sequences import turn_operations as turns
from harness.search.sequences.draft import Draft
from harness.search.sequences.turn_operations import Act

# Threads of one conversation, which name its model's scripts.
MAX_THREADS = 8


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its name, its effect on a draft, and the capabilities that it needs.

    `ended_turns` is the number of turns that its thread must have; `adds_thread` is whether it
    starts a thread. `setup` names what its conversation needs besides: "" or `several` (clients).
    `is_core` operations are those of triples. `refused` are requests that should be rejected.
    `resumes` is whether an unloaded thread must be resumed for it.
    """

    name: str
    act: Act
    needs: tuple[str, ...] = ()
    ended_turns: int = 0
    adds_thread: bool = False
    setup: str = ""
    is_core: bool = False
    refused: tuple[str, ...] = ()
    resumes: bool = True

    def is_possible(self, draft: Draft, thread: PlannedThread) -> bool:
        """Return whether the thread has the turns, and the conversation room for a thread."""
        has_room = not self.adds_thread or len(draft.plan.threads) < MAX_THREADS
        return has_room and thread.ended_turns >= self.ended_turns


@dataclass(frozen=True, slots=True)
class ServerOperation:
    """An operation on the whole server, and so on every thread of the conversation.

    `setup` is as of other operations.
    """

    name: str
    act: Callable[[Draft], None]
    needs: tuple[str, ...] = ("storage", "history")
    setup: str = ""


_ASKS = ("command-execution", "command-approval")
_PATCHES = ("file-change", "file-change-approval")

OPERATIONS: tuple[Operation, ...] = (
    Operation("turn", turns.plain_turn, is_core=True),
    Operation("plan", turns.plan_turn, ("plan-update",)),
    Operation("schema", turns.schema_turn, ("output-schema",)),
    Operation("failed turn", turns.failed_turn, is_core=True),
    Operation("retried turn", turns.retried_turn, ("model-retry",)),
    Operation("retry after tool", turns.retried_after_tool, ("model-retry", *_ASKS)),
    Operation("accept command", turns.answered_command("accept"), _ASKS, is_core=True),
    Operation("accept failing command", turns.answered_command("accept", 3), _ASKS),
    Operation("decline command", turns.declined_command, _ASKS, is_core=True),
    Operation("cancel command", turns.answered_command("cancel"), _ASKS, is_core=True),
    Operation("command unasked", turns.unasked_command, ("command-execution",)),
    Operation("accept for session", turns.accept_for_session, _ASKS, is_core=True),
    Operation("repeat approved", turns.repeat_approved, _ASKS, is_core=True),
    Operation("accept by rule", turns.accept_by_rule, _ASKS),
    Operation("accept patch", turns.accepted_patch, _PATCHES, is_core=True),
    Operation("decline patch", turns.declined_patch, _PATCHES),
    Operation("undo patch", turns.undone_patch, _PATCHES),
    Operation("interrupt reply", turns.interrupted_reply, is_core=True),
    Operation("interrupt command", turns.interrupted_command, _ASKS),
    Operation("interrupt question", turns.interrupted_question, _ASKS),
    Operation("interrupt after end", turns.interrupted_twice, refused=("turn/interrupt",)),
    Operation("steer", turns.steer_times(1), ("steering",), is_core=True),
    Operation("steer twice", turns.steer_times(2), ("steering",)),
    Operation("steer question", turns.steered_question, ("steering", *_ASKS)),
    Operation("steer old turn", turns.steered_with_old_id, ("steering",), refused=("turn/steer",)),
    Operation("turns in other folder", turns.turns_elsewhere, _ASKS),
    Operation("turns of other model", turns.turns_of_other_model),
    Operation("turn that reads", turns.turn_that_only_reads, ("sandbox-policy", *_ASKS)),
    Operation("compact", threads.compact, ("compaction",), ended_turns=1, is_core=True),
    Operation("rollback 1", threads.rollback(1), ("history",), ended_turns=1, is_core=True),
    Operation("rollback 2", threads.rollback(2), ("history",), ended_turns=2),
    Operation("fork", threads.fork, ("history",), adds_thread=True, is_core=True, resumes=False),
    Operation(
        "go on with fork", threads.go_on_with_fork, ("history",), adds_thread=True, resumes=False
    ),
    Operation("resume", threads.resume, ("history",), is_core=True),
    Operation("unsubscribe", threads.unsubscribe, ("subscription", "history"), is_core=True),
    Operation("archive", threads.archive, ("archive", "history"), is_core=True, resumes=False),
    Operation(
        "name", threads.set_name, ("thread-name", "thread-list"), is_core=True, resumes=False
    ),
    Operation("read", threads.read, resumes=False),
    Operation("list", threads.list_threads, ("thread-list",), resumes=False),
    Operation("list pages", threads.list_pages, ("thread-list",), adds_thread=True, resumes=False),
    Operation("another thread", threads.another_thread, adds_thread=True),
    Operation("ephemeral thread", threads.ephemeral_thread, ("ephemeral",), adds_thread=True),
    Operation("list skills", threads.list_skills, ("skills",), resumes=False),
    Operation("configure skill", threads.configure_skill, ("skills",), resumes=False),
    Operation("change skill", threads.change_skill, ("skills",), resumes=False),
    Operation("skills of two folders", threads.skills_of_two_folders, ("skills",), resumes=False),
    Operation("skill turn", threads.skill_turn, ("skills",)),
    Operation("second client", threads.second_client, ("several-clients",), setup="several"),
    Operation(
        "second client lost", threads.second_client_lost, ("several-clients",), setup="several"
    ),
)

SERVER_OPERATIONS: tuple[ServerOperation, ...] = (
    ServerOperation("restart", threads.restart("restart")),
    ServerOperation("kill", threads.restart("kill", "restart")),
    ServerOperation("restart in a turn", threads.restart("restart", during_turn=True)),
    ServerOperation("kill in a turn", threads.restart("kill", "restart", during_turn=True)),
)
