"""The stories of scenarios that fail alike: the first are whole, the others name them."""

from harness.judge.verdict import Verdict
from harness.report.results.outcome import Finding
from harness.report.results.rerun_command import Programs
from harness.report.scenario_story import MAX_SAME_STORIES, Stories
from tests.unit.results.outcomes import outcome


def test_scenarios_that_fail_with_the_same_words_are_told_whole_a_few_times() -> None:
    stories = Stories(Programs("spec", "server"))
    same = [Finding("scenario.expectation", "step wait: turn u ended as done", 7)]
    names = [f"turns/{number}" for number in range(MAX_SAME_STORIES + 2)]
    told = [
        stories.tell_scenario(
            outcome(name, findings=same, verdict=Verdict.FAIL, stderr="its stderr")
        )
        for name in names
    ]
    assert ["its stderr" in one for one in told] == [True] * MAX_SAME_STORIES + [False] * 2
    short = told[-1]
    assert "scenario.expectation: step wait: turn u ended as done" in short
    assert f"the same as in {', '.join(names[:MAX_SAME_STORIES])}, which are shown in full" in short
    assert "repeat    harness run --target spec --server-cmd server" in short
    other = [Finding("scenario.crash", "the server ended by itself", 7)]
    made = outcome("turns/x", findings=other, verdict=Verdict.FAIL, stderr="its stderr")
    assert "its stderr" in stories.tell_scenario(made)
