"""Steps of the client's side of a scenario, as pydantic models.

Fields with the same name mean the same everywhere, and the loader checks them by that name:
`thread` and `turn` name a thread or turn of an earlier step, `as` names the result, `on` names a
connection, and texts like `$t.thread.id` in `params`, `input`, `where`, `message` and `result` are
references to earlier results.
"""

from base64 import b64decode
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from harness.model.strict import Alias, Strict, single_key
from harness.protocol.wire.methods import BY_METHOD
from harness.scenario.command_steps import McpAtOnceStep, McpStep
from harness.scenario.lexicon import Kind
from harness.scenario.sdk_steps import SdkStep
from harness.trace.time_limits import parse_duration

STATUSES = ("completed", "interrupted", "failed")
"""The statuses of an ended turn in the protocol; `extensions` of a file may name others."""
Answers = Literal["result", "error", "any"]
MAIN_CONNECTION = "main"


def protocol_word(kind: Kind) -> Any:
    """Return a pydantic field for a protocol name of this kind; the loader checks such names."""
    return Field(min_length=1, json_schema_extra={"word": kind})


def _status_tag(value: object) -> str:
    return "list" if isinstance(value, list) else "one"


# The valid statuses depend on the file's `extensions`, so the loader checks them, not pydantic.
_Status = Annotated[
    str,
    WithJsonSchema({"anyOf": [{"enum": list(STATUSES)}, {"type": "string", "pattern": "."}]}),
]
Statuses = Annotated[
    Annotated[_Status, Tag("one")] | Annotated[list[_Status], Tag("list")],
    Discriminator(_status_tag),
]


class OnConnection(Strict):
    """The connection of a step: the first one, or the one that `on` names."""

    on: Alias = MAIN_CONNECTION


class StartThread(OnConnection):
    """Start a thread; `params` are added to the settings."""

    alias: Alias = Field(alias="as")
    params: dict[str, Any] = Field(default_factory=dict[str, Any])


class StartTurn(OnConnection):
    """Start a turn with a text or with whole input items; `params` are further parameters."""

    thread: Alias
    alias: Alias = Field(alias="as")
    text: str | None = None
    input: list[dict[str, Any]] | None = None
    params: dict[str, Any] = Field(default_factory=dict[str, Any])

    @model_validator(mode="after")
    def _check_one_input(self) -> "StartTurn":
        if (self.text is None) == (self.input is None):
            raise ValueError("expected exactly one of text and input")
        return self


class Interrupt(OnConnection):
    """Interrupt a turn."""

    turn: Alias


class Steer(OnConnection):
    """Add input to a running turn; `params` override the sent ones, for example a wrong turn id."""

    turn: Alias
    text: str
    params: dict[str, Any] = Field(default_factory=dict[str, Any])
    expect: Answers = "result"
    alias: Alias | None = Field(default=None, alias="as")


class ReadThread(OnConnection):
    """Read a thread."""

    thread: Alias
    include_turns: bool = False


class Request(OnConnection):
    """Any request. `deliberate`: it is wrong on purpose; `wait: false`: do not wait for the answer.

    `where` maps dotted paths in the result to values that they must have.
    """

    method: str = protocol_word("request")
    params: Any = Field(default_factory=dict[str, Any])
    alias: Alias | None = Field(default=None, alias="as")
    expect: Answers = "result"
    where: dict[str, Any] = Field(default_factory=dict[str, Any])
    deliberate: bool = False
    wait: bool = True

    @model_validator(mode="after")
    def _check_wait_and_where(self) -> "Request":
        if not self.wait and self.alias is None:
            raise ValueError("wait: false needs as, so that a later step can wait for the answer")
        if self.where and (self.expect != "result" or not self.wait):
            raise ValueError("where is about a result that the step waits for")
        return self


class Notify(OnConnection):
    """Any notification."""

    method: str = protocol_word("notification")
    params: Any = None
    deliberate: bool = False


class SendRaw(OnConnection):
    """Bytes to send unchanged: `line` is a text plus line end, `bytes` a text, `hex` hex digits."""

    line: str | None = None
    text: str | None = Field(default=None, alias="bytes")
    hex: str | None = None

    @model_validator(mode="after")
    def _check_one_form(self) -> "SendRaw":
        if sum(value is not None for value in (self.line, self.text, self.hex)) != 1:
            raise ValueError("expected exactly one of line, bytes and hex")
        try:
            bytes.fromhex(self.hex or "")
        except ValueError:
            raise ValueError(f"hex: {self.hex!r} is no row of pairs of hex digits") from None
        return self

    @property
    def raw(self) -> bytes:
        """Return the bytes to write."""
        if self.hex is not None:
            return bytes.fromhex(self.hex)
        return (f"{self.line}\n" if self.line is not None else self.text or "").encode()


class AnswerError(Strict):
    """A JSON-RPC error as the answer."""

    code: int = -32000
    message: str = "refused by the scenario"


class Answer(OnConnection):
    """Wait for a server request and answer it; `where` selects one of several.

    `deliberate`: the answer is wrong on purpose. `standing` does not wait: every such request from
    now on gets this answer. `again` answers a request a second time.
    """

    to: str = protocol_word("request of the server")
    standing: bool = False
    again: bool = False
    where: dict[str, Any] = Field(default_factory=dict[str, Any])
    decision: Any = None
    result: Any = None
    error: AnswerError | None = None
    deliberate: bool = False
    alias: Alias | None = Field(default=None, alias="as")

    @model_validator(mode="after")
    def _check_one_answer(self) -> "Answer":
        if len({"decision", "result", "error"} & self.model_fields_set) != 1:
            raise ValueError("expected exactly one of decision, result and error")
        if self.standing and self.alias is not None:
            raise ValueError("as goes with one request; a standing answer is for any number")
        if self.standing and self.again:
            raise ValueError("again goes with one request; a standing answer is for any number")
        return self


class ModelWait(Strict):
    """The model call of that number (from 1) was made; with `ended`, its stream is over."""

    call: int = Field(ge=1)
    ended: bool = False


ServerNotification = Annotated[str, protocol_word("notification of the server")]
WAIT_KINDS = ("turn", "idle", "notification", "request", "answer", "message", "gate", "model")
# A duration is a text in a file, and seconds in the model.
Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)? ?(ms|s)$"}),
]


class Wait(OnConnection):
    """Wait for one thing that the server, or the model's side, does.

    `turn`: its end; `status` lists the accepted ends. `idle`: no turn of the thread is running, and
    its last reported status is not active. `notification`, `request`: a message of the server;
    `where` maps dotted paths in its params to values; of a list of notifications the first to
    arrive counts; with `or_silence` the script continues without one when the server is silent
    about turns for the profile's `settle` seconds. `answer`: the answer to a request sent with
    `wait: false`. `message`: any message, by dotted paths in it. `gate`: a gate that the model's
    stream or a command reached. `model`: a call. `within` limits the seconds from the message of
    the step before to the awaited one.
    """

    turn: Alias | None = None
    status: Statuses | None = None
    idle: Alias | None = None
    notification: (
        ServerNotification | Annotated[list[ServerNotification], Field(min_length=1)] | None
    ) = None
    request: Annotated[str, protocol_word("request of the server")] | None = None
    where: dict[str, Any] = Field(default_factory=dict[str, Any])
    or_silence: bool = False
    answer: Alias | None = None
    message: dict[str, Any] | None = None
    gate: str | None = None
    model: ModelWait | None = None
    within: Duration | None = None
    alias: Alias | None = Field(default=None, alias="as")

    @property
    def statuses(self) -> tuple[str, ...]:
        """Return the accepted ends of the turn; empty for any."""
        if self.status is None:
            return ()
        return (self.status,) if isinstance(self.status, str) else tuple(self.status)

    @property
    def awaited_kinds(self) -> list[str]:
        """Return the keys of the step that are set, which name its target."""
        return [name for name in WAIT_KINDS if getattr(self, name) is not None]


class SlowReader(OnConnection):
    """Stop reading from a connection, or read on."""

    reading: bool


class LookAt(Strict):
    """Look at a file of the server, and note whether it is there, and which bytes it has."""

    path: str = Field(min_length=1)


class SearchHome(Strict):
    """Search the server's home for texts, and note which files have them."""

    texts: list[str] = Field(min_length=1)


class WriteFile(Strict):
    """Write a file below the workspace or the server's home: a `text`, or bytes by `base64`."""

    path: str = Field(min_length=1)
    text: str | None = None
    base64: str | None = None

    @model_validator(mode="after")
    def _check_one_content(self) -> "WriteFile":
        if (self.text is None) == (self.base64 is None):
            raise ValueError("expected exactly one of text and base64")
        try:
            b64decode(self.base64 or "", validate=True)
        except ValueError:
            raise ValueError("base64: these are not the bytes of a file in base64") from None
        return self

    @property
    def content(self) -> bytes:
        """Return the bytes to write."""
        return b64decode(self.base64) if self.base64 is not None else (self.text or "").encode()


class RemoveFile(Strict):
    """Remove a file below the workspace or the server's home."""

    path: str = Field(min_length=1)


class StartThreadStep(Strict):
    """`start_thread: {as: t}`"""

    start_thread: StartThread


class StartTurnStep(Strict):
    """`start_turn: {thread: t, text: "…", as: u}`"""

    start_turn: StartTurn


class InterruptStep(Strict):
    """`interrupt: {turn: u}`"""

    interrupt: Interrupt


class SteerStep(Strict):
    """`steer: {turn: u, text: "…"}`"""

    steer: Steer


class ReadThreadStep(Strict):
    """`read_thread: {thread: t, include_turns: true}`"""

    read_thread: ReadThread


class RequestStep(Strict):
    """`request: {method: thread/list, params: {limit: 1}, as: page}`"""

    request: Request


class NotifyStep(Strict):
    """`notify: {method: initialized}`"""

    notify: Notify


class SendRawStep(Strict):
    """`send_raw: {line: "{broken"}`"""

    send_raw: SendRaw


class AnswerStep(Strict):
    """`answer: {to: item/commandExecution/requestApproval, decision: accept}`"""

    answer: Answer


class WaitStep(Strict):
    """`wait: {turn: u, status: completed}`"""

    wait: Wait


class OpenStep(Strict):
    """`open: GATE`"""

    open: str = Field(min_length=1)


class RestartStep(Strict):
    """`restart: true`: end the server as a user would and start it again over the same home."""

    restart: Literal[True]


class KillStep(Strict):
    """`kill: true`: the server is killed at once."""

    kill: Literal[True]


class ModelListensStep(Strict):
    """`model_listens: false`: the model's address refuses connections; `true`: it takes them."""

    model_listens: bool


class DisconnectStep(Strict):
    """`disconnect: true`, or `disconnect: NAME`: end a connection."""

    disconnect: Literal[True] | Alias

    @property
    def name(self) -> str:
        """Return the connection's name."""
        return MAIN_CONNECTION if self.disconnect is True else self.disconnect


class ConnectStep(Strict):
    """`connect: NAME`: a further connection to the same server."""

    connect: Alias


class SlowReaderStep(Strict):
    """`slow_reader: {reading: false}`, and later `slow_reader: {reading: true}`"""

    slow_reader: SlowReader


class LookAtStep(Strict):
    """`look_at: {path: $t.thread.path}`"""

    look_at: LookAt


class SearchHomeStep(Strict):
    """`search_home: {texts: [$t.thread.id, "what was said"]}`"""

    search_home: SearchHome


class WriteFileStep(Strict):
    """`write_file: {path: "{cwd}/{agent}/skills/tally/SKILL.md", text: "# tally\\n"}`"""

    write_file: WriteFile


class RemoveFileStep(Strict):
    """`remove_file: {path: "{cwd}/notes.txt"}`"""

    remove_file: RemoveFile


ClientStep = Annotated[
    Annotated[StartThreadStep, Tag("start_thread")]
    | Annotated[StartTurnStep, Tag("start_turn")]
    | Annotated[InterruptStep, Tag("interrupt")]
    | Annotated[SteerStep, Tag("steer")]
    | Annotated[ReadThreadStep, Tag("read_thread")]
    | Annotated[RequestStep, Tag("request")]
    | Annotated[NotifyStep, Tag("notify")]
    | Annotated[SendRawStep, Tag("send_raw")]
    | Annotated[AnswerStep, Tag("answer")]
    | Annotated[WaitStep, Tag("wait")]
    | Annotated[OpenStep, Tag("open")]
    | Annotated[RestartStep, Tag("restart")]
    | Annotated[KillStep, Tag("kill")]
    | Annotated[ModelListensStep, Tag("model_listens")]
    | Annotated[DisconnectStep, Tag("disconnect")]
    | Annotated[ConnectStep, Tag("connect")]
    | Annotated[SlowReaderStep, Tag("slow_reader")]
    | Annotated[LookAtStep, Tag("look_at")]
    | Annotated[SearchHomeStep, Tag("search_home")]
    | Annotated[WriteFileStep, Tag("write_file")]
    | Annotated[McpStep, Tag("mcp")]
    | Annotated[McpAtOnceStep, Tag("mcp_at_once")]
    | Annotated[SdkStep, Tag("sdk")]
    | Annotated[RemoveFileStep, Tag("remove_file")],
    Discriminator(single_key),
]

# The steps that are requests of one method.
METHOD_OF_STEP = {
    "start_thread": "thread/start",
    "start_turn": "turn/start",
    "interrupt": "turn/interrupt",
    "steer": "turn/steer",
    "read_thread": "thread/read",
}


@lru_cache(maxsize=500)
def result_has(method: str, member: Literal["thread", "turn"]) -> bool:
    """Return whether the result of a method has a `thread` or `turn`, according to its wire model.

    `as` of such a request then names the thread or turn.
    """
    row = BY_METHOD.get(method)
    return row is not None and row.result is not None and member in row.result.model_fields


def thread_alias_of(step: ClientStep) -> str | None:
    """Return the alias that a step gives to a new thread, or None."""
    match step:
        case StartThreadStep(start_thread=body):
            return body.alias
        case RequestStep(request=body) if result_has(body.method, "thread"):
            return body.alias
        case _:
            return None


def turn_alias_of(step: ClientStep) -> str | None:
    """Return the alias that a step gives to a new turn, or None."""
    match step:
        case StartTurnStep(start_turn=body):
            return body.alias
        case RequestStep(request=body) if result_has(body.method, "turn"):
            return body.alias
        case _:
            return None
