"""Causes of failures that are followed up: on each occasion, but only a bounded number of times."""

from harness.search.fuzz.causes import Causes


def followed(causes: Causes, occasions: list[str], most: int) -> list[str]:
    """The occasions of one cause that are followed up, of those that come in this order."""
    found: list[str] = []
    for occasion in occasions:
        if causes.is_new("crash", occasion, most):
            causes.follow("crash", occasion)
            causes.confirm("crash", occasion)
            found.append(occasion)
    return found


def test_each_occasion_is_followed_up_once_and_not_more_than_so_many() -> None:
    assert followed(Causes(), ["a", "a", "b", "a", "c", "d"], 3) == ["a", "b", "c"]
    assert followed(Causes(), ["a", "a", "b"], 1) == ["a"]


def test_a_cause_of_unknown_occasion_is_followed_up_once() -> None:
    assert followed(Causes(), ["", ""], 3) == [""]


def test_the_occasion_on_which_a_failure_was_made_small_is_known_too() -> None:
    causes = Causes()
    causes.follow("crash", "a")
    causes.confirm("crash", "b")
    assert followed(causes, ["a", "b", "c"], 3) == ["c"]


def test_a_later_failure_must_show_on_its_own_occasion() -> None:
    causes = Causes()
    assert causes.follow("crash", "a") == ""
    assert causes.follow("crash", "b") == "", "the first was never told: it was unsteady"
    causes.confirm("crash", "b")
    assert causes.follow("crash", "c") == "c"
    assert causes.follow("hang", "c") == ""


def test_a_cause_is_set_aside_on_its_occasion_or_on_all() -> None:
    causes = Causes(["hang"])
    causes.set_aside("crash", "a")
    assert not causes.is_new("hang", "a", 3)
    assert followed(causes, ["a", "b"], 3) == ["b"]
    causes.set_aside("crash")
    assert followed(causes, ["c"], 3) == []


def test_a_lost_cause_may_come_again_a_bounded_number_of_times() -> None:
    causes = Causes()
    for _ in range(4):
        assert causes.is_new("crash", "a", 1)
        causes.follow("crash", "a")
        causes.lose("crash", "a")
        assert causes.was_lost("crash")
    assert not causes.is_new("crash", "a", 1)
    assert causes.is_new("hang", "a", 1)


def test_a_cause_found_after_all_is_not_lost() -> None:
    causes = Causes()
    causes.follow("crash", "a")
    causes.lose("crash", "a")
    causes.follow("crash", "a")
    causes.confirm("crash", "a")
    assert not causes.was_lost("crash")
    assert not causes.is_new("crash", "a", 3)
    assert causes.is_new("crash", "b", 3)


def test_wrong_members_of_one_method_do_not_use_up_the_occasions_of_others() -> None:
    members = [f"thread/read, result.thread.{name}" for name in ("a", "b", "c")]
    found = followed(Causes(), [*members, "turn/start, result.turn.id"], 5)
    assert found == [*members[:2], "turn/start, result.turn.id"]


def followed_places(causes: Causes, occasions: list[str]) -> list[str]:
    """The occasions of one cause that sessions follow up."""
    found: list[str] = []
    for occasion in occasions:
        if causes.is_new_place("shape", occasion):
            causes.follow("shape", occasion)
            causes.confirm("shape", occasion)
            found.append(occasion)
    return found


def test_sessions_follow_up_two_places_of_one_cause() -> None:
    read, resume = (f"thread/{name}, result.thread" for name in ("read", "resume"))
    occasions = [f"{read}.status", f"{resume}.status", f"{resume}.preview", f"{read}.path"]
    assert followed_places(Causes(), occasions) == [occasions[0], occasions[2]]


def test_sessions_cannot_tell_two_occasions_without_a_place_apart() -> None:
    place = "thread/read, result.thread.status"
    assert followed_places(Causes(), ["turn/start", place]) == ["turn/start"]
    assert followed_places(Causes(), [place, "turn/start"]) == [place]
    assert followed_places(Causes(), ["", ""]) == [""]
