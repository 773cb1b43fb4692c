"""The end of a conversation by hand: what is still owed, what was found, the exit status."""

from collections import Counter

from harness.cli.connect.actions import Actions
from harness.cli.connect.serving import Serving
from harness.cli.connect.talk import Rest
from harness.judge.verdict import Verdict
from harness.trace.trace import End

_WHY = {
    Rest.ASKS: "the server waits for an answer",
    Rest.HELD: "an answer of the model was held",
    Rest.BUSY: "messages still come",
    Rest.GONE: "the connection is gone",
    Rest.SILENT: "something is still under way",
}


async def finish(serves: Serving, actions: Actions, *, patient: bool, stopped: bool) -> int:
    """Judge the end, say what was found, and give the exit status.

    1 where a MUST was broken, the server ended by itself, or a wait was given up, else 0. With
    `patient` a silent server is given time, as for a step; `stopped`: a signal ended it.
    """
    talk = serves.talk
    rest = Rest.BUSY
    if not stopped:
        settle = serves.wanted.bounds.settle
        rest = await (actions.wait() if patient else talk.rest(settle, settle))
    # A server that is silent, of which nothing runs and which waits for nobody, has ended its work.
    waited = rest is Rest.SILENT and patient and not serves.working
    end = End.QUIESCENT if rest is Rest.AT_REST or waited else End.CLOSED
    if talk.unasked_end:
        end = End.EXITED
    passed = talk.over(end)
    say = serves.display.note
    serves.display.user_spoke()
    if end is not End.QUIESCENT and talk.open:
        say(f"what never came is not judged, since {_WHY.get(rest, 'it was ended')}:", "")
        for duty in talk.open[:5]:
            say(f"  {duty}", "")
    counts = Counter(
        _word(row.level, row.verdict, known_reason) for row, known_reason in talk.findings
    )
    count_words = ", ".join(f"{word} {counts[word]}" for word in _ORDER if counts[word]) or "none"
    messages = len(talk.recorder.trace.frames)
    say(f"{messages} messages; {len(passed)} rules passed; findings: {count_words}", "bold")
    return 1 if talk.red or talk.unasked_end or actions.slow else 0


_ORDER = ("ERROR", "MUST", "SHOULD", "INFO", "KNOWN")


def _word(level: str, verdict: Verdict, known: str) -> str:
    return "ERROR" if verdict is Verdict.ERROR else "KNOWN" if known else str(level)
