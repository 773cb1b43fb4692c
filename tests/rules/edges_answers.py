"""Edge cases of the rules on the model's answers, and on the content of items."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    command,
    mcp_call,
    settings,
    step,
    stored_plain_turn,
    thread_object,
    user_message,
)


def called(talk: Talk | None = None, turn: str = TURN, call: int = 1, **params: Any) -> Talk:
    """A running turn whose model has been called."""
    talk = Talk().start_thread() if talk is None else talk
    talk.ask_turn(**params).reply_turn(turn).status("active").turn_started(turn)
    talk.item(user_message(f"{turn}-user", "hello"), turn)
    return talk.calls("hello", call=call, schema="outputSchema" in params)


def said(*words: str, phase: str = "") -> list[dict[str, str]]:
    """The texts of an answer, as a mark has them."""
    return [{"text": one, "phase": phase} for one in words]


# Failures of the model.


def refused_and_completed() -> Talk:
    talk = called().ends(outcome="status 401", code="invalid_api_key", said="who are you?")
    return talk.end_turn()


def cut_each_time_and_completed() -> Talk:
    talk = called().ends(outcome="disconnected").failing(will_retry=True).calls("hello", call=2)
    return talk.ends(2, "disconnected").end_turn()


def retried_beyond_the_script() -> Talk:
    """The script ends with the failure, so that the harness answers the retry by itself."""
    talk = called().ends(outcome="status 500").failing(will_retry=True)
    talk.calls("hello", call=2, step=-1).ends(2, texts=said("no further reply"))
    return talk.end_turn()


def error_event_in_the_second_turn() -> Talk:
    talk = called().ends(texts=said("Yes.")).message("m-1", "Yes.").end_turn()
    return called(talk, "turn_2", 2).ends(2, "failed server_error").end_turn("turn_2")


def excuse_for_an_answer() -> Talk:
    talk = called().ends(outcome="status 500").message("m-1", "I could not be reached.")
    return talk.end_turn()


def second_try_answers() -> Talk:
    talk = called().ends(outcome="status 500").calls("hello", call=2).ends(2, texts=said("Yes."))
    return talk.message("m-1", "Yes.").end_turn()


def fails_and_is_interrupted() -> Talk:
    talk = called().ends(outcome="status 500").interrupt().answers({})
    return talk.end_turn(status="interrupted")


def another_model_answers() -> Talk:
    talk = called().ends(outcome="status 503").rerouted("model-elsewhere")
    return talk.message("m-1", "Yes.").end_turn()


def answers_with_a_body_that_is_no_stream() -> Talk:
    # A status below 400 with a body of its own may hold an answer.
    return called().ends(outcome="status 200").message("m-1", "Yes.").end_turn()


# The answer.


def nothing_shown() -> Talk:
    return called().ends(texts=said("The answer is 42.")).end_turn()


def nothing_shown_after_a_retry() -> Talk:
    talk = called().ends(outcome="disconnected", texts=said("The ans")).failing(will_retry=True)
    return talk.calls("hello", call=2).ends(2, texts=said("The answer is 42.")).end_turn()


def answer_lost_after_a_command() -> Talk:
    talk = called().ends(tools=1).item(command("c-1", "completed")).calls("hello", call=2)
    return talk.ends(2, texts=said("The answer is 42.")).end_turn()


def other_words() -> Talk:
    talk = called().ends(texts=said("The answer is 42."))
    return talk.message("m-1", "The answer ", "is 43.").end_turn()


def answer_of_the_turn_before() -> Talk:
    talk = called().ends(texts=said("First.")).message("m-1", "First.").end_turn()
    talk = called(talk, "turn_2", 2).ends(2, texts=said("Second."))
    return talk.item(agent_message("m-2", "First."), "turn_2").end_turn("turn_2")


def in_pieces() -> Talk:
    talk = called().ends(texts=said("One paragraph.\n\nAnother paragraph.\n"))
    talk.message("m-1", "One paragraph.").message("m-2", "Another ", "paragraph.")
    return talk.end_turn()


def two_texts_in_one_message() -> Talk:
    talk = called().ends(texts=said("First this.", "Then that."))
    return talk.message("m-1", "First this.", "\n", "Then that.").end_turn()


def remark_not_shown() -> Talk:
    talk = called().ends(tools=1, texts=said("Let me look.")).item(command("c-1", "completed"))
    talk.calls("hello", call=2).ends(2, texts=said("Found.")).message("m-1", "Found.")
    return talk.end_turn()


def commentary_not_shown() -> Talk:
    talk = called().ends(texts=[*said("Thinking.", phase="commentary"), *said("Done.")])
    return talk.message("m-1", "Done.").end_turn()


def structured_answer_hidden() -> Talk:
    talk = called(outputSchema={"type": "object"}).ends(texts=said('{"a": 1}'))
    return talk.end_turn()


def dropped_for_a_steered_input() -> Talk:
    talk = called()
    more = [{"type": "text", "text": "and more"}]
    talk.asks("turn/steer", threadId=THREAD, expectedTurnId=TURN, input=more)
    talk.answers({"turnId": TURN}).ends(texts=said("First answer."))
    talk.item(user_message("u-2", "and more")).calls("hello", "and more", call=2)
    return talk.ends(2, texts=said("Both.")).message("m-1", "Both.").end_turn()


def late_after_an_interrupt() -> Talk:
    talk = called().interrupt().answers({}).ends(texts=said("Too late."))
    return talk.end_turn(status="interrupted")


def summary_of_a_compaction() -> Talk:
    talk = called().ends(texts=said("A summary of it all."))
    talk.item({"type": "contextCompaction", "id": "cut"}).calls("hello", call=2)
    return talk.ends(2, texts=said("Yes.")).message("m-1", "Yes.").end_turn()


def plan_instead_of_a_message() -> Talk:
    talk = called().ends(texts=said("1. look\n2. leap"))
    return talk.item({"type": "plan", "id": "p-1", "text": "1. look\n2. leap"}).end_turn()


def best_of_two() -> Talk:
    talk = called().ends(texts=said("A poor answer.")).calls("hello", call=2)
    return talk.ends(2, texts=said("A better one.")).message("m-1", "A better one.").end_turn()


def notice_beside_the_answer() -> Talk:
    talk = called().ends(texts=said("Yes.")).message("m-1", "Yes.")
    return talk.message("m-2", "Your plan ends soon.").end_turn()


def leaving(talk: Talk) -> Talk:
    return talk.asks("thread/unsubscribe", threadId=THREAD).answers({"status": "unsubscribed"})


def only_the_end_is_told_to_who_left() -> Talk:
    # The items go to subscribers alone, the end of a turn to every client.
    return leaving(called()).ends(texts=said("Yes.")).turn_completed()


def left_while_a_command_ran() -> Talk:
    talk = called().ends(tools=1).item(command("c-1", "completed"))
    talk = leaving(talk).calls("hello", call=2)
    return talk.ends(2, texts=said("Yes."), plans=[[step("look")]]).turn_completed()


# The last message and its schema.


def schema_in_words() -> Talk:
    talk = called(outputSchema={"type": "object"}).message("m-1", "In words.")
    return talk.end_turn()


def schema_without_its_member() -> Talk:
    talk = called(outputSchema={"type": "object", "required": ["a"]})
    return talk.message("m-1", "First.").message("m-2", '{"b": 1}').end_turn()


# The user's input.


def shown_input(*items: list[str]) -> Talk:
    """A turn whose input is two texts, and these userMessages with their texts."""
    sent = [{"type": "text", "text": words} for words in ("use $sort", "on the shelves ")]
    talk = Talk().start_thread().asks("turn/start", threadId=THREAD, input=sent).reply_turn()
    talk.status("active").turn_started()
    for number, texts in enumerate(items):
        content = [{"type": "text", "text": words} for words in texts]
        talk.item({"type": "userMessage", "id": f"u-{number}", "content": content})
    return talk.message("m-1", "Yes.").end_turn()


def what_a_skill_says_comes_first() -> Talk:
    return shown_input(["# Sort\nSort it all."], ["use $sort", "on the shelves "])


def texts_made_one() -> Talk:
    return shown_input(["use $sort\non the shelves"])


def half_of_the_input() -> Talk:
    return shown_input(["use $sort"])


def input_of_nobody() -> Talk:
    return shown_input(["# Sort\nSort it all."], ["on the floor"])


# What items are about.


def another_command() -> Talk:
    talk = Talk().start_thread().start_turn().started(command("c-1"))
    return talk.completed(command("c-1", "completed", command="rm -rf x")).end_turn()


def another_folder() -> Talk:
    talk = Talk().start_thread().start_turn().started(command("c-1"))
    return talk.completed(command("c-1", "completed", cwd="/")).end_turn()


def another_tool() -> Talk:
    talk = Talk().start_thread().start_turn().started(mcp_call("t-1"))
    return talk.completed(mcp_call("t-1", "completed", tool="remove", result={})).end_turn()


def other_arguments() -> Talk:
    talk = Talk().start_thread().start_turn().started(mcp_call("t-1", arguments={"a": 1}))
    return talk.completed(mcp_call("t-1", "completed", arguments={"a": 2}, result={})).end_turn()


def no_arguments_at_first() -> Talk:
    talk = Talk().start_thread().start_turn().started(mcp_call("t-1"))
    return talk.completed(mcp_call("t-1", "completed", arguments={"a": 2}, result={})).end_turn()


def wrapped_command() -> Talk:
    talk = Talk().start_thread().start_turn().started(command("c-1", command="ls  -l"))
    wrapped = "/usr/bin/bwrap --ro-bind / / ls -l"
    talk.completed(command("c-1", "completed", command=wrapped))
    talk.started(command("c-2", command="bash -lc 'ls -l'"))
    return talk.completed(command("c-2", "completed", command="ls -l")).end_turn()


def folder_by_its_real_name() -> Talk:
    talk = Talk().start_thread().start_turn().started(command("c-1"))
    talk.completed(command("c-1", "completed", cwd="/mnt/data/user/project"))
    talk.started(command("c-2", cwd="."))
    return talk.completed(command("c-2", "completed")).end_turn()


def no_command_at_first() -> Talk:
    talk = Talk().start_thread().start_turn().started(command("c-1", command="", cwd=""))
    return talk.completed(command("c-1", "completed")).end_turn()


def at_once(*processes: tuple[Any, Any]) -> Talk:
    """Two commands at the same time in a new thread, with the processes named at both ends."""
    talk = Talk().start_thread().start_turn()
    for number, (first, _) in enumerate(processes):
        talk.started(command(f"c-{number}", processId=first))
    for number, (_, last) in enumerate(processes):
        talk.completed(command(f"c-{number}", "completed", processId=last))
    return talk.end_turn()


def one_process_for_two() -> Talk:
    return at_once((None, "77"), (None, "77"))


def one_process_for_the_second_and_third() -> Talk:
    return at_once(("1", "1"), ("2", "2"), ("2", "2"))


def processes_that_are_not_told() -> Talk:
    return at_once((None, None), ("1", "1"))


def one_terminal_for_one_after_the_other() -> Talk:
    talk = Talk().start_thread().start_turn().item(command("c-1", "completed", processId="1"))
    return talk.item(command("c-2", "completed", processId="1")).end_turn()


# Who asks.


def asked_back(method: str, **params: Any) -> Talk:
    """A turn in which the server sends a request, which is answered by an error."""
    talk = Talk().start_thread().start_turn()
    talk.says({"method": method, "id": 0, "params": params})
    return talk.sends({"id": 0, "error": {"code": -32601, "message": "no"}}).end_turn()


def asks_for_a_turn() -> Talk:
    return asked_back("turn/start", threadId=THREAD, input=[])


def asks_for_the_skills() -> Talk:
    return asked_back("skills/list")


def asks_in_its_own_words() -> Talk:
    return asked_back("item/tool/requestUserInput", questions=[])


def tells_by_the_name_of_an_operation() -> Talk:
    return Talk().start_thread().start_turn().tells("thread/archive").end_turn()


# The provider of a thread.


def shown(talk: Talk, provider: str) -> Talk:
    """thread/read with that provider."""
    thread = thread_object(modelProvider=provider, preview="hello", status={"type": "notLoaded"})
    return talk.asks("thread/read", threadId=THREAD).answers({"thread": thread})


def provider_of_another_name_in_the_list() -> Talk:
    talk = Talk().start_thread().asks("thread/list")
    listed = thread_object(modelProvider="elsewhere", status={"type": "notLoaded"})
    return talk.answers({"data": [listed], "nextCursor": None})


def provider_announced_otherwise() -> Talk:
    talk = Talk().asks("thread/start").answers({"thread": thread_object(), **settings()})
    return talk.tells("thread/started", thread=thread_object(modelProvider="elsewhere"))


def provider_in_capitals() -> Talk:
    return shown(Talk().start_thread().plain_turn(), "Mock")


def provider_of_a_resumed_thread() -> Talk:
    talk = Talk().start_thread().plain_turn().asks("thread/resume", threadId=THREAD)
    past = [stored_plain_turn()]
    moved = thread_object(modelProvider="elsewhere", preview="hello", turns=past)
    talk.answers({"thread": moved, **settings(), "modelProvider": "elsewhere"})
    return shown(talk, "elsewhere")


def legal(rule: str, *talks: Any, hints: tuple[str, ...] = ()) -> list[Legal]:
    """Conversations that are named as their functions are."""
    return [Legal(rule, talk.__name__.replace("_", " "), talk, frozenset(hints)) for talk in talks]


def illegal(
    rule: str, *talks: Any, level: Level = Level.MUST, also: tuple[str, ...] = ()
) -> list[Illegal]:
    """Conversations that are named as their functions are."""
    return [
        Illegal(rule, talk.__name__.replace("_", " "), talk, level, frozenset(also))
        for talk in talks
    ]


LEGAL: list[Legal] = [
    Legal("turn.fails-with-its-model", "retried-beyond-the-script", retried_beyond_the_script),
    *legal(
        "turn.fails-with-its-model",
        second_try_answers,
        fails_and_is_interrupted,
        another_model_answers,
        answers_with_a_body_that_is_no_stream,
    ),
    *legal(
        "model.answer-shown",
        in_pieces,
        two_texts_in_one_message,
        remark_not_shown,
        commentary_not_shown,
        structured_answer_hidden,
        dropped_for_a_steered_input,
        late_after_an_interrupt,
        summary_of_a_compaction,
        plan_instead_of_a_message,
        only_the_end_is_told_to_who_left,
        left_while_a_command_ran,
    ),
    *legal(
        "model.answer-shown",
        best_of_two,
        notice_beside_the_answer,
        hints=("model.answer-shown",),
    ),
    *legal("user-message.echo", what_a_skill_says_comes_first, texts_made_one),
    *legal("item.same-work", wrapped_command, folder_by_its_real_name, no_command_at_first),
    *legal("item.same-work", no_arguments_at_first),
    *legal("item.process-apart", processes_that_are_not_told, one_terminal_for_one_after_the_other),
    *legal("thread.one-provider", provider_in_capitals),
    *legal("method.right-direction", asks_in_its_own_words, tells_by_the_name_of_an_operation),
    *legal("thread.one-provider", provider_of_a_resumed_thread, hints=("thread.one-provider",)),
]
ILLEGAL: list[Illegal] = [
    *illegal("turn.fails-with-its-model", refused_and_completed, cut_each_time_and_completed),
    *illegal(
        "turn.fails-with-its-model",
        error_event_in_the_second_turn,
        also=("error.told-mid-turn",),
    ),
    *illegal("turn.fails-with-its-model", excuse_for_an_answer, level=Level.SHOULD),
    *illegal("model.answer-shown", nothing_shown, nothing_shown_after_a_retry),
    *illegal(
        "model.answer-shown",
        answer_lost_after_a_command,
        other_words,
        answer_of_the_turn_before,
        level=Level.SHOULD,
    ),
    *illegal("user-message.echo", half_of_the_input, input_of_nobody, level=Level.SHOULD),
    *illegal("turn.schema-kept", schema_in_words, schema_without_its_member, level=Level.INFO),
    *illegal("item.same-work", another_command, another_folder, another_tool, level=Level.SHOULD),
    *illegal("item.same-work", other_arguments, level=Level.SHOULD),
    *illegal(
        "item.process-apart",
        one_process_for_two,
        one_process_for_the_second_and_third,
        level=Level.SHOULD,
    ),
    *illegal("method.right-direction", asks_for_a_turn, asks_for_the_skills),
    *illegal(
        "thread.one-provider", provider_of_another_name_in_the_list, provider_announced_otherwise
    ),
]
