"""Bugs about reviews: their thread, their reports, and the next turns."""

from __future__ import annotations

from tests.conformance.bugs.planting import Message, items, received
from tests.conformance.bugs.registry import bug
from tests.conformance.bugs.tables.interrupts import refuses_the_next_turn


@bug(reds={"reviews/detached": "scenario.expectation: turn/start was answered by an error"})
def a_detached_review_runs_in_its_thread() -> None:
    """A review that is to run beside its thread runs in it."""

    def receive(method: str, message: Message) -> Message:
        if method == "review/start":
            message["params"]["delivery"] = "inline"
        return message

    received(receive)


@bug(
    reds={
        "reviews/fails": "scenario.expectation: the thread is not ready",
        "reviews/interrupted": "scenario.expectation: the thread is not ready",
    }
)
def a_thread_whose_review_was_not_finished_is_stuck() -> None:
    """No turn can begin after a review that failed or was interrupted."""
    refuses_the_next_turn(lambda turn: turn._status in ("failed", "interrupted"))


@bug(reds={"reviews/findings": "scenario.expectation: Off by one"})
def a_review_is_its_overall_notes() -> None:
    """The review that is shown has the reviewer's overall notes, and no finding."""

    def shorten(_: str, item: Message) -> None:
        item["review"] = item["review"].split("\n")[0]

    items("exitedReviewMode", shorten)
