"""Good plays of SDKs, for `good_traces`."""

from collections.abc import Callable
from typing import Any

from harness.trace.marks import CallEnd, ModelEnd, SessionItem, SessionReport
from harness.trace.trace import Trace
from tests.rules.sdk_talk import FAILED, RAN, SAID, STARTED, SdkTalk, whole_turn

KEY = {"PROVIDER_API_KEY": "key-of-process"}
MARK = {"MARK": "of-the-process"}
SCHEMA = {"type": "object"}


def options() -> Trace:
    """Turns with all options, with none, and with one switch."""
    talk = SdkTalk("sdk-options").driver(process={**MARK, **KEY}).runs(env={**MARK, **KEY})
    talk.driver(thread={"skipGitRepoCheck": True}, process={**MARK, **KEY})
    talk.runs("--skip-git-repo-check", env={**MARK, **KEY})
    client: dict[str, Any] = {"baseUrl": "http://h/v1", "apiKey": "key-1", "env": {"A": "b"}}
    client["config"] = {"x": {"y": "z"}, "n": 3}
    thread = {"workingDirectory": "/w", "model": "m-1", "additionalDirectories": ["/extra"]}
    talk.driver(client, thread, process=MARK)
    text = [{"type": "text", "text": "look"}, {"type": "local_image", "path": "/i.png"}]
    talk.asks("run", text, outputSchema=SCHEMA)
    words = "--config x.y='z' --config n=3 --url http://h/v1 --cd /w --model m-1 --add-dir /extra"
    words += " --output-schema /tmp/s.json --image /i.png"
    talk.starts(
        "exec",
        *words.split(),
        stdin="look",
        env={"A": "b", "PROVIDER_API_KEY": "key-1"},
        files={"/tmp/s.json": SCHEMA},
    )
    return talk.gives().trace()


def left_out() -> Trace:
    """A turn without any option, of a client that was not told where the agent is."""
    return SdkTalk("sdk-left-out").driver({"agentPathOverride": None}).runs().trace()


def results() -> Trace:
    """Turns that are completed, streamed, failed and aborted, and two on one thread."""
    talk = SdkTalk("sdk-results").driver().runs()
    talk.asks("runStreamed").starts("exec", "resume", "thr-1").yields(*whole_turn()).ends()
    talk.asks(writes=whole_turn(end=FAILED)).starts("exec", "resume", "thr-1").throws("too fast")
    talk.driver(resume="thr-1").runs("resume", "thr-1")
    talk.driver().asks(abort="during", writes=[STARTED]).starts("exec").throws("", "AbortError")
    return talk.trace()


def on_agent() -> Trace:
    """Turns of a real agent that the session told too: one is completed, the other refused."""
    said = SessionItem("agent_message", "Yes."), SessionItem("command_execution")
    talk = SdkTalk("sdk-on-agent").mark(SessionReport("u", "completed", said))
    talk.mark(SessionReport("v", "failed")).plays("u")
    talk.works(*whole_turn(SAID, RAN), thread="t").gives(items=[SAID, RAN])
    refused = ModelEnd(call=2, outcome=CallEnd.STATUS, status=429)
    talk.plays("v", "s").works(
        *whole_turn(end=FAILED), call=2, thread="s", answer=refused, status=1
    )
    return talk.throws("too fast").trace()


SDK: dict[str, Callable[[], Trace]] = {
    "sdk-options": options,
    "sdk-left-out": left_out,
    "sdk-results": results,
    "sdk-on-agent": on_agent,
}
