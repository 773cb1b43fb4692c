"""`faults:` of a scenario: failures between the server and its client."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Discriminator, Field, Tag

from harness.model.strict import Strict

Operation = Literal["fault", "drop", "duplicate", "delay", "reorder", "cut", "inject"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
"""The kinds of entries; each entry has exactly one of these keys."""

Side = Literal["server", "client"]
Problem = tuple[tuple[str | int, ...], str]

Method = Annotated[str, Field(min_length=1)]
_Number = Annotated[int, Field(ge=1, le=1000)]


class Pick(Strict):
    """A message: by its method, the request that it answers, the type of its item, its side.

    `nth`, counted from 1, selects one of the messages that fit; without it all are meant.
    """

    method: Method | None = None
    answer_to: Method | None = None
    item: Annotated[str, Field(min_length=1, json_schema_extra={"word": "item type"})] | None = None
    side: Side = Field(default="server", alias="from")
    nth: _Number | None = None


def _form_tag(value: object) -> str:
    return "mapping" if isinstance(value, dict | BaseModel) else "method"


Picked = Annotated[
    Annotated[Method, Tag("method")] | Annotated[Pick, Tag("mapping")], Discriminator(_form_tag)
]
# A JSON message, or a raw line.
Injected = Annotated[
    Annotated[str, Tag("method")] | Annotated[dict[str, Any], Tag("mapping")],
    Discriminator(_form_tag),
]


class FaultEntry(Strict):
    """One fault: a key of `OPERATIONS` and its options.

    `until` or `messages` says how late a delayed message comes, `behind` and `to` where an injected
    one goes. The first `after` places are skipped; with `once` only one place is changed.
    """

    fault: Annotated[str, Field(min_length=1)] | None = None
    drop: Picked | None = None
    duplicate: Picked | None = None
    delay: Picked | None = None
    reorder: Picked | None = None
    cut: Picked | None = None
    inject: Injected | None = None
    until: Picked | None = None
    messages: _Number | None = None
    behind: Picked | None = None
    to: Side = "client"
    after: Annotated[int, Field(ge=0, le=1000)] = 0
    once: bool = False

    @property
    def operation(self) -> Operation:
        """Return the key of `OPERATIONS` that is set."""
        return next(operation for operation in OPERATIONS if operation in self.model_fields_set)

    @property
    def target(self) -> Pick | None:
        """Return the message that the fault acts on; None for a fault given by name."""
        name = "behind" if self.operation == "inject" else self.operation
        return None if name == "fault" else as_pick(getattr(self, name))

    def picks(self) -> Iterator[tuple[str, "str | Pick"]]:
        """Yield each key that picks a message, with its value."""
        for key in (*OPERATIONS, "until", "behind"):
            value = getattr(self, key)
            if value is not None and key not in ("fault", "inject"):
                yield key, value


def as_pick(value: str | Pick) -> Pick:
    """Return the long form of a message that may be given by its method alone."""
    return Pick(method=value) if isinstance(value, str) else value


_GOES_WITH: dict[str, Operation] = {
    "until": "delay",
    "messages": "delay",
    "behind": "inject",
    "to": "inject",
}


def find_fault_mistake(
    entries: list[FaultEntry], surfaces: list[Any], raced: bool
) -> Problem | None:
    """Return the place and reason of the first mistake that types cannot express, or None."""
    if entries and surfaces != ["session"]:
        return ("faults",), "faults are between a client and a server: write surfaces: [session]"
    if entries and raced:
        return ("faults",), "a scenario with faults is not raced: leave one of the two out"
    for index, entry in enumerate(entries):
        problem = _entry_mistake(entry)
        if problem is not None:
            return ("faults", index, *problem[0]), problem[1]
    return None


def _entry_mistake(entry: FaultEntry) -> Problem | None:
    keys = entry.model_fields_set
    operations = [operation for operation in OPERATIONS if operation in keys]
    if len(operations) != 1:
        found_operations = f"found {' and '.join(operations)}" if operations else "found none"
        return (), f"expected exactly one of {', '.join(OPERATIONS)}; {found_operations}"
    operation = operations[0]
    for key, required in _GOES_WITH.items():
        if key in keys and operation != required:
            return (key,), f"{key} goes with {required}"
    if operation == "delay" and ("until" in keys) == ("messages" in keys):
        return (operation,), "delay takes one of until (a message) and messages (a number)"
    if operation == "inject" and "behind" not in keys:
        return (operation,), "inject takes behind: the message that it comes after"
    for key, value in entry.picks():
        problem = _pick_mistake(value, entry) if isinstance(value, Pick) else None
        if problem is not None:
            return (key, *problem[0]), problem[1]
    return None


def _pick_mistake(pick: Pick, entry: FaultEntry) -> Problem | None:
    if pick.method is None and pick.answer_to is None and pick.item is None:
        return (), "expected one of method, answer_to and item at least"
    if pick.method is not None and pick.answer_to is not None:
        return ("answer_to",), "an answer has no method: write method or answer_to"
    if pick.nth is not None and (entry.after or entry.once):
        return ("nth",), "nth means one message: leave after and once out"
    return None
