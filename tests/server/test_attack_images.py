"""Files that are not images, or are secret, named as images by the model and by the client.

What counts is what the model was sent, what the client was told and what is on disk.
"""

import base64
import os
from collections.abc import Iterator
from typing import Any

import anyio
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
from confined import IDENTITIES, ORDINARY, Place, sandboxed
from model_side import PIXEL, calls, says

from reference_server.engine.images import IMAGE_LIMIT
from tests.sampling import one_in

pytestmark = sandboxed
DONE = says("done")
BOUND = 10.0
PICTURE = base64.b64encode(PIXEL).decode()
SANDBOXES = {**CONFINING, "dangerFullAccess": OPEN}


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with places(request) as found:
        furnish(found)
        yield found


def furnish(place: Place) -> None:
    for folder in (place.work, place.home / ".ssh", place.agent, place.agent / "skills"):
        (folder / "a.png").write_bytes(PIXEL)
    (place.work / "text.png").write_text(SECRET)
    (place.work / "linked.png").symlink_to(place.home / ".ssh" / "a.png")
    (place.work / "keys").symlink_to(place.home / ".ssh")
    (place.work / "kernel.png").symlink_to("/proc/self/environ")
    os.mkfifo(place.work / "pipe.png")
    with (place.work / "large.png").open("wb") as file:
        file.write(PIXEL)
        file.truncate(IMAGE_LIMIT + 1)
    if place.ordinary:
        for path in place.base.rglob("*"):
            os.chown(path, ORDINARY, ORDINARY, follow_symlinks=False)


SEEN = {"in the workspace": "a.png", "of a skill": "{home}/.agent/skills/a.png"}
HIDDEN = {
    "beside a key": "{home}/.ssh/a.png",
    "by dots": "../home/.ssh/a.png",
    "by a link": "linked.png",
    "by a linked folder": "keys/a.png",
    "in the agent's home": "{home}/.agent/a.png",
}
"""Images that commands cannot read, unless nothing confines them."""
NEVER = {
    "the server's variables": "/proc/self/environ",
    "the same by a link": "kernel.png",
    "the same by a number": "/proc/{pid}/environ",
    "the kernel's log": "/proc/kmsg",
    "a device without end": "/dev/zero",
    "a device that waits": "/dev/tty",
    "a pipe that nobody writes to": "pipe.png",
    "a text": "text.png",
    "a folder": ".",
    "too large": "large.png",
    "nothing": "none.png",
    "no path": "a\0.png",
}


async def shown(one: Attack, path: str, sandbox: dict[str, Any], who: str) -> bool:
    """Let the model or the client name an image; whether the model was sent it."""
    path = path.format(home=one.place.home, pid=one.process.pid)
    thread = await one.thread(sandbox, "never")
    begin = len(one.side.bodies)
    with anyio.fail_after(BOUND):
        if who == "model":
            await one.turn(thread, calls("view_image", path=path), DONE)
        else:
            await one.turn(thread, DONE, input=[{"type": "localImage", "path": path}])
    sent = str(one.side.bodies[begin:])
    return "data:image/" in sent


@pytest.mark.parametrize("who", one_in(2, ["model", "client"], pytest.mark.attacks))
async def test_an_image_is_what_the_policy_lets_a_command_read(place: Place, who: str) -> None:
    async with attack(place) as one:
        for sandbox, policy in SANDBOXES.items():
            for name, path in SEEN.items():
                assert await shown(one, path, policy, who), (sandbox, name)
            for name, path in HIDDEN.items():
                opened = sandbox == "dangerFullAccess"
                assert await shown(one, path, policy, who) is opened, (sandbox, name)
        assert PICTURE.encode() in one.everything_said()


@pytest.mark.parametrize("who", one_in(2, ["model", "client"], pytest.mark.attacks))
async def test_files_that_are_not_images_are_never_sent(place: Place, who: str) -> None:
    async with attack(place) as one:
        for policy in (CONFINING["readOnly"], OPEN):
            for name, path in NEVER.items():
                assert not await shown(one, path, policy, who), name
        said = one.everything_said()
        for secret in (SECRET, *KEYS.values()):
            for words in (secret, base64.b64encode(secret.encode()).decode()):
                assert words.encode() not in said


@only_root
@pytest.mark.parametrize("place", ["this user"], indirect=True)
@pytest.mark.parametrize("who", one_in(2, ["model", "client"], pytest.mark.attacks))
async def test_a_server_of_root_sends_no_image_that_its_commands_cannot_read(
    place: Place, who: str
) -> None:
    path = str(another_users(place, "a.png", PIXEL))
    async with attack(place) as one:
        for sandbox in CONFINING.values():
            assert not await shown(one, path, sandbox, who)
        assert await shown(one, path, OPEN, who)
