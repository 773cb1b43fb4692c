"""Cases of the rules on SDKs."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import CallEnd, ModelEnd, SessionItem, SessionReport
from tests.rules.case import Case, Found
from tests.rules.sdk_talk import FAILED, RAN, SAID, STARTED, SdkTalk, whole_turn

RUN = "turn 1 of driver 1, run"
STREAM = "turn 1 of driver 1, runStreamed"
ALL = (1, 2, 3)
KEY = {"PROVIDER_API_KEY": "key-1"}


def plain() -> SdkTalk:
    """A turn without any option."""
    return SdkTalk().driver().runs()


def nothing() -> SdkTalk:
    """A turn whose agent was never started, since its signal had been aborted."""
    return SdkTalk().driver().asks(abort="before", writes=whole_turn()).throws("", "AbortError")


def run(words: str = "", /, **options: Any) -> SdkTalk:
    """A turn of `run` with options of the client or the thread, and these words of the agent."""
    return SdkTalk().driver(**options).runs(*words.split())


def result(*writes: dict[str, Any], **other: Any) -> SdkTalk:
    """A turn of `run` with this result."""
    talk = SdkTalk().driver().asks(writes=writes or None)
    return talk.starts("exec").gives(**other)


def streamed(*events: dict[str, Any]) -> SdkTalk:
    """A turn of `runStreamed` that yields these events."""
    return SdkTalk().driver().asks("runStreamed").starts("exec").yields(*events).ends()


def aborts(name: str) -> SdkTalk:
    """A turn of `run` that is aborted while it runs."""
    return SdkTalk().driver().asks(abort="during", writes=[STARTED]).starts("exec").throws("", name)


def switched(words: str) -> SdkTalk:
    """A turn without an option, and one with it."""
    talk = SdkTalk().driver().runs().driver(thread={"skipGitRepoCheck": True})
    return talk.runs(*words.split())


SCHEMA: dict[str, Any] = {"type": "object"}


def structured(files: dict[str, Any]) -> SdkTalk:
    """A turn with an output schema."""
    talk = SdkTalk().driver().asks(outputSchema=SCHEMA)
    return talk.starts("exec", "/tmp/s.json", files=files).gives('{"a": 1}')


def twice(words: str, thread: str = "thr-1") -> SdkTalk:
    """Two turns of one thread."""
    talk = SdkTalk().driver().runs()
    return talk.asks().starts("exec", *words.split()).gives(thread=thread)


UNTOLD = {"agentPathOverride": None}


def elsewhere(*words: str, **thread: str) -> SdkTalk:
    """A turn of an agent that was started in another folder."""
    return SdkTalk().driver(thread=thread).runs(*words, cwd="/")


def compared(*told: SessionItem, answer: ModelEnd | None = None) -> SdkTalk:
    """A turn of a real agent, of which the session told this."""
    talk = SdkTalk().mark(SessionReport("u", "completed", told)).plays("u")
    return talk.works(*whole_turn(SAID, RAN), answer=answer).gives(items=[SAID, RAN])


CASES = [
    Case(
        "sdk-child.found-on-path",
        good=SdkTalk().driver(UNTOLD).runs(),
        witnesses=(RUN,),
        bad=SdkTalk().driver(UNTOLD).asks().throws("no binary"),
        found=(Found(RUN, (1, 2), Level.SHOULD),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-child.current-directory",
        good=elsewhere("--cd=/work"),
        witnesses=(RUN,),
        bad=elsewhere(),
        found=(Found(RUN, ALL),),
        not_exercised=elsewhere("--cd=/w", workingDirectory="/w"),
    ),
    Case(
        "sdk-child.started",
        good=plain(),
        witnesses=(RUN,),
        bad=SdkTalk().driver().asks().gives(),
        found=(Found(RUN, (1, 2)),),
        not_exercised=nothing(),
    ),
    Case(
        "sdk-child.options",
        good=run("--model m-1", thread={"model": "m-1"}),
        witnesses=(f"{RUN}, thread.model",),
        bad=run("--model other", thread={"model": "m-1"}),
        found=(Found(f"{RUN}, thread.model", ALL),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-child.switches",
        good=switched("--skip-git-repo-check"),
        witnesses=("turn 1 of driver 2, run",),
        bad=switched(""),
        found=(Found("turn 1 of driver 2, run", (1, 2, 3, 5, 6, 7)),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-child.input",
        good=plain(),
        witnesses=(f"{RUN}, input",),
        bad=SdkTalk().driver().asks().starts("exec", stdin="").gives(),
        found=(Found(f"{RUN}, input", ALL),),
        not_exercised=nothing(),
    ),
    Case(
        "sdk-child.schema",
        good=structured({"/tmp/s.json": SCHEMA}),
        witnesses=(f"{RUN}, options.outputSchema",),
        bad=structured({}),
        found=(Found(f"{RUN}, options.outputSchema", ALL),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-child.config",
        good=run("--config a.b=true", agent={"config": {"a": {"b": True}}}),
        witnesses=(f"{RUN}, agent.config.a.b",),
        bad=run("--config a={b=true}", agent={"config": {"a": {"b": True}}}),
        found=(Found(f"{RUN}, agent.config.a.b", ALL),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-child.env",
        good=SdkTalk().driver({"env": {"A": "b"}}, process={"MARK": "x"}).runs(env={"A": "b"}),
        witnesses=(f"{RUN}, A", f"{RUN}, MARK"),
        bad=SdkTalk()
        .driver({"env": {"A": "b"}}, process={"MARK": "x"})
        .runs(env={"A": "b", "MARK": "x"}),
        found=(Found(f"{RUN}, MARK", ALL),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-child.env-inherited",
        good=SdkTalk().driver(process={"MARK": "x"}).runs(env={"MARK": "x"}),
        witnesses=(f"{RUN}, MARK",),
        bad=SdkTalk().driver(process={"MARK": "x"}).runs(),
        found=(Found(f"{RUN}, MARK", ALL, Level.SHOULD),),
        not_exercised=SdkTalk().driver({"env": {}}, process={"MARK": "x"}).runs(),
    ),
    Case(
        "sdk-child.key",
        good=SdkTalk().driver(process=KEY).runs(env=KEY),
        witnesses=(f"{RUN}, process.PROVIDER_API_KEY",),
        bad=SdkTalk().driver(process=KEY).runs(),
        found=(Found(f"{RUN}, process.PROVIDER_API_KEY", ALL),),
        not_exercised=SdkTalk().driver({"apiKey": "other"}, process=KEY).runs(),
    ),
    Case(
        "sdk-child.key-hidden",
        good=SdkTalk().driver({"apiKey": "key-1"}).runs(env=KEY),
        witnesses=(RUN,),
        bad=run("--key=key-1", agent={"apiKey": "key-1"}),
        found=(Found(RUN, ALL, Level.INFO),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-child.resumed",
        good=twice("resume thr-1"),
        witnesses=("turn 2 of driver 1, run, turn",),
        bad=twice(""),
        found=(Found("turn 2 of driver 1, run, turn", (4, 5, 6)),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-run.resolves",
        good=plain(),
        witnesses=(RUN,),
        bad=SdkTalk().driver().asks().starts("exec").throws("no"),
        found=(Found(RUN, ALL),),
        not_exercised=aborts("AbortError"),
    ),
    Case(
        "sdk-run.result-shape",
        good=result(usage=None),
        witnesses=(RUN,),
        bad=result(final={"text": "Yes."}),
        found=(Found(RUN, ALL),),
        not_exercised=aborts("AbortError"),
    ),
    Case(
        "sdk-run.usage",
        good=plain(),
        witnesses=(RUN,),
        bad=result(usage=None),
        found=(Found(RUN, ALL, Level.SHOULD),),
        not_exercised=result(*whole_turn(end={"type": "turn.completed"}), usage=None),
    ),
    Case(
        "sdk-run.items",
        good=result(items=[{**SAID, "id": "item_0"}]),
        witnesses=(RUN,),
        bad=result(items=[]),
        found=(Found(RUN, ALL, Level.SHOULD),),
        not_exercised=aborts("AbortError"),
    ),
    Case(
        "sdk-run.final-response",
        good=result(*whole_turn({**SAID, "text": "One."}, SAID)),
        witnesses=(RUN,),
        bad=result(*whole_turn(SAID, {**SAID, "text": "Two."})),
        found=(Found(RUN, ALL, Level.SHOULD),),
        not_exercised=result(*whole_turn({"type": "error", "message": "m"})),
    ),
    Case(
        "sdk-run.rejects",
        good=SdkTalk().driver().asks(writes=whole_turn(end=FAILED)).starts("exec").throws("no"),
        witnesses=(RUN,),
        bad=result(*whole_turn(end=FAILED)),
        found=(Found(RUN, ALL),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-streamed.events",
        good=streamed(*whole_turn()),
        witnesses=(STREAM,),
        bad=streamed(*whole_turn()[:-1]),
        found=(Found(STREAM, (1, 2, 6)),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-run.abort-error",
        good=aborts("AbortError"),
        witnesses=(RUN,),
        bad=aborts("Error"),
        found=(Found(RUN, ALL),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-thread.id-known",
        good=plain(),
        witnesses=(RUN,),
        bad=result(thread=None),
        found=(Found(RUN, ALL),),
        not_exercised=aborts("AbortError"),
    ),
    Case(
        "sdk-thread.same-id",
        good=twice("resume thr-1"),
        witnesses=("turn 2 of driver 1, run",),
        bad=twice("resume thr-1", "thr-2"),
        found=(Found("turn 2 of driver 1, run", (3, 4, 5, 6), Level.SHOULD),),
        not_exercised=plain(),
    ),
    Case(
        "sdk-run.agrees-with-session",
        good=compared(SessionItem("agent_message", "Yes."), SessionItem("command_execution")),
        witnesses=(RUN,),
        bad=compared(SessionItem("agent_message", "Yes."), SessionItem("file_change")),
        found=(Found(RUN, (1, 2, 9), Level.SHOULD),),
        # The model's server failed: how often it is asked again is open.
        not_exercised=compared(
            SessionItem("agent_message", "Yes."),
            answer=ModelEnd(call=1, outcome=CallEnd.STATUS, status=500),
        ),
    ),
]
