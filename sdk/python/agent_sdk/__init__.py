"""Drive the `agent` command line from Python.

>>> thread = Agent().start_thread(working_directory="project")  # doctest: +SKIP
>>> result = await thread.run("What does this project do?")  # doctest: +SKIP
>>> print(result.final_response)  # doctest: +SKIP

Each turn is one run of the agent, a child process; nothing else is needed at run time.
"""

from agent_sdk.abort import AbortSignal
from agent_sdk.agent import Agent
from agent_sdk.errors import (
    AbortError,
    AgentError,
    AgentNotFoundError,
    ConfigError,
    ProcessError,
    ProtocolError,
)
from agent_sdk.events import (
    ItemCompletedEvent,
    ItemStartedEvent,
    ItemUpdatedEvent,
    ThreadError,
    ThreadErrorEvent,
    ThreadEvent,
    ThreadStartedEvent,
    TurnCompletedEvent,
    TurnFailedEvent,
    TurnStartedEvent,
    UnknownEvent,
    Usage,
)
from agent_sdk.inputs import Input, LocalImageInput, TextInput, UserInput
from agent_sdk.items import (
    AgentMessageItem,
    CommandExecutionItem,
    ErrorItem,
    FileChange,
    FileChangeItem,
    McpToolCallItem,
    ReasoningItem,
    ThreadItem,
    TodoItem,
    TodoListItem,
    UnknownItem,
    WebSearchItem,
)
from agent_sdk.options import ApprovalMode, ModelReasoningEffort, SandboxMode, WebSearchMode
from agent_sdk.result import RunResult, TurnFailedError
from agent_sdk.stream import RunStreamedResult
from agent_sdk.sync import SyncRunStreamedResult
from agent_sdk.thread import Thread

__version__ = "0.1.0"

__all__ = [
    "AbortError",
    "AbortSignal",
    "Agent",
    "AgentError",
    "AgentMessageItem",
    "AgentNotFoundError",
    "ApprovalMode",
    "CommandExecutionItem",
    "ConfigError",
    "ErrorItem",
    "FileChange",
    "FileChangeItem",
    "Input",
    "ItemCompletedEvent",
    "ItemStartedEvent",
    "ItemUpdatedEvent",
    "LocalImageInput",
    "McpToolCallItem",
    "ModelReasoningEffort",
    "ProcessError",
    "ProtocolError",
    "ReasoningItem",
    "RunResult",
    "RunStreamedResult",
    "SandboxMode",
    "SyncRunStreamedResult",
    "TextInput",
    "Thread",
    "ThreadError",
    "ThreadErrorEvent",
    "ThreadEvent",
    "ThreadItem",
    "ThreadStartedEvent",
    "TodoItem",
    "TodoListItem",
    "TurnCompletedEvent",
    "TurnFailedError",
    "TurnFailedEvent",
    "TurnStartedEvent",
    "UnknownEvent",
    "UnknownItem",
    "Usage",
    "UserInput",
    "WebSearchItem",
    "WebSearchMode",
]
