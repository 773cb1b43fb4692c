"""Edge cases of the rules on compaction: not as a turn, nothing to compact, automatic."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, TURN, Talk, agent_message

TOLD, EMITTED = "compact.told", "compact.item-emitted"


def item(number: int = 1) -> dict[str, Any]:
    """A contextCompaction item."""
    return {"type": "contextCompaction", "id": f"cut_{number}"}


def used() -> Talk:
    """A thread with a turn."""
    return Talk().start_thread().plain_turn()


def asked(talk: Talk) -> Talk:
    """A compaction that is asked for and accepted."""
    return talk.asks("thread/compact/start", threadId=THREAD).answers({})


def under_an_id_of_its_own() -> Talk:
    """The compaction is no turn: its item names an id that nothing announces."""
    talk = asked(used()).item(item(), "compact_1").plain_turn("turn_2")
    return asked(talk).item(item(2), "compact_2")


def before_its_answer() -> Talk:
    """The same, with the item before the answer to the request."""
    talk = used().asks("thread/compact/start", threadId=THREAD)
    return talk.item(item(), "compaction").answers({})


def under_the_last_turn() -> Talk:
    """The compaction is no turn: its item names the turn that ended last."""
    return asked(used()).item(item(), TURN).plain_turn("turn_2")


def under_the_first_turn_again() -> Talk:
    """The same after two turns, twice, with the threadId alone to go by."""
    talk = asked(used().plain_turn("turn_2")).item(item(), "turn_2").plain_turn("turn_3")
    return asked(talk).started(item(2), "turn_3").completed(item(2), "turn_3")


def by_itself_under_the_last_turn() -> Talk:
    """Without a request, the server compacts after the turn, and names that turn."""
    return used().item(item(), TURN).plain_turn("turn_2")


def by_itself_under_an_id() -> Talk:
    """Without a request, the server compacts between two turns, under an id of its own."""
    return used().item(item(), "compaction").plain_turn("turn_2")


def nothing_worth_it() -> Talk:
    """One short turn: the server takes the request and leaves the history as it is."""
    return asked(used())


def nothing_new() -> Talk:
    """Compacted just before: there is nothing new, and nothing is told."""
    talk = asked(used()).status("active").turn_started("turn_2").item(item(), "turn_2")
    return asked(talk.end_turn("turn_2"))


def nothing_left_by_itself() -> Talk:
    """The server had compacted by itself at the end of the turn."""
    talk = Talk().start_thread().start_turn().message("m", "Hello").item(item()).end_turn()
    return asked(talk)


def kept_as_it_was() -> Talk:
    """The next call of the model has what the user said: nothing was compacted."""
    talk = Talk().start_thread().start_turn().calls("hello").message("m", "Hello").ends().end_turn()
    talk = asked(talk).start_turn("turn_2", text="and then?")
    return talk.calls("hello", "and then?").message("n", "No", turn="turn_2").end_turn("turn_2")


def forgotten(summary: str = "SUMMARY", *, told: bool = False) -> Talk:
    """The next call of the model lacks what the user said, and no item told of it."""
    talk = Talk().start_thread().start_turn().calls("hello").message("m", "Hello").ends().end_turn()
    talk = asked(talk)
    if told:
        talk.status("active").turn_started("turn_9").end_turn("turn_9")
    talk.start_turn("turn_2", text="and then?").calls(summary, "and then?", call=2)
    return talk.message("n", "No", turn="turn_2").ends(2).end_turn("turn_2")


def late_answer() -> Talk:
    """Another item of the turn comes after its end, and after a compaction that was asked for."""
    return asked(used()).item(item(), TURN).item(agent_message("late", "Bye"))


def items_of_a_compaction() -> Talk:
    """A compaction tells of a message too, under an id that nothing announces."""
    return asked(used()).item(item(), "compact_1").item(agent_message("s", "So far"), "compact_1")


def steered() -> Talk:
    """A turn that takes an input and comes to its end."""
    talk = Talk().start_thread().start_turn()
    said = [{"type": "text", "text": "more of it"}]
    talk.asks("turn/steer", threadId=THREAD, expectedTurnId=TURN, input=said)
    return talk.answers({"turnId": TURN}).message("m", "Hello").end_turn()


def steered_and_compacted() -> Talk:
    """After a turn that was steered, the server compacts by itself, in a turn."""
    talk = steered().status("active").turn_started("turn_2").item(item(), "turn_2")
    return talk.end_turn("turn_2")


def steered_and_compacting_fails() -> Talk:
    """The same, and that turn fails before anything of it is told."""
    error = {"message": "no", "agentErrorInfo": "Other", "additionalDetails": ""}
    talk = steered().status("active").turn_started("turn_2")
    return talk.end_turn("turn_2", status="failed", error=error)


def steered_into_a_turn() -> Talk:
    """The input that was granted is answered in a turn of its own."""
    talk = steered().status("active").turn_started("turn_2")
    return talk.message("n", "More", turn="turn_2").end_turn("turn_2")


def steered_into_an_empty_turn() -> Talk:
    """A turn of which nothing is told but its begin and its end, which is no failure."""
    return steered().status("active").turn_started("turn_2").end_turn("turn_2")


LEGAL: list[Legal] = [
    Legal("item.known-turn", "compaction-under-an-id-of-its-own", under_an_id_of_its_own),
    Legal("item.known-turn", "compaction-before-its-answer", before_its_answer),
    Legal("item.known-turn", "automatic-compaction-under-an-id", by_itself_under_an_id),
    Legal("turn.completed-last", "compaction-under-the-last-turn", under_the_last_turn),
    Legal("turn.completed-last", "compactions-under-turns-that-ended", under_the_first_turn_again),
    Legal(
        "turn.completed-last",
        "automatic-compaction-under-the-last-turn",
        by_itself_under_the_last_turn,
        hints=frozenset({"turn.completed-last"}),
    ),
    Legal(TOLD, "nothing-worth-compacting", nothing_worth_it, hints=frozenset({TOLD, EMITTED})),
    Legal(TOLD, "nothing-new-to-compact", nothing_new),
    Legal(EMITTED, "compacted-by-itself-before", nothing_left_by_itself),
    Legal(EMITTED, "history-kept-as-it-was", kept_as_it_was, hints=frozenset({TOLD, EMITTED})),
    Legal("steer.starts-no-turn", "automatic-compaction-after-a-steer", steered_and_compacted),
    Legal("steer.starts-no-turn", "compaction-that-fails", steered_and_compacting_fails),
]
ILLEGAL: list[Illegal] = [
    Illegal(TOLD, "history-forgotten-without-a-word", forgotten, also=frozenset({EMITTED})),
    Illegal(TOLD, "nothing-told-of-it", nothing_worth_it, Level.SHOULD, frozenset({EMITTED})),
    Illegal(EMITTED, "history-forgotten-without-an-item", forgotten, also=frozenset({TOLD})),
    Illegal(EMITTED, "compaction-turn-without-its-item", lambda: forgotten("So far", told=True)),
    Illegal("turn.completed-last", "message-after-a-compaction", late_answer),
    Illegal(
        "turn.completed-last",
        "item-after-an-automatic-compaction",
        by_itself_under_the_last_turn,
        Level.SHOULD,
    ),
    Illegal("item.known-turn", "message-of-a-compaction-that-is-no-turn", items_of_a_compaction),
    Illegal("steer.starts-no-turn", "input-answered-in-a-new-turn", steered_into_a_turn),
    Illegal("steer.starts-no-turn", "input-begins-an-empty-turn", steered_into_an_empty_turn),
]
