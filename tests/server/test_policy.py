"""The table of the approval policies, against the words of "Enumerations"."""

from itertools import product
from typing import get_args

import pytest

from harness.protocol.wire.settings import ApprovalPolicy
from reference_server.engine.policy import (
    Ruling,
    ruling_on_command,
    ruling_on_denial,
    ruling_on_file_change,
)

POLICIES = get_args(ApprovalPolicy)
BOTH = (True, False)
KINDS = [
    {"allowed": allowed, "trusted": trusted, "escalated": escalated}
    for allowed, trusted, escalated in product(BOTH, BOTH, BOTH)
]
"""Facts about a command: a lasting rule covers it, it only reads, it wants to leave the sandbox."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["never", "on-failure"])
def test_nobody_is_asked_beforehand(policy: ApprovalPolicy, kind: dict[str, bool]) -> None:
    assert ruling_on_command(policy, **kind) is Ruling.RUN


@pytest.mark.parametrize("kind", KINDS)
def test_on_request_asks_about_every_command_without_a_rule(kind: dict[str, bool]) -> None:
    by_rule = kind["allowed"] and not kind["escalated"]
    assert ruling_on_command("on-request", **kind) is (Ruling.RUN if by_rule else Ruling.ASK)


@pytest.mark.parametrize("kind", KINDS)
def test_untrusted_asks_about_all_but_trusted_and_allowed_commands(kind: dict[str, bool]) -> None:
    spared = (kind["allowed"] or kind["trusted"]) and not kind["escalated"]
    assert ruling_on_command("untrusted", **kind) is (Ruling.RUN if spared else Ruling.ASK)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("allowed", BOTH)
@pytest.mark.parametrize("trusted", BOTH)
def test_neither_trust_nor_a_rule_answers_for_a_way_out_of_the_sandbox(
    policy: ApprovalPolicy, allowed: bool, trusted: bool
) -> None:
    unknown = ruling_on_command(policy, allowed=False, trusted=False, escalated=True)
    assert ruling_on_command(policy, allowed=allowed, trusted=trusted, escalated=True) is unknown


@pytest.mark.parametrize("inside", BOTH)
def test_on_request_asks_about_every_file_change(inside: bool) -> None:
    assert ruling_on_file_change("on-request", inside=inside) is Ruling.ASK


@pytest.mark.parametrize("accepted", BOTH)
def test_on_failure_asks_when_the_sandbox_stopped_it(accepted: bool) -> None:
    assert ruling_on_denial("on-failure", accepted=accepted) is Ruling.ASK


def test_no_other_policy_asks_after_a_denial() -> None:
    others = set(POLICIES) - {"on-failure"}
    assert {ruling_on_denial(policy, accepted=False) for policy in others} == {Ruling.FAIL}
    assert {ruling_on_denial(policy, accepted=True) for policy in others} == {Ruling.RUN}


def test_reject_denies_where_untrusted_asks() -> None:
    for kind in KINDS:
        asked = ruling_on_command("untrusted", **kind)
        rejected = ruling_on_command("reject", **kind)
        assert (asked is Ruling.ASK) == (rejected is Ruling.DECLINE)
    for inside in BOTH:
        assert ruling_on_file_change("untrusted", inside=inside) is Ruling.ASK
        assert ruling_on_file_change("reject", inside=inside) is Ruling.DECLINE


def test_a_change_outside_the_sandbox_is_never_made_unasked() -> None:
    rulings = {policy: ruling_on_file_change(policy, inside=False) for policy in POLICIES}
    assert Ruling.RUN not in rulings.values()
    assert rulings["never"] is Ruling.FAIL
