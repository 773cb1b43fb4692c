"""The findings that are no rule's: the closed list of their ids, and what each means.

Here: the ids that a deviation or a baseline may name beside the rules, one line each. Not here:
when one is made (judging, servers, hygiene, repeat, races); docs/reports.md has them at length.
"""

FINDINGS: dict[str, str] = {
    "scenario.expectation": "a step was refused, a turn ended otherwise, or expect was not met",
    "scenario.timeout": "a step, or the end of the trace, hit its bound while we were not done",
    "scenario.crash": "the server ended unasked, or its connection did",
    "scenario.no-witness": "a rule that the scenario covers judged nothing in it",
    "setup.not-started": "the server does not start, or ends before it answers",
    "setup.no-handshake": "it does not answer initialize in time",
    "setup.model-not-called": "a turn was started and the fake model was never called",
    "liveness.turn-does-not-end": "the server was still busy at the scenario's bound",
    "hygiene.leaked-process": "a process of the server outlived it, and was killed",
    "hygiene.ignores-term": "the server had to be killed",
    "hygiene.outlives-input": "the end of its input, sent in a race, did not end it",
    "hygiene.exit-status": "at the end of its input it ended with another status than 0",
    "hygiene.ended-unasked": "it ended between two scenarios",
    "hygiene.process-after-turn": "a process that a scenario started still ran after it",
    "hygiene.long-line": "it wrote a line over the bound, whose content was not kept",
    "hygiene.descriptors": "its open descriptors grow from conversation to conversation",
    "hygiene.temporary-files": "it ended in its own way and left files in its temporary folder",
    "hygiene.stray-output": "it wrote what is no message while no conversation was going on",
    "hygiene.panic": "its standard error tells of a defect, and it did not end of it",
    "hygiene.unusable-after": "after a scenario it could not do a plain turn any more",
    "leaks-state": "a scenario fails on a process that others used, and not on a fresh one",
    "unsteady": "a failed scenario did not give the same when it was repeated",
}

# Findings about the run itself, which nobody can accept beforehand.
OF_THE_RUN = ("baseline.stale", "harness.worker-died")
