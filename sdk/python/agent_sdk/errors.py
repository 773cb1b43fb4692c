"""Errors of the SDK, all subclasses of AgentError. (TurnFailedError is in `result`.)

Every error can be pickled, and none shows the API key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class AgentError(Exception):
    """Base class of the SDK's errors."""

    def __reduce__(self) -> tuple[Callable[..., AgentError], tuple[Any, ...], dict[str, Any]]:
        return _rebuild, (type(self), self.args), dict(self.__dict__)


def _rebuild(kind: type[AgentError], args: tuple[Any, ...]) -> AgentError:
    error = kind.__new__(kind)
    error.args = args
    return error


class ConfigError(AgentError, ValueError):
    """An option or an input that cannot be passed to the agent. No process was started."""


class AgentNotFoundError(AgentError):
    """The program at `path` is missing or cannot be run. No process was started."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class ProcessError(AgentError):
    """The agent exited, or closed its output, before it reported the end of the turn.

    `exit_code` is its exit status, None if a signal ended it; `signal` is that signal's number,
    else None. `stderr` is the last part of its standard error.
    """

    def __init__(
        self, message: str, *, exit_code: int | None, signal: int | None, stderr: str
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.signal = signal
        self.stderr = stderr


class ProtocolError(AgentError):
    """The agent wrote a line that is not an event, or is too long.

    `line` is the beginning of that line, "" for one that is too long.
    """

    def __init__(self, message: str, line: str) -> None:
        super().__init__(message)
        self.line = line


class AbortError(AgentError):
    """The turn was ended by its `AbortSignal`; `reason` is the argument of `abort`."""

    name = "AbortError"

    def __init__(self, reason: object = None) -> None:
        super().__init__("the turn was aborted" + ("" if reason is None else f": {reason}"))
        self.reason = reason
