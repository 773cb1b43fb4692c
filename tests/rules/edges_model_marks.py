"""Edge cases of the rules on model calls while several clients are connected.

Marks of model calls name no client, so a rule about one client does not see them while there are
several; it must not take them for missing.
"""

from harness.trace.marks import Closed
from tests.rules.cases_steering import MORE, steered
from tests.rules.edge import Illegal, Legal
from tests.rules.edges_answers import called, said
from tests.rules.traces import THREAD, TURN, Talk

ENDS, RETRIED = "turn.fails-with-its-model", "error.retry-follows"
KEPT, ARRIVES = "steer.input-kept", "steer.input-arrives"


def joined(talk: Talk) -> Talk:
    """Another client connects, and asks for a list; the first one goes on."""
    loaded = {"data": [THREAD], "nextCursor": None}
    return talk.on("c2").asks("thread/loaded/list").answers(loaded).on("c1")


def retried(*, leaves: bool) -> Talk:
    """The other client comes before the retry, and may be gone before its end."""
    talk = joined(called().ends(outcome="failed server_error").failing(will_retry=True))
    talk.calls("hello", call=2)
    talk = talk.mark(Closed("c2")) if leaves else talk
    return talk.ends(2, texts=said("Yes.")).message("m-1", "Yes.").end_turn()


def fails_for_good() -> Talk:
    """The other client comes when the only call has failed; the turn is said to be completed."""
    return joined(called().ends(outcome="failed server_error")).end_turn()


def fails_beside() -> Talk:
    """The other client comes during the call: whose it is was known when it began."""
    return joined(called()).ends(outcome="failed server_error").end_turn()


def heard(*, leaves: bool) -> Talk:
    """The other client comes after the steer, and may be gone before the turn's end."""
    talk = joined(steered()).calls("hello", MORE, call=2)
    talk = talk.mark(Closed("c2")) if leaves else talk
    return talk.ends(2, texts=said("Yes.")).message("m-1", "Yes.").end_turn(TURN)


WAYS = (("while-another-is-there", False), ("and-the-other-leaves", True))
LEGAL: list[Legal] = [
    *(
        Legal(rule, f"retried-{name}", lambda leaves=leaves: retried(leaves=leaves))
        for rule in (ENDS, RETRIED)
        for name, leaves in WAYS
    ),
    *(
        Legal(rule, f"heard-{name}", lambda leaves=leaves: heard(leaves=leaves))
        for rule in (KEPT, ARRIVES)
        for name, leaves in WAYS
    ),
]
ILLEGAL: list[Illegal] = [
    Illegal(ENDS, name, talk, also=frozenset({"error.told-mid-turn"}))
    for name, talk in (("another-comes-after", fails_for_good), ("another-comes", fails_beside))
]
