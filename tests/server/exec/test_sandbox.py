"""Permissions of a policy, machines that cannot enforce it, and detection of a denial."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from commands import PATH, Heard, linux
from confined import READ_ONLY, Place, a_place, needs_sandbox, workspace_write

from harness.protocol.wire.settings import DangerFullAccess, ExternalSandbox
from reference_server.sandbox.places import places_of_sockets, sockets_named_by
from reference_server.sandbox.probe import Probe, SandboxUnavailable
from reference_server.sandbox.process import Finished, Running
from reference_server.sandbox.sandbox import Confinement, Sandbox, looks_denied, sandbox_failure

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.socket]


@pytest.fixture
def place() -> Iterator[Place]:
    with a_place(ordinary=False) as found:
        yield found


async def test_full_access_and_an_external_sandbox_change_nothing(place: Place) -> None:
    env = {"PATH": PATH, "SSH_AUTH_SOCK": "/x"}
    for policy in (DangerFullAccess(), ExternalSandbox(network_access="enabled")):
        found = await place.sandbox.confine(
            policy, workspace=str(place.work), cwd=str(place.work), env=env
        )
        assert found == Confinement((), env)


@needs_sandbox
async def test_the_workspace_the_roots_and_a_private_tmp_are_writable(place: Place) -> None:
    policy = workspace_write([str(place.extra)])
    script = (
        "echo 1 > new && mkdir deep && echo 2 > deep/new && echo 3 > $EXTRA/new"
        " && echo 4 > $TMPDIR/new && cat <<< 5 && cat $TMPDIR/new && echo x > /dev/null"
    )
    result = await place.run(script, policy)
    assert (result.exit_code, result.output) == (0, "5\n4\n")
    assert (place.work / "deep" / "new").read_text() == "2\n"
    assert (place.extra / "new").read_text() == "3\n"
    assert (await place.run("cat $TMPDIR/new", policy)).exit_code == 1


@needs_sandbox
@pytest.mark.parametrize("policy", [READ_ONLY, workspace_write()], ids=lambda one: one.type)
async def test_everything_else_can_be_read_and_run(place: Place, policy) -> None:
    script = "cat $OUT/kept link/kept .git/config $AGENT/skills/SKILL.md && ls / > /dev/null"
    result = await place.run(script, policy)
    assert (result.exit_code, result.output) == (0, "as it was\n" * 3 + "# A skill\n")


@needs_sandbox
async def test_read_only_writes_nowhere_but_in_its_private_tmp(place: Place) -> None:
    result = await place.run("echo x > $TMPDIR/x && cat $TMPDIR/x; echo x > new", READ_ONLY)
    assert result.output.startswith("x\n")
    assert "Read-only file system" in result.output
    assert not (place.work / "new").exists()


@needs_sandbox
async def test_a_command_may_run_below_the_workspace_or_elsewhere(place: Place) -> None:
    (place.work / "deep").mkdir()
    for cwd in (place.work / "deep", place.outside, place.work / "link"):
        result = await place.run("pwd -P", workspace_write(), cwd=cwd)
        assert result.output == f"{cwd.resolve()}\n"
    # Where it runs is not a root of its own.
    await place.run("echo x > new", workspace_write(), cwd=place.outside)
    assert not (place.outside / "new").exists()


@needs_sandbox
async def test_a_root_that_is_a_link_is_what_it_leads_to(place: Place) -> None:
    link = place.base / "alias"
    link.symlink_to(place.extra)
    policy = workspace_write([str(link)])
    assert (await place.run(f"echo x > {link}/new", policy)).exit_code == 0
    assert (place.extra / "new").read_text() == "x\n"
    result = await place.run("echo x > here", workspace_write(), workspace=link)
    assert result.exit_code == 0


@needs_sandbox
async def test_a_root_that_does_not_exist_is_left_out_with_a_note(place: Place) -> None:
    missing = str(place.base / "missing")
    result = await place.run("echo x > new", workspace_write([missing]))
    assert result.exit_code == 0
    assert place.confinement is not None
    [note] = place.confinement.notes
    assert missing in note


@needs_sandbox
@pytest.mark.parametrize(
    ("root", "says"),
    [
        ("/", "dangerFullAccess"),
        ("//", "dangerFullAccess"),
        ("/proc", "never writable"),
        ("/sys/fs", "never writable"),
        ("/dev/shm", "never writable"),
        ("relative", "not an absolute path"),
        ("/tmp/../etc", "`..`"),
        ("/tmp/\0", "NUL"),
        ("{home}/.ssh", "never writable"),
        ("{agent}", "never writable"),
        ("{agent}/rules", "never writable"),
        ("{work}/to-agent", "never writable"),
    ],
)
async def test_a_root_that_cannot_be_is_refused_by_name(place: Place, root, says) -> None:
    (place.base / "to-agent").symlink_to(place.agent)
    named = root.format(home=place.home, agent=place.agent, work=place.base)
    policy = workspace_write([named])
    with pytest.raises(SandboxUnavailable) as caught:
        await place.run("true", policy)
    assert says in str(caught.value)


@needs_sandbox
async def test_a_command_in_a_hidden_folder_is_refused(place: Place) -> None:
    for cwd in (place.agent, place.home / ".ssh"):
        with pytest.raises(SandboxUnavailable, match="cannot see"):
            await place.run("pwd", READ_ONLY, cwd=cwd)
    assert (await place.run("cat SKILL.md", READ_ONLY, cwd=place.agent / "skills")).exit_code == 0


@needs_sandbox
async def test_a_terminal_reaches_into_the_sandbox(place: Place) -> None:
    script = "test -t 0 && test -t 1 && stty size < /dev/tty; exit 3"
    result = await place.run(script, READ_ONLY, tty=True)
    assert (result.exit_code, result.output) == (3, "24 80\r\n")


@needs_sandbox
async def test_the_exit_of_a_confined_command_is_its_own(place: Place) -> None:
    for script, code in (("exit 42", 42), ("kill -TERM $$", 143), ("nonexistent", 127)):
        assert (await place.run(script, workspace_write())).exit_code == code


@needs_sandbox
async def test_a_confined_command_has_its_grace(place: Place) -> None:
    os.mkfifo(place.work / "never")
    script = "trap 'echo bye; exit 9' TERM; echo up; read x < never"
    running = Running(await place.command(script, workspace_write(), grace=30))
    heard = Heard()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run, heard)
        await heard.until(lambda text: text == "up\n")
        running.stop()
    assert heard.text == "up\nbye\n"
    assert running.finished is not None
    assert running.finished.exit_code == 9


@needs_sandbox
async def test_the_ways_to_programs_outside_are_not_in_its_environment(place: Place) -> None:
    env = {"SSH_AUTH_SOCK": "/x", "TMUX": "/y", "KEPT": "z"}
    result = await place.run("env", READ_ONLY, env=env)
    names = {line.split("=")[0] for line in result.output.splitlines()}
    assert "KEPT" in names
    assert names.isdisjoint({"SSH_AUTH_SOCK", "TMUX"})


def test_where_programs_listen_is_known(tmp_path) -> None:
    own = f"tmux-{os.getuid()}"
    for name in (".X11-unix", own, "tmux-x", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / ".ICE-unix").symlink_to(tmp_path / "mine")
    found = set(places_of_sockets(str(tmp_path)))
    assert {str(tmp_path / ".X11-unix"), str(tmp_path / own)} == {
        path for path in found if path.startswith(str(tmp_path))
    }
    for name in "abcd":
        (tmp_path / name).write_text("")
    env = {
        "SSH_AUTH_SOCK": f"{tmp_path}/a",
        "TMUX": f"{tmp_path}/b,12,0",
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={tmp_path}/c,guid=1",
        "DOCKER_HOST": f"unix://{tmp_path}/d",
    }
    assert [path[-2:] for path in sockets_named_by(env)] == ["/a", "/b", "/c", "/d"]
    assert list(sockets_named_by({"SSH_AUTH_SOCK": "/gone", "DOCKER_HOST": "tcp://x"})) == []


class Nowhere(Probe):
    """A machine without bubblewrap."""

    def program(self) -> str:
        raise SandboxUnavailable("not here")


@pytest.mark.parametrize(
    "policy",
    [READ_ONLY, workspace_write(), ExternalSandbox(network_access="restricted")],
    ids=lambda one: one.type,
)
async def test_where_it_cannot_be_enforced_there_is_no_way_to_run(place: Place, policy) -> None:
    sandbox = Sandbox(place.agent, place.home, probe=Nowhere())
    with pytest.raises(SandboxUnavailable):
        await sandbox.confine(policy, workspace=str(place.work), cwd=str(place.work), env={})


async def test_a_missing_bubblewrap_is_said_with_what_to_do(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("reference_server.sandbox.probe.PLACES", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"\(bwrap\) was not found; install the package"):
        await Probe().require(inputs={})


async def test_a_bubblewrap_that_fails_is_asked_once_and_quoted(monkeypatch, tmp_path) -> None:
    program = tmp_path / "bwrap"
    program.write_text(
        f"#!/bin/sh\necho asked >> {tmp_path}/log\necho 'bwrap: No permissions' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr("reference_server.sandbox.probe.PLACES", str(tmp_path))
    probe = Probe()
    for _ in range(2):
        with pytest.raises(SandboxUnavailable, match="bwrap: No permissions; install"):
            await probe.require("--unshare-pid", inputs={})
    assert (tmp_path / "log").read_text() == "asked\n"


@needs_sandbox
async def test_a_bubblewrap_that_commands_could_replace_is_not_used(
    place: Place, monkeypatch
) -> None:
    found = shutil.which("bwrap")
    assert found is not None
    own = place.work / "bwrap"
    shutil.copy(found, own)
    monkeypatch.setattr("reference_server.sandbox.probe.PLACES", str(place.work))
    with pytest.raises(SandboxUnavailable, match="lies in a root that is writable"):
        await place.run("true", workspace_write())


FILES = Confinement(("bwrap",), {}, files=True)
NETWORK = Confinement(("bwrap",), {}, files=True, network=True)
FREE = Confinement((), {})


@pytest.mark.parametrize(
    ("exit_code", "output", "confinement", "denied"),
    [
        (1, "touch: cannot touch 'x': Read-only file system\n", FILES, True),
        (1, "touch: cannot touch 'x': Read-only file system\n", FREE, False),
        (0, "touch: cannot touch 'x': Read-only file system\n", FILES, False),
        (None, "Read-only file system", FILES, False),
        (1, "Error: EROFS: read-only file system, open 'x'", FILES, True),
        (1, "PermissionError: [Errno 1] Operation not permitted", FILES, True),
        (1, "cat: secret: Permission denied", FILES, True),
        (126, "bash: ./x: Permission denied", FILES, False),
        (1, "3 tests failed", FILES, False),
        (1, "connect: Network is unreachable", NETWORK, True),
        (1, "connect: Network is unreachable", FILES, False),
        (6, "curl: (6) Could not resolve host: example.org", NETWORK, True),
        (1, "getaddrinfo EAI_AGAIN registry", NETWORK, True),
        (7, "Connection refused", NETWORK, False),
    ],
)
def test_failures_that_look_like_a_denial_are_taken_for_one(
    exit_code, output, confinement, denied
) -> None:
    assert looks_denied(Finished(exit_code, output, 1), confinement) is denied


def test_a_command_that_we_ended_was_not_denied() -> None:
    said = "Permission denied"
    assert not looks_denied(Finished(143, said, 1, was_stopped=True), FILES)
    assert not looks_denied(Finished(143, said, 1, timed_out=True), FILES)


@needs_sandbox
@pytest.mark.parametrize(
    "script",
    ["echo x > new", "rm $OUT/kept", "cat ~/.ssh/secret", "cat ~/.netrc", "echo x > /tmp/new"],
)
async def test_real_denials_are_recognised(place: Place, script: str) -> None:
    result = await place.run(script, READ_ONLY)
    assert place.confinement is not None
    assert looks_denied(result, place.confinement)


@needs_sandbox
@pytest.mark.parametrize("script", ["false", "cat missing", "test -e x", "grep x /dev/null"])
async def test_a_plain_failure_is_a_result(place: Place, script: str) -> None:
    result = await place.run(script, READ_ONLY)
    assert place.confinement is not None
    assert result.exit_code == 1
    assert not looks_denied(result, place.confinement)


def test_a_sandbox_that_failed_itself_is_told_from_a_command_that_did() -> None:
    said = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted\nmore"
    assert sandbox_failure(Finished(1, said, 1), FILES) == said.splitlines()[0]
    assert sandbox_failure(Finished(1, said, 1), FREE) is None
    assert sandbox_failure(Finished(2, said, 1), FILES) is None
    assert sandbox_failure(Finished(1, "x" + said, 1), FILES) is None


@linux
def test_the_users_own_home_is_hidden_whatever_the_environment_says(monkeypatch) -> None:
    import pwd

    monkeypatch.setenv("HOME", "/nowhere")
    sandbox = Sandbox(Path("/nowhere/agent"))
    assert sandbox._user_homes == ["/nowhere", pwd.getpwuid(os.getuid()).pw_dir]
