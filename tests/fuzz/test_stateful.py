"""Threads, turns, input and interruptions in any order, in one conversation that is held open.

Hypothesis chooses each step while it sees what came before; the rules judge the whole conversation
at its end. The model waits at a gate in each of its replies, so that turns are running while they
are steered, interrupted and read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from harness.client.target.profile import load_profile
from harness.client.target.run_folders import base_folder
from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Row, Verdict
from harness.model.script import ModelStep
from harness.play.bench import Bench, open_bench
from harness.play.run import Run
from harness.play.session.conversation import Needs
from harness.protocol.spec.loading import load_book
from harness.protocol.values import dig
from harness.trace.frame import Frame, Kind

pytestmark = [pytest.mark.fuzz, pytest.mark.slow, pytest.mark.socket]

SERVERS = Path(__file__).parents[2] / "fixtures" / "servers"
BOOK, RULES = load_book(), all_rules()
ALIASES = ("a", "b")
STEPS = 14
# Each step of the machine can ask for a reply, and each input that is added for one more.
REPLIES = 3 * STEPS
# The same ones each time, so that what must be judged in them (below) is.
few = settings(
    max_examples=15,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def script(alias: str) -> list[ModelStep]:
    replies = [
        {"message": {"deltas": ["One. ", {"hold": f"{alias}{n}"}, "Two."]}} for n in range(REPLIES)
    ]
    return [ModelStep.model_validate({"reply": [reply]}) for reply in replies]


MARKERS = {alias: f"[thread {alias}]" for alias in ALIASES}
SCRIPTS = {alias: script(alias) for alias in ALIASES}


class Client(RuleBasedStateMachine):
    """A client of one conversation, as hypothesis drives it. `ended` is told of each run."""

    def __init__(self, portal: BlockingPortal, bench: Bench, ended: Callable[[Run], None]) -> None:
        super().__init__()
        self._portal = portal
        self._ended = ended
        self._block = portal.wrap_async_context_manager(
            bench.conversation("stateful", SCRIPTS, needs=Needs(markers=MARKERS))
        )
        self.stage = self._block.__enter__()
        self.threads: dict[str, str] = {}
        self.turns: dict[str, list[str]] = {alias: [] for alias in ALIASES}
        self.opened: dict[str, int] = dict.fromkeys(ALIASES, 0)

    def teardown(self) -> None:
        """The conversation ends, whatever was left running."""
        self._block.__exit__(None, None, None)
        self._ended(self.stage.run)

    def ask(self, method: str, **params: Any) -> Frame:
        """A request and its answer."""
        return self._portal.call(self.stage.request, method, params)

    def running(self, alias: str) -> bool:
        """Return True if a turn of the thread has started and its end has not come."""
        done = [
            dig(frame.params, "turn", "id")
            for frame in self.stage.frames
            if frame.method == "turn/completed"
        ]
        return any(turn not in done for turn in self.turns[alias])

    @precondition(lambda self: len(self.threads) < len(ALIASES))
    @rule()
    def start_thread(self) -> None:
        alias = ALIASES[len(self.threads)]
        answer = self.ask("thread/start", cwd=str(self.stage.cwd), approvalPolicy="never")
        self.threads[alias] = self.stage.cast.threads[alias] = dig(answer.result, "thread", "id")

    @precondition(lambda self: self.threads)
    @rule(data=st.data())
    def start_turn(self, data: st.DataObject) -> None:
        alias = self.drawn(data)
        ran = self.running(alias)
        answer = self.ask("turn/start", threadId=self.threads[alias], input=self.said(alias))
        assert ran or answer.kind is Kind.RESPONSE
        if answer.kind is Kind.RESPONSE:
            turn = dig(answer.result, "turn", "id")
            self.turns[alias] += [] if turn in self.turns[alias] else [turn]

    @precondition(lambda self: any(self.turns.values()))
    @rule(data=st.data())
    def steer(self, data: st.DataObject) -> None:
        alias, turn = self.drawn_turn(data)
        given = {"input": self.said(alias), "expectedTurnId": turn}
        self.ask("turn/steer", threadId=self.threads[alias], **given)

    @precondition(lambda self: any(self.turns.values()))
    @rule(data=st.data())
    def interrupt(self, data: st.DataObject) -> None:
        alias, turn = self.drawn_turn(data)
        self.ask("turn/interrupt", threadId=self.threads[alias], turnId=turn)

    @precondition(lambda self: self.threads)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        thread = self.threads[self.drawn(data)]
        answer = self.ask("thread/read", threadId=thread)
        assert dig(answer.result, "thread", "id") == thread

    @precondition(lambda self: self.threads)
    @rule(data=st.data())
    def let_the_model_go_on(self, data: st.DataObject) -> None:
        alias = self.drawn(data)
        self.open_next_gate(alias)

    @precondition(lambda self: any(self.turns.values()))
    @rule(data=st.data())
    def wait_for_the_end(self, data: st.DataObject) -> None:
        alias, turn = self.drawn_turn(data)
        while self.opened[alias] < REPLIES:
            self.open_next_gate(alias)

        def ends(frame: Frame) -> bool:
            return frame.method == "turn/completed" and dig(frame.params, "turn", "id") == turn

        self._portal.call(self.stage.wait, ends, f"the end of {turn}")

    def open_next_gate(self, alias: str) -> None:
        self._portal.call(self.stage.model.gates.open, f"{alias}{self.opened[alias]}")
        self.opened[alias] += 1

    def drawn(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.threads)), "thread")

    def drawn_turn(self, data: st.DataObject) -> tuple[str, str]:
        """A thread that has turns, and one of them: the last one, or an earlier one."""
        alias = data.draw(st.sampled_from([a for a in ALIASES if self.turns[a]]), "thread")
        return alias, data.draw(st.sampled_from([self.turns[alias][-1], *self.turns[alias]]))

    def said(self, alias: str) -> list[dict[str, str]]:
        """Input, with what tells the model's side whose call it is."""
        return [{"type": "text", "text": f"{MARKERS[alias]} go on"}]


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as opened:
        yield opened


def rows_of(portal: BlockingPortal, target: str, *command: str) -> list[Row]:
    """Drive conversations with a server, and judge each by all rules."""
    profile = load_profile(target)
    if command:
        profile = profile.model_copy(update={"command": list(command)})
    runs: list[Run] = []

    class Driven(Client):
        def __init__(self) -> None:
            super().__init__(portal, bench, runs.append)

    with portal.wrap_async_context_manager(
        open_bench(profile, BOOK, base=base_folder(), worker=f"stateful-{target}")
    ) as bench:
        run_state_machine_as_test(Driven, settings=few)
    assert len(runs) >= few.max_examples
    assert [run.unmet for run in runs if run.unmet is not None] == []
    assert {run.ending.end for run in runs} == {"quiescent"}
    return [row for run in runs for row in judge(BOOK, run.trace, RULES.values())]


def broken_rules(rows: list[Row]) -> set[str]:
    return {row.rule for row in rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)}


def test_the_reference_server_keeps_every_rule_in_any_order(portal: BlockingPortal) -> None:
    rows = rows_of(portal, "reference")
    assert broken_rules(rows) == set()
    judged = {row.rule for row in rows if row.verdict is Verdict.PASS}
    assert {"turn.completed-once", "steer.granted", "turn.interrupt-ends-interrupted"} <= judged


def test_a_turn_that_ends_twice_is_found_by_its_rule(portal: BlockingPortal) -> None:
    server = SERVERS / "broken" / "double_completed.py"
    assert "turn.completed-once" in broken_rules(
        rows_of(portal, "spec", sys.executable, str(server))
    )
