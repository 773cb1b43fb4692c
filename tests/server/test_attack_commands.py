"""A model whose commands attack the sandbox: every policy, trusted or not, escalated or not.

What counts is what the command saw: its network namespace, files of others, the server's variables.
"""

import os
from collections.abc import Iterator
from itertools import product
from typing import Any

import anyio
import pytest
from attacks import (
    CONFINING,
    KEY,
    KEYS,
    OPEN,
    SECRET,
    Attack,
    attack,
    places,
)
from confined import IDENTITIES, Place, sandboxed
from model_side import patches, runs, says

from tests.sampling import one_in

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
    """Return True if the text requires an approval before anything runs ("Enumerations")."""
    return policy == "on-request" or (policy == "untrusted" and (escalated or not trusted))


def asks_to_leave(given: bool) -> dict[str, Any]:
    return {"sandbox_permissions": "require_escalated"} if given else {}


GRANTS = ("acceptWithExecpolicyAmendment", "acceptForSession")


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


async def test_no_hidden_secret_makes_an_accepted_command_leave_the_sandbox(place: Place) -> None:
    """A search through the home may hit a secret: its approval must not drop the sandbox."""
    async with attack(place) as one:
        for policy in ("on-request", "untrusted"):
            thread = await one.thread(CONFINING["readOnly"], policy)
            call = runs("(grep -r '' ~/.ssh; cat ~/.agent/auth.json)")
            for decision in ("accept", *GRANTS):
                await one.turn(thread, call, DONE, decision=decision)
                assert "Permission denied" in output(one)
        assert SECRET.encode() not in one.everything_said()


@pytest.mark.parametrize("decision", one_in(2, GRANTS, pytest.mark.attacks))
async def test_a_grant_inside_the_sandbox_is_asked_again_outside(
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


WRITES = "echo x >> ../outside/made"
"""A command that a confining sandbox stops."""


@pytest.mark.parametrize("policy", ["on-request", "untrusted"])
@pytest.mark.parametrize("decision", ["accept", *GRANTS, "applyNetworkPolicyAmendment"])
async def test_only_what_was_accepted_leaves_the_sandbox_that_stopped_it(
    place: Place, decision: str, policy: str
) -> None:
    """Same words, folder, reason and sandbox; a lasting rule never counts as such a consent."""
    made = place.outside / "made"
    (place.work / "sub").mkdir()
    async with attack(place) as one:
        thread = await one.thread(CONFINING["readOnly"], policy)
        call = {"justification": "to note it"}
        assert len(await one.turn(thread, runs(WRITES, **call), DONE, decision=decision)) == 1
        assert made.read_text() == "x\n"
        made.unlink()
        asked = await one.turn(thread, runs(WRITES, **call), DONE)
        # For the session it is accepted; by a rule it runs unasked, and stays inside.
        assert bool(asked) == (decision == "accept")
        assert made.exists() == (decision == "acceptForSession")
        made.unlink(missing_ok=True)
        others = (
            (runs(f"{WRITES} "), {}),
            (runs(WRITES, workdir="sub", **call), {}),
            (runs(WRITES, justification="something else"), {}),
            (runs(WRITES), {}),
            (runs(WRITES, sandbox_permissions="require_escalated", **call), {}),
            (runs(WRITES, **call), {"sandboxPolicy": CONFINING["workspaceWrite"]}),
            (runs(WRITES, **call), {"approvalPolicy": "never"}),
            (runs(WRITES, **call), {"approvalPolicy": "on-failure"}),
            (runs(WRITES, **call), {"approvalPolicy": "reject"}),
        )
        for number, (other, under) in enumerate(others):
            await one.turn(thread, other, DONE, **under)
            assert not made.exists(), number
        another = await one.thread(CONFINING["readOnly"], policy)
        await one.turn(another, runs(WRITES, **call), DONE)
        assert not made.exists()


@pytest.mark.parametrize("decision", GRANTS)
async def test_an_accepted_command_stays_in_a_sandbox_where_commands_can_change_it(
    place: Place, decision: str
) -> None:
    """The first try could rewrite the script that it runs, if the workspace is writable."""
    async with attack(place) as one:
        thread = await one.thread(CONFINING["workspaceWrite"], "on-request")
        rewrites = f"echo '{WRITES}' > s; sh s; false"
        await one.turn(thread, runs(rewrites), DONE, decision=decision)
        assert "Read-only file system" in output(one) or "Permission denied" in output(one)
        assert not (place.outside / "made").exists()


async def test_no_trusted_command_leaves_the_sandbox_that_stopped_it(place: Place) -> None:
    """It may fail as the sandbox does, and the client has accepted other commands."""
    async with attack(place) as one:
        thread = await one.thread(CONFINING["readOnly"], "untrusted")
        accepted = runs(f"({WRITES})")
        assert await one.turn(thread, accepted, DONE, decision="acceptForSession")
        looks = script(one, trusted=True)
        assert not await one.turn(thread, runs(looks), DONE)
        assert "net:[" in output(one)
        assert outside(one) not in output(one)
        assert SECRET.encode() not in one.everything_said()


async def test_a_program_of_the_workspace_does_not_stand_for_an_accepted_one(
    place: Place,
) -> None:
    path = plant(place, "touch")
    planted = place.work / ".venv" / "bin" / "touch"
    planted.write_text(
        "#!/bin/sh\necho planted >> ../outside/made; echo Read-only file system; exit 1\n"
    )
    async with attack(place, PATH=path) as one:
        thread = await one.thread(CONFINING["readOnly"], "on-request")
        assert await one.turn(thread, runs("touch ../outside/new"), DONE, decision="accept")
        assert (place.outside / "new").exists()
        assert not (place.outside / "made").exists()


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
                call = runs("env; cat /proc/$PPID/environ")
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


PLANTED = "#!/bin/sh\necho planted\n"


def plant(place: Place, *names: str) -> str:
    """Let programs of these names lie in the workspace; gives a PATH that begins with them."""
    folder = place.work / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(PLANTED)
        (folder / name).chmod(0o755)
    return f"{folder}:{place.variables['PATH']}"


async def test_a_program_that_the_model_wrote_does_not_stand_for_a_known_one(
    place: Place,
) -> None:
    path = plant(place, "bash", "date", "ls")
    async with attack(place, PATH=path) as one:
        # Accepted to run outside, by the name of a program.
        thread = await one.thread(CONFINING["workspaceWrite"], "on-request")
        wanted = runs("date +now", sandbox_permissions="require_escalated")
        assert await one.turn(thread, wanted, DONE, decision="accept")
        assert output(one) == "now\n"
        # Trusted, where nothing confines it.
        thread = await one.thread(OPEN, "untrusted")
        assert not await one.turn(thread, runs("ls"), DONE)
        assert "planted" not in output(one)
        # Within the sandbox the workspace's own programs are what a user expects.
        thread = await one.thread(CONFINING["workspaceWrite"], "never")
        await one.turn(thread, runs("date"), DONE)
        assert output(one) == "planted\n"


async def test_a_grant_under_one_policy_does_not_hold_under_another(place: Place) -> None:
    sandboxes = {**CONFINING, "dangerFullAccess": OPEN}
    async with attack(place) as one:
        for name, sandbox in sandboxes.items():
            thread = await one.thread(sandbox, "on-request")
            call = runs(f"echo {name}; cat ~/.ssh/secret")
            assert await one.turn(thread, call, DONE, decision="acceptForSession")
            assert not await one.turn(thread, call, DONE)
            for other, policy in sandboxes.items():
                if other != name:
                    assert await one.turn(thread, call, DONE, sandboxPolicy=policy), (name, other)


async def test_a_grant_outside_stays_inside_the_sandbox_if_nobody_is_asked(place: Place) -> None:
    async with attack(place) as one:
        thread = await one.thread(CONFINING["readOnly"], "on-request")
        call = runs(script(one, trusted=True), sandbox_permissions="require_escalated")
        assert await one.turn(thread, call, DONE, decision="acceptForSession")
        assert SECRET in output(one)
        assert not await one.turn(thread, call, DONE)
        # Under on-failure the sandbox stops it, the client would be asked, and has answered.
        for policy in ("never", "reject"):
            await one.turn(thread, call, DONE, approvalPolicy=policy)
            assert SECRET not in output(one), policy


async def test_a_file_accepted_where_nothing_confines_is_asked_about_where_something_does(
    place: Place,
) -> None:
    change = patches("*** Add File: ../outside/new", "+x")
    async with attack(place) as one:
        thread = await one.thread(OPEN, "on-request")
        assert await one.turn(thread, change, DONE, decision="acceptForSession")
        (place.outside / "new").unlink()
        for policy in ("never", "reject", "on-request"):
            await one.turn(
                thread, change, DONE, sandboxPolicy=CONFINING["readOnly"], approvalPolicy=policy
            )
            assert not (place.outside / "new").exists(), policy


BEYOND = (
    ("ls | wc -l", "ls | wc -l; touch made"),
    ("env A=1", "env A=1 touch made"),
    ("perl -e 1", "perl -e 1 -e 'system(\"touch made\")'"),
    ("find . -maxdepth 0", "find . -maxdepth 0 -exec touch made ;"),
)
"""A command that was accepted, and one that begins so and does more."""


@pytest.mark.parametrize(("first", "later"), one_in(4, BEYOND, pytest.mark.attacks))
async def test_a_rule_that_the_client_did_not_word_is_about_that_command(
    place: Place, first: str, later: str
) -> None:
    async with attack(place) as one:
        thread = await one.thread(CONFINING["workspaceWrite"], "on-request")
        amendment = "acceptWithExecpolicyAmendment"
        assert await one.turn(thread, runs(first), DONE, decision=amendment)
        assert not await one.turn(thread, runs(first), DONE)
        assert await one.turn(thread, runs(later), DONE)
        (place.work / "sub").mkdir()
        assert await one.turn(thread, runs(first, workdir="sub"), DONE)
        assert not (place.work / "made").exists()


async def test_the_server_imports_nothing_from_where_it_was_started(place: Place) -> None:
    names = ("httpx", "jsonschema_rs", "tomllib", "difflib", "socksio", "readline", "sniffio")
    for name in names:
        (place.base / f"{name}.py").write_text(f"open({str(place.outside / name)!r}, 'w')\n")
    async with attack(place, start=anyio.open_process) as one:
        thread = await one.thread(CONFINING["readOnly"], "never")
        schema = {"outputSchema": {"type": "string"}}
        await one.turn(thread, says('"x"'), **schema)
        assert [name for name in names if (place.outside / name).exists()] == []
