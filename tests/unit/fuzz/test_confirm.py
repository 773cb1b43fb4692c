"""Follow-up of a failure: confirmation, shrinking, and flakiness; without a server."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from harness.scenario.steps.context import Cast
from harness.search.fuzz.sessions.confirm import make_small
from harness.search.fuzz.sessions.play import Played, Problem
from harness.trace.marks import StepBegins

Json = dict[str, Any]
WRONG = Problem("turn.completes", "turn.completes: it does not")


def session(*names: str) -> Json:
    """A document with a request for each name."""
    return {"title": "x", "client": [{"request": {"method": name}} for name in names]}


def names_of(document: Json) -> list[str]:
    return [step["request"]["method"] for step in document["client"]]


class Plays:
    """Plays of documents on a server that fails on the requests that a function picks.

    The function is also given how often the document was played on a fresh process, 0 for a play on
    one that was used before.
    """

    at_once = 2

    def __init__(self, wrong: Callable[[list[str], int], bool]) -> None:
        self._wrong = wrong
        self._fresh: dict[str, int] = {}

    def play(self, document: Json, *, fresh: bool = False, bound: float | None = None) -> Played:
        number = 0
        if fresh:
            number = self._fresh[repr(document)] = self._fresh.get(repr(document), 0) + 1
        wrong = self._wrong(names_of(document), number)
        marks = [
            SimpleNamespace(at=at / 100, after=at, body=SimpleNamespace(line=at + 1))
            for at in range(len(document["client"]))
        ]
        trace = SimpleNamespace(
            marks_of=lambda kind: marks if kind is StepBegins else [], frames=[]
        )
        played = SimpleNamespace(
            document=document,
            run=SimpleNamespace(trace=trace, cast=Cast(), unmet=None),
            problems=[WRONG] if wrong else [],
        )
        return cast("Played", played)

    def play_some(self, documents: list[Json], *, fresh: bool, bound: float) -> list[Played]:
        return [self.play(one, fresh=fresh, bound=bound) for one in documents]


def shows(played: Played) -> Problem | None:
    return played.problems[0] if played.problems else None


LETTERS = tuple("abcdefgh")


def test_a_steady_failure_is_shrunk() -> None:
    found = make_small(
        Plays(lambda names, _: {"c", "e"} <= set(names)), session(*LETTERS), shows, 5
    )
    assert found is not None
    assert names_of(found.document) == ["c", "e"]
    assert not found.flaky


def test_a_failure_that_never_comes_again_is_not_confirmed() -> None:
    assert make_small(Plays(lambda _, number: number == 0), session(*LETTERS), shows, 5) is None


def test_a_single_failure_on_a_fresh_process_is_flaky() -> None:
    found = make_small(Plays(lambda _, number: number == 1), session("a"), shows, 5)
    assert found is not None
    assert found.flaky


def test_a_steady_document_is_preferred_to_a_smaller_one_that_is_not() -> None:
    def wrong(names: list[str], number: int) -> bool:
        """With c alone only on the first of its plays, and on processes that were used."""
        return "c" in names and ("e" in names or number < 2)

    found = make_small(Plays(wrong), session(*LETTERS), shows, 5)
    assert found is not None
    assert {"c", "e"} <= set(names_of(found.document))
    assert not found.flaky


def test_a_failure_of_used_processes_is_shrunk_on_fresh_ones() -> None:
    def wrong(names: list[str], number: int) -> bool:
        """Return True for every request on a used process; on a fresh one only with c and e."""
        return number == 0 or {"c", "e"} <= set(names)

    found = make_small(Plays(wrong), session(*LETTERS), shows, 5)
    assert found is not None
    assert {"c", "e"} <= set(names_of(found.document))
    assert not found.flaky
