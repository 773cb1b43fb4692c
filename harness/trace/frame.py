"""One wire message: its bytes, its JSON, and where it came from."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from harness.protocol.escapes import visible
from harness.protocol.values import MISSING, obj, text
from harness.trace.excerpt import Spot, excerpt


class Direction(StrEnum):
    """The direction in which a frame travelled."""

    TO_TARGET = "to-target"
    FROM_TARGET = "from-target"


def opposite(direction: Direction) -> Direction:
    """Return the other direction."""
    return Direction.FROM_TARGET if direction is Direction.TO_TARGET else Direction.TO_TARGET


class Origin(StrEnum):
    """The author of a frame: blame follows the origin, never the direction."""

    HARNESS = "harness"
    TARGET = "target"


class Kind(StrEnum):
    """The form of a message (specification: "Message forms"), MALFORMED for any other line.

    ERROR is an answer that reports failure, in any form, as the specification shows none. EVENT
    is a line with a type from a program that writes events, INPUT is the program's input.
    """

    REQUEST = "request"
    RESPONSE = "response"
    ERROR = "error"
    NOTIFICATION = "notification"
    EVENT = "event"
    INPUT = "input"
    MALFORMED = "malformed"


# Returns the kind of a parsed line, given its direction; each surface has its own.
Classify = Callable[[Any, Direction], Kind]

# An object with no other member than these is not even an error answer.
SAYS_NOTHING: Final = frozenset({"id", "jsonrpc"})

# Longer lines are cut by the transport; the frame keeps the head and the length.
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024


class DamageKind(StrEnum):
    """Reasons why the bytes of a frame are not one whole message.

    TOO_LONG: a line over the limit, of which only the beginning was kept. CUT_OFF: the stream ended
    before the line did. BINARY: a WebSocket message that was not text. CLOSED: a WebSocket that
    was closed with an error code. BROKEN: not a WebSocket message. NOT_KEPT: a foreign
    recording holds only a part of the line. UNKNOWN: a trace of format 1, which describes it in
    words only.
    """

    TOO_LONG = "too-long"
    CUT_OFF = "cut-off"
    BINARY = "binary"
    CLOSED = "closed"
    BROKEN = "broken"
    NOT_KEPT = "not-kept"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Damage:
    """Damage to the bytes of a frame, with a description for people."""

    kind: DamageKind
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One message as it was on the wire.

    `at` is in seconds since the trace began; `raw` has no line end. `json` is the parsed value
    with the profile's renames applied, `MISSING` if the bytes are not JSON or are damaged; then
    `damage` describes the damage. `deliberate` marks a frame that a scenario made malformed
    on purpose (`send_raw`). `method` is "" and `params` an empty object if the message has none;
    they are attributes, since rules read them many times for each frame.
    """

    seq: int
    at: float
    connection: str
    direction: Direction
    origin: Origin
    raw: bytes
    json: Any
    kind: Kind
    deliberate: bool = False
    damage: Damage | None = None
    method: str = field(init=False, repr=False)
    params: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Read the members that rules use most."""
        message = obj(self.json)
        object.__setattr__(self, "method", text(message.get("method")))
        object.__setattr__(self, "params", message.get("params", {}))

    @property
    def id(self) -> Any:
        """The JSON-RPC id, `MISSING` if there is none."""
        return obj(self.json).get("id", MISSING)

    @property
    def result(self) -> Any:
        """The `result` member, `MISSING` if there is none."""
        return obj(self.json).get("result", MISSING)

    @property
    def error(self) -> Any:
        """The `error` member, `MISSING` if there is none."""
        return obj(self.json).get("error", MISSING)

    @property
    def failure(self) -> Any:
        """The failure in an ERROR: its `error` member, or the whole message if it has none."""
        return self.json if self.error is MISSING else self.error

    @property
    def from_target(self) -> bool:
        """Return whether the target wrote the frame."""
        return self.origin is Origin.TARGET

    def text(self, limit: int = 400, spots: Sequence[Spot] = ()) -> str:
        """Return the line as printable text, cut to about `limit` characters around `spots`."""
        if not spots and len(self.raw) > 8 * limit:
            head = visible(self.raw[: 8 * limit].decode("utf-8", "backslashreplace"))[:limit]
            tail = visible(self.raw[-limit:].decode("utf-8", "backslashreplace"))[-limit:]
            return f"{head} …{len(self.raw) - 2 * limit} bytes more… {tail}"
        return excerpt(self.raw.decode("utf-8", "backslashreplace"), spots, limit)


def json_error(raw: bytes) -> str:
    """Return why a line is not JSON, with the position (from 1) if it is known; "" if it is."""
    try:
        json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        wrong = raw[error.start : max(error.end, error.start + 1)].hex(" ")
        return f"no UTF-8 from byte {error.start + 1} on ({wrong})"
    except json.JSONDecodeError as error:
        return f"{error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError):
        return "nested too deep, or a number too long, to be read"
    return ""


def parse(raw: bytes) -> Any:
    """Return one line parsed as JSON, `MISSING` if it is not UTF-8 or not JSON."""
    try:
        return json.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        return MISSING


def classify(value: Any, _: Direction | None = None) -> Kind:
    """Return the form of a parsed JSON-RPC message; it is the same in both directions.

    An object with both `result` and `error` counts as RESPONSE: the rule
    `response.result-xor-error` judges it, and it still answers its request. An object with an
    id and neither of them reports failure in its own form, unless it is empty.
    """
    message = obj(value)
    if "method" in message:
        if not isinstance(message["method"], str):
            return Kind.MALFORMED
        return Kind.REQUEST if "id" in message else Kind.NOTIFICATION
    if "result" in message and "id" in message:
        return Kind.RESPONSE
    if "id" in message and (message.keys() - SAYS_NOTHING or "error" in message):
        return Kind.ERROR
    return Kind.MALFORMED
