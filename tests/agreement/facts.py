"""Facts of a schema about each place in a message, in the same form for book and models.

A place is written as `turn.items[].<agentMessage>.text`: `[]` is any element, `<x>` stands for the
members of an object with the `type` x.
"""

from dataclasses import dataclass, field

ANY = frozenset({"any"})


@dataclass
class Fact:
    """Facts of one place: JSON types, listed values if any, pattern, whether it is required.

    `label` is the place relative to the nearest type that the book names, such as `Turn.items`.
    The type `integer` differs from `number`: it means that only whole numbers are valid.
    """

    label: str
    required: bool
    types: frozenset[str] = ANY
    values: frozenset[str] | None = None
    pattern: str | None = None


@dataclass
class Facts:
    """All places of one message; `variants` maps places whose members depend on `type` to types.

    `conditions` are the book's rules that depend on another member; no model has such rules.
    """

    places: dict[str, Fact] = field(default_factory=dict[str, Fact])
    variants: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    conditions: set[str] = field(default_factory=set[str])

    def note(self, place: str, label: str, required: bool) -> Fact:
        """Return the fact of a place, adding it if new; required if any call says so."""
        fact = self.places.setdefault(place, Fact(label, required))
        fact.required = fact.required or required
        return fact

    def variant(self, place: str, value: str) -> str:
        """Add a value of `type` at a place; return the place of the members that belong to it."""
        self.variants.setdefault(place, set()).add(value)
        return f"{place}.<{value}>"


def differences(book: Facts, wire: Facts) -> set[str]:
    """Each place of which the two say something else, as `label: book ...; wire ...`.

    What lies within a place that only one of them has is not told apart.
    """
    found = {f"{condition}: only in the book" for condition in book.conditions}
    lone = book.places.keys() ^ wire.places.keys()
    variants = {
        place: (book.variants.get(place, set()), wire.variants.get(place, set()))
        for place in book.variants.keys() | wire.variants.keys()
        if not lone.intersection((place, *_above(place)))
    }
    for place, (ours, theirs) in variants.items():
        label = label_of(book, place)
        found |= {f"{label}.<{value}>: only in the book" for value in ours - theirs}
        found |= {f"{label}.<{value}>: only in the wire" for value in theirs - ours}
    for place in book.places.keys() | wire.places.keys():
        if place.endswith("[]") and _says_nothing(book, wire, place):
            continue
        if any(above in lone for above in _above(place)):
            continue
        mine, other = book.places.get(place), wire.places.get(place)
        if mine is None or other is None:
            if place in lone and not place.endswith(">"):
                side = "wire" if mine is None else "book"
                found.add(f"{label_of(book, place)}: only in the {side}")
        elif place.removesuffix(".type") not in variants:
            found |= _compare(mine, other)
    return found


def _says_nothing(book: Facts, wire: Facts, place: str) -> bool:
    """Elements that one side leaves out and the other lets be anything are the same."""
    facts = (book.places.get(place), wire.places.get(place))
    return all(fact is None or (fact.types, fact.values) == (ANY, None) for fact in facts)


def _above(place: str) -> list[str]:
    """The places around a place; the message itself is none."""
    ends = [index for index, char in enumerate(place) if char in ".[" and index]
    return [place[:end] for end in ends]


def label_of(book: Facts, place: str) -> str:
    """Return the book's name of a place, or the nearest parent's name and the rest of the path."""
    near = place
    while near not in book.places:
        near = (_above(near) or [""])[-1]
    return book.places[near].label + place[len(near) :]


def _compare(book: Fact, wire: Fact) -> set[str]:
    found: set[str] = set()
    if book.required != wire.required:
        word = {True: "required", False: "optional"}
        found.add(f"{book.label}: book {word[book.required]}; wire {word[wire.required]}")
    if book.types != wire.types:
        found.add(f"{book.label}: book {_join(book.types)}; wire {_join(wire.types)}")
    if book.values != wire.values:
        found.add(f"{book.label}: book {_listed(book.values)}; wire {_listed(wire.values)}")
    if book.pattern != wire.pattern:
        found.add(f"{book.label}: book {book.pattern}; wire {wire.pattern}")
    return found


def _join(names: frozenset[str]) -> str:
    return "|".join(sorted(names))


def _listed(values: frozenset[str] | None) -> str:
    return "open" if values is None else "{" + ",".join(sorted(values)) + "}"
