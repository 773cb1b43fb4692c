"""Rulings on an operation: run it, ask the client, or deny it.

Source: session-protocol "Enumerations": `never` (never ask), `untrusted` (ask on untrusted
operations), `on-request` (always ask), `on-failure` (ask on failures), `reject` (reject all
approval requests). Which commands are untrusted, and which failures lead to a request, is not
shown: our choices are in docs/approvals.md.
"""

from enum import Enum

from harness.protocol.wire.settings import ApprovalPolicy

TRUSTING_POLICIES: tuple[ApprovalPolicy, ...] = ("untrusted", "reject")
"""Policies under which a command that can only read runs without asking the client."""


class Ruling(Enum):
    """Treatment of an operation."""

    RUN = "run"
    """It runs, within the sandbox."""
    ASK = "ask"
    """The client is asked."""
    DECLINE = "decline"
    """It ends as declined, without asking the client."""
    FAIL = "fail"
    """It ends as failed: the sandbox does not allow it, and the client must not be asked."""


def ruling_on_command(
    policy: ApprovalPolicy, *, allowed: bool, trusted: bool, escalated: bool
) -> Ruling:
    """Return the ruling on a command that was not approved in this session.

    `allowed`: a lasting rule covers it. `trusted`: rules and the list of trusted commands together
    cover it, which counts only under TRUSTING_POLICIES. `escalated`: the model asks to run it
    outside the sandbox. Only a client can allow that, each time; if the policy forbids asking, the
    command runs inside.
    """
    has_rule = allowed and not escalated
    may_run_trusted = trusted and not escalated
    match policy:
        case "never" | "on-failure":
            return Ruling.RUN
        case "on-request":
            return Ruling.RUN if has_rule else Ruling.ASK
        case "untrusted":
            return Ruling.RUN if has_rule or may_run_trusted else Ruling.ASK
        case "reject":
            return Ruling.RUN if has_rule or may_run_trusted else Ruling.DECLINE


def ruling_on_denial(policy: ApprovalPolicy, *, accepted: bool) -> Ruling:
    """Return the ruling on a second run, outside the sandbox, of a command that it stopped.

    `accepted`: the client has accepted the same command, for the same reason, under a sandbox in
    which no command can change its effect.
    """
    if policy == "on-failure":
        return Ruling.ASK
    return Ruling.RUN if accepted else Ruling.FAIL


def ruling_on_file_change(policy: ApprovalPolicy, *, inside: bool) -> Ruling:
    """Return the ruling on a file change; `inside`: the sandbox allows writing all its files."""
    match policy:
        case "on-request" | "untrusted":
            return Ruling.ASK
        case "never":
            return Ruling.RUN if inside else Ruling.FAIL
        case "on-failure":
            return Ruling.RUN if inside else Ruling.ASK
        case "reject":
            return Ruling.DECLINE
