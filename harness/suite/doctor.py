"""`harness doctor`: in seconds, can this server be judged, and what to do if not.

Here: the questions in the order in which a newcomer needs them, each with its answer and what to
do next. It plays one plain turn on its own bench and judges nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anyio.from_thread import start_blocking_portal

from harness.scenario.loader import load_text
from harness.suite.bench import Bench, open_bench
from harness.suite.run import Run
from harness.suite.servers import SetupFailed
from harness.suite.session import Config
from harness.trace.frame import Kind
from harness.trace.values import arr, obj, text

# Shorter than a suite's bounds: a newcomer waits for this.
_SCALE = 0.4

_TURN = """
title: a plain turn
model: [{reply: [{message: "hello"}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "hello", as: u}
  - wait: {turn: u}
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One question; `good` is None where it could not be asked."""

    good: bool | None
    text: str
    advice: str = ""

    def __str__(self) -> str:
        mark = {True: "ok  ", False: "FAIL", None: "--  "}[self.good]
        return f"{mark} {self.text}" + (f"\n     -> {self.advice}" if self.advice else "")


def examine(config: Config) -> Iterator[Check]:
    """The checks, in order; ends after the first that makes the rest meaningless."""
    loaded = load_text(_TURN, name="doctor")
    scale = config.scale * _SCALE
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(config.profile, config.book, base=config.base, worker="doctor", scale=scale)
        ) as bench,
    ):
        try:
            run = portal.call(bench.run, loaded)
        except SetupFailed as failed:
            yield from _not_usable(failed)
            return
        yield from _conversation(run, bench)
        yield from _model(run)
    yield Check(None, "next", _next(config))


def _not_usable(failed: SetupFailed) -> Iterator[Check]:
    started = failed.finding.id != "setup.not-started"
    yield Check(started, "the server starts" if started else failed.finding.message)
    noise = _noise(failed.trace.frames)
    if started and noise:
        yield Check(False, f"it speaks JSON lines: it wrote {noise!r}", "write logs to stderr")
    elif started:
        advice = "answer a request of any method, with a result or an error, as one JSON line"
        yield Check(False, failed.finding.message, advice)


def _conversation(run: Run, bench: Bench) -> Iterator[Check]:
    frames = run.trace.frames
    yield Check(True, "the server starts")
    noise = _noise(frames)
    yield (
        Check(False, f"it speaks JSON lines: it wrote {noise!r}", "write logs to stderr")
        if noise
        else Check(True, "it speaks JSON lines")
    )
    first = next(
        (f for f in frames if f.from_target and f.kind in (Kind.RESPONSE, Kind.ERROR)), None
    )
    if first is not None:
        how = "a result" if first.kind is Kind.RESPONSE else "an error, which is accepted"
        yield Check(True, f"it answers initialize ({how}, after {first.at * 1000:.0f} ms)")
    if run.unmet is not None:
        yield Check(False, f"a plain turn: step {run.unmet.step}: {run.unmet.message}")
    else:
        yield Check(True, f"a plain turn ends ({run.seconds * 1000:.0f} ms in all)")


def _model(run: Run) -> Iterator[Check]:
    if not run.model.calls:
        advice = "point the server at {model_url}: see PROVIDER_BASE_URL and the profile's files"
        yield Check(False, "the model is called", advice)
        return
    call = run.model.calls[0]
    tools = [_tool(tool) for tool in arr(call.body.get("tools"))]
    yield Check(True, f"the model is called ({len(run.model.calls)} call(s))")
    yield Check(None, f"tools offered to the model: {', '.join(tools) or 'none'}")


def _tool(tool: Any) -> str:
    return text(obj(tool).get("name")) or text(obj(tool).get("type")) or "?"


def _noise(frames: Any) -> str:
    for frame in frames:
        if frame.from_target and frame.kind is Kind.MALFORMED:
            return str(frame.text(60))
    return ""


def _next(config: Config) -> str:
    command = " ".join(config.profile.command)
    return f"harness run --target {config.profile.name} --server-cmd '{command}'"
