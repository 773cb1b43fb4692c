"""Check for a server that completes no plain turn, on which further scenarios would time out.

A scenario whose turn completed has shown that it does. So a separate plain turn is played only when
a scenario times out before any turn of its worker has completed, which never happens on a correct
server. The result depends on the server alone and not on which scenario timed out, so every order
of scenarios and every number of workers finds the same.

Only silence is a set-up finding: an answer that does not come, a turn that does not end, a server
that does not become idle. Rejections, failures and crashes cost no waiting, and the scenarios
report them. A server that starts slowly, or hangs now and then, is not hopeless: the plain turn
gets a fresh process, and twice the time of the scenario that timed out.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

from harness.errors import TargetError
from harness.play.run import Run
from harness.protocol.values import dig
from harness.report.results.outcome import Finding
from harness.scenario.loader import SUFFIX, Loaded, load
from harness.scenario.steps.context import FailureKind
from harness.trace.frame import Frame, Kind
from harness.trace.marks import EndingBegins
from harness.trace.views import conversation_of

NO_ANSWER, NO_TURN = "setup.no-answer", "setup.no-plain-turn"
# Step bound of the plain turn, as a multiple of a scenario's.
PATIENCE = 2.0

_FOLDER = Path(__file__).parent / "setup"


@cache
def plain_turn() -> Loaded:
    """Return the scenario of the plain turn. Cached for the process."""
    return load(_FOLDER / f"plain-turn{SUFFIX}", root=_FOLDER.parent)


class Hopeless(TargetError):
    """Error: a plain turn showed that nothing can be judged; the bench's `blocker` says why."""


class FirstTurn:
    """Watch for the first completed turn of a worker."""

    def __init__(self) -> None:
        self._is_decided = False

    def play_if_needed(self, run: Run, play: Callable[[float], Run]) -> Run | None:
        """Play the plain turn if this is the first run that times out, and no turn has completed.

        Return that run, else None. `play` takes the step bound's factor and may raise
        `SetupFailed`.
        """
        self._is_decided = self._is_decided or _has_completed_turn(run)
        if self._is_decided or not silence_of(run):
            return None
        self._is_decided = True
        return play(PATIENCE)


def hopeless_finding(run: Run, step: float) -> Finding:
    """Return the finding for a plain turn that timed out; `step` is the usual bound in seconds."""
    message = (
        f"no plain turn can be had: {silence_of(run)} ({plain_turn().id}, waiting "
        f"{step * PATIENCE:g} s); {_describe_received(run)}; {_describe_model_calls(run)}; "
        "ask harness doctor what to do; a server that is only slow wants --timeout-scale 3; "
        "--keep-going plays the scenarios all the same"
    )
    return Finding(NO_TURN if run.cast.threads else NO_ANSWER, message)


def _has_completed_turn(run: Run) -> bool:
    """Return whether a turn that the client started has completed."""
    started = run.cast.turns.values()
    return any(
        frame.method == "turn/completed"
        and dig(frame.params, "turn", "status") == "completed"
        and dig(frame.params, "turn", "id") in started
        for frame in run.trace.frames
        if frame.from_target
    )


def silence_of(run: Run) -> str:
    """Return a description of the missing message, "" if the run did not time out."""
    if run.has_died or run.overflow:
        return ""
    if run.unmet is not None:
        if run.unmet.kind is not FailureKind.TIMEOUT:
            return ""
        missing = unanswered_method(run)
        return f"{missing} was not answered" if missing else "turn/completed did not come"
    if run.ending.liveness:
        return f"after its end the server did not come to rest ({run.ending.liveness})"
    return ""


def unanswered_method(run: Run) -> str:
    """Return the method of the client's last unanswered request, "" for none."""
    conversation = conversation_of(run.trace)
    answered = {
        request.seq
        for frame in run.trace.frames
        if frame.from_target and (request := conversation.request_of(frame)) is not None
    }
    end = next((mark.at for mark in run.trace.marks_of(EndingBegins)), float("inf"))
    sent = [
        frame
        for frame in run.trace.frames
        if not frame.from_target and frame.kind is Kind.REQUEST and frame.at <= end
    ]
    return next(
        (str(request.method) for request in reversed(sent) if request.seq not in answered), ""
    )


def _answers(run: Run) -> list[Frame]:
    """Return the answers to our requests, except to the handshake."""
    conversation = conversation_of(run.trace)
    return [
        frame
        for frame in run.trace.frames
        if frame.from_target
        and frame.kind in (Kind.RESPONSE, Kind.ERROR)
        and (request := conversation.request_of(frame)) is not None
        and request.method != "initialize"
    ]


def _describe_received(run: Run) -> str:
    """Describe the messages that arrived, without ids, so that each run gives the same text."""
    answers = [conversation_of(run.trace).request_of(frame) for frame in _answers(run)]
    words = [f"the answer to {asked.method}" for asked in answers if asked is not None]
    conversation = conversation_of(run.trace)
    sent = [frame for frame in run.trace.frames if frame.from_target]
    method_counts = Counter(str(frame.method) for frame in sent if frame.method)
    words += [
        name if count == 1 else f"{name} ({count} times)" for name, count in method_counts.items()
    ]
    stray = [
        frame
        for frame in sent
        if frame.kind in (Kind.RESPONSE, Kind.ERROR) and conversation.request_of(frame) is None
    ]
    if stray:
        words.append(f"{len(stray)} answer(s) with an id that no request has")
    if noise := sum(frame.kind is Kind.MALFORMED for frame in sent):
        words.append(f"{noise} line(s) that are not messages")
    return f"what came: {', '.join(words)}" if words else "nothing came after initialize"


def _describe_model_calls(run: Run) -> str:
    calls = run.model.calls
    if not calls:
        return "the model was not called"
    return f"the model was called ({len(calls)} call(s))"
