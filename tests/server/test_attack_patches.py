"""A model whose patches target files that no command may write or read.

Every attempt is a patch that would be made where nothing confines it; what counts is the disk.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks import (
    CONFINING,
    KEYS,
    OPEN,
    SECRET,
    Attack,
    another_users,
    attack,
    only_root,
    places,
)
from confined import IDENTITIES, KEPT, ORDINARY, Place, sandboxed
from model_side import patches, runs, says

from tests.sampling import one_in

pytestmark = sandboxed
ASKED = ("on-request", "untrusted", "on-failure")
POLICIES = ("never", "reject", *ASKED)
DONE = says("done")


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with places(request) as found:
        found.home.joinpath("sub").mkdir()
        found.work.joinpath("to-git").symlink_to(".git")
        if found.ordinary:
            os.chown(found.home / "sub", ORDINARY, ORDINARY)
        yield found


ADDED = {
    "hooks of the repository": (".git/hooks/pre-commit", "work"),
    "the repository by a link": ("to-git/hooks/pre-commit", "work"),
    "the repository by dots": ("sub/../.git/info/attributes", "work"),
    "a repository further down": ("sub/.git/config", "work"),
    "a repository that is not there yet": (".git/hooks/pre-commit", "home"),
    "the keys that may log in": (".ssh/authorized_keys", "home"),
    "a secret that is not there yet": (".kube/config", "home"),
    "the agent's rules": (".agent/rules/network.rules", "home"),
    "the agent's settings": (".agent/new.toml", "home"),
    "the agent's skills": (".agent/skills/x/SKILL.md", "home"),
    "beside the workspace": ("../outside/new", "work"),
    "outside by a link": ("link/new", "work"),
}
"""By case: the path of the added file, and the folder that is the workspace."""


def disk(place: Place, *, without: str = "sessions") -> dict[str, str]:
    """Return the files at the place and their texts, except rollouts and the server's own files."""
    kept = (without, "counters", "servers", "threads.lock")
    own = [place.agent / name for name in kept]
    return {
        str(path): path.read_text("utf-8", "replace")
        for path in place.base.rglob("*")
        if path.is_file() and not any(path.is_relative_to(one) for one in own)
    }


def folder(place: Place, name: str) -> Path:
    return place.work if name == "work" else place.home


@pytest.mark.parametrize("name", one_in(12, ADDED, pytest.mark.attacks))
async def test_no_patch_writes_what_no_command_may(place: Place, name: str) -> None:
    path, where = ADDED[name]
    change = patches(f"*** Add File: {path}", "+x")
    async with attack(place) as one:
        before = disk(place)
        for policy in POLICIES:
            for sandbox in CONFINING.values():
                thread = await one.thread(sandbox, policy, folder(place, where))
                asked = await one.turn(thread, change, DONE, decision="decline")
                assert disk(place) == before, policy
                assert not asked or policy in ASKED
        # The same where nothing confines it: the attempt is one.
        thread = await one.thread(OPEN, "never", folder(place, where))
        await one.turn(thread, change, DONE)
        assert disk(place) != before


async def test_no_patch_changes_the_settings_of_the_repository(place: Place) -> None:
    lines = ("*** Update File: .git/config", "@@", f"-{KEPT.strip()}", "+[core]")
    async with attack(place) as one:
        for policy in ("never", "reject"):
            thread = await one.thread(CONFINING["workspaceWrite"], policy)
            assert not await one.turn(thread, patches(*lines), DONE)
        thread = await one.thread(CONFINING["workspaceWrite"], "on-failure")
        [question] = await one.turn(thread, patches(*lines), DONE, decision="decline")
        assert "protected" in question["params"]["reason"]
        assert (place.git / "config").read_text() == KEPT
        # What the user accepts is made: the question named it.
        await one.turn(thread, patches(*lines), DONE, decision="accept")
        assert (place.git / "config").read_text() == "[core]\n"


HIDDEN = {
    "a key": (".ssh/secret", "home"),
    "the agent's login": (".agent/auth.json", "home"),
    "by dots": ("../home/.ssh/secret", "work"),
}


MADE_UP = ("/proc/self/environ", "/sys/kernel/uevent_helper", "/dev/mem")


async def told(one: Attack, policy: str, where: Path, *lines: str) -> str:
    thread = await one.thread(CONFINING["workspaceWrite"], policy, where)
    asked = await one.turn(thread, patches(*lines), DONE, decision="decline")
    assert not asked
    return one.peer.told_model()


@pytest.mark.parametrize("name", one_in(3, HIDDEN, pytest.mark.attacks))
async def test_a_patch_tells_nothing_of_a_file_that_is_hidden(place: Place, name: str) -> None:
    """A guess that is right must not be told from one that is wrong; nothing is shown either."""
    path, where = HIDDEN[name]
    async with attack(place) as one:
        for policy in POLICIES:
            right, wrong = [
                await told(
                    one, policy, folder(place, where), f"*** Update File: {path}", f"-{guess}", "+x"
                )
                for guess in (SECRET, "something else")
            ]
            assert right == wrong
            assert "hides it" in right
            await told(one, policy, folder(place, where), f"*** Delete File: {path}")
        assert one.peer.completed_items("fileChange") == []
        # What the model guessed stands in its own calls; nothing else may hold it.
        seen = str([message for message in one.peer.seen if "method" in message])
        assert SECRET not in seen


@pytest.mark.parametrize("path", one_in(3, MADE_UP, pytest.mark.attacks))
async def test_files_of_the_kernel_are_never_patched(place: Place, path: str) -> None:
    async with attack(place) as one:
        thread = await one.thread(OPEN, "never")
        await one.turn(thread, patches(f"*** Delete File: {path}"), DONE)
        assert "not a file of a disk" in one.peer.told_model()
        assert one.peer.completed_items("fileChange") == []


async def test_the_diff_of_a_turn_shows_nothing_that_links_lead_to(place: Place) -> None:
    """The names of the patch are those of secrets; a command then puts links in their folders."""
    planted = {"d": place.home / ".ssh", "e": place.agent, "f": "/proc/self"}
    names = ("d/secret", "e/auth.json", "f/environ")
    links = " && ".join(f"ln -s {target} {name}" for name, target in planted.items())
    replies = [
        *(patches(f"*** Add File: {name}", "+x") for name in names),
        runs(f"rm -r d e f && {links}"),
        patches("*** Add File: last", "+x"),
        DONE,
    ]
    async with attack(place) as one:
        thread = await one.thread(CONFINING["workspaceWrite"], "never")
        await one.turn(thread, *replies)
        assert (place.work / "d").is_symlink()
        [*_, diff] = one.peer.params_of("turn/diff/updated")
        assert diff["diff"].startswith("diff --git a/last b/last\nnew file")
        said = one.everything_said()
        for secret in (SECRET, *KEYS.values()):
            assert secret.encode() not in said


@only_root
@pytest.mark.parametrize("place", ["this user"], indirect=True)
async def test_a_server_of_root_reads_nothing_that_its_commands_cannot(place: Place) -> None:
    path = another_users(place, "key", b"private-of-another")
    attempts = (
        (f"*** Delete File: {path}",),
        (f"*** Update File: {path}", "@@", "-private-of-another", "+x"),
        (f"*** Update File: {path}", "*** Move to: mine"),
    )
    async with attack(place) as one:
        for sandbox in CONFINING.values():
            for lines in attempts:
                thread = await one.thread(sandbox, "on-request")
                assert not await one.turn(thread, patches(*lines), DONE)
                assert "hides it" in one.peer.told_model()
        assert one.peer.completed_items("fileChange") == []
        thread = await one.thread(OPEN, "never")
        await one.turn(thread, patches(*attempts[0]), DONE)
        assert not path.exists()
