"""The `sdk` step of a scenario, as a pydantic model.

Scenarios on the surface `sdk` have no other steps.
"""

from typing import Any, Literal

from pydantic import Field

from harness.model.strict import Strict


class SdkTurn(Strict):
    """A turn: the call, and the output and exit status of the scripted agent.

    `input` and `options` are those of the call, by their names in the specification. `abort` says
    when the signal is aborted: before the call, or during the turn, which the agent then never
    ends.
    """

    call: Literal["run", "runStreamed"] = "run"
    input: Any = "hello"
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    abort: Literal["", "before", "during"] = ""
    writes: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    status: int = Field(default=0, ge=0, le=125)
    stderr: str = ""


class Sdk(Strict):
    """A run of the driver: a client with the options `agent`, a thread, and its turns.

    `thread` has the options of the thread; it is new unless `resume` has the id of one. The option
    `agentPathOverride` is the scripted agent by default; `null` leaves it out and puts the agent on
    PATH. `process` has variables of the driver's own environment.
    """

    agent: dict[str, Any] = Field(default_factory=dict[str, Any])
    thread: dict[str, Any] = Field(default_factory=dict[str, Any])
    resume: str | None = None
    process: dict[str, str] = Field(default_factory=dict[str, str])
    turns: list[SdkTurn] = Field(min_length=1)


class SdkStep(Strict):
    """`sdk: {thread: {model: m-1}, turns: [{input: hello, writes: [{type: turn.started}]}]}`"""

    sdk: Sdk
