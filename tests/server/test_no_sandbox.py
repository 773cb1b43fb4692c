"""A server on a machine without bubblewrap: nothing that is to be confined runs, and it says why.

The server is a real process, of this user and of an ordinary one, from which bubblewrap is hidden.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from attacks import CONFINING, OPEN, ROOT, Attack, attack, places
from confined import IDENTITIES, PLACES, Place, missing
from model_side import patches, runs, says

from harness.client.target.profile import load_profile
from reference_server.sandbox import probe
from tests.sampling import one_in

HIDING = str(ROOT / "tools" / "without_bubblewrap.sh")
_TRIED = subprocess.run([HIDING, "true"], capture_output=True, text=True)
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.socket,
    pytest.mark.skipif(_TRIED.returncode != 0, reason=_TRIED.stderr.strip() or "it was not hidden"),
]
NOT_FOUND = "no sandbox: bubblewrap (bwrap) was not found; install the package `bubblewrap`"
EXTERNAL = {"type": "externalSandbox", "networkAccess": "restricted"}
CONFINED = {**CONFINING, "externalSandbox": EXTERNAL}
POLICIES = ("never", "untrusted", "on-request", "on-failure", "reject")
DONE = says("done")


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with places(request) as found:
        yield found


def last_command(one: Attack) -> dict[str, Any]:
    return one.peer.completed_items("commandExecution")[-1]


def told_to_the_model(one: Attack) -> str:
    return str(one.side.bodies[-1]["input"][-1])


@pytest.mark.parametrize("policy", one_in(3, CONFINED, pytest.mark.attacks))
async def test_a_confined_command_never_runs_and_program_and_package_are_named(
    place: Place, policy: str
) -> None:
    made = place.work / "made"
    async with attack(place, around=[HIDING]) as one:
        for approvals in POLICIES:
            thread = await one.thread(CONFINED[policy], approvals)
            await one.turn(thread, runs("cat kept; echo ran >> made"), DONE, decision="accept")
            assert not made.exists(), approvals
        # It only reads, so that it is trusted: that decides whether somebody is asked, no more.
        thread = await one.thread(CONFINED[policy], "untrusted")
        assert await one.turn(thread, runs("cat .git/config"), DONE) == []
        item = last_command(one)
        assert (item["status"], item.get("exitCode")) == ("failed", None)
        assert NOT_FOUND in item["aggregatedOutput"]
        assert NOT_FOUND in told_to_the_model(one)


async def test_a_command_accepted_to_leave_the_sandbox_still_runs(place: Place) -> None:
    async with attack(place, around=[HIDING]) as one:
        thread = await one.thread(CONFINING["readOnly"], "on-request")
        call = runs("echo ran > made", sandbox_permissions="require_escalated")
        [question] = await one.turn(thread, call, DONE, decision="accept")
        assert question["method"] == "item/commandExecution/requestApproval"
        assert (place.work / "made").read_text() == "ran\n"
        thread = await one.thread(OPEN, "never")
        await one.turn(thread, runs("echo ran > open"), DONE)
        assert (place.work / "open").read_text() == "ran\n"


async def test_file_changes_are_held_to_the_policy_as_ever(place: Place) -> None:
    async with attack(place, around=[HIDING]) as one:
        for policy, made in (("readOnly", False), ("workspaceWrite", True)):
            thread = await one.thread(CONFINING[policy], "never")
            await one.turn(thread, patches(f"*** Add File: {policy}", "+text"), DONE)
            assert (place.work / policy).exists() is made


async def test_a_bubblewrap_that_does_not_work_is_named_with_what_it_says(place: Place) -> None:
    folder = place.base / "bin"
    folder.mkdir()
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace'; exit 1\n")
    program.chmod(0o755)
    # It comes to the PATH when what is there has been hidden.
    found_first = ["env", f"PATH={folder}:{place.variables['PATH']}"]
    async with attack(place, around=[HIDING], before=found_first) as one:
        thread = await one.thread(CONFINING["readOnly"], "never")
        await one.turn(thread, runs("echo ran > made"), DONE)
        said = last_command(one)["aggregatedOutput"]
    assert not (place.work / "made").exists()
    assert f"no sandbox: {program} does not work here: bwrap: No permissions" in said
    assert "install the package `bubblewrap`, or allow user namespaces" in said


async def test_it_is_found_as_soon_as_it_was_installed(place: Place) -> None:
    if missing() or os.geteuid() != 0:
        pytest.skip("only root can make a bubblewrap that works here appear to a server")
    async with attack(place, around=[HIDING]) as one:
        thread = await one.thread(CONFINING["workspaceWrite"], "never")
        await one.turn(thread, runs("echo ran > made"), DONE)
        assert not (place.work / "made").exists()
        unhide = ["nsenter", "--target", str(one.process.pid), "--mount", "umount"]
        for program in hidden_programs():
            await anyio.run_process([*unhide, program])
        await one.turn(thread, runs("echo ran > made"), DONE)
        assert (place.work / "made").read_text() == "ran\n"


def hidden_programs() -> set[str]:
    found = (Path(folder, "bwrap") for folder in PLACES.split(":"))
    return {str(program.resolve()) for program in found if program.exists()}


def test_the_harness_asks_where_the_server_looks_and_for_what_it_uses() -> None:
    asked = load_profile("reference").host["sandbox"]
    assert asked.places == probe.PLACES.split(":") == PLACES.split(":")
    assert asked.command[0] == "bwrap"
    assert asked.install in probe.ADVICE.replace("`", "")
    assert asked.otherwise in probe.ADVICE
