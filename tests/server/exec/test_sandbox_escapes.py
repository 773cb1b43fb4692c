"""Real commands that try to escape the sandbox; without a sandbox each of them succeeds.

As root, also as an ordinary user: what a sandbox may rely on differs.
"""

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from commands import Heard, fifo, living
from confined import (
    IDENTITIES,
    KEPT,
    READ_ONLY,
    SECRET,
    Place,
    a_place,
    listener,
    processes_in,
    program_that_listens,
    sandboxed,
    was_reached,
    workspace_write,
)

from harness.protocol.wire.settings import DangerFullAccess, ExternalSandbox, SandboxPolicy
from reference_server.sandbox.process import Command, Running
from tests.sampling import one_in

pytestmark = sandboxed

OPEN = DangerFullAccess()
CONFINED = (READ_ONLY, workspace_write())
confined = pytest.mark.parametrize("policy", CONFINED, ids=lambda one: one.type)
TIDY = "chmod -R u+rwx mine; rm -rf mine hard"
"""Script that removes the files that an attempt may leave in the workspace."""


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with a_place(ordinary=request.param != "this user") as found:
        yield found


def everything(base: Path) -> dict[str, object]:
    """Names, kinds, modes and contents of what lies outside the workspace and in its `.git`."""
    found: dict[str, object] = {}
    for folder, _, names in os.walk(base):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            own = path.is_relative_to(base / "work") and not path.is_relative_to(
                base / "work" / ".git"
            )
            if not own and path.exists():
                content = path.read_text("utf-8", "replace") if path.is_file() else ""
                found[str(path)] = (oct(path.stat().st_mode), content)
    return found


CHANGES = {
    "write outside": "echo x > $OUT/new",
    "write outside by ..": "echo x > ../outside/new",
    "write outside by a link that was there": "echo x > link/new",
    "write outside by a new link": "ln -s $OUT mine && echo x > mine/new",
    "change a file by a hard link": "ln $OUT/kept hard && echo x > hard",
    "change a file in place": "echo x >> $OUT/kept",
    "move a file in": "mv $OUT/kept mine",
    "remove a file": "rm -f $OUT/kept",
    "change a mode": "chmod 600 $OUT/kept",
    "write beside the workspace": "echo x > ../new",
    "write to another root": "echo x > $EXTRA/new",
    "write to .git": "echo x > .git/config",
    "add to .git": "mkdir .git/hooks && echo x > .git/hooks/pre-commit",
    "move .git away": "mv .git aside",
    "replace .git": "rm -rf .git && mkdir .git",
    "write to the agent's rules": "echo x >> $AGENT/rules/default.rules",
    "write to the agent's home": "echo x > $AGENT/config.toml",
    "write to the agent's skills": "echo x > $AGENT/skills/SKILL.md",
    "write to the user's home": "echo x > ~/.bashrc",
    "write to hidden secrets": "echo x > ~/.ssh/authorized_keys",
    "a namespace of its own": "unshare -rm bash -c 'mount --bind $OUT /mnt; echo x > $OUT/new'",
    "through a process outside": "echo x > /proc/$OUTSIDER/cwd/outside/new",
}
READS = {
    "keys": "cat ~/.ssh/secret",
    "credentials": "cat ~/.aws/secret",
    "a deeper folder": "cat ~/.config/gh/secret",
    "a file": "cat ~/.netrc",
    "the agent's login": "cat $AGENT/auth.json",
    "by a link": "ln -s ~/.ssh mine; cat mine/secret",
    "by ..": "cat ../home/.ssh/../.ssh/secret",
    "by a copy": "cp -r ~/.gnupg mine; cat mine/secret",
    "by moving it": "mv ~/.ssh mine; cat mine/secret",
    "by unmounting": "unshare -rm bash -c 'umount ~/.ssh; cat ~/.ssh/secret'",
    "by another's root": "cat /proc/$OUTSIDER/root$HOME/.ssh/secret",
    "by another's environment": "tr '\\0' '\\n' < /proc/$OUTSIDER/environ",
    "by looking for it": "grep -r . ~ $AGENT",
}
# Without a sandbox, an ordinary user may still be forbidden user namespaces.
MAY_FAIL_OPEN = {"a namespace of its own"}


@asynccontextmanager
async def outsider(place: Place) -> AsyncGenerator[int]:
    """A process outside of every sandbox, of the same user as the commands; its id."""
    fifo(place.base)
    command = Command(
        ("/bin/bash", "-c", "echo $$; read x < never; echo $x"),
        str(place.base),
        env={**place.variables, "OF_THE_OUTSIDER": SECRET},
        wrapper=place.become,
    )
    running = Running(command)
    heard = Heard()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run, heard)
        [pid] = await heard.pids(1)
        try:
            yield pid
        finally:
            running.stop()


@asynccontextmanager
async def outsider_of(place: Place, script: str) -> AsyncGenerator[dict[str, str]]:
    """The variables for an attempt; with somebody outside where it asks for one."""
    if "OUTSIDER" in script:
        async with outsider(place) as pid:
            yield {"OUTSIDER": str(pid)}
    else:
        yield {}


@pytest.mark.parametrize("name", one_in(5, CHANGES, pytest.mark.attacks))
async def test_nothing_outside_is_changed(place: Place, name: str) -> None:
    async with outsider_of(place, CHANGES[name]) as env:
        before = everything(place.base)
        for policy in CONFINED:
            await place.run(CHANGES[name], policy, env=env)
            assert everything(place.base) == before
            await place.run(TIDY, OPEN)
        # The same, open: the attempt is one.
        await place.run(CHANGES[name], OPEN, env=env)
        assert (everything(place.base) != before) or name in MAY_FAIL_OPEN


@pytest.mark.parametrize("name", one_in(5, READS, pytest.mark.attacks))
async def test_no_secret_is_read(place: Place, name: str) -> None:
    async with outsider_of(place, READS[name]) as env:
        for policy in CONFINED:
            assert SECRET not in (await place.run(READS[name], policy, env=env)).output
            await place.run(TIDY, OPEN)
        assert SECRET in (await place.run(READS[name], OPEN, env=env)).output


async def test_a_process_outside_is_neither_seen_nor_ended(place: Place) -> None:
    async with outsider(place) as pid:
        script = f"kill -0 {pid} || test -e /proc/{pid} || echo unseen; kill -KILL -1"
        result = await place.run(script, workspace_write())
        assert "unseen" in result.output
        assert living(pid) == [pid]
        # The same, open, without the last part: it would reach every process of this user.
        assert (await place.run(f"kill -0 {pid}", OPEN)).exit_code == 0


REACH: list[tuple[SandboxPolicy, bool]] = [
    (READ_ONLY, False),
    (workspace_write(network=False), False),
    (workspace_write(network=True), True),
    (ExternalSandbox(network_access="restricted"), False),
    (ExternalSandbox(network_access="some day"), False),
    (ExternalSandbox(network_access="enabled"), True),
    (OPEN, True),
]


@pytest.mark.parametrize(("policy", "reached"), REACH, ids=str)
async def test_the_network_is_there_only_where_it_is_given(place: Place, policy, reached) -> None:
    with listener() as server:
        port = server.getsockname()[1]
        result = await place.run(f"exec 3<>/dev/tcp/127.0.0.1/{port}", policy)
        assert was_reached(server) is reached
        assert (result.exit_code == 0) is reached


@confined
async def test_forking_and_leaving_the_session_outlives_nothing(place: Place, policy) -> None:
    os.mkfifo(place.work / "never")
    left = "(trap '' TERM HUP; setsid bash -c 'echo up >&3; read x < never' &)"
    script = f"{left} 3>&1; echo started"
    await place.run(script, policy, grace=0.2)
    assert processes_in(place.work) == []


@pytest.mark.parametrize("how", ["stopped", "timed out"])
async def test_killing_the_sandbox_kills_its_process_tree(place: Place, how: str) -> None:
    os.mkfifo(place.work / "never")
    deaf = "trap '' TERM; echo up; read x < never"
    script = f'(setsid bash -c "{deaf}" &); {deaf}'
    seen: list[int] = []
    async with anyio.create_task_group() as tasks:

        async def go() -> None:
            timeout = 2 if how == "timed out" else None
            result = await place.run(script, workspace_write(), grace=0.2, timeout=timeout)
            assert result.timed_out is (how == "timed out")
            seen.extend(processes_in(place.work))
            tasks.cancel_scope.cancel()

        if how == "timed out":
            tasks.start_soon(go)
        else:
            heard = Heard()
            running = Running(await place.command(script, workspace_write(), grace=0.2))
            tasks.start_soon(running.run, heard)
            await heard.until(lambda text: text.count("up") == 2)
            running.stop()
    assert seen == []
    assert processes_in(place.work) == []


async def test_a_folder_above_a_secret_cannot_be_moved_away_for_the_next_command(
    place: Place,
) -> None:
    """The workspace is the user's home: what is hidden in it stays so under every name."""
    policy = workspace_write()
    first = await place.run("mv ~/.config ~/moved; mv ~/.ssh ~/keys", policy, workspace=place.home)
    assert first.exit_code != 0
    for path in ("moved/gh", ".config/gh", "keys", ".ssh"):
        second = await place.run(f"cat ~/{path}/secret", policy, workspace=place.home)
        assert SECRET not in second.output
    third = await place.run("mv ~/.agent ~/agent; echo x > ~/ok", policy, workspace=place.home)
    assert third.exit_code == 0
    assert (place.agent / "auth.json").read_text() == SECRET
    assert (place.home / "ok").exists()


async def test_a_secret_whose_link_was_removed_stays_hidden(place: Place) -> None:
    kept = place.base / "keys"
    (place.home / ".ssh").rename(kept)
    (place.home / ".ssh").symlink_to(kept)
    policy = workspace_write()
    await place.run("rm ~/.ssh", policy, workspace=place.home)
    assert not (place.home / ".ssh").is_symlink()
    result = await place.run(f"cat {kept}/secret", policy, workspace=place.home)
    assert SECRET not in result.output


async def test_a_root_cannot_be_made_a_link_for_the_next_command(place: Place) -> None:
    policy = workspace_write([str(place.work / "sub")])
    await place.run("ln -s $OUT sub", policy)
    assert "sub" in [entry.name for entry in os.scandir(place.work) if entry.is_symlink()]
    await place.run("echo x > sub/new", policy)
    assert not (place.outside / "new").exists()


async def test_a_worktree_refers_to_a_repository_that_is_protected_too(place: Place) -> None:
    (place.git / "config").unlink()
    place.git.rmdir()
    place.git.write_text("gitdir: real/worktrees/one\n")
    common = place.work / "real"
    (common / "worktrees" / "one").mkdir(parents=True)
    (common / "worktrees" / "one" / "commondir").write_text("../..\n")
    (common / "config").write_text(KEPT)
    attempts = "echo x > real/config; echo x > .git; mv real moved; rm -rf real .git"
    await place.run(attempts, workspace_write())
    assert (common / "config").read_text() == KEPT
    assert place.git.read_text() == "gitdir: real/worktrees/one\n"


async def test_a_program_that_the_environment_leads_to_is_hidden(place: Place) -> None:
    """The ssh agent, say: connected to, it would sign for whoever asks."""
    with program_that_listens(place.outside) as path:
        for policy, kind in ((READ_ONLY, "c"), (workspace_write(), "c"), (OPEN, "S")):
            env = {"SSH_AUTH_SOCK": str(path)}
            result = await place.run(f"test -{kind} {path}", policy, env=env)
            assert result.exit_code == 0, policy.type


@confined
async def test_no_capability_is_held_and_none_can_be_gained(place: Place, policy) -> None:
    script = "grep -E 'Cap(Eff|Prm|Inh|Amb)|NoNewPrivs' /proc/self/status"
    words = (await place.run(script, policy)).output.split()
    assert words[1:-2:2] == ["0" * 16] * 4
    # A bounding set may be left; with this no program has more than who starts it.
    assert words[-2:] == ["NoNewPrivs:", "1"]


KERNEL = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
"""Opened for writing, nothing is written. Root may, without any capability, where it sees them."""


@confined
async def test_the_kernels_settings_cannot_be_written(place: Place, policy) -> None:
    for path in (*KERNEL, "/etc/new", "/run/new"):
        assert (await place.run(f"true >> {path}", policy)).exit_code != 0, path
    # /dev is the sandbox's own: of what the machine has it holds the harmless few.
    script = "cd /dev; for f in *; do test -L $f || test -d $f || echo $f; done"
    devices = (await place.run(script, policy)).output.split()
    assert set(devices) <= {"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx"}
    for mounting in ("-t proc", "-t sysfs"):
        script = (
            f"unshare -Urmnpf bash -c 'mount {mounting} x /mnt && "
            "for f in /mnt/sys/kernel/core_pattern /mnt/kernel/uevent_helper; "
            "do true >> $f && echo got $f; done'"
        )
        assert "got" not in (await place.run(script, policy)).output


@confined
async def test_the_view_cannot_be_mounted_away(place: Place, policy) -> None:
    script = (
        "mount -o remount,bind,rw /; touch /new; umount ~/.ssh; umount -l /proc; hostname outside;"
        "unshare -rm bash -c 'mount -o remount,bind,rw /; touch /new; umount ~/.ssh; cat ~/.ssh/*'"
    )
    result = await place.run(script, policy)
    assert result.exit_code != 0
    assert SECRET not in result.output
    assert os.uname().nodename != "outside"
