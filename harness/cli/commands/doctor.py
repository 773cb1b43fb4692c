"""`harness doctor`: check within seconds whether a server can be judged, and say what to fix.

It plays one plain turn on its own bench and judges nothing.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from anyio.from_thread import start_blocking_portal

from harness.cli.commands.exec_doctor import examine_agent
from harness.cli.commands.sdk_doctor import examine_sdk
from harness.client.target.profile import Bounds, Profile, builtin_names, load_profile
from harness.client.target.shell_syntax import unexpanded_arguments
from harness.play.bench import open_bench
from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.play.run import Run
from harness.play.session.servers import SetupFailed
from harness.play.session.setup_diagnosis import (
    Check,
    describe_stderr_tail,
    noise_check,
    partial_of,
    unusable_checks,
)
from harness.protocol.values import arr, dig, obj, text
from harness.scenario.loader import NO_TURN, load_text
from harness.trace.frame import Kind
from harness.trace.marks import EndingBegins
from harness.trace.surfaces import EXEC, SDK, SESSION

# Short, since a person waits: even if all expire, it takes a few seconds. Bounds that a profile
# sets itself are kept: a server that is known to be slow must not count as hanging.
BOUNDS = Bounds(start=3.0, step=1.5, scenario=2.5, settle=0.3, stop=0.3)

TURN = """
title: a plain turn
model: [{reply: [{message: "hello"}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "hello", as: u}
  - wait: {turn: u}
"""


@dataclass(frozen=True, slots=True)
class _TurnRun:
    """A run of the plain turn, with the model's address."""

    config: Config
    run: Run
    profile: Profile
    model_url: str
    strays: list[str]


def examine(config: Config, interruption: Interruption | None = None) -> Iterator[Check]:
    """Yield the checks of all surfaces, then advice; stop after a check that is marked `last`."""
    interruption = interruption or Interruption(config.base)
    healthy, is_last = True, False
    for examine_surface, surface in (
        (_examine_server, SESSION),
        (examine_agent, EXEC),
        (examine_sdk, SDK),
    ):
        for check in examine_surface(config, interruption) if surface in config.surfaces else ():
            healthy = healthy and check.good is not False
            is_last = is_last or check.last
            yield check
        if is_last:
            return
    for lack in config.lacks:
        text = f"what needs {lack.capability} is not judged on this machine: {lack.cause}"
        yield Check(None, text, lack.advice)
    if healthy:
        yield Check(None, "next: judge it", next_command(config))
    else:
        yield Check(None, "next: fix the first FAIL above, and ask again")


def _examine_server(config: Config, interruption: Interruption) -> Iterator[Check]:
    """Yield the checks of a server; one that makes the rest meaningless is marked `last`."""
    loaded = load_text(TURN, name="doctor")
    profile = config.profile.model_copy(update={"bounds": bounds_of(config.profile)})
    for word in unexpanded_arguments(profile.command):
        yield Check(None, f"the server is given {word} as it stands: no shell replaces anything")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(profile, config.book, base=config.base, worker="doctor", scale=config.scale)
        ) as bench,
    ):
        try:
            run = interruption.wait(portal.start_task_soon(bench.run, loaded))
        except Interrupted as signal:
            message = f"interrupted ({signal}): whether it can be judged is not known"
            yield Check(None, message, last=True)
            return
        except SetupFailed as failed:
            *earlier, last = unusable_checks(failed, profile)
            yield from earlier
            yield replace(last, last=True)
            return
        turn_run = _TurnRun(config, run, profile, bench.model_url, bench.model_strays)
    yield from _server_checks(turn_run)


def bounds_of(profile: Profile) -> Bounds:
    """Return `BOUNDS`, replaced where the profile, or one that it extends, sets a bound itself.

    If it sets the bound of a step, that of the scenario grows to three steps.
    """
    set_bounds = {name: getattr(profile.bounds, name) for name in profile.bounds.model_fields_set}
    if "step" in set_bounds:
        # Three steps are awaited, but never longer than in `harness run`.
        three_steps = min(3 * profile.bounds.step, profile.bounds.scenario)
        set_bounds.setdefault("scenario", max(BOUNDS.scenario, three_steps))
    return BOUNDS.model_copy(update=set_bounds)


def next_command(config: Config) -> str:
    """Return the `harness run` command for the same target."""
    return shlex.join(["harness", "run", *target_words(config)])


def target_words(config: Config) -> list[str]:
    """Return the options that name this target: `--target` and the commands."""
    words: list[str] = []
    if config.option not in ("", "spec"):
        words += ["--target", config.option]
    own_command = load_profile(config.option or "spec").command
    # A run with one command option alone plays that surface alone.
    several = bool({EXEC, SDK} & {*config.surfaces})
    if SESSION in config.surfaces and (several or config.profile.command != own_command):
        words += ["--server-cmd", " ".join(map(_quote, config.profile.command))]
    if EXEC in config.surfaces:
        words += ["--agent-cmd", " ".join(map(_quote, config.profile.exec.command))]
    if SDK in config.surfaces:
        words += ["--sdk-cmd", " ".join(map(_quote, config.profile.sdk.command))]
    return words


def _quote(word: str) -> str:
    """Quote like `shlex.quote`, except placeholders in braces, which no shell expands."""
    return word if re.fullmatch(r"[\w@%+=:,./{}-]+", word) else shlex.quote(word)


def _server_checks(turn_run: _TurnRun) -> Iterator[Check]:
    run, frames = turn_run.run, turn_run.run.trace.frames
    yield Check(True, "the server starts")
    yield noise_check(frames, turn_run.profile, partial_of(run.trace))
    first = next((f for f in frames if f.from_target and f.kind in _ANSWERS), None)
    if first is not None and turn_run.profile.handshake != "none":
        kind = "a result" if first.kind is Kind.RESPONSE else "an error, which is accepted"
        yield Check(True, f"it answers initialize ({kind}, after {first.at * 1000:.0f} ms)")
    yield from _model_checks(turn_run)
    yield from _turn_checks(turn_run)


def _other_profiles(profile: Profile) -> str:
    return ", ".join(name for name in builtin_names() if name not in (profile.name, "spec"))


_ANSWERS = (Kind.RESPONSE, Kind.ERROR)


def _model_checks(turn_run: _TurnRun) -> Iterator[Check]:
    run, profile = turn_run.run, turn_run.profile
    if not run.cast.turns and not run.model.calls:
        yield Check(None, "whether it calls the model is not known: no turn was started")
    elif not run.model.calls:
        yield Check(
            False,
            f"a turn was started, and the model at {turn_run.model_url} was not called"
            + (f"; it got {turn_run.strays[0]}" if turn_run.strays else ""),
            "take the model's address from PROVIDER_BASE_URL or OPENAI_BASE_URL, or from "
            f"config.toml in ${profile.home_env}, or write {{model_url}} into --server-cmd\n"
            "a server that wants other settings has a profile: "
            f"--target {_other_profiles(profile)}, or one of your own: harness profile new\n"
            "what the model is and is asked: harness docs servers#model-api\n"
            "the APIs that it speaks: harness docs model-apis",
        )
        connect = shlex.join(["harness", "connect", *target_words(turn_run.config)])
        yield Check(
            None,
            "a fake without a model can be judged too, in what starts no turn",
            f"scenarios: {next_command(turn_run.config)} --tag {NO_TURN}\n"
            f"a session by hand: {connect}\n"
            "recordings of its sessions: harness check FILE",
        )
    else:
        tools = [
            text(obj(tool).get("name")) or text(obj(tool).get("type")) or "?"
            for tool in arr(run.model.calls[0].body.get("tools"))
        ]
        wires = ", ".join(dict.fromkeys(call.wire for call in run.model.calls))
        yield Check(True, f"it calls the model by {wires} ({len(run.model.calls)} call(s))")
        none = "none, so that scenarios about commands and files do not apply"
        yield Check(None, f"tools offered to the model: {', '.join(tools) or none}")


def _turn_checks(turn_run: _TurnRun) -> Iterator[Check]:
    run = turn_run.run
    ends = [
        dig(frame.params, "turn")
        for frame in run.trace.frames
        if frame.from_target and frame.method == "turn/completed"
    ]
    status = text(dig(ends[0], "status")) if ends else ""
    if run.has_died:
        ending = "closed its output" if run.status is None else f"ended, exit status {run.status},"
        stderr_words = describe_stderr_tail(run.stderr)
        yield Check(
            False, f"the server {ending} in the middle of a plain turn{stderr_words}", _LIVES
        )
    elif run.unmet is not None:
        yield Check(
            False,
            f"a plain turn does not come to its end: {run.unmet.step}: {run.unmet.message}"
            f"{_last_message(run)}{describe_stderr_tail(run.stderr)}",
            "thread/start and turn/start want an answer at once, and each turn ends with "
            "turn/completed; a server that does it in 200 lines: harness example minimal\n"
            "what it must answer: harness docs servers#required-requests\n"
            "if the server is only slow, give --timeout-scale 3",
        )
    elif status != "completed":
        reason = text(dig(ends[0], "error", "message")) if ends else ""
        advice = "the model answered with one message and no tool call: what went wrong with it?"
        if not run.model.calls:
            advice = "reach the model first: see above"
        yield Check(False, f"a plain turn ends as {status or '?'}: {reason or 'no reason'}", advice)
    else:
        yield Check(True, f"a plain turn ends ({run.seconds * 1000:.0f} ms in all)")


_LIVES = (
    "a server lives until its input ends, whatever becomes of a turn; what it wrote may say why"
)


def _last_message(run: Run) -> str:
    """Return the clause `; the last that it sent: ...`, or `; it sent nothing`."""
    messages = [frame for frame in run.trace.frames if frame.from_target]
    # The answer to the harness's own barrier request comes after the end and is not shown.
    end_at = next((mark.at for mark in run.trace.marks_of(EndingBegins)), float("inf"))
    messages = [frame for frame in messages if frame.at < end_at]
    return f"; the last that it sent: {messages[-1].text(100)}" if messages else "; it sent nothing"
