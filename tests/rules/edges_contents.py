"""Edge cases of the rules on contents: the model's answer, diffs, output, errors."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import Place
from tests.rules.edge import Illegal, Legal
from tests.rules.edges_answers import called, illegal, legal, said
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    command,
    settings,
    step,
    thread_object,
    user_message,
)

CWD = "/home/user/project"


def begun() -> Talk:
    """A running turn with the user's message."""
    return Talk().start_thread().start_turn()


def change(item: str, *names: str, status: str = "completed", **part: Any) -> dict[str, Any]:
    """A fileChange item."""
    parts = [
        {"path": f"{CWD}/{name}", "kind": {"type": "add"}, "diff": "x\n", **part} for name in names
    ]
    return {"type": "fileChange", "id": item, "status": status, "changes": parts}


def diff(talk: Talk, *names: str) -> Talk:
    """The diff of the turn, with these new files."""
    parts = [f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n" for name in names]
    return talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff="".join(parts))


def removed_by_a_command() -> Talk:
    talk = diff(begun().item(change("f-1", "a.txt")), "a.txt")
    talk.item(command("c-1", "completed", command="rm a.txt"))
    return diff(talk.item(change("f-2", "b.txt")), "b.txt").end_turn()


def removed_by_what_a_command_left_running() -> Talk:
    talk = begun().item(command("c-1", "completed", command="(sleep 1; rm a.txt) & echo begun"))
    talk = diff(talk.item(change("f-1", "a.txt")), "a.txt")
    return diff(talk.item(change("f-2", "b.txt")), "b.txt").end_turn()


def moved_by_the_next_change() -> Talk:
    talk = diff(begun().item(change("f-1", "a.txt")), "a.txt")
    moved = change("f-2", "b.txt", kind={"type": "move", "from": "a.txt"}, diff="")
    return diff(talk.item(moved), "b.txt").end_turn()


def changed_nothing() -> Talk:
    talk = diff(begun().item(change("f-1", "a.txt")), "a.txt")
    return diff(talk.item(change("f-2", "b.txt", diff="")), "a.txt").end_turn()


def one_diff_for_two_at_once() -> Talk:
    talk = begun().started(change("f-1", "a.txt", status="inProgress"))
    talk.started(change("f-2", "b.txt", status="inProgress"))
    talk.completed(change("f-1", "a.txt")).completed(change("f-2", "b.txt"))
    return diff(talk, "a.txt", "b.txt").end_turn()


def diffs_that_come_later() -> Talk:
    talk = begun().item(change("f-1", "a.txt")).item(change("f-2", "b.txt"))
    return diff(diff(talk, "a.txt"), "a.txt", "b.txt").end_turn()


def one_diff_for_two() -> Talk:
    talk = begun().item(change("f-1", "a.txt")).message("m-1", "between")
    return diff(talk.item(change("f-2", "b.txt")), "a.txt", "b.txt").end_turn()


def one_diff_for_three() -> Talk:
    talk = diff(begun().item(change("f-1", "a.txt")), "a.txt").item(change("f-2", "b.txt"))
    return diff(talk.item(change("f-3", "c.txt")), "a.txt", "b.txt", "c.txt").end_turn()


def lost_file() -> Talk:
    talk = begun().item(command("c-1", "completed", command="ls && pwd"))
    talk = diff(talk.item(change("f-1", "a.txt")), "a.txt")
    return diff(talk.item(change("f-2", "b.txt")), "b.txt").end_turn()


def lost_one_of_a_change() -> Talk:
    return diff(begun().item(change("f-1", "a.txt", "b.txt")), "a.txt").end_turn()


# Deltas and what they add up to.

OUTPUT = "item/commandExecution/outputDelta"
SUMMARY = "item/reasoning/summaryTextDelta"


def streamed(*deltas: str) -> Talk:
    """A running turn with a message that has been streamed."""
    talk = begun().started(agent_message("m-1", ""))
    for delta in deltas:
        talk.delta("m-1", delta)
    return talk


def cut_within_a_character() -> Talk:
    talk = streamed("smile ", "\ud83d", "\ude00", "!")
    return talk.completed(agent_message("m-1", "smile \U0001f600!")).end_turn()


def cut_by_an_interrupt() -> Talk:
    talk = streamed("half of ", "it").interrupt().answers({})
    return talk.completed(agent_message("m-1", "half of ")).end_turn(status="interrupted")


def cut_by_the_other_client() -> Talk:
    talk = streamed("half of ", "it").completed(agent_message("m-1", ""))
    return talk.end_turn(status="interrupted")


def left_for_a_retry() -> Talk:
    talk = streamed("half").failing(will_retry=True).completed(agent_message("m-1", ""))
    return talk.message("m-2", "all of it").end_turn()


def left_with_a_late_delta() -> Talk:
    talk = streamed("ha").failing(will_retry=True).delta("m-1", "lf")
    return talk.completed(agent_message("m-1", "ha")).message("m-2", "all of it").end_turn()


def going_on(*deltas: str, retries: int = 1) -> Talk:
    """A message that broke off and goes on with these deltas; its text is "all of it"."""
    talk = streamed("half")
    for _ in range(retries):
        talk.failing(will_retry=True)
    for delta in deltas:
        talk.delta("m-1", delta)
    return talk.completed(agent_message("m-1", "all of it")).end_turn()


def both_tries_in_one_item() -> Talk:
    return going_on("all ", "of it")


def both_tries_after_two_retries() -> Talk:
    return going_on("all of it", retries=2)


def part_of_the_deltas_lost() -> Talk:
    talk = streamed("half of ").completed(agent_message("m-1", "half of it"))
    return talk.message("m-2", "And more.").end_turn()


def try_before_kept_in_the_text() -> Talk:
    talk = streamed("half").failing(will_retry=True).started(agent_message("m-2", ""))
    talk.delta("m-2", "all of it").completed(agent_message("m-1", "half"))
    return talk.completed(agent_message("m-2", "halfall of it")).end_turn()


def reasoned(first: int) -> Talk:
    talk = begun().started({"type": "reasoning", "id": "r-1", "summary": [], "content": []})
    for index, words in enumerate(("One.", "Two.")):
        where = {"threadId": THREAD, "turnId": TURN, "itemId": "r-1", "summaryIndex": first + index}
        talk.tells("item/reasoning/summaryPartAdded", **where)
        talk.delta("r-1", words, method=SUMMARY, summaryIndex=first + index)
    done = {"type": "reasoning", "id": "r-1", "summary": ["One.", "Two."], "content": []}
    return talk.completed(done).end_turn()


def sections_from_one() -> Talk:
    return reasoned(1)


def sections_from_zero() -> Talk:
    return reasoned(0)


def ran(said: str, output: str | None, *deltas: str, status: str = "completed") -> Talk:
    """A turn with a command that ended well, with what is kept of its output."""
    talk = begun().started(command("c-1", command=said))
    for delta in deltas:
        talk.delta("c-1", delta, method=OUTPUT)
    shows = {"command": said, "exitCode": 0, "aggregatedOutput": output}
    return talk.completed(command("c-1", status, **shows)).end_turn()


def large_output_cut() -> Talk:
    whole = "x" * 5000
    return ran("cat it", whole[:1500] + "…", *(whole[at : at + 500] for at in range(0, 5000, 500)))


def lines_of_a_terminal() -> Talk:
    return ran("ls", "one\ntwo\n", "one\r\n", "two\r\n")


# What a command prints.


def folder_shown(output: str, *, placed: bool = False) -> Talk:
    """`pwd` in the project prints this; a thread of another folder was started as well."""
    talk = Talk()
    if placed:
        talk.mark(Place(home="/h", cwd="/home/user/project", server_cwd="/srv"))
    talk.asks("thread/start", cwd="/home/user/other")
    other = {**settings(), "cwd": "/home/user/other"}
    talk.answers({"thread": thread_object("thr_9", cwd="/home/user/other"), **other})
    talk.tells("thread/started", thread=thread_object("thr_9", cwd="/home/user/other"))
    talk.start_thread().start_turn()
    shows = {"command": "pwd", "exitCode": 0, "aggregatedOutput": output}
    return talk.item(command("c-1", "completed", **shows)).end_turn()


def folder_behind_a_link() -> Talk:
    return folder_shown("/private/home/user/project\n", placed=True)


def folder_with_another_name() -> Talk:
    return folder_shown("/home/user/other\n")


def mounted_folder() -> Talk:
    return folder_shown("/workspace\n", placed=True)


def folder_of_another_thread() -> Talk:
    return folder_shown("/home/user/other\n", placed=True)


def many_numbers_cut() -> Talk:
    return ran("seq 1 2000", "1\n2\n3\n[1997 lines cut]\n")


def a_part_that_may_have_failed() -> Talk:
    return ran("cd nowhere && echo here; echo there", "there\n")


def characters_of_another_set() -> Talk:
    return ran("printf 'caf\\303\\251\\n'", "caf\u00c3\u00a9\n")


def cut_and_says_so() -> Talk:
    return ran("seq 40", "1\n2\n[... 36 lines omitted ...]\n39\n40\n")


def cut_at_the_end_and_says_so() -> Talk:
    return ran("printf 'one\\ntwo\\nthree\\n'", "one\n(truncated)\n")


def no_output_kept() -> Talk:
    return ran("printf 'one\\ntwo\\n'", None)


def a_file_takes_it() -> Talk:
    return ran("for i in 1 2 3; do echo $i >> made.txt; done; echo 'all done'", "all done\n")


def line_of_printf_lost() -> Talk:
    return ran("printf 'one\\ntwo\\n'", "two\n")


def last_number_lost() -> Talk:
    return ran("seq 3", "1\n2\n")


def rounds_lost() -> Talk:
    return ran("bash -lc 'for i in a b c; do echo \"round $i\"; sleep 0.1; done'", "round c\n")


def nothing_left_of_a_large_output() -> Talk:
    return ran("head -c 2000000 /dev/zero | tr '\\0' x", "")


def told(said: str, output: str, kept: str) -> Talk:
    """A command, of whose output the model is told."""
    talk = called().ends(tools=1).started(command("c-1", command=said))
    done = command("c-1", "completed", command=said, aggregatedOutput=kept, exitCode=0)
    return talk.completed(done).calls("hello", call=2, outputs=(output,)).ends(2).end_turn()


SCRIPT = 'python3 -c \'print("early"); work(); print("late")\''


def beginning_lost() -> Talk:
    return told(SCRIPT, "Exit code: 0\nOutput:\nearly\nlate\n", "late\n")


def all_lost() -> Talk:
    return told("cat <<END\nsome words\nEND", '{"output": "some words\\n", "exit": 0}', "")


def own_words_around_it() -> Talk:
    return told(SCRIPT, "Command finished.\nearly\nlate\n[no error]\n", "early\nlate\n")


def the_command_repeated() -> Talk:
    return told("make\nall", "$ make\nall\nnothing to do\n", "nothing to do\n")


# Plans and other models.

LOOK, LEAP = step("look"), step("leap")


def plan_of_an_answer_that_broke_off() -> Talk:
    talk = called().ends(outcome="disconnected", plans=[[LOOK]]).failing(will_retry=True)
    talk.calls("hello", call=2).ends(2, plans=[[LOOK, LEAP]]).plan(LOOK, LEAP)
    return talk.end_turn()


def plan_that_is_refused() -> Talk:
    both = [step("look", "inProgress"), step("leap", "inProgress")]
    talk = called().ends(plans=[both], tools=1).calls("hello", call=2)
    return talk.ends(2, plans=[[LOOK]]).plan(LOOK).end_turn()


def plan_before_a_steered_input() -> Talk:
    more = [{"type": "text", "text": "and more"}]
    talk = called().asks("turn/steer", threadId=THREAD, expectedTurnId=TURN, input=more)
    talk.answers({"turnId": TURN}).ends(plans=[[LOOK]]).item(user_message("u-2", "and more"))
    talk.calls("hello", "and more", call=2).ends(2, texts=said("Yes.")).message("m-1", "Yes.")
    return talk.end_turn()


def last_plan_of_an_answer() -> Talk:
    return called().ends(plans=[[LOOK], [LOOK, LEAP]]).plan(LOOK, LEAP).end_turn()


def plans_of_an_answer_in_another_order() -> Talk:
    """The calls of an answer are carried out at once; then the plan is changed in the next one."""
    talk = called().ends(plans=[[LOOK], [LEAP]]).plan(LEAP).plan(LOOK).calls("hello", call=2)
    return talk.ends(2, plans=[[LOOK, LEAP]]).plan(LOOK, LEAP).end_turn()


def plans_of_two_answers_in_another_order() -> Talk:
    talk = called().ends(plans=[[LOOK]]).calls("hello", call=2).ends(2, plans=[[LEAP]])
    return talk.plan(LEAP).plan(LOOK).end_turn()


def last_of_two_plans_told_once() -> Talk:
    """The plan goes back to what it was, and the client is told only that it changed."""
    return called().ends(plans=[[LOOK], [LEAP], [LOOK]]).plan(LOOK).plan(LEAP).end_turn()


def second_plan_not_told() -> Talk:
    talk = called().ends(plans=[[LOOK]]).plan(LOOK).calls("hello", call=2)
    return talk.ends(2, plans=[[LOOK, LEAP]]).end_turn()


def last_plan_of_an_answer_not_told() -> Talk:
    return called().ends(plans=[[LOOK], [LOOK, LEAP]]).plan(LOOK).end_turn()


def other_model(talk: Talk, turn: str = TURN, call: int = 1, model: str = "other") -> Talk:
    """The rest of a turn in which another model answered."""
    talk.ends(call, answers=model, texts=said("Yes."))
    return talk.message(f"m-{call}", "Yes.", turn=turn).end_turn(turn)


def told_when_it_began() -> Talk:
    talk = other_model(called().rerouted("other"))
    return other_model(called(talk, "turn_2", 2), "turn_2", 2)


def the_same_by_its_provider() -> Talk:
    return other_model(called(), model="provider/Mock-Model-2026-01")


def answer_of_another_that_broke_off() -> Talk:
    talk = called().ends(outcome="disconnected", answers="other").failing(will_retry=True)
    talk.calls("hello", call=2).ends(2, texts=said("Yes.")).message("m-1", "Yes.")
    return talk.end_turn()


def other_model_not_told() -> Talk:
    return other_model(called())


def another_one_told() -> Talk:
    return other_model(called().rerouted("third"))


DIFFS = [
    Legal("turn.diff-whole", "a command removed the file later", removed_by_a_command),
    Legal(
        "turn.diff-whole",
        "what a command left running removed it",
        removed_by_what_a_command_left_running,
    ),
    Legal("turn.diff-whole", "the next change moved the file", moved_by_the_next_change),
    Legal("turn.diff-whole", "a change without a difference", changed_nothing),
    Legal("turn.diff-after-change", "one diff for two changes at once", one_diff_for_two_at_once),
    Legal("turn.diff-after-change", "diffs that are computed aside", diffs_that_come_later),
]
BAD_DIFFS = [
    Illegal("turn.diff-after-change", "one diff for two", one_diff_for_two, Level.SHOULD),
    Illegal(
        "turn.diff-after-change", "one diff for the last two", one_diff_for_three, Level.SHOULD
    ),
    Illegal("turn.diff-whole", "the second diff forgets the first change", lost_file),
    Illegal("turn.diff-whole", "one of two files of a change", lost_one_of_a_change),
]

DELTAS = [
    *legal("delta.rebuilds-reply", cut_within_a_character),
    *legal(
        "delta.rebuilds-reply",
        cut_by_an_interrupt,
        left_for_a_retry,
        left_with_a_late_delta,
        hints=("delta.rebuilds-reply",),
    ),
    *legal(
        "delta.rebuilds-reply",
        cut_by_the_other_client,
        hints=("delta.rebuilds-reply", "turn.interrupted-when-asked"),
    ),
    *legal("delta.reasoning-summary", sections_from_one, sections_from_zero),
    *legal("delta.command-output", large_output_cut, lines_of_a_terminal),
]
OUTPUTS = [
    *legal(
        "item.command-output",
        many_numbers_cut,
        a_part_that_may_have_failed,
        no_output_kept,
        a_file_takes_it,
        folder_behind_a_link,
    ),
    *legal(
        "item.command-output",
        cut_and_says_so,
        cut_at_the_end_and_says_so,
        folder_with_another_name,
        mounted_folder,
        hints=("item.command-output",),
    ),
    *legal("item.command-output", characters_of_another_set, hints=("item.command-output",)),
    *legal("model.output-shown", own_words_around_it, the_command_repeated),
]
NEWS = [
    *legal(
        "turn.plan-told",
        plan_of_an_answer_that_broke_off,
        plan_that_is_refused,
        plan_before_a_steered_input,
    ),
    *legal(
        "turn.plan-told",
        last_plan_of_an_answer,
        plans_of_an_answer_in_another_order,
        hints=("turn.plan-told",),
    ),
    *legal("turn.reroute-told", told_when_it_began, hints=("turn.reroute-told",)),
    *legal("turn.reroute-told", the_same_by_its_provider, answer_of_another_that_broke_off),
]
BAD_DELTAS = [
    *illegal(
        "delta.rebuilds-reply",
        part_of_the_deltas_lost,
        try_before_kept_in_the_text,
        both_tries_in_one_item,
        both_tries_after_two_retries,
    ),
]
BAD_OUTPUTS = [
    *illegal(
        "item.command-output",
        line_of_printf_lost,
        last_number_lost,
        rounds_lost,
        folder_of_another_thread,
    ),
    *illegal("item.command-output", nothing_left_of_a_large_output, level=Level.SHOULD),
    *illegal("model.output-shown", beginning_lost, all_lost, level=Level.SHOULD),
]
BAD_NEWS = [
    *illegal(
        "turn.plan-told",
        second_plan_not_told,
        last_plan_of_an_answer_not_told,
        plans_of_two_answers_in_another_order,
        last_of_two_plans_told_once,
    ),
    *illegal("turn.reroute-told", other_model_not_told, another_one_told),
]

LEGAL: list[Legal] = [*DIFFS, *DELTAS, *OUTPUTS, *NEWS]
ILLEGAL: list[Illegal] = [*BAD_DIFFS, *BAD_DELTAS, *BAD_OUTPUTS, *BAD_NEWS]
