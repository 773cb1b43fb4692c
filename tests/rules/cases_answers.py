"""Cases of the rules that the model's answers reach the client, and outputs reach the model."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.approval_talk import Approvals
from tests.rules.case import Case, Found, opened, running
from tests.rules.cases_news import FIRST, SECOND, asked, over, unclear
from tests.rules.traces import Talk, command, thread_object

CALL = "item c-1 of turn turn_1"


def said(*words: str, phase: str = "") -> list[dict[str, str]]:
    """Return the texts of a model answer in the form of a mark."""
    return [{"text": one, "phase": phase} for one in words]


def schema(talk: Talk, text: str | None, number: int = 1, **params: Any) -> Talk:
    """Add a turn with an output schema and a last message: six messages, four if `text` is None."""
    asks: dict[str, Any] = {"outputSchema": {"type": "object", "required": ["a"]}, **params}
    turn = f"turn_{number}"
    talk.ask_turn(text="x", **asks).reply_turn(turn).turn_started(turn)
    if text is not None:
        talk.message("m", text, turn=turn)
    return talk.turn_completed(turn)


def ran(output: str | None, told: str, number: int = 1, talk: Talk | None = None) -> Talk:
    """Return a talk with a turn with a command and its output for the model: six messages."""
    turn, item = f"turn_{number}", f"c-{number}"
    talk = asked(talk, number).ends(number, tools=1)
    shows = {"command": "cat <<E\nhello\nE"}
    talk.started(command(item, **shows), turn)
    talk.completed(command(item, "completed", **shows, aggregatedOutput=output), turn)
    talk.calls(f"say {number}", call=number + 100, outputs=(told,))
    return talk.ends(number + 100).turn_completed(turn)


def two_at_once(one: str | None, other: str | None) -> Talk:
    """Return a talk with two concurrent commands with these process ids: seqs 9 to 12."""
    talk = running().started(command("c-1")).started(command("c-2"))
    talk.completed(command("c-1", "completed", processId=one))
    return talk.completed(command("c-2", "completed", processId=other))


def after_one_another(process: str) -> Talk:
    """Return a talk with two commands, one after the other, with the same process id."""
    talk = running().item(command("c-1", "completed", processId=process))
    return talk.item(command("c-2", "completed", processId=process))


CASES = [
    Case(
        rule="turn.fails-with-its-model",
        good=over(asked(), status="failed", outcome="status 401"),
        witnesses=(FIRST,),
        # Nothing shown; a message shown; the tool of the first call was run, the second refused.
        bad=asked(
            over(
                asked(over(asked(), outcome="status 500"), 2).message("m", "So.", turn="turn_2"),
                2,
                outcome="disconnected",
            ),
            3,
        )
        .ends(3, tools=1)
        .calls("again", call=4)
        .ends(4, "failed server_error")
        .turn_completed("turn_3"),
        found=(
            Found(FIRST, (3, 6)),
            Found(SECOND, (7, 13), Level.SHOULD),
            Found("turn turn_3", (14, 17), Level.SHOULD),
        ),
        not_exercised=unclear(outcome="status 401").ends(7, "status 401"),
    ),
    Case(
        rule="model.answer-shown",
        # In two messages, and with other white space.
        good=over(
            asked().message("m-1", "It has ").message("m-2", "run.\n"), texts=said("It has run.")
        ),
        witnesses=(FIRST,),
        # Not at all; other words.
        bad=over(
            asked(over(asked(), texts=said("Yes.")), 2).message("m", "No.", turn="turn_2"),
            2,
            texts=said("Yes."),
        ),
        found=(Found(FIRST, (3, 6)), Found(SECOND, (7, 12, 13), Level.SHOULD)),
        # Remarks on the way; a schema; an answer that was given up.
        not_exercised=over(
            asked(
                over(
                    asked(
                        over(
                            asked(unclear(texts=said("x")), 7),
                            7,
                            texts=said("y", phase="commentary"),
                        ),
                        8,
                        outputSchema={},
                    ),
                    8,
                    texts=said("{}"),
                ),
                9,
            ),
            9,
            outcome="dropped by the caller",
            texts=said("z"),
        ),
    ),
    Case(
        rule="turn.schema-kept",
        good=schema(opened(), '{"a": 1}'),
        witnesses=(FIRST,),
        bad=schema(schema(opened(), "{}"), "In words.", 2),
        found=(Found(FIRST, (3, 8, 9), Level.INFO), Found(SECOND, (10, 15, 16), Level.INFO)),
        # No message; schemas that cannot be read; no schema.
        not_exercised=schema(
            schema(
                schema(schema(opened(), None), "x", 2, outputSchema=None),
                "{}",
                3,
                outputSchema={"$ref": "http://127.0.0.1:9/schema"},
            ),
            "{}",
            4,
            outputSchema={"type": "such"},
        ),
    ),
    Case(
        rule="model.output-shown",
        good=ran("hello\r\n", "Exit code: 0\nOutput:\nhello\n"),
        witnesses=(CALL,),
        bad=ran("E\n", '{"output": "hello\\n"}'),
        found=(Found(CALL, (7, 8), Level.SHOULD),),
        # Words that are not of the command; no output is kept.
        not_exercised=ran("", "no output", 2, ran(None, "hello")),
    ),
    Case(
        rule="item.process-apart",
        good=two_at_once("1", "2"),
        witnesses=("item c-2 of turn turn_1",),
        bad=two_at_once("1", "1"),
        found=(Found("item c-2 of turn turn_1", (10, 11, 12), Level.SHOULD),),
        not_exercised=after_one_another("1").started(command("c-3")),
    ),
    Case(
        rule="item.same-work",
        good=running()
        .started(command("c-1", command="ls", cwd="/a/b"))
        .completed(command("c-1", "completed", command="/bin/sh -c ls", cwd="/a/b/")),
        witnesses=(CALL,),
        bad=running()
        .started(command("c-1"))
        .completed(command("c-1", "completed", command="rm x"))
        .started(command("c-2"))
        .completed(command("c-2", "completed", cwd="/elsewhere")),
        found=(
            Found(CALL, (9, 10), Level.SHOULD),
            Found("item c-2 of turn turn_1", (11, 12), Level.SHOULD),
        ),
        # Completed without a start; other types.
        not_exercised=running().completed(command("c-1", "completed")).message("m-1", "a"),
    ),
    Case(
        rule="method.right-direction",
        good=Approvals().running().approved(),
        witnesses=("method item/commandExecution/requestApproval",),
        bad=opened().says({"method": "thread/read", "id": 7, "params": {"threadId": "thr_1"}}),
        found=(Found("method thread/read", (3,)),),
        # A name that is not listed, and a notification.
        not_exercised=opened()
        .says({"method": "tool/ask", "id": 7, "params": {}})
        .tells("thread/read"),
    ),
    Case(
        rule="thread.one-provider",
        good=opened(),
        witnesses=("thread thr_1",),
        bad=Talk()
        .start_thread("thr_2")
        .tells("thread/started", thread=thread_object("thr_2", modelProvider="other"))
        .start_thread()
        .start_turn()
        .asks("thread/read", threadId="thr_1")
        .answers({"thread": thread_object(modelProvider="other")}),
        found=(Found("thread thr_2", (1, 3)), Found("thread thr_1", (5, 14), Level.SHOULD)),
        not_exercised=Talk().tells("thread/started", thread=thread_object()),
    ),
]
