"""Threads: the resource, its status, its requests and its notifications.

Here lives everything named `thread/*`. Source: session-protocol "Thread", "Thread status",
"thread/start", "thread/read", "Events".
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.wire.base import WireModel
from harness.wire.settings import ApprovalPolicy, Personality, SandboxMode, SandboxPolicy
from harness.wire.turn import Turn


class NotLoadedStatus(WireModel):
    """The thread is not in memory."""

    type: Literal["notLoaded"] = "notLoaded"


class IdleStatus(WireModel):
    """Loaded, no turn in progress."""

    type: Literal["idle"] = "idle"


class SystemErrorStatus(WireModel):
    """Loaded; the thread met a system error."""

    type: Literal["systemError"] = "systemError"


class ActiveStatus(WireModel):
    """A turn is in progress. The values of `activeFlags` are not shown."""

    type: Literal["active"] = "active"
    active_flags: list[str]


ThreadStatus = Annotated[
    NotLoadedStatus | IdleStatus | SystemErrorStatus | ActiveStatus,
    Field(discriminator="type"),
]


class Thread(WireModel):
    """One thread. Times are whole seconds since 1970; `path` is null for an ephemeral thread."""

    id: str
    preview: str
    ephemeral: bool
    model_provider: str
    created_at: int
    updated_at: int
    status: ThreadStatus
    path: str | None
    cwd: str
    turns: list[Turn]


class ThreadStartParams(WireModel):
    """Params of `thread/start`, all optional. `ephemeral` is our reading of the Thread field."""

    model: str | None = None
    model_provider: str | None = None
    cwd: str | None = None
    approval_policy: ApprovalPolicy | None = None
    sandbox: SandboxMode | None = None
    personality: Personality | None = None
    service_name: str | None = None
    ephemeral: bool | None = None


class ThreadStartResult(WireModel):
    """Result of `thread/start`: exactly these six keys; `sandbox` is the object, not the word."""

    thread: Thread
    model: str
    model_provider: str
    cwd: str
    approval_policy: ApprovalPolicy
    sandbox: SandboxPolicy


class ThreadReadParams(WireModel):
    """Params of `thread/read`."""

    thread_id: str
    include_turns: bool | None = None


class ThreadReadResult(WireModel):
    """Result of `thread/read`."""

    thread: Thread


class ThreadStartedNotification(WireModel):
    """Params of `thread/started`."""

    thread: Thread


class ThreadStatusChangedNotification(WireModel):
    """Params of `thread/status/changed`."""

    thread_id: str
    status: ThreadStatus


class TokenCounts(WireModel):
    """Tokens, as the model counts them."""

    total_tokens: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_output_tokens: int


class TokenUsage(WireModel):
    """Tokens of the thread so far, and of the last model call."""

    total: TokenCounts
    last: TokenCounts
    model_context_window: int | None


class ThreadTokenUsageUpdatedNotification(WireModel):
    """Params of `thread/tokenUsage/updated`; not shown in the document, the shipping server's."""

    thread_id: str
    turn_id: str
    token_usage: TokenUsage
