"""The table of the approval policies, against the words of "Enumerations"."""

from itertools import product
from typing import get_args

import pytest

from harness.wire.settings import ApprovalPolicy
from reference_server.engine.policy import (
    Ruling,
    ruling_on_command,
    ruling_on_denial,
    ruling_on_file_change,
)

POLICIES = get_args(ApprovalPolicy)
BOTH = (True, False)


@pytest.mark.parametrize(("trusted", "escalated"), list(product(BOTH, BOTH)))
def test_never_asks_about_no_command(trusted: bool, escalated: bool):
    assert ruling_on_command("never", trusted=trusted, escalated=escalated) is Ruling.RUN


@pytest.mark.parametrize(("trusted", "escalated"), list(product(BOTH, BOTH)))
def test_on_request_asks_about_every_command(trusted: bool, escalated: bool):
    assert ruling_on_command("on-request", trusted=trusted, escalated=escalated) is Ruling.ASK


@pytest.mark.parametrize("inside", BOTH)
def test_on_request_asks_about_every_file_change(inside: bool):
    assert ruling_on_file_change("on-request", inside=inside) is Ruling.ASK


def test_untrusted_asks_about_all_but_trusted_commands():
    assert ruling_on_command("untrusted", trusted=True, escalated=False) is Ruling.RUN
    assert ruling_on_command("untrusted", trusted=False, escalated=False) is Ruling.ASK


def test_a_trusted_command_that_wants_out_of_the_sandbox_is_asked_about():
    assert ruling_on_command("untrusted", trusted=True, escalated=True) is Ruling.ASK
    assert ruling_on_command("reject", trusted=True, escalated=True) is Ruling.DECLINE


def test_on_failure_runs_first_and_asks_when_the_sandbox_stopped_it():
    for trusted, escalated in product(BOTH, BOTH):
        ruling = ruling_on_command("on-failure", trusted=trusted, escalated=escalated)
        assert ruling is Ruling.RUN
    assert ruling_on_denial("on-failure") is Ruling.ASK


def test_no_other_policy_asks_after_a_denial():
    others = set(POLICIES) - {"on-failure"}
    assert {ruling_on_denial(policy) for policy in others} == {Ruling.FAIL}


def test_reject_denies_where_untrusted_asks():
    for trusted, escalated in product(BOTH, BOTH):
        asked = ruling_on_command("untrusted", trusted=trusted, escalated=escalated)
        rejected = ruling_on_command("reject", trusted=trusted, escalated=escalated)
        assert (asked is Ruling.ASK) == (rejected is Ruling.DECLINE)
    for inside in BOTH:
        assert ruling_on_file_change("untrusted", inside=inside) is Ruling.ASK
        assert ruling_on_file_change("reject", inside=inside) is Ruling.DECLINE


def test_a_change_outside_the_sandbox_is_never_made_unasked():
    rulings = {policy: ruling_on_file_change(policy, inside=False) for policy in POLICIES}
    assert Ruling.RUN not in rulings.values()
    assert rulings["never"] is Ruling.FAIL
