"""Generated requests: every method of a client, with valid, nearly valid or wrong params.

They are made from the specification's tables and schemas, not from any server.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

from hypothesis import strategies as st

from harness.errors import UsageError
from harness.protocol.spec.book import Book
from harness.search.fuzz.values import NONSENSE, NUMBERS, TEXTS, THREAD, Json, valid_values
from harness.trace.nearest import unknown_name


@dataclass(frozen=True, slots=True)
class Request:
    """A request to send; if `patient`, the turn that it starts is awaited."""

    method: str
    params: Any
    patient: bool = True


# Params that the specification does not give; our choice is the open point
# thread-operations.params.
_OUR_PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "threadId": st.just(THREAD),
        "name": TEXTS,
        "numTurns": NUMBERS,
        "cursor": TEXTS,
        "limit": NUMBERS,
        "clientInfo": st.just({"name": "fuzz", "version": "1"}),
    },
)


def valid_params(book: Book, method: str) -> st.SearchStrategy[Any]:
    """Return a strategy for valid params; if the specification gives none, for our own choice."""
    row = book.method(method)
    if row is None or row.params is None:
        return _OUR_PARAMS
    return valid_values(book.schemas, row.params)


@st.composite
def _spoil(draw: st.DrawFn, sound: st.SearchStrategy[Any]) -> Any:
    params: Json = deepcopy(draw(sound))
    holder = params
    # Sometimes spoil a nested object or array.
    inner = [cast(Json | list[Any], v) for v in params.values() if isinstance(v, dict | list) and v]
    if inner and draw(st.booleans()):
        chosen = draw(st.sampled_from(inner))
        if isinstance(chosen, list):
            chosen[0] = draw(NONSENSE)
            return params
        holder = chosen
    name = draw(st.sampled_from([*sorted(holder), "threadId", "extra"]))
    match draw(st.sampled_from(["drop", "replace", "nest"])):
        case "drop":
            holder.pop(name, None)
        case "nest":
            holder[name] = [holder.get(name)]
        case _:
            holder[name] = draw(NONSENSE)
    return params


def methods(book: Book) -> list[str]:
    """Return the requests of a client; core ones several times, since they start turns."""
    every = [row.method for row in book.methods if row.direction == "client-to-server"]
    return every + 3 * [row.method for row in book.methods if row.capability == "core"]


def check_method(book: Book, name: str) -> None:
    """Raise `UsageError` unless `name` is "" or a request of a client."""
    known_methods = sorted(set(methods(book)))
    if name and name not in known_methods:
        raise UsageError(f"--method: {unknown_name('request', name, known_methods)}")


def nearly_valid_params(book: Book, method: str) -> st.SearchStrategy[Any]:
    """Return a strategy for valid params with one defect: missing, mistyped, nested or added."""
    return _spoil(valid_params(book, method))


def requests(book: Book, only: str = "") -> st.SearchStrategy[Request]:
    """Return a strategy for requests, of `only` if given: valid, nearly valid, or nonsense."""

    def of(method: str) -> st.SearchStrategy[Request]:
        sound, near = valid_params(book, method), nearly_valid_params(book, method)
        # Not `one_of`, which would choose among the kinds of nonsense, too.
        kinds = [sound, sound, sound, near, near, NONSENSE]
        params = st.sampled_from(range(len(kinds))).flatmap(kinds.__getitem__)
        return st.builds(Request, st.just(method), params, st.booleans())

    strategies = {method: of(method) for method in methods(book)}
    return of(only) if only else st.sampled_from(methods(book)).flatmap(strategies.__getitem__)
