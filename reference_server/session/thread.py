"""A thread in memory.

`registry` finds, loads and unloads threads; `engine` runs their turns.
Source: session-protocol "Thread", "Thread status".
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Protocol

import anyio

from harness.protocol.wire.base import to_camel
from harness.protocol.wire.input import UserInput
from harness.protocol.wire.item import ThreadItem, UserMessageItem
from harness.protocol.wire.thread import (
    ActiveFlag,
    ActiveStatus,
    IdleStatus,
    NotLoadedStatus,
    SystemErrorStatus,
    Thread,
    ThreadStatus,
    ThreadStatusChangedNotification,
    TokenCounts,
)
from harness.protocol.wire.tool import DynamicTool
from harness.protocol.wire.turn import Turn
from reference_server.presence import Presence
from reference_server.rollout.fold import StoredThread, preview_of
from reference_server.rollout.records import (
    APP_SERVER,
    ItemRecord,
    NameRecord,
    Record,
    RollbackRecord,
    ThreadRecord,
    TurnCompletedRecord,
    TurnStartedRecord,
    first_record,
)
from reference_server.rollout.writer import Recorder
from reference_server.session.consents import Consents
from reference_server.session.subscribers import Everyone, Subscribers
from reference_server.session.transitions import ThreadEvent, ThreadState, next_thread_state
from reference_server.session.watcher import NoWatcher, ThreadWatcher
from reference_server.settings import ThreadSettings

Clock = Callable[[], float]
_LISTED_RECORDS = (ThreadRecord, NameRecord, RollbackRecord, TurnStartedRecord, TurnCompletedRecord)
"""Records that may change a list of threads, as user messages do, which give the preview."""


class RunningTurn(Protocol):
    """A turn in progress, as the session knows it."""

    @property
    def id(self) -> str:
        """The turn's id."""
        ...

    @property
    def end_event(self) -> anyio.Event:
        """Set once `turn/completed` is queued."""
        ...

    @property
    def start_event(self) -> anyio.Event:
        """Set once `turn/started` is queued."""
        ...

    @property
    def takes_input(self) -> bool:
        """Return whether input can be added to it."""
        ...

    @property
    def is_interrupted(self) -> bool:
        """Return whether its interrupt was requested."""
        ...

    def open_items(self) -> list[ThreadItem]:
        """Return the items that were started and not completed, with the text streamed so far."""
        ...

    def interrupt(self) -> None:
        """End the turn as interrupted; a second time changes nothing."""
        ...

    def steer(self, content: list[UserInput], words: dict[str, Any]) -> Callable[[], None]:
        """Record further input; `words` is the same as a Responses API item. Raises OSError.

        Returns a function that sends the item's notifications, to be called after the answer.
        """
        ...


class LoadedThread:
    """One thread; `clock` gives seconds since 1970.

    `history` is the conversation for the model, as Responses API items;
    `rejected_item` is its last item at the last call that the provider rejected;
    `context_tokens` is its size by the model's last count, 0 if that is unknown;
    `missing_servers` are MCP servers, and messages about single tools, already reported to clients;
    `client_tools` are the tools that a client provides for its turns.
    """

    def __init__(
        self,
        thread_id: str,
        settings: ThreadSettings,
        recorder: Recorder,
        clock: Clock = time.time,
        presence: Presence | None = None,
        watcher: ThreadWatcher | None = None,
        everyone: Everyone | None = None,
    ) -> None:
        self.id = thread_id
        self.settings = settings
        self.recorder = recorder
        self.subscribers = Subscribers(everyone)
        self.history: list[dict[str, Any]] = []
        self.rejected_item: dict[str, Any] | None = None
        self.context_tokens = 0
        self.turn: RunningTurn | None = None
        self.consents = Consents()
        self.client_tools: list[DynamicTool] = []
        self.missing_servers: set[str] = set()
        self._flags: list[ActiveFlag] = []
        self._tokens: dict[str, int] = {}
        self.clock = clock
        self.presence = presence
        self.name: str | None = None
        self.source = APP_SERVER
        self._watcher = watcher or NoWatcher()
        self._preview = ""
        self._items: tuple[str, int] = ("", 0)
        self._created_at = self._updated_at = clock()
        self._state: ThreadState = next_thread_state("notLoaded", "started")

    def adopt(self, stored: StoredThread) -> None:
        """Take the state stored in the rollout; may append a thread record. Raises OSError."""
        self.settings = stored.settings
        self.history = stored.history
        self.context_tokens = stored.context_tokens
        self.name = stored.name
        self.source = stored.source
        self.client_tools = stored.client_tools
        self._preview = stored.preview
        self._created_at = stored.created_at
        self._updated_at = stored.updated_at
        self._tokens = {
            to_camel(name): sum(getattr(tokens, name) for tokens in stored.tokens)
            for name in TokenCounts.model_fields
        }
        if stored.ends_with_another:
            self.record(
                first_record(self.clock(), self.id, self.source, self.settings, self.client_tools)
            )

    def forget_turns(self, stored: StoredThread) -> None:
        """Take the shorter history after a rollback; settings and token totals stay."""
        self.history = stored.history
        self.context_tokens = stored.context_tokens

    @property
    def ephemeral(self) -> bool:
        """Return whether the thread is kept in memory only."""
        return self.recorder.path is None

    def server_id(self) -> str | None:
        """Return the id by which others see this server run; None if ephemeral. Raises OSError."""
        return None if self.ephemeral or self.presence is None else self.presence.id()

    def snapshot(self, turns: list[Turn] | None = None) -> Thread:
        """Return the thread as a wire object, with these turns."""
        path = self.recorder.path
        thread = Thread(
            id=self.id,
            preview=self._preview,
            ephemeral=self.ephemeral,
            model_provider=self.settings.model_provider,
            created_at=int(self._created_at),
            updated_at=int(self._updated_at),
            status=self._status(),
            path=None if path is None else str(path),
            cwd=self.settings.cwd,
            source=self.source,
            turns=turns or [],
        )
        if self.name is not None:
            thread.name = self.name
        return thread

    def change_state(self, event: ThreadEvent) -> None:
        """Change the status and notify the subscribers."""
        self._state = next_thread_state(self._state, event)
        self._notify_status()

    @contextmanager
    def waiting_for(self, flag: ActiveFlag) -> Generator[None]:
        """Add a flag to the status for the block, and notify the subscribers of both changes."""
        self._flags.append(flag)
        self._notify_status()
        try:
            yield
        finally:
            self._flags.remove(flag)
            self._notify_status()

    async def end_turn(self) -> None:
        """Interrupt the active turn, if there is one, and wait until its end was sent."""
        if (turn := self.turn) is not None:
            turn.interrupt()
            await turn.end_event.wait()

    def mark_unloaded(self) -> None:
        """Change the status as the thread is unloaded; the caller notifies the clients."""
        self._state = next_thread_state(self._state, "unloaded")

    @property
    def updated_at(self) -> float:
        """Return the seconds since 1970 of its last record."""
        return self._updated_at

    def status_notification(self) -> ThreadStatusChangedNotification:
        """Return the notification of the current status."""
        return ThreadStatusChangedNotification(thread_id=self.id, status=self._status())

    def _notify_status(self) -> None:
        self.subscribers.notify(self.status_notification())

    def _status(self) -> ThreadStatus:
        return wire_status(self._state, self._flags)

    def record(self, record: Record) -> None:
        """Append to the rollout, and notify the watcher if lists may change. Raises OSError."""
        if isinstance(record, ThreadRecord):
            # The same time as a later reader of the rollout finds.
            self._created_at = record.at
        self._updated_at = max(self._created_at, record.at)
        self.recorder.append(record)
        if _is_listed(record) and (path := self.recorder.path) is not None:
            self._watcher.on_change(self.id, path)

    def note_user_message(self, message: UserMessageItem) -> None:
        """Take the thread's preview from its first user message."""
        self._preview = self._preview or preview_of(message)

    def new_item_id(self) -> str:
        """Return a new item id, `item_<turn>_<n>`, unique even after a crash.

        An item that was sent but not recorded before its server died is lost. So items are counted
        within their turn, and no turn continues in another server.
        """
        turn = self.turn.id.removeprefix("turn_") if self.turn else ""
        count = self._items[1] + 1 if self._items[0] == turn else 1
        self._items = (turn, count)
        return f"item_{turn}_{count}"

    def add_tokens(self, last: TokenCounts) -> TokenCounts:
        """Add the tokens of one model call and return the thread's totals."""
        for name, count in last.plain().items():
            self._tokens[name] = self._tokens.get(name, 0) + count
        return TokenCounts.parse(self._tokens)


def _is_listed(record: Record) -> bool:
    if isinstance(record, ItemRecord):
        return isinstance(record.item, UserMessageItem)
    return isinstance(record, _LISTED_RECORDS)


def wire_status(state: ThreadState, flags: list[ActiveFlag]) -> ThreadStatus:
    """Return the status object of a state; only an active thread has flags."""
    match state:
        case "notLoaded":
            return NotLoadedStatus()
        case "idle":
            return IdleStatus()
        case "systemError":
            return SystemErrorStatus()
        case "active":
            return ActiveStatus(active_flags=list(flags))


def stored_snapshot(stored: StoredThread, path: str, *, with_turns: bool) -> Thread:
    """Return a thread that is not loaded as a wire object."""
    thread = Thread(
        id=stored.id,
        preview=stored.preview,
        ephemeral=False,
        model_provider=stored.settings.model_provider,
        created_at=int(stored.created_at),
        updated_at=int(stored.updated_at),
        status=NotLoadedStatus(),
        path=path,
        cwd=stored.settings.cwd,
        source=stored.source,
        turns=stored.turns if with_turns else [],
    )
    if stored.name is not None:
        thread.name = stored.name
    return thread
