"""The base class of rules, and the decorators that register them and their handlers.

A rule is a pure, incremental monitor: it gets each frame that it listens to once, with the
conversation up to and including that frame. It yields a `Witness` for each subject that kept the
rule and a `Violation` for each that broke it.
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
from harness.trace.obligations import ObligationLedger
from harness.trace.surface.base import Topic
from harness.trace.surfaces import SESSION
from harness.trace.trace import Mark, Trace
from harness.trace.views import Conversation


class Side(StrEnum):
    """The side that a rule judges: the server, or its client (a client duty).

    A run against a server does not apply the client duties: there the harness is the client.
    """

    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Witness:
    """Evidence, in these frames, that the rule was kept for `subject`."""

    subject: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """A breach of the rule for `subject`; `level` overrides the rule's level for this violation.

    `blame_harness` marks a defect of the harness, such as a malformed request: it becomes an ERROR,
    never a failure of the target. `clauses` names the requirements that are broken, if the rule
    serves several; empty for all of them. `places` are the members of messages concerned.
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
# A handler takes its monitor and a frame, or a mark if it listens to marks.
Handler = Callable[[Any, Any], Outcomes]


class Monitor:
    """One rule over one connection of one trace. Subclasses add handlers with `on_*` decorators.

    Each connection of a trace has its own monitors and view, since order is known only within a
    connection, and each subscribed connection gets its own copy of every notification. With `once`
    a rule has at most one finding per subject in the whole trace.

    `book` is the judge's book, `conversation` the view of the trace so far, `owed` the ledger of
    open obligations. View and ledger belong to the rule's surface, by default the session.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    level: ClassVar[Level]
    needs: ClassVar[tuple[str, ...]]
    surface: ClassVar[str] = SESSION
    also_on: ClassVar[tuple[str, ...]] = ()
    side: ClassVar[Side] = Side.SERVER
    once: ClassVar[bool] = False
    # True within a set-up step, whose witnesses do not count.
    setup: bool = False

    def __init__(
        self, book: Book, conversation: Conversation, owed: ObligationLedger, trace: Trace
    ) -> None:
        self.book = book
        self.conversation = conversation
        self.owed = owed
        self.trace = trace
        self.begin()

    def begin(self) -> None:
        """Set up the rule's own state; called once, before any frame."""

    def on_missed_mark(self, mark: Mark[MarkBody]) -> None:
        """Handle a mark that could belong to any of several connections; no handler gets it.

        After this mark, do not treat a missing message as a violation.
        """

    def finish(self) -> Outcomes:
        """Return outcomes for missing messages; called once, at the end of a QUIESCENT trace."""
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
    """Register a monitor class as the rule `family.slug`.

    The rule judges traces of `surface` and of those in `also_on`; with `also_on` it must not use
    `conversation`, since each surface has its own view. `needs` lists all capabilities that it
    needs, by default those of every play on its surface. Raises `ValueError` for a bad or taken id.
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


def judges_surface(monitor: type[Monitor], surface: str) -> bool:
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
    """Listen to marks of these classes that name the connection, or can belong to no other.

    A mark that names no connection is handled only while exactly one connection is open, that is,
    not ended by the harness. Among several it has no order relative to their messages, so
    `on_missed_mark` is called instead.
    """
    return listen(*(("mark", body.kind) for body in bodies))


def listen(*topics: Topic) -> Callable[[H], H]:
    """Listen to frames of these topics of the rule's surface."""

    def mark(handler: H) -> H:
        topics_before: tuple[Topic, ...] = getattr(handler, "topics", ())
        handler.topics = (*topics_before, *topics)  # pyright: ignore[reportFunctionMemberAccess]
        return handler

    return mark


def registered_rules() -> dict[str, type[Monitor]]:
    """Return the rules whose modules have been imported, sorted by id."""
    return dict(sorted(_RULES.items()))
