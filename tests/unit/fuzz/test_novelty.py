"""Choice of sessions among many drawn ones: the pairs that they add, and the greedy choice."""

from collections import Counter
from typing import Any

from harness.search.fuzz.sessions.chains import draw_session
from harness.search.fuzz.sessions.chooser import seeded_chooser
from harness.search.fuzz.sessions.novelty import DrawnSession, Meeting, Meetings, choose_novel


def session(*names: str, steps: int = 10) -> DrawnSession:
    """A session in which these meet."""
    document: dict[str, Any] = {"title": " ".join(names), "client": []}
    return DrawnSession(steps, {(name,) for name in names}, lambda: document)


def test_the_session_with_most_that_is_new_is_chosen_first() -> None:
    some = [session("a"), session("a", "b", "c"), session("b", "c"), session("d", "e")]
    seen: Counter[Meeting] = Counter()
    # What the second brought together is little news in the third and the first.
    assert choose_novel(some, 3, seen) == [1, 3, 2]
    assert seen["b",] == 2


def test_a_quicker_session_is_preferred() -> None:
    assert choose_novel([session("a", "b", steps=200), session("c")], 1, Counter()) == [1]


def test_frequent_meetings_are_worth_nothing() -> None:
    seen: Counter[Meeting] = Counter({("a",): 2, ("b",): 2, ("c",): 1})
    assert session("a", "b").worth(seen) == 0
    assert 0 < session("c").worth(seen) < session("d").worth(seen)


def test_no_more_are_chosen_than_there_are() -> None:
    assert sorted(choose_novel([session("a"), session("a")], 5, Counter())) == [0, 1]


def test_the_lazy_choice_is_the_greedy_one() -> None:
    some = [draw_session(seeded_chooser(seed)) for seed in range(40)]
    seen: Counter[Meeting] = Counter()
    left, expected = list(range(len(some))), list[int]()
    for _ in range(12):
        best = max(left, key=lambda place: (some[place].worth(seen), -place))
        seen.update(some[best].meetings)
        expected.append(best)
        left.remove(best)
    assert choose_novel(some, 12, Counter()) == expected


def test_a_step_meets_what_was_done_before_where_and_by_whom() -> None:
    notes = Meetings()
    steer = {"method": "turn/steer", "on": "b"}
    notes.note("request", steer, "t", "asked about a command", ["in a reply"], follows=1)
    notes.note("wait", {"idle": "t"}, "t", "idle", [], follows=1)
    answer = {"to": "item/fileChange/requestApproval", "decision": "decline", "on": "b"}
    notes.note("answer", answer, "u", "asked about a file", ["asked about a command"], follows=-2)
    around = ("asked about a command",)
    place = ("elsewhere", "asked about a file", around)
    assert ("next", "turn/steer", "answer decline", *place) in notes.found
    assert ("who", "answer decline", "asked about a file", -2) in notes.found
    assert ("row", "", "", "answer decline") in notes.found
    assert not any("idle" in one for one in notes.found), "waits change nothing"


def test_the_chosen_bring_much_more_together_than_the_first_ones() -> None:
    some = [draw_session(seeded_chooser(seed)) for seed in range(600)]
    best = [some[place] for place in choose_novel(some, 50, Counter())]

    def together(sessions: list[DrawnSession]) -> int:
        return len({one for each in sessions for one in each.meetings})

    assert together(best) > 1.5 * together(some[:50])
