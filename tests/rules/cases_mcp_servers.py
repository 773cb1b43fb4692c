"""Cases of the rules on messages between an agent and the MCP servers that the harness plays."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import McpToolCall
from harness.trace.mcp_marks import (
    McpAnswer,
    McpConfigured,
    McpStarted,
    McpTransport,
    McpVariable,
    Possession,
)
from tests.rules.case import Case, Found
from tests.rules.good_mcp import DOCS, NUMBERS, RESULT, SAID, SKY, TINY, add, asked, request
from tests.rules.traces import Talk, mcp_call

SHOWN = "add of tiny, item t-1"
START = "start 1 of tiny"
OFF = McpConfigured(server="off", transport=McpTransport.STDIO, enabled=False, tools=("stop",))
ADD, STOP = McpToolCall("tiny", "add"), McpToolCall("off", "stop")
ANSWER = "answer 3, of add of tiny"


def turn(*marks: Any, talk: Talk | None = None) -> Talk:
    """A turn of three messages, from the third on, in which these marks were written.

    What is configured stands at the beginning.
    """
    configured = [one for one in marks if isinstance(one, McpConfigured)]
    if talk is None:
        talk = Talk()
        for one in configured:
            talk.mark(one)
        talk.start_thread()
    talk.ask_turn().reply_turn().turn_started()
    for one in marks:
        if one not in configured:
            talk.mark(one)
    return talk


def started(**more: Any) -> McpStarted:
    """A start of the program; what is not said is as configured."""
    given: dict[str, Any] = {"args": TINY.args, "variables": (SKY,), **more}
    return McpStarted(server="tiny", **given)


def ended(*marks: Any, status: str = "completed") -> Talk:
    """A whole turn of four messages, of which the end is the seventh of all."""
    return turn(*marks).turn_completed(status=status)


def shown(*marks: Any, status: str = "completed", **more: Any) -> Talk:
    """A turn in which a call is shown, in the eighth message, before its end."""
    more = {"arguments": NUMBERS, "result": RESULT, **more}
    return turn(*marks).item(mcp_call("t-1", status, **more)).turn_completed()


def told(*outputs: str, status: str = "completed", thread: str = "") -> Talk:
    """A turn whose model got these outputs after the answer of the server."""
    talk = turn(TINY).calls("hello").mark(asked()).mark(add()).mark(answer())
    talk.calls("hello", call=2, outputs=outputs, thread=thread)
    return talk.turn_completed(status=status)


def answer(text: str = SAID, **more: Any) -> McpAnswer:
    """Return an answer of the MCP server."""
    return McpAnswer(number=3, texts=(text,), **more)


CASES = [
    Case(
        rule="mcp-server.arguments",
        good=ended(TINY, started()),
        witnesses=(START,),
        bad=ended(TINY, started(), started(args=("--colour", "a", "b"))),
        found=(Found("start 2 of tiny", (6,)),),
        # Nothing was started but a program of which nobody knows how it was configured.
        not_exercised=ended(TINY, McpStarted(server="other")),
    ),
    Case(
        rule="mcp-server.environment",
        good=ended(TINY, started()),
        witnesses=(START,),
        bad=ended(TINY, started(variables=(McpVariable("SKY", Possession.NONE),))),
        found=(Found(START, (6,)),),
        not_exercised=ended(TINY, started(variables=())),
    ),
    Case(
        rule="mcp-server.no-credentials",
        good=ended(TINY, DOCS, started()),
        witnesses=(START,),
        bad=ended(TINY, DOCS, started(tokens=("DOCS_BEARER",))),
        found=(Found(START, (6,)),),
        not_exercised=ended(TINY, started()),
    ),
    Case(
        rule="mcp-server.bearer-token",
        # Who was refused asks again.
        good=ended(
            DOCS,
            request(1, "initialize", "docs", token=Possession.NONE),
            request(2, "initialize", "docs"),
        ),
        witnesses=("initialize to docs",),
        bad=ended(
            DOCS,
            request(1, "initialize", "docs"),
            request(2, "tools/list", "docs", token=Possession.OTHER),
            request(3, "ping", "docs", token=Possession.NONE),
        ),
        found=(Found("tools/list to docs", (6,)), Found("ping to docs", (6,))),
        not_exercised=ended(TINY, DOCS, request(1, "initialize")),
    ),
    Case(
        rule="mcp-server.enabled-only",
        good=ended(TINY, OFF).ask_turn().calls("a", offered=(ADD,)).turn_completed(),
        witnesses=("tools of off",),
        bad=ended(TINY, OFF).ask_turn().calls("a", offered=(ADD, STOP)).turn_completed(),
        found=(Found("tools of off", (8,), Level.SHOULD),),
        # The model was called before anything was offered.
        not_exercised=turn(TINY, OFF).calls("a").turn_completed(),
    ),
    Case(
        rule="mcp-server.called",
        good=shown(TINY, add()),
        witnesses=(SHOWN,),
        bad=shown(TINY, request(3, "tools/list")),
        found=(Found(SHOWN, (7,)),),
        # It failed, or is of another server.
        not_exercised=turn(talk=shown(TINY, status="failed"))
        .item(mcp_call("t-2", "completed", server="other"))
        .turn_completed(),
    ),
    Case(
        rule="mcp-server.call-arguments",
        good=shown(TINY, asked(), add()),
        witnesses=(SHOWN,),
        bad=turn(asked(a=1), add(), talk=shown(TINY, add(a=1)))
        .item(mcp_call("t-2", "completed", arguments=NUMBERS, result=RESULT))
        .turn_completed(),
        found=(
            Found(SHOWN, (7,), Level.SHOULD),
            Found("add of tiny, item t-2", (13,), Level.SHOULD),
        ),
        # It was never called; its arguments were not noted.
        not_exercised=turn(
            request(3, "tools/call", tool="add"), talk=shown(TINY, arguments={"a": 1})
        ).item(mcp_call("t-2", "completed", arguments=NUMBERS)),
    ),
    Case(
        rule="mcp-server.result-shown",
        good=shown(TINY, add(), answer()),
        witnesses=(SHOWN,),
        bad=shown(TINY, add(), answer("the sum is 6")),
        found=(Found(SHOWN, (7,), Level.SHOULD),),
        # It shows none; the server's was long, or empty, or said that the tool failed.
        not_exercised=turn(
            add(4), answer("x" * 1000), talk=shown(TINY, add(), answer(), result=None)
        )
        .item(mcp_call("t-2", "failed", result=RESULT))
        .turn_completed(),
    ),
    Case(
        rule="mcp-server.result-told",
        good=told(f'[{{"text": "{SAID}"}}]'),
        witnesses=(ANSWER,),
        bad=told("it is done"),
        found=(Found(ANSWER, (6,), Level.SHOULD),),
        # The turn was interrupted; the call may be of another thread; there was no other call.
        not_exercised=turn(add(), answer(), talk=told("aborted", status="interrupted"))
        .calls("hello", call=3, outputs=("other",), thread="t")
        .turn_completed(),
    ),
]
