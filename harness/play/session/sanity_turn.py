"""Sanity turn: a check that a process is still usable after a scenario has used it.

It is a plain turn on a thread of its own, in a trace of its own that no rule judges. It costs a
turn and the 50 ms of silence that end any trace, so it is played only if it can show something new.
A scenario whose last turn completed has shown the same itself, and a failed one has ended its
process. So it is played before the process is used again after a scenario that completed no turn,
or whose last turn was interrupted or failed; and not before some scenario has completed a turn on
this target, since until then a failing turn proves nothing about the process.
"""

from harness.play.run import Run
from harness.protocol.values import dig
from harness.scenario.expect import SessionReading, unmet_expectations
from harness.scenario.loader import load_text
from harness.trace.frame import Kind
from harness.trace.views import conversation_of

SANITY = load_text(
    """
title: a sanity turn
model: [{reply: [{message: "Still here."}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "Are you still there?", as: u}
  - wait: {turn: u, status: completed}
expect:
  items: [{agentMessage: {text: "Still here."}}]
  model_calls: 1
""",
    name="sanity",
)


def last_turn_completed(run: Run) -> bool:
    """Return whether the last turn completed, so that a sanity turn would show nothing new."""
    for frame in reversed(run.trace.frames):
        if frame.kind is Kind.NOTIFICATION and frame.method == "turn/completed":
            return dig(frame.params, "turn", "status") == "completed"
    return False


def sanity_problem(run: Run) -> str:
    """Return the problem of a sanity turn, "" for none."""
    if run.has_died:
        return "the server ended"
    if run.unmet is not None:
        return f"step {run.unmet.step}: {run.unmet.message}"
    if not run.is_complete:
        return f"it did not come to its end ({run.ending.end})"
    evidence = SessionReading(run.cast, conversation_of(run.trace))
    problems = unmet_expectations(SANITY.scenario, evidence, run.model, run.cwd)
    return "; ".join(map(str, problems))
