"""Shared server processes: which scenarios use them, and repeats after a failure on one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.judge.verdict import Level
from harness.report.results.outcome import LEAKS, UNSTEADY
from harness.scenario.loader import load_text
from harness.trace.marks import Place
from harness.trace.store import load

from .judging import SERVERS, Judged, alone, bundled, command, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

PLAIN, TWO, BAD_REQUEST = "turns/plain-turn", "turns/two-turns", "failures/bad-request"
LEAKED = "item.completed-after-started"

# Counts the processes and the threads of one current folder; steadily broken if it is told so.
COUNTING = f"""
import sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
import os
def note(what):
    with open(what, "a") as file:
        file.write("x")
class Counting(Server):
    def thread_start(self, params, reply):
        note("threads")
        note(f"threads-of-{{os.getpid()}}")
        super().thread_start(params, reply)
    def notify(self, thread, method, **params):
        super().notify(thread, method, **params)
        if method == "turn/completed" and "broken" in sys.argv:
            super().notify(thread, method, **params)
note("processes")
Counting().serve()
"""


def counting(folder: Path, *names: str, broken: bool = False) -> Judged:
    """Play bundled scenarios by id, each as often as it is named, on a server that counts."""
    script = folder / "counting.py"
    script.write_text(COUNTING)
    every = {one.id: one for one in bundled(*names)}
    line = command(script) + (" broken" if broken else "")
    return judged(line, [every[name] for name in names])


def counted(folder: Path, what: str) -> int:
    return len((folder / what).read_text()) if (folder / what).exists() else 0


def of(server: str, *names: str, target: str = "spec", baseline: str = "") -> Judged:
    every = {one.id: one for one in bundled(*names)}
    scenarios = [every[name] for name in names]
    return judged(command(f"broken/{server}"), scenarios, target=target, baseline=baseline)


def test_state_that_leaks_between_threads_is_named_with_who_was_there_before() -> None:
    found = of("leaks_state", PLAIN, TWO)
    assert found.verdicts() == {PLAIN: "PASS", TWO: "PASS"}
    assert LEAKED in found.failed_rules()
    (issue,) = found.report.issues
    assert (issue.id, issue.level) == (LEAKS, Level.INFO)
    assert f"{TWO} fails (" in issue.message
    assert LEAKED in issue.message
    assert f"on a process that served {PLAIN} before" in issue.message
    assert issue.message in found.story(TWO)
    assert [message[0] for message in found.scenario(TWO).messages] == [LEAKS]
    assert found.scenario(PLAIN).messages == ()


def test_first_verdict_stands_whatever_the_repetition_says() -> None:
    found = of("unsteady", PLAIN, TWO)
    assert found.failed_rules() == ["turn.completed-once"]
    assert list(found.issues()) == [UNSTEADY]
    assert (
        f"{TWO} does not always give the same result: turn.completed-once (at first"
        in (found.issues()[UNSTEADY])
    )


def test_failure_on_a_fresh_process_that_does_not_come_again_is_unsteady() -> None:
    found = of("unsteady", TWO)
    assert list(found.issues()) == [UNSTEADY]


def test_leak_is_a_must_where_the_profile_holds_to_it_and_a_baseline_can_know_it(
    place: Path,
) -> None:
    strict = place / "strict.toml"
    strict.write_text(
        'name = "strict"\nhygiene = "MUST"\n[env]\nPROVIDER_BASE_URL = "{model_url}"\n'
    )
    found = of("leaks_state", PLAIN, TWO, target=str(strict))
    assert [(issue.id, issue.level) for issue in found.report.issues] == [(LEAKS, Level.MUST)]
    known = place / "known.toml"
    entry = '[[deviations]]\nrule = "leaks-state"\nreason = "as it is"\n'
    known.write_text(entry)
    again = of("leaks_state", PLAIN, TWO, target=str(strict), baseline=str(known))
    assert [issue.known for issue in again.report.issues] == ["as it is"]


def test_steady_failure_is_repeated_once_and_believed_when_it_was_confirmed(place: Path) -> None:
    found = counting(place, *[PLAIN, TWO, PLAIN, TWO, PLAIN], broken=True)
    assert found.failed_rules() == ["turn.completed-once"]
    assert found.issues() == {}
    # Two scenarios are played twice, three once. A new process comes after each failure until the
    # rule is confirmed; from then on none is to blame for it.
    assert (counted(place, "threads"), counted(place, "processes")) == (7, 5)


def test_good_server_serves_all_with_one_process_and_no_turn_more(place: Path) -> None:
    found = counting(place, *[PLAIN] * 4)
    assert set(found.verdicts().values()) == {"PASS"}
    assert (counted(place, "processes"), counted(place, "threads")) == (1, 4)


def test_process_shows_that_it_is_good_after_a_scenario_that_completed_no_turn(
    place: Path,
) -> None:
    found = counting(place, PLAIN, BAD_REQUEST, PLAIN, PLAIN)
    assert set(found.verdicts().values()) == {"PASS"}
    assert found.issues() == {}
    assert (counted(place, "processes"), counted(place, "threads")) == (1, 5)


# Runs the turns of threads that were left when the next thread is started, and tells nobody.
UNWATCHED = COUNTING.replace(
    'note("processes")\nCounting().serve()\n',
    """
import minimal
minimal.METHODS = (*minimal.METHODS, "thread/unsubscribe")
class Unwatched(Counting):
    left, waiting = set(), []
    def thread_unsubscribe(self, params, reply):
        self.left.add(params["threadId"])
        reply({"status": "unsubscribed"})
    def notify(self, thread, method, **params):
        if thread.wire["id"] not in self.left:
            super().notify(thread, method, **params)
    def run(self, thread, turn, params):
        if thread.wire["id"] in self.left:
            self.waiting.append((thread, turn, params))
        else:
            super().run(thread, turn, params)
    def thread_start(self, params, reply):
        while self.waiting:
            super().run(*self.waiting.pop())
        super().thread_start(params, reply)
note("processes")
Unwatched().serve()
""",
)
LEFT = """
title: a turn on a thread that was left
model: [{reply: [{message: "Now."}]}, {reply: [{message: "Later."}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "begin", as: u}
  - wait: {turn: u, status: completed}
  - request: {method: thread/unsubscribe, params: {threadId: $t.thread.id}}
  - request:
      method: turn/start
      params: {threadId: $t.thread.id, input: [{type: text, text: "go on"}]}
expect: {model_calls: [1, 2]}
"""


def test_turn_that_nobody_is_told_of_calls_no_model_of_the_next_scenario(place: Path) -> None:
    script = place / "unwatched.py"
    script.write_text(UNWATCHED)
    plain, left = bundled(PLAIN), load_text(LEFT, name="left")
    found = judged(command(script), [*plain, left, *plain])
    assert set(found.verdicts().values()) == {"PASS"}
    assert found.issues() == {}
    assert counted(place, "processes") == 2


# Ends a turn that is to go when its client leaves, and no sooner.
LAZY = COUNTING.replace(
    'note("processes")\nCounting().serve()\n',
    """
class Lazy(Counting):
    def run(self, thread, turn, params):
        if params["input"][0]["text"] == "go":
            list(self.model_events(thread, params))
        else:
            super().run(thread, turn, params)
lazy, leave = Lazy(), os._exit
def ends(status):
    for thread in lazy.threads.values():
        if thread.turn:
            lazy.finish(thread, "interrupted")
    leave(status)
os._exit = ends
lazy.serve()
""",
)
STARTED = """
title: a turn that is not waited for
model: [{reply: [{message: "Going."}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "go", as: u}
expect: {model_calls: 1}
"""


WAITED = STARTED.replace("expect:", "  - wait: {turn: u, status: completed}\nexpect:")


@pytest.mark.parametrize(("text", "verdict"), [(STARTED, "PASS"), (WAITED, "FAIL")])
@pytest.mark.parametrize("fresh", [False, True])
def test_messages_while_the_process_is_ended_do_not_count(
    text: str, verdict: str, fresh: bool, place: Path
) -> None:
    script = place / "lazy.py"
    script.write_text(LAZY)
    started = load_text(text, name="started")
    scenarios = [*bundled(PLAIN), alone(started) if fresh else started]
    found = judged(command(script), scenarios, scale=0.4)
    assert found.verdicts() == {PLAIN: "PASS", "started": verdict}
    assert found.failed_rules() == ["turn.completes"]


def test_nothing_is_shown_to_nobody_after_the_last_scenario(place: Path) -> None:
    counting(place, PLAIN, BAD_REQUEST)
    assert counted(place, "threads") == 2


def test_process_that_does_no_plain_turn_any_more_is_started_again_and_named(place: Path) -> None:
    found = of("stuck_after_failure", PLAIN, BAD_REQUEST, TWO)
    assert set(found.verdicts().values()) == {"PASS"}
    assert list(found.issues()) == ["hygiene.unusable-after"]
    message = found.issues()["hygiene.unusable-after"]
    assert message.startswith(f"after {BAD_REQUEST} the server could not do a plain turn any more")
    assert "step wait: waited 1 s for the end of turn u" in message


def test_process_of_a_scenario_that_wants_its_own_serves_no_other(place: Path) -> None:
    script = place / "counting.py"
    script.write_text(COUNTING)
    (own,), (first,), (last,) = bundled(TWO), bundled(PLAIN), bundled(PLAIN)
    judged(command(script), [first, alone(own), last])
    # The first and the last share a process, which waits while the other scenario is played.
    assert counted(place, "processes") == 2
    assert sorted(file.read_text() for file in place.glob("threads-of-*")) == ["x", "xx"]


# Only one can run at a time: a second one ends at once, or waits for the first.
LOCKED = """
import fcntl
lock = open("lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX | {how})
"""


@pytest.mark.parametrize("how", ["0", "fcntl.LOCK_NB"])
def test_server_of_which_only_one_can_run_at_a_time_is_judged_as_any(how: str, place: Path) -> None:
    script, profile = place / "counting.py", place / "patient.toml"
    script.write_text(LOCKED.format(how=how) + COUNTING)
    profile.write_text(
        'name = "patient"\n[bounds]\nstart = 8.0\n[env]\nPROVIDER_BASE_URL = "{model_url}"\n'
    )
    every = [*bundled(PLAIN), *map(alone, bundled(TWO)), *bundled(BAD_REQUEST)]
    found = judged(command(script), [*every, *map(alone, bundled(PLAIN))], target=str(profile))
    assert set(found.verdicts().values()) == {"PASS"}
    assert found.issues() == {}
    assert counted(place, "processes") == 4


NEEDY = """
title: a scenario
needs: [review]
server: {server}
client:
  - start_thread: {{as: t}}
"""


@pytest.mark.parametrize("server", ["shared", "fresh"])
def test_scenario_whose_needs_are_not_declared_starts_nothing(server: str, place: Path) -> None:
    script, profile = place / "counting.py", place / "declares.toml"
    script.write_text(COUNTING)
    profile.write_text('name = "declares"\ncapabilities = ["core"]\n')
    loaded = load_text(NEEDY.format(server=server), name="needy")
    found = judged(command(script), [loaded], target=str(profile))
    assert found.verdicts() == {"needy": "NOT_APPLICABLE"}
    assert found.scenario("needy").reason == "the server does not offer review"
    assert counted(place, "processes") == 0


def test_scenarios_of_several_clients_share_a_process_that_listens() -> None:
    names = (PLAIN, "clients/silent-client", TWO, "clients/two-threads-at-once")
    every = {one.id: one for one in bundled(*names)}
    found = judged("", [every[name] for name in names], target="reference")
    assert found.verdicts() == dict.fromkeys(names, "PASS")
    homes = [_home(found.outcomes[name].trace) for name in names]
    assert homes[0] == homes[2] != homes[1] == homes[3]


RESTARTED = """
title: a scenario with a restart
model: {s: [], t: [{reply: [{message: "Yes."}]}]}
client:
  - start_thread: {as: s}
  - restart: true
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "is it?", as: u}
  - wait: {turn: u, status: completed}
"""


def test_restarted_process_is_that_of_the_next_scenario(place: Path) -> None:
    script = place / "counting.py"
    script.write_text(COUNTING)
    restarted = load_text(RESTARTED, name="restarted")
    found = judged(command(script), [*bundled(PLAIN), restarted, *bundled(TWO)])
    assert set(found.verdicts().values()) == {"PASS"}
    assert counted(place, "processes") == 2
    assert found.starts() == [("first process", PLAIN), ("restart", "restarted")]


def test_failure_after_a_restart_names_those_that_used_the_home_before() -> None:
    restarted = load_text(RESTARTED, name="restarted")
    scenarios = [*bundled(PLAIN), restarted, *bundled(TWO)]
    found = judged(command("broken/leaks_state"), scenarios)
    assert f"on a process that served {PLAIN}, restarted before" in found.issues()[LEAKS]


CONFIGURED = """
title: a scenario with a config
config: {CONFIG}
model: [{reply: [{message: "Yes."}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "is it?", as: u}
  - wait: {turn: u, status: completed}
"""


def test_scenarios_of_equal_config_share_a_process_beside_the_plain_one(place: Path) -> None:
    script = place / "counting.py"
    script.write_text(COUNTING)
    configs = {"a": "{one: 1}", "b": "{one: 1}", "c": "{two: 2}", "d": '{place: "{cwd}"}'}
    a, b, c, d = (
        load_text(CONFIGURED.replace("{CONFIG}", config), name=name)
        for name, config in configs.items()
    )
    (plain,) = bundled(PLAIN)
    found = judged(command(script), [plain, a, c, plain, b, d, plain])
    assert set(found.verdicts().values()) == {"PASS"}
    own = ("own config", "a"), ("own config", "c"), ("own config", "d")
    assert found.starts() == [("first process", PLAIN), *own]


def test_each_start_has_its_reason(place: Path) -> None:
    found = counting(place, PLAIN, broken=True)
    # Once more on a fresh process, to see whether it is steady.
    assert found.starts() == [("first process", PLAIN), ("after a failure", PLAIN)]
    (own,), (plain,) = bundled(TWO), bundled(PLAIN)
    found = judged(command("minimal"), [plain, alone(own), plain])
    assert found.starts() == [("first process", PLAIN), ("server: fresh", TWO)]


def _home(trace: str) -> str:
    (mark,) = load(Path(trace)).marks_of(Place)
    return mark.body.home
