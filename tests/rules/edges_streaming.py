"""Edge cases of the rule that a turn is reported while it runs."""

from harness.judge.verdict import Level
from harness.trace.marks import GateOpened
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import Talk, agent_message, command, user_message

STREAMED = "turn.streamed"


def asked(text: str = "hello") -> Talk:
    """A turn that was asked for and answered, and of which nothing is told yet."""
    return Talk().start_thread().ask_turn(text=text).reply_turn()


def listed(talk: Talk) -> Talk:
    """A request about something else, and its answer."""
    return talk.asks("thread/loaded/list").answers({"data": ["thr_1"], "nextCursor": None})


def whole(talk: Talk) -> Talk:
    """Everything of the turn at once."""
    talk.status("active").turn_started().item(user_message("u", "hello"))
    return talk.message("m", "Hel", "lo").end_turn()


def burst_after_the_answer() -> Talk:
    """The model's answer is held; all is told when it is over."""
    return whole(listed(asked().calls("hello")).ends())


def burst_after_a_command() -> Talk:
    """A command waits at a gate; all is told when the model was asked again, and had answered."""
    talk = listed(asked().calls("hello").ends()).mark(GateOpened("go"))
    talk.calls("hello", call=2).ends(2).status("active").turn_started()
    talk.item(user_message("u", "hello")).item(command("c", "completed"))
    return talk.message("m", "Done").end_turn()


def burst_before_the_reply() -> Talk:
    """The same as the first, of a turn whose turn/start is answered in the burst too."""
    talk = Talk().start_thread().ask_turn().calls("hello")
    talk.asks("thread/loaded/list").answers({"data": ["thr_1"], "nextCursor": None}).ends()
    talk.answers(
        {"turn": {"id": "turn_1", "status": "inProgress", "items": [], "error": None}}, to=2
    )
    return whole(talk)


def announced_and_no_more() -> Talk:
    """The turn is announced while the model is at work; its items come at the end."""
    talk = listed(asked().calls("hello").status("active").turn_started()).ends()
    return talk.item(user_message("u", "hello")).message("m", "Hello").end_turn()


def deltas_at_the_end() -> Talk:
    """The message has begun; all of its text comes in one delta at the end."""
    talk = asked().calls("hello").status("active").turn_started()
    talk.item(user_message("u", "hello")).started(agent_message("m", ""))
    talk = listed(talk).mark(GateOpened("go")).ends().delta("m", "Hello")
    return talk.completed(agent_message("m", "Hello")).end_turn()


def told_just_after_the_trip() -> Talk:
    """The answer to the other request overtakes turn/started, and the model goes on after it."""
    talk = listed(asked().calls("hello")).status("active").turn_started().ends()
    return talk.item(user_message("u", "hello")).message("m", "Hello").end_turn()


def nothing_was_asked() -> Talk:
    """The whole turn is over before anything else is asked."""
    return whole(asked().calls("hello").ends())


def called_for_something_else() -> Talk:
    """Before the turn begins the model is asked for something else, such as a summary."""
    talk = listed(asked().calls("Summarise what was said.")).ends()
    return whole(talk.calls("hello", call=2).ends(2))


def waits_for_the_first() -> Talk:
    """A second turn waits until the first is over."""
    talk = Talk().start_thread().start_turn().calls("hello").ask_turn(text="second")
    talk = listed(talk.reply_turn("turn_2")).message("m", "Hello").ends().end_turn()
    talk.status("active").turn_started("turn_2").calls("hello", "second", call=2)
    return talk.message("n", "Two", turn="turn_2").ends(2).end_turn("turn_2")


LEGAL: list[Legal] = [
    Legal(STREAMED, "announced-and-no-more-until-the-end", announced_and_no_more),
    Legal(STREAMED, "one-delta-at-the-end", deltas_at_the_end),
    Legal(STREAMED, "announced-just-after-another-answer", told_just_after_the_trip),
    Legal(STREAMED, "over-before-anything-was-asked", nothing_was_asked),
    Legal(STREAMED, "model-called-for-something-else", called_for_something_else),
    Legal(STREAMED, "second-turn-waits", waits_for_the_first),
]
ILLEGAL: list[Illegal] = [
    Illegal(STREAMED, "burst-after-the-answer", burst_after_the_answer, Level.SHOULD),
    Illegal(STREAMED, "burst-after-a-command", burst_after_a_command, Level.SHOULD),
    Illegal(STREAMED, "burst-with-the-reply", burst_before_the_reply, Level.SHOULD),
]
