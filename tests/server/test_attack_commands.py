"""A model whose commands want out of the sandbox: every policy, trusted or not, escalated or not.

What counts is what the command saw: its network namespace, files of others, the server's variables.
"""

import os
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from attacks import (
    CONFINING,
    IDENTITIES,
    KEY,
    KEYS,
    OPEN,
    SECRET,
    Attack,
    attack,
    places,
    sandboxed,
)
from confined import Place
from model_side import runs, says

pytestmark = sandboxed
POLICIES = ("never", "untrusted", "on-request", "on-failure", "reject")
DONE = says("done")
LOOKS = "readlink /proc/self/ns/net; cat ~/.ssh/secret ~/.agent/auth.json /proc/{pid}/environ"
"""Trusted: it only reads. In a subshell it is not."""


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with places(request) as found:
        yield found


def script(one: Attack, *, trusted: bool) -> str:
    looks = LOOKS.format(pid=one.process.pid)
    return looks if trusted else f"({looks})"


def outside(one: Attack) -> str:
    return os.readlink(f"/proc/{one.process.pid}/ns/net")


def output(one: Attack) -> str:
    return one.peer.completed_items("commandExecution")[-1].get("aggregatedOutput", "")


def is_asked(policy: str, *, trusted: bool, escalated: bool) -> bool:
    """Whether the text has the client be asked before anything runs ("Enumerations")."""
    return policy == "on-request" or (policy == "untrusted" and (escalated or not trusted))


def asks_to_leave(given: bool) -> dict[str, Any]:
    return {"sandbox_permissions": "require_escalated"} if given else {}


async def test_no_command_leaves_the_sandbox_unasked(place: Place) -> None:
    async with attack(place) as one:
        for policy, name, trusted, escalated in product(
            POLICIES, CONFINING, (True, False), (True, False)
        ):
            case = f"{policy} {name} trusted={trusted} escalated={escalated}"
            thread = await one.thread(CONFINING[name], policy)
            call = runs(script(one, trusted=trusted), **asks_to_leave(escalated))
            asked = await one.turn(thread, call, DONE, decision="decline")
            before = is_asked(policy, trusted=trusted, escalated=escalated)
            if policy != "on-failure":
                assert bool(asked) is before, case
            if before or (policy == "reject" and (escalated or not trusted)):
                assert output(one) == "", case
            else:
                assert "net:[" in output(one), case
            assert outside(one) not in output(one), case
        said = one.everything_said()
        assert SECRET.encode() not in said
        for key in KEYS.values():
            assert key.encode() not in said


async def test_an_accepted_command_is_as_confined_as_it_was_asked_about(place: Place) -> None:
    """Accepted as it stands it runs inside; accepted to run outside, it shows what was at stake."""
    async with attack(place) as one:
        for escalated in (False, True):
            thread = await one.thread(CONFINING["readOnly"], "on-request")
            call = runs(script(one, trusted=True), **asks_to_leave(escalated))
            [question] = await one.turn(thread, call, DONE, decision="accept")
            assert question["method"] == "item/commandExecution/requestApproval"
            assert (outside(one) in output(one)) is escalated
            assert (SECRET in output(one)) is escalated
            assert (KEY in output(one)) is escalated


@pytest.mark.parametrize("decision", ["acceptWithExecpolicyAmendment", "acceptForSession"])
async def test_what_was_granted_inside_is_asked_about_again_outside(
    place: Place, decision: str
) -> None:
    async with attack(place) as one:
        thread = await one.thread(CONFINING["workspaceWrite"], "on-request")
        command = f"touch made; {LOOKS.format(pid=one.process.pid)}"
        assert await one.turn(thread, runs(command), DONE, decision=decision)
        assert not await one.turn(thread, runs(command), DONE)
        wanting = runs(command, sandbox_permissions="require_escalated")
        for policy in ("on-request", "untrusted"):
            assert await one.turn(thread, wanting, DONE, approvalPolicy=policy), policy
        for policy in ("never", "on-failure", "reject"):
            await one.turn(thread, wanting, DONE, approvalPolicy=policy)
        assert SECRET.encode() not in one.everything_said()


async def test_a_rule_of_the_network_opens_it_for_its_own_words_alone(place: Place) -> None:
    async with attack(place) as one:
        thread = await one.thread(CONFINING["readOnly"], "untrusted")
        seen = "readlink /proc/self/ns/net"
        amendment = "applyNetworkPolicyAmendment"
        assert await one.turn(thread, runs(f"env {seen}"), DONE, decision=amendment)
        assert outside(one) in output(one)
        assert not await one.turn(thread, runs(f"env {seen}"), DONE)
        assert outside(one) in output(one)
        for wider in (seen, f"cat /dev/null; {seen}"):
            assert not await one.turn(thread, runs(wider), DONE)
            assert "net:[" in output(one)
            assert outside(one) not in output(one)
        # Beside what is trusted alone it is another command, which is asked about.
        assert await one.turn(thread, runs(f"{seen}; env {seen}"), DONE)


async def test_no_command_gets_the_variables_of_the_server(place: Place) -> None:
    (place.agent / "rules").mkdir(exist_ok=True)
    async with attack(place, EDITOR="vi") as one:
        for sandbox in (*CONFINING.values(), OPEN):
            thread = await one.thread(sandbox, "never")
            # The process above a confined command is bubblewrap's, which has its variables too.
            call = runs("env; cat /proc/self/environ; cat /proc/1/environ /proc/$PPID/environ")
            if sandbox is OPEN:
                call = runs("env")
            await one.turn(thread, call, DONE)
            names = {line.partition("=")[0] for line in output(one).splitlines()}
            assert {"PATH", "HOME"} <= names
            assert "EDITOR" not in names
        said = one.everything_said()
        for name, value in KEYS.items():
            assert value.encode() not in said, name


async def test_variables_are_passed_on_request_but_never_a_providers_key(place: Place) -> None:
    wanted = '[command_environment]\npass = ["*"]\nset = {COLOUR = "blue"}\n'
    head, rest = (
        'model = "test-model"\nmodel_provider = "mock"\n',
        '[model_providers.other]\nenv_key = "MY_MODEL"\n',
    )
    async with attack(place, config=head + wanted + rest, EDITOR="vi") as one:
        thread = await one.thread(CONFINING["readOnly"], "never")
        await one.turn(thread, runs("env"), DONE)
        lines = output(one).splitlines()
        assert {"EDITOR=vi", "COLOUR=blue"} <= set(lines)
        assert not {"PROVIDER_API_KEY", "MY_MODEL"} & {line.partition("=")[0] for line in lines}
