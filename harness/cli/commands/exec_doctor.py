"""`harness doctor --agent-cmd`: check whether an agent's `exec` can be judged."""

from collections.abc import Iterator

from anyio.from_thread import start_blocking_portal

from harness.client.target.profile import Bounds, Profile
from harness.play.bench import open_bench
from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.play.run import Run
from harness.play.session.servers import SetupFailed
from harness.play.session.setup_diagnosis import Check, describe_stderr_tail
from harness.protocol.values import arr, obj, text
from harness.scenario.exec_results import ExecResult, exec_result_of
from harness.scenario.loader import load_text
from harness.scenario.surfaces import COMMANDS, EXEC_COMMAND, LOGIN_COMMAND, MCP_COMMAND
from harness.trace.frame import Kind
from harness.trace.marks import ProgramEnded
from harness.trace.surfaces import EXEC

# Short, since a person waits.
BOUNDS = Bounds(start=5.0, step=3.0, scenario=5.0, settle=0.3, stop=0.3)

_TURN = """
title: a plain turn
surfaces: [exec]
model: [{reply: [{message: "hello"}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "hello", as: u}
  - wait: {turn: u}
"""
_MODEL = (
    "take the model's address from PROVIDER_BASE_URL or OPENAI_BASE_URL, or from config.toml\n"
    "a program that wants other settings has a profile: harness docs exec-judging"
)
_WORDS = (
    "the words of its command line are the table [exec] of a profile: harness docs exec-judging"
)

_UNKNOWN = {
    EXEC_COMMAND: "it does not know exec: only its mcp is judged",
    MCP_COMMAND: "it does not know mcp: only its exec is judged",
    LOGIN_COMMAND: "it does not know mcp login and mcp logout: they are not judged",
}


def examine_agent(config: Config, interruption: Interruption) -> Iterator[Check]:
    """Yield the checks of an agent's `exec` in order, until one makes the rest meaningless."""
    loaded = load_text(_TURN, name="doctor").on_surface(EXEC)
    profile = impatient_profile(config)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(profile, config.book, base=config.base, worker="doctor", scale=config.scale)
        ) as bench,
    ):
        try:
            probe = portal.start_task_soon(bench.commands.prober.missing_needs, COMMANDS)
            lacking = interruption.wait(probe)
            yield from (Check(None, _UNKNOWN[command]) for command in lacking)
            if EXEC_COMMAND in lacking:
                return
            run = interruption.wait(portal.start_task_soon(bench.run, loaded))
        except Interrupted as signal:
            message = f"interrupted ({signal}): whether it can be judged is not known"
            yield Check(None, message, last=True)
            return
        except SetupFailed as failed:
            yield Check(False, failed.finding.message, _WORDS, last=True)
            return
        url = bench.model_url
    yield from _run_checks(run, url)


def impatient_profile(config: Config) -> Profile:
    """Return the profile with `BOUNDS`, except a start, step or scenario bound that it sets."""
    bounds = config.profile.bounds
    set_names = bounds.model_fields_set & {"start", "step", "scenario"}
    set_bounds = {name: getattr(bounds, name) for name in set_names}
    return config.profile.model_copy(update={"bounds": BOUNDS.model_copy(update=set_bounds)})


def _run_checks(run: Run, model_url: str) -> Iterator[Check]:
    events = [frame for frame in run.trace.frames if frame.kind is Kind.EVENT]
    noise = [frame for frame in run.trace.frames if frame.kind is Kind.MALFORMED]
    turn_report = exec_result_of(run.trace, next(iter(run.cast.turns.values()), ""))
    ends = [mark.body.status for mark in run.trace.marks_of(ProgramEnded)]
    if not events:
        sample = f": {noise[0].text(80)}" if noise else ""
        status = f"ended with status {ends[0]}" if ends else "did not end"
        message = f"it writes no event{sample}; it {status}{describe_stderr_tail(run.stderr)}"
        yield Check(False, message, _WORDS)
        return
    yield Check(True, f"it writes events ({len(events)})")
    if noise:
        message = f"{len(noise)} line(s) are no event, such as {noise[0].text(80)}"
        yield Check(False, message, "write to standard error what is for people")
    if not turn_report.thread:
        message = "no thread.started with a thread_id: nobody can go on with its threads"
        yield Check(False, message, "begin with thread.started")
    yield _model_check(run, model_url)
    yield _end_check(run, turn_report)


def _model_check(run: Run, url: str) -> Check:
    if not run.model.calls:
        return Check(False, f"the model at {url} was not called", _MODEL)
    tools = [
        text(obj(tool).get("name")) or text(obj(tool).get("type")) or "?"
        for tool in arr(run.model.calls[0].body.get("tools"))
    ]
    offered = ", ".join(tools) or "none"
    return Check(True, f"it calls the model ({len(run.model.calls)} call(s); tools: {offered})")


def _end_check(run: Run, turn_report: ExecResult) -> Check:
    if turn_report.status == "completed":
        return Check(True, f"a plain turn ends ({run.seconds * 1000:.0f} ms in all)")
    reason = f" ({turn_report.error})" if turn_report.error else ""
    advice = "the model answered with one message and no tool call: what went wrong with it?"
    message = (
        f"a plain turn ends as {turn_report.end_words}{reason}{describe_stderr_tail(run.stderr)}"
    )
    return Check(False, message, advice if run.model.calls else "reach the model first: see above")
