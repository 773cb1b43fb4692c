"""Threads: the resource, its status, its requests and its notifications.

Source: session-protocol "Thread", "Thread status", "thread/start", "thread/resume", "thread/fork",
"thread/read", "Events".
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.protocol.wire.base import Json, Number, WireModel
from harness.protocol.wire.settings import ApprovalPolicy, Personality, SandboxMode, SandboxPolicy
from harness.protocol.wire.tool import DynamicTool
from harness.protocol.wire.turn import Turn


class NotLoadedStatus(WireModel):
    """The thread is not in memory."""

    type: Literal["notLoaded"] = "notLoaded"


class IdleStatus(WireModel):
    """Loaded, no turn in progress."""

    type: Literal["idle"] = "idle"


class SystemErrorStatus(WireModel):
    """Loaded; the thread met a system error."""

    type: Literal["systemError"] = "systemError"


ActiveFlag = Literal["waitingOnApproval", "waitingOnUserInput"]
"""The values of the shipping server; the document shows none."""


class ActiveStatus(WireModel):
    """A turn is in progress. `activeFlags`: each an ActiveFlag, or another server's own."""

    type: Literal["active"] = "active"
    active_flags: list[ActiveFlag | Json]


ThreadStatus = Annotated[
    NotLoadedStatus | IdleStatus | SystemErrorStatus | ActiveStatus, Field(discriminator="type")
]


class Thread(WireModel):
    """One thread. Times are seconds since 1970; `path` is null for an ephemeral thread.

    `preview` is present "if available", `turns` if they were requested; missing turns are read as
    an empty list. Not in the document: `name`, which the user gave it, and `source`, the kind of
    client that it was made for; both are strings in the reference server.
    """

    id: str
    preview: str | None = None
    ephemeral: bool
    model_provider: str
    created_at: Number
    updated_at: Number
    status: ThreadStatus
    path: str | None
    cwd: str
    turns: list[Turn] = Field(default_factory=list[Turn])
    name: Json = None
    source: Json = None


class ThreadStartParams(WireModel):
    """Params of `thread/start`, all optional.

    Not in the document, but needed for other parts of it: `ephemeral`, and the `dynamicTools` that
    dynamicToolCall items call.
    """

    model: str | None = None
    model_provider: str | None = None
    cwd: str | None = None
    approval_policy: ApprovalPolicy | None = None
    sandbox: SandboxMode | None = None
    personality: Personality | None = None
    service_name: str | None = None
    ephemeral: bool | None = None
    dynamic_tools: list[DynamicTool] | None = None


class ThreadStartResult(WireModel):
    """Result of `thread/start`: exactly these six keys; `sandbox` is the object, not the word."""

    thread: Thread
    model: str
    model_provider: str
    cwd: str
    approval_policy: ApprovalPolicy
    sandbox: SandboxPolicy


class ThreadResumeParams(WireModel):
    """Params of `thread/resume`; everything but the personality stays as the thread has it."""

    thread_id: str
    personality: Personality | None = None


class ThreadResumeResult(ThreadStartResult):
    """Result of `thread/resume`: the same as that of `thread/start`."""


class ThreadForkParams(WireModel):
    """Params of `thread/fork`."""

    thread_id: str


class ThreadForkResult(WireModel):
    """Result of `thread/fork`: a new thread with the copied history."""

    thread: Thread


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
