"""Each duty on three small traces, and the faults of clients: each breaks its own duty alone."""

import pytest
import yaml

from harness.faults.base import NotApplied, all_faults
from harness.faults.client_duties import client_faults
from harness.faults.stored import apply
from harness.judge.judge import judge
from harness.judge.rows import CRASH_SUBJECT
from harness.judge.rules.discovery import client_rules, every_rule
from harness.judge.verdict import Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.store import load
from harness.trace.trace import Trace
from tests.clients.dutiful import FILE_PATH, dutiful
from tests.clients.duty_cases import CASES
from tests.clients.duty_matrix import MATRIX, broken, rows, table
from tests.rules.case import Case, Found
from tests.rules.good_traces import GOOD

BOOK = load_book()
by_duty = pytest.mark.parametrize("case", CASES, ids=[case.rule for case in CASES])


def rows_of(duty: str, trace: Trace) -> list[Row]:
    return judge(BOOK, trace, rules=[client_rules()[duty]])


def test_every_duty_has_its_three_traces_once() -> None:
    assert sorted(case.rule for case in CASES) == list(client_rules())


@by_duty
def test_a_duty_that_is_kept_has_a_witness(case: Case) -> None:
    found = rows_of(case.rule, case.traces()[0])
    assert {row.verdict for row in found} == {Verdict.PASS}
    assert {row.subject for row in found} >= set(case.witnesses)


@by_duty
def test_a_duty_that_is_broken_is_found_at_the_right_messages(case: Case) -> None:
    found = [row for row in rows_of(case.rule, case.traces()[1]) if row.verdict is not Verdict.PASS]
    assert [Found(row.subject, row.frames, row.level) for row in found] == list(case.found)
    assert {row.verdict for row in found} == {Verdict.FAIL}
    served = {requirement.id for requirement in BOOK.requirements_of(case.rule)}
    assert all(row.expected and row.actual and set(row.clauses) <= served for row in found)


@by_duty
def test_a_duty_says_nothing_where_it_has_nothing_to_judge(case: Case) -> None:
    assert rows_of(case.rule, case.traces()[2]) == []


@pytest.mark.parametrize("duty", client_rules())
def test_a_duty_binds_clients_and_says_what_it_judges(duty: str) -> None:
    requirements = BOOK.requirements_of(duty)
    assert {one.clause.bound for one in requirements} <= {"client", "both"}
    assert str(client_rules()[duty].level) in {one.clause.level for one in requirements}
    doc = " ".join((client_rules()[duty].__doc__ or "").split())
    assert len(doc.split()) > 20
    assert "Left open: " in doc
    assert duty.startswith("duty.")


def test_no_requirement_that_binds_clients_alone_is_left_to_the_harness() -> None:
    """Each rule that the harness keeps in its own messages is also a duty of clients."""
    left = [
        row.id
        for row in BOOK.requirements
        if row.clause.bound == "client" and row.rules and not set(row.rules) & set(client_rules())
    ]
    assert left == []


def test_the_stored_client_keeps_every_duty_with_a_witness() -> None:
    assert [frame.raw for frame in load(FILE_PATH).frames] == [one.raw for one in dutiful().frames]
    found = rows(dutiful())
    assert {row.rule for row in found if row.verdict is Verdict.PASS} == set(client_rules())
    assert broken(dutiful()) == {}


def test_the_server_of_the_stored_client_is_right_too() -> None:
    found = judge(BOOK, dutiful(), every_rule().values())
    assert [row for row in found if row.verdict is not Verdict.PASS] == []


def test_every_fault_of_clients_breaks_its_own_duty_and_no_other() -> None:
    assert table() == yaml.safe_load(MATRIX.read_text("utf-8"))
    assert table() == {name: [fault.rule] for name, fault in client_faults().items()}


def test_every_duty_has_a_fault_and_no_fault_of_servers_has_its_name() -> None:
    assert {fault.rule for fault in client_faults().values()} == set(client_rules())
    assert not set(client_faults()) & set(all_faults())


# What the good traces of servers hold that a client should not do: a wrong turn, to be refused;
# no initialized after initialize.
MEANT = {"steering": {"duty.turn-known"}, "bare-thread": {"duty.handshake-first"}}


SESSIONS = [name for name in GOOD if not name.startswith(("exec-", "sdk-", "mcp-commands"))]


@pytest.mark.parametrize("name", SESSIONS)
def test_the_clients_of_the_good_traces_keep_their_duties(name: str) -> None:
    assert set(broken(GOOD[name]())) == MEANT.get(name, set())


def test_no_duty_crashes_on_a_fault_of_any_trace() -> None:
    for name in SESSIONS:
        for fault in client_faults().values():
            try:
                changed = apply(fault, GOOD[name]())
            except NotApplied:
                continue
            assert [row for row in rows(changed) if row.subject == CRASH_SUBJECT] == [], (
                name,
                fault.id,
            )
