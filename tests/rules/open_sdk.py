"""Other choices at open points of the calls of SDKs."""

from typing import Any

from tests.rules.open_point import Otherwise, Untried, Why
from tests.rules.sdk_talk import FAILED, STARTED, SdkTalk, whole_turn

RETRIED = {"type": "error", "message": "Reconnecting 1/5"}
OPTIONS: dict[str, Any] = {"model": "m-1", "additionalDirectories": ["/extra"]}


def one_process() -> SdkTalk:
    """One process serves all turns of the thread, and is told by other words."""
    talk = SdkTalk().driver().asks().starts("serve", "hello").gives()
    return talk.asks().gives().asks("runStreamed").throws("busy")


def passes_over_lines() -> SdkTalk:
    """Lines that are no events are passed over, and events without an end are an error."""
    return SdkTalk().driver().asks(writes=[STARTED]).starts("exec").throws("no end")


def by_variables() -> SdkTalk:
    """The base URL is a variable, and the SDK has more of its own."""
    talk = SdkTalk().driver({"baseUrl": "http://h/v1", "env": {"A": "b"}}, process={"MARK": "x"})
    return talk.runs(env={"A": "b", "THE_URL": "http://h/v1", "SDK": "1", "PATH": "/bin"})


def other_values() -> SdkTalk:
    """Texts of overrides are in single quotes, arrays in parts, and null is passed over."""
    talk = SdkTalk().driver({"config": {"a": "b c", "n": 1, "list": [1], "none": None}})
    return talk.runs("-c", "a='b c'", "--config=n = 1", "--config", "list.0=1")


def options_at_first() -> SdkTalk:
    """Options of a thread are passed on with its first turn, and with a resumed one never."""
    talk = SdkTalk().driver(thread=OPTIONS).runs("--model", "m-1", "--add-dir", "/extra")
    talk.asks().starts("resume", "thr-1").gives()
    return talk.driver(thread=OPTIONS, resume="thr-1").runs("resume", "thr-1")


def refuses_values() -> SdkTalk:
    """A value that the text does not list is refused, and nothing is started."""
    talk = SdkTalk().driver(thread={"modelReasoningEffort": "huge"})
    return talk.asks().throws("no such effort", thread=None)


def joins_texts() -> SdkTalk:
    """Texts are put together with a space, and a relative path is made absolute."""
    entries = [{"type": "text", "text": "one"}, {"type": "local_image", "path": "a/b.png"}]
    entries.append({"type": "text", "text": "two"})
    talk = SdkTalk().driver().asks("run", entries)
    return talk.starts("exec", "--image", "/a/b.png", stdin="one two").gives()


def nothing_said() -> SdkTalk:
    """Without a message finalResponse is null, and usage is null whatever was told."""
    writes = whole_turn({"type": "reasoning", "text": "hm"})
    talk = SdkTalk().driver().asks(writes=writes).starts("exec")
    return talk.gives(None, items=[{"type": "reasoning", "text": "hm"}], usage=writes[-1]["usage"])


def error_is_the_end() -> SdkTalk:
    """run rejects at the first error event, though the turn was completed afterwards."""
    writes = [STARTED, RETRIED, *whole_turn()[1:]]
    talk = SdkTalk().driver().asks(writes=writes).starts("exec").throws("Reconnecting 1/5")
    only = [STARTED, RETRIED]
    return talk.asks("runStreamed", writes=only).starts("resume", "thr-1").yields(*only).ends()


def throws_after_failing() -> SdkTalk:
    """The iteration throws after turn.failed, with words of its own."""
    events = whole_turn(end=FAILED)
    talk = SdkTalk().driver().asks("runStreamed", writes=events).starts("exec").yields(*events)
    return talk.throws("the agent ended with status 1")


def aborted_streams() -> SdkTalk:
    """An aborted stream ends quietly, and a signal aborted beforehand is an error of its own."""
    talk = SdkTalk().driver().asks("runStreamed", abort="during", writes=[STARTED])
    talk.starts("exec").yields(STARTED).ends()
    return talk.driver().asks(abort="before").throws("already aborted", "TypeError", None)


def own_messages() -> SdkTalk:
    """run rejects with words of its own."""
    talk = SdkTalk().driver().asks(writes=whole_turn(end=FAILED)).starts("exec")
    return talk.throws("that did not work", "AgentError")


def not_told_again() -> SdkTalk:
    """thread.started does not come again, and the id stays."""
    talk = SdkTalk().driver().runs().asks(writes=whole_turn()[1:])
    return talk.starts("exec", "resume", "thr-1").gives()


OTHERWISE = [
    Otherwise("sdk-child.way", "has one process for all turns", one_process),
    Otherwise("sdk-child.broken-line", "passes over lines", passes_over_lines),
    Otherwise("sdk-client.base-url-way", "has a variable for it", by_variables),
    Otherwise("sdk-client.own-variables", "sets several", by_variables),
    Otherwise("sdk-client.config-values", "quotes in its own way", other_values),
    Otherwise("sdk-client.config-keys", "passes over some", other_values),
    Otherwise("sdk-thread-options.unknown", "refuses values", refuses_values),
    Otherwise("sdk-thread-options.every-turn", "passes them once", options_at_first),
    Otherwise("sdk-agent.resume-options", "takes none", options_at_first),
    Otherwise("sdk-input.joined", "puts a space between texts", joins_texts),
    Otherwise("sdk-input.image-base", "makes paths absolute", joins_texts),
    Otherwise("sdk-result.no-message", "gives null", nothing_said),
    Otherwise("sdk-event.retries", "takes error events as the end", error_is_the_end),
    Otherwise("sdk-event.failed-after-error", "ends after it", error_is_the_end),
    Otherwise("sdk-errors.streamed-throws", "throws", throws_after_failing),
    Otherwise("sdk-abort.streamed", "ends quietly", aborted_streams),
    Otherwise("sdk-abort.beforehand", "has another error", aborted_streams),
    Otherwise("sdk-errors.messages", "has its own words", own_messages),
    Otherwise("sdk-event.started-again", "leaves it out", not_told_again),
]

UNTRIED = [
    Untried(
        "sdk-result.usage-null",
        Why.NOTHING_LEFT,
        "null is accepted wherever it stands; where a usage was told it is a hint",
    ),
    Untried(
        "sdk-client.config-order",
        Why.NO_RULE,
        "no rule judges a key that config and an option both set",
    ),
    Untried(
        "sdk-thread-options.git-check",
        Why.NO_RULE,
        "it is the agent that checks, and no rule judges whether it does",
    ),
    Untried(
        "sdk-child.leftovers",
        Why.NOT_ON_THE_WIRE,
        "what is left of a process is seen by the hygiene of a run, by no rule",
    ),
    Untried(
        "sdk-thread.transitions",
        Why.NOTHING_LEFT,
        "the id after each turn is judged, and when it is set is left open there",
    ),
    Untried(
        "sdk-agent.unknown-thread",
        Why.NO_RULE,
        "no rule judges the turns of a thread that the agent does not know",
    ),
    Untried(
        "sdk-thread.at-once",
        Why.NO_RULE,
        "drivers run one turn after the other, so no rule judges two at once",
    ),
]
