"""Mounts of a sandbox, though the file system changes between the plan and the mounts."""

import ctypes
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import anyio
import pytest
from commands import Heard, finished
from confined import IDENTITIES, READ_ONLY, SECRET, Place, a_place, sandboxed, workspace_write

from reference_server.sandbox.mounts import Refused
from reference_server.sandbox.probe import SandboxUnavailable
from reference_server.sandbox.process import Running
from reference_server.sandbox.sandbox import Sandbox, sandbox_failure
from tests.sampling import one_in

pytestmark = sandboxed


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with a_place(ordinary=request.param != "this user") as found:
        (found.work / "sub").mkdir()
        found_user = found.work.stat()
        os.chown(found.work / "sub", found_user.st_uid, found_user.st_gid)
        yield found


def swap(folder: Path, target: Path) -> None:
    """Put a link where a folder was, as another command could.

    Bubblewrap itself fails at links that begin at the root.
    """
    folder.rename(folder.with_name("aside"))
    folder.symlink_to(os.path.relpath(target, folder.parent))


@pytest.mark.parametrize("target", [".ssh", ".agent", "../outside"])
async def test_a_root_that_is_swapped_before_it_is_mounted_runs_nothing(
    place: Place, target: str
) -> None:
    """Another command may write in the folder above, and puts a link in the way in between."""
    sub = place.work / "sub"
    led = place.home / target
    script = f"echo ran; cat {led}/secret {led}/auth.json {sub}/*; echo x > {led}/planted"
    command = await place.command(script, workspace_write(), workspace=sub)
    swap(sub, led)
    result = await finished(command)
    assert result.exit_code == 1
    assert "ran" not in result.output.split()
    assert SECRET not in result.output
    assert not (led / "planted").exists()
    assert place.confinement is not None
    assert sandbox_failure(result, place.confinement) is not None


async def test_a_secret_that_is_swapped_before_it_is_hidden_is_not_read(place: Place) -> None:
    """The folder with it is mounted over where the link leads, and the secret itself is not."""
    command = await place.command("cat ~/.ssh/secret ~/aside/secret", READ_ONLY)
    swap(place.home / ".ssh", place.outside)
    result = await finished(command)
    assert result.exit_code == 1
    assert SECRET not in result.output


async def test_a_link_that_a_command_left_is_no_root_for_a_later_thread(place: Place) -> None:
    await place.run("rmdir sub; ln -s $OUT sub; ln -s $OUT/../extra other", workspace_write())
    for root in (place.work / "sub", place.work / "other"):
        with pytest.raises(SandboxUnavailable, match="a command may have made") as caught:
            await place.run("echo x > new", workspace_write(), workspace=root)
        assert str(root) in str(caught.value)
        with pytest.raises(Refused, match="a command may have made"):
            place.sandbox.view(workspace_write(), workspace=str(root))
    assert not (place.outside / "new").exists()


@pytest.mark.parametrize("first", ["a folder", "a link"])
@pytest.mark.parametrize("swap_at", one_in(4, range(1, 9), pytest.mark.attacks))
@pytest.mark.parametrize("swaps", [1, 2, 100])
async def test_a_root_that_is_swapped_while_it_is_looked_at_leads_nowhere(
    place: Place, monkeypatch: pytest.MonkeyPatch, first: str, swap_at: int, swaps: int
) -> None:
    """Another command swaps the folder and a link just after somebody has looked at it."""
    sub, aside = place.work / "sub", place.work / "aside"
    await place.run("true", workspace_write())
    aside.symlink_to(place.outside)
    looks = 0

    def exchange() -> None:
        sub.rename(place.work / "third")
        aside.rename(sub)
        (place.work / "third").rename(aside)

    def swapping(look: Callable[..., object]) -> Callable[..., object]:
        def swapped(path: object, *args: object, **options: object) -> object:
            nonlocal looks
            found = look(path, *args, **options)
            if os.fspath(cast("str", path)) == str(sub):
                looks += 1
                if swap_at <= looks < swap_at + swaps:
                    exchange()
            return found

        return swapped

    if first == "a link":
        exchange()
    for name in ("lstat", "stat", "readlink"):
        monkeypatch.setattr(os, name, swapping(getattr(os, name)))
    try:
        script = "echo x > new; echo x > $OUT/new"
        command = await place.command(script, workspace_write(), workspace=sub)
    except SandboxUnavailable:
        return
    finally:
        monkeypatch.undo()
    await finished(command)
    assert not (place.outside / "new").exists()


async def test_a_link_that_was_a_root_before_commands_wrote_there_stays_one(place: Place) -> None:
    (place.work / "mine").symlink_to(place.extra)
    root = place.work / "mine"
    policy = workspace_write()
    assert (await place.run("echo x > new", policy, workspace=root)).exit_code == 0
    assert (await place.run("echo x > new", policy)).exit_code == 0
    assert (await place.run("echo x > again", policy, workspace=root)).exit_code == 0
    await place.run("rm mine; ln -s $OUT mine", policy)
    with pytest.raises(SandboxUnavailable, match="a command may have made"):
        await place.run("echo x > new", policy, workspace=root)


async def test_names_with_odd_characters_are_mounted(place: Place) -> None:
    for name in ("a b", "tab\there", "back\\slash", "new\nline", "#1", "ünï"):
        folder = place.extra / name
        folder.mkdir()
        owner = place.work.stat()
        os.chown(folder, owner.st_uid, owner.st_gid)
        result = await place.run("echo x > new", workspace_write(), workspace=folder)
        assert (result.exit_code, result.output) == (0, "")


async def test_a_command_does_not_hold_the_way_to_the_warden(place: Place) -> None:
    result = await place.run("ls -l /proc/$$/fd 2> /dev/null | grep -c socket", workspace_write())
    assert result.output == "0\n"


async def test_a_home_that_is_found_through_a_link_in_a_root_is_refused(place: Place) -> None:
    """A command could lead the next start of the server to rules of its own."""
    link = place.work / "home-of-the-agent"
    link.symlink_to(place.agent)
    place.sandbox = Sandbox(place.agent, place.home, environment={"AGENT_HOME": str(link)})
    with pytest.raises(Refused, match="set AGENT_HOME to") as caught:
        place.sandbox.view(workspace_write(), workspace=str(place.work))
    assert str(link) in str(caught.value)
    assert place.sandbox.view(workspace_write(), workspace=str(place.extra)) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts; for others it is not kept out")
async def test_later_mounts_are_not_writable_in_a_sandbox(place: Place) -> None:
    """A disk that somebody plugs in while a command runs."""
    libc = ctypes.CDLL(None, use_errno=True)
    point = place.base / "disk"
    point.mkdir()
    # A place of its own, so that the machine's mounts stay as they are.
    assert libc.mount(bytes(place.base), bytes(place.base), None, 1 << 12, None) == 0
    assert libc.mount(None, bytes(place.base), None, 1 << 20, None) == 0
    os.mkfifo(place.work / "go")
    script = f"echo waiting; read x < go; echo x > {point}/new && echo written; echo over"
    try:
        running = Running(await place.command(script, READ_ONLY))
        heard = Heard()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.run, heard)
            await heard.until(lambda text: "waiting" in text)
            assert libc.mount(b"none", bytes(point), b"tmpfs", 0, b"mode=777") == 0
            async with await anyio.open_file(place.work / "go", "w") as way:
                await way.write("go\n")
        assert running.output.endswith("over\n")
        assert "written" not in running.output
    finally:
        libc.umount2(bytes(point), 0)
        assert libc.umount2(bytes(place.base), 0) == 0
