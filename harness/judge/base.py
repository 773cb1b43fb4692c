"""The form of a rule, and finding all rules.

A rule is a pure, incremental monitor: it gets each frame it asked for once, with the conversation
up to and including that frame, and yields `Witness` where it judged something and found it right,
`Violation` where it found it wrong.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from harness.judge.verdict import Level, Place
from harness.protocol.spec.book import Book
from harness.trace.frame import Frame, Kind
from harness.trace.marks import MarkBody
from harness.trace.owed import Owed
from harness.trace.surface.base import Topic
from harness.trace.surfaces import SESSION
from harness.trace.trace import Mark, Trace
from harness.trace.views import Conversation


class Side(StrEnum):
    """The side that a rule judges: the server, or its client (a duty of clients).

    No run of a server is judged by the duties of clients: there the harness is the client.
    """

    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Witness:
    """The rule judged `subject` by these frames and found it right."""

    subject: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """The rule is broken for `subject`; `level` overrides the rule's for this one finding.

    `blame_harness` marks a defect of ours, for example a frame that we composed wrongly: it
    becomes an ERROR, never the target's failure. `clauses` names the requirements it speaks of,
    where the rule serves many; empty for all of them. `places` are the members that it is about
    (rules/shared/violations fills them in).
    """

    subject: str
    frames: tuple[Frame, ...]
    expected: str
    actual: str
    level: Level | None = None
    blame_harness: bool = False
    clauses: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()


Outcome = Witness | Violation
Outcomes = Iterable[Outcome] | None
# A handler takes its monitor and a frame, or a mark where it listens to marks.
Handler = Callable[[Any, Any], Outcomes]


class Monitor:
    """One rule over one connection of one trace. Subclasses add handlers with `on_*` decorators.

    Order is known only within a connection, and each subscribed connection gets its own copy of
    every notification; so every connection of a trace has monitors and a view of its own.
    `once` keeps the first violation of each subject of the whole trace and drops the rest.

    `book` is the judge's book, `conversation` the view of the trace so far, `owed` what is still
    open: the last two are its surface's, and those of the session where a rule does not say
    otherwise.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    level: ClassVar[Level]
    needs: ClassVar[tuple[str, ...]]
    surface: ClassVar[str] = SESSION
    also_on: ClassVar[tuple[str, ...]] = ()
    side: ClassVar[Side] = Side.SERVER
    once: ClassVar[bool] = False
    # True within a set-up step, whose witnesses do not count: the rule must find another one later.
    setup: bool = False

    def __init__(self, book: Book, conversation: Conversation, owed: Owed, trace: Trace) -> None:
        self.book = book
        self.conversation = conversation
        self.owed = owed
        self.trace = trace
        self.begin()

    def begin(self) -> None:
        """Set up the rule's own state; called once, before any frame."""

    def misses(self, mark: Mark[MarkBody]) -> None:
        """Take note of a mark of a class listened to that several connections could be about.

        It is not given to the handlers. A rule that draws something from what never came must not
        from then on, where what came may be in such a mark.
        """

    def finish(self) -> Outcomes:
        """Judge what never came; called once, at the end of a QUIESCENT trace."""
        return None


_RULES: dict[str, type[Monitor]] = {}
_NEEDS = {"exec": ("exec",), "command": ("mcp-command",)}
_ID = re.compile(r"[a-z][a-z-]*\.[a-z][a-z-]*")

M = TypeVar("M", bound=type[Monitor])
H = TypeVar("H", bound=Callable[..., Any])
S = TypeVar("S", bound=Monitor)
B = TypeVar("B", bound=MarkBody)
MarkHandler = Callable[[S, Mark[B]], Outcomes]


def rule(
    rule_id: str,
    *,
    title: str,
    level: Level,
    needs: tuple[str, ...] = (),
    surface: str = SESSION,
    also_on: tuple[str, ...] = (),
    side: Side = Side.SERVER,
) -> Callable[[M], M]:
    """Register a monitor class as the rule `family.slug`. A duplicate id raises.

    It judges the traces of its surface, and of those that it is `also_on`: then it must ask the
    view of its conversation for nothing, since each surface has another. It needs what every play
    on its surface needs; where it needs more, `needs` has all. `side` says whom it judges.
    """

    def register(monitor: M) -> M:
        if not _ID.fullmatch(rule_id):
            raise ValueError(f"rule id {rule_id!r}: expected family.slug in lower case")
        if rule_id in _RULES:
            raise ValueError(f"rule id {rule_id!r} is taken by {_RULES[rule_id].__qualname__}")
        monitor.id, monitor.title, monitor.level = rule_id, title, level
        monitor.needs = needs or _NEEDS.get(surface, ("core",))
        monitor.surface, monitor.also_on, monitor.side = surface, also_on, side
        _RULES[rule_id] = monitor
        return monitor

    return register


def judges(monitor: type[Monitor], surface: str) -> bool:
    """Return whether a rule judges the traces of a surface."""
    return surface in (monitor.surface, *monitor.also_on)


def on(*methods: str) -> Callable[[H], H]:
    """Listen to notifications and server requests of these methods, from the target."""
    return listen(*(("method", method) for method in methods))


def on_answer(*methods: str) -> Callable[[H], H]:
    """Listen to the target's answers (results and errors) to requests of these methods."""
    return listen(*(("answer", method) for method in methods))


def on_sent(*methods: str) -> Callable[[H], H]:
    """Listen to requests of these methods that the harness sent."""
    return listen(*(("sent", method) for method in methods))


def on_kind(*kinds: Kind) -> Callable[[H], H]:
    """Listen to every frame of these kinds from the target. Costly: called for every frame."""
    return listen(*(("kind", str(kind)) for kind in kinds))


def on_harness_message(handler: H) -> H:
    """Listen to every frame that the harness wrote."""
    return listen(("own", ""))(handler)


def on_mark(*bodies: type[B]) -> Callable[[MarkHandler[S, B]], MarkHandler[S, B]]:
    """Listen to marks of these classes that name the connection, or could be of no other.

    A mark that names no connection reaches the monitors while exactly one connection is open, that
    is, not ended by the harness. It has no order to the messages of several; while several are
    open, `misses` is told of it.
    """
    return listen(*(("mark", body.kind) for body in bodies))


def listen(*topics: Topic) -> Callable[[H], H]:
    """Listen to frames of these topics of the rule's surface."""

    def mark(handler: H) -> H:
        known: tuple[Topic, ...] = getattr(handler, "topics", ())
        handler.topics = (*known, *topics)  # pyright: ignore[reportFunctionMemberAccess]
        return handler

    return mark


def registered() -> dict[str, type[Monitor]]:
    """The rules whose modules were imported so far, by id, sorted."""
    return dict(sorted(_RULES.items()))
