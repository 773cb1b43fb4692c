"""Good conversations about stored threads: archive, names, unloading.

A part of `good_traces`, which stores them.
"""

from collections.abc import Callable

from harness.trace.marks import FileMatch
from harness.trace.trace import Trace
from tests.rules.cases_archiving import archives, unarchives
from tests.rules.cases_files import (
    IN_USE,
    PUT_AWAY,
    brought_back,
    listed,
    misses,
    put_away,
    searched,
    sees,
    with_ephemeral,
)
from tests.rules.cases_loading import followed_by_two, leaves, loaded, names, shows
from tests.rules.traces import THREAD, Talk, stored_plain_turn


def archived() -> Trace:
    """A thread with a turn is archived, and taken out of the archive again."""
    talk = archives(Talk("archived").start_thread().plain_turn())
    return unarchives(talk).trace()


def named() -> Trace:
    """A thread is named twice, and shown with the second name."""
    talk = names(names(Talk("named").start_thread(), "the first name"), "the second name")
    return shows(talk, "the second name").trace()


def left() -> Trace:
    """The only client of a thread leaves it, so that it is unloaded; and leaves it again."""
    talk = loaded(Talk("left").start_thread().plain_turn(), THREAD)
    return leaves(loaded(leaves(talk, closed=True)), "notLoaded").trace()


def left_by_one() -> Trace:
    """One of the two clients of a thread leaves it, twice; it stays loaded for the other one."""
    talk = followed_by_two(Talk("left-by-one").start_thread().plain_turn(), stored_plain_turn())
    talk = leaves(leaves(talk), "notSubscribed")
    return loaded(talk.on("c1"), THREAD).trace()


def on_disk() -> Trace:
    """The file of a thread is seen, moves into the archive, and back."""
    talk = sees(Talk("on-disk").start_thread().plain_turn().read(stored_plain_turn()))
    talk = sees(listed(misses(put_away(talk), IN_USE, PUT_AWAY)), PUT_AWAY)
    return misses(sees(brought_back(talk)), PUT_AWAY).trace()


def ephemeral() -> Trace:
    """A thread that is kept on disk, and one of which nothing is."""
    mine = FileMatch(IN_USE, (THREAD,), (THREAD,))
    return searched(with_ephemeral(), mine).trace()


STORAGE: dict[str, Callable[[], Trace]] = {
    "archived": archived,
    "named": named,
    "left": left,
    "left-by-one": left_by_one,
    "on-disk": on_disk,
    "ephemeral": ephemeral,
}
