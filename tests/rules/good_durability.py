"""Good conversations across a restart of the server.

A part of `good_traces`, which stores them.
"""

from collections.abc import Callable

from harness.trace.trace import Trace
from tests.rules.cases_durability import AGENT, USER, ended, go_on, resume, shown
from tests.rules.traces import Talk, command


def cut_off() -> Trace:
    """A turn is cut off; the thread is read and resumed, and takes another one."""
    talk = Talk("cut-off").start_thread().start_turn().message("m-1", "Hello")
    talk = ended(talk.started(command("k-1")))
    kept = shown(USER, AGENT, command("k-1", "failed"))
    talk = go_on(resume(talk.read(kept), kept)).reply_turn("turn_2")
    talk.status("active").turn_started("turn_2").message("m-2", "On.", turn="turn_2")
    return talk.end_turn("turn_2").trace()


DURABILITY: dict[str, Callable[[], Trace]] = {"cut-off": cut_off}
