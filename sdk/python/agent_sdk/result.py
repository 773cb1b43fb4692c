"""Outcomes of a buffered turn: a result, or the error of a failed turn."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from agent_sdk.errors import AgentError
from agent_sdk.events import Usage
from agent_sdk.items import ThreadItem
from agent_sdk.schema import parse

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(Generic[T]):
    """A completed turn.

    `final_response` is the text of the last agent message, "" if there is none; with an output
    schema it is JSON. `items` are the completed items in order; `usage` is None if not reported.
    """

    final_response: str
    items: tuple[ThreadItem, ...]
    usage: Usage | None
    output_type: type | None = field(default=None, repr=False)

    def parse(self) -> T:
        """Return the final response as an instance of the type passed as `output_schema`.

        Without such a type, return its JSON value. Raises AgentError if it is invalid.
        """
        value: Any = parse(self.final_response, self.output_type)
        return value


class TurnFailedError(AgentError):
    """The agent reported that the turn failed; its reason is the text of this error.

    `items` are the items completed before, `usage` the tokens (None if not reported), `stderr` the
    last part of the agent's standard error.
    """

    def __init__(
        self,
        message: str,
        *,
        thread_id: str | None,
        items: tuple[ThreadItem, ...],
        usage: Usage | None,
        stderr: str,
    ) -> None:
        super().__init__(message)
        self.thread_id = thread_id
        self.items = items
        self.usage = usage
        self.stderr = stderr

    @property
    def message(self) -> str:
        """Return the reason that the agent gave."""
        return str(self)
