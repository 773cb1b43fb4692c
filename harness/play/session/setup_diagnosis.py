"""Reasons why a server cannot be used at all, with advice for its author."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.client.target.profile import Profile
from harness.play.session.initialize_answers import describe_other_id
from harness.play.session.servers import SetupFailed
from harness.protocol.escapes import visible
from harness.trace.frame import Frame, Kind
from harness.trace.marks import PartialLine
from harness.trace.trace import Trace

_MESSAGES = (
    "read requests from standard input, one JSON object a line, and write one line for each "
    'answer: {"id": 1, "result": {}} or {"id": 1, "error": {…}}; flush after each\n'
    "all that it must answer: harness docs servers"
)
_IDS = (
    "take the id of each request over into its answer as it came, a number as a number: "
    'to {"id": 1, "method": "initialize", …} the answer is {"id": 1, "result": {}}\n'
    "all that it must answer: harness docs servers\n"
    "if an answer with the right id was still to come, give --timeout-scale 3"
)
_LISTENS = (
    "where it wants the address of a WebSocket or a Unix socket, write {listen} into --server-cmd"
)
_STAYS = (
    "run the command in a shell: it has to stay and read requests until its input ends\n"
    "many servers want a subcommand for this, such as `app-server`\n"
    "if it wants a settings file of its own: harness profile new"
)
_PROGRAM = (
    "the command is run as it stands, without a shell: it begins with a program, or with an "
    "interpreter and then its script"
)
_SLOW = "if it only starts slowly, give --timeout-scale 3"


@dataclass(frozen=True, slots=True)
class Check:
    """One check; `good` is None if it could not be made; `advice` has one or more lines.

    After a check that is the `last`, no other makes sense.
    """

    good: bool | None
    text: str
    advice: str = ""
    last: bool = False

    def __str__(self) -> str:
        mark = {True: "ok  ", False: "FAIL", None: "--  "}[self.good]
        # No line may begin with the server's text: CI runners execute commands in output lines.
        return "\n     -> ".join([f"{mark} {visible(self.text)}", *self.advice.splitlines()])


def unusable_checks(failed: SetupFailed, profile: Profile) -> Iterator[Check]:
    """Yield the checks of a server with which no conversation could begin."""
    message, frames = failed.finding.message, failed.trace.frames
    sent = [frame for frame in frames if frame.from_target]
    noise = _first_noise(frames)
    if failed.finding.id == "setup.not-started":
        wrote = f" Before that it wrote {noise!r}, which is not JSON." if noise else ""
        yield Check(
            False,
            f"the server starts: {message}.{wrote}",
            _STAYS if failed.ran else _PROGRAM,
        )
        return
    yield Check(True, "the server starts")
    echoed = [f for f in sent if f.kind is Kind.REQUEST and f.method == "initialize"]
    if echoed:
        yield Check(
            False,
            "it speaks JSON lines, but only sends back what it is sent: it answered nothing",
            _MESSAGES,
        )
    elif noise:
        yield noise_check(frames, profile, "")
        yield Check(None, "whether it answers initialize is not known")
    elif wrong := describe_other_id(frames):
        yield Check(True, _describe_framing(profile))
        yield Check(False, f"it {wrong}", _IDS)
    elif sent:
        yield Check(True, _describe_framing(profile))
        yield Check(False, message, f"{_MESSAGES}\n{_SLOW}")
    elif failed.listens:
        yield Check(False, message, f"{_LISTENS}; its standard input and output are not used then")
    else:
        yield Check(False, message, f"{_MESSAGES}\n{_LISTENS}\n{_SLOW}")


def noise_check(frames: Sequence[Frame], profile: Profile, partial: str) -> Check:
    """Return the check that the server wrote nothing but messages.

    `partial` is a line that began and did not end.
    """
    noise = _first_noise(frames)
    if partial:
        return Check(
            False,
            f"it began a line and did not end it: {partial!r}",
            "end each message with one newline, and flush",
        )
    if noise:
        return Check(
            False,
            f"it writes lines that are not messages: {noise!r}",
            "one JSON object a line and nothing else on standard output; logs belong on stderr",
        )
    return Check(True, _describe_framing(profile))


def partial_of(trace: Trace) -> str:
    """Return the beginning of a server's line that did not end, "" if there is none."""
    return next((mark.body.head for mark in trace.marks_of(PartialLine)), "")


def describe_stderr_tail(stderr: str, limit: int = 300) -> str:
    """Return the end of the server's stderr as an addition to a message, "" if it is empty."""
    words = stderr.strip()
    return f"; the end of its stderr: {words[-limit:]}" if words else ""


def _describe_framing(profile: Profile) -> str:
    if profile.listening_kind() in ("ws", "ws-unix"):
        return "it speaks JSON, one message a WebSocket frame"
    return "it speaks JSON lines"


def _first_noise(frames: Sequence[Frame]) -> str:
    return next(
        (f.text(60) for f in frames if f.from_target and f.kind is Kind.MALFORMED), ""
    ).removesuffix("\n")
