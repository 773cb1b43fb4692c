"""Files that are not skills, or are secret, named as skills by the client or in a project.

What counts is what left the server: to the model, the client, its log and its disk.
"""

import os
from collections.abc import Iterator
from pathlib import Path
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
from model_side import runs, says
from skill_folders import item, put_skill, text

from tests.sampling import one_in

pytestmark = sandboxed
DONE = says("done")
BOUND = 10.0
STOLEN = f"---\nname: evil\ndescription: None.\n---\n{SECRET}\n"
"""A secret that is also a skill, for an attacker who can choose its form."""


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with places(request) as found:
        furnish(found)
        yield found


def furnish(place: Place) -> None:
    skills = place.work / ".agent" / "skills"
    put_skill(skills, "good", text="# good\n\nIs good.\n\nThe good text.\n")
    put_skill(place.agent / "skills", "mine", text="# mine\n\nIs mine.\n\nMy text.\n")
    put_skill(place.home / ".ssh", "evil", text=STOLEN)
    put_skill(place.agent, "evil", text=STOLEN)
    for name, target in {
        "folder": place.home / ".ssh" / "evil",
        "home": place.agent / "evil",
        "kernel": Path("/proc/self"),
    }.items():
        (skills / name).symlink_to(target)
    for name, target in {
        "file": place.home / ".ssh" / "evil" / "SKILL.md",
        "key": place.home / ".ssh" / "secret",
        "environment": Path("/proc/self/environ"),
        "device": Path("/dev/zero"),
    }.items():
        (skills / name).mkdir()
        (skills / name / "SKILL.md").symlink_to(target)
    (skills / "pipe").mkdir()
    os.mkfifo(skills / "pipe" / "SKILL.md")
    if place.ordinary:
        for path in place.base.rglob("*"):
            os.chown(path, ORDINARY, ORDINARY, follow_symlinks=False)


GIVEN = {
    "of the project": ("good", "{work}/.agent/skills/good/SKILL.md", "The good text."),
    "of the user": ("mine", "{home}/.agent/skills/mine/SKILL.md", "My text."),
}
HIDDEN = {
    "among keys": "{home}/.ssh/evil/SKILL.md",
    "by dots": "{work}/../home/.ssh/evil/SKILL.md",
    "by a linked folder": "{work}/.agent/skills/folder/SKILL.md",
    "by a link": "{work}/.agent/skills/file/SKILL.md",
    "in the agent's home": "{home}/.agent/evil/SKILL.md",
    "in the agent's home, by a link": "{work}/.agent/skills/home/SKILL.md",
}
"""Skills that commands cannot read, unless nothing confines them."""
NEVER = {
    "a key": "{home}/.ssh/secret",
    "a key that is linked": "{work}/.agent/skills/key/SKILL.md",
    "settings": "{home}/.agent/auth.json",
    "passwords": "/etc/shadow",
    "the server's variables": "/proc/{pid}/environ",
    "the same by a link": "{work}/.agent/skills/environment/SKILL.md",
    "the kernel's folder by a link": "{work}/.agent/skills/kernel/SKILL.md",
    "a device": "{work}/.agent/skills/device/SKILL.md",
    "a pipe": "{work}/.agent/skills/pipe/SKILL.md",
    "a folder": "{work}/.agent/skills/good",
    "nothing": "{work}/none/SKILL.md",
    "no path": "/a\0/SKILL.md",
}


async def heard(one: Attack, sandbox: dict[str, Any], *content: dict[str, Any]) -> str:
    """Say something in a new thread; gives what the model was sent."""
    thread = await one.thread(sandbox, "never")
    begin = len(one.side.bodies)
    with anyio.fail_after(BOUND):
        await one.turn(thread, DONE, input=list(content))
    return str([body["input"] for body in one.side.bodies[begin:]])


def at(one: Attack, path: str) -> str:
    place = one.place
    return path.format(work=place.work, home=place.home, pid=one.process.pid)


@pytest.mark.parametrize("by", one_in(2, ["item", "name"], pytest.mark.attacks))
async def test_a_skill_is_what_the_policy_lets_a_command_read(place: Place, by: str) -> None:
    async with attack(place) as one:
        for sandbox in (*CONFINING.values(), OPEN):
            for name, path, words in GIVEN.values():
                named = text(f"${name}") if by == "name" else item(name, at(one, path))
                assert words in await heard(one, sandbox, named)


@pytest.mark.parametrize("sandbox", one_in(2, CONFINING, pytest.mark.attacks))
async def test_no_item_has_a_hidden_file_sent(place: Place, sandbox: str) -> None:
    async with attack(place) as one:
        for name, path in HIDDEN.items():
            sent = await heard(one, CONFINING[sandbox], text("go"), item("evil", at(one, path)))
            assert "is not used: the sandbox hides it" in sent, name
        assert SECRET.encode() not in one.everything_said()


async def test_where_nothing_confines_a_named_skill_is_read_wherever_it_lies(place: Place) -> None:
    async with attack(place) as one:
        for name, path in HIDDEN.items():
            assert SECRET in await heard(one, OPEN, item("evil", at(one, path))), name


@pytest.mark.parametrize("sandbox", one_in(2, CONFINING, pytest.mark.attacks))
async def test_no_name_has_a_hidden_file_of_a_linked_folder_sent(
    place: Place, sandbox: str
) -> None:
    async with attack(place) as one:
        sent = await heard(one, CONFINING[sandbox], text("$evil"))
        assert "The skill $evil is not used: the sandbox hides it" in sent
        assert SECRET.encode() not in one.everything_said()


async def test_a_file_that_is_not_a_skill_is_never_sent(place: Place) -> None:
    async with attack(place) as one:
        for sandbox in (CONFINING["readOnly"], OPEN):
            for name, path in NEVER.items():
                sent = await heard(one, sandbox, text("go"), item("good", at(one, path)))
                assert "is not used: " in sent, name
        said = one.everything_said()
        for secret in (SECRET, *KEYS.values()):
            assert secret.encode() not in said


async def test_a_listing_shows_nothing_of_what_links_lead_to(place: Place) -> None:
    async with attack(place) as one:
        with anyio.fail_after(BOUND):
            roots = [str(place.home / ".ssh"), str(place.agent), "/proc/self", "/etc"]
            given = [{"cwd": str(place.work), "extraUserRoots": roots}]
            await one.peer.request(
                "skills/list", {"cwds": [str(place.work)], "perCwdExtraUserRoots": given}
            )
        said = one.everything_said()
        for secret in (SECRET, *KEYS.values()):
            assert secret.encode() not in said


@pytest.mark.parametrize(
    "command",
    one_in(
        2,
        [
            'printf "# evil\\n\\n" > "{folder}/SKILL.md"',
            'mkdir -p "{folder}/new" && printf "# evil\\n" > "{folder}/new/SKILL.md"',
        ],
        pytest.mark.attacks,
    ),
)
async def test_no_command_changes_a_skill_of_the_user(place: Place, command: str) -> None:
    folder = place.agent / "skills" / "mine"
    async with attack(place) as one:
        thread = await one.thread(CONFINING["workspaceWrite"], "never")
        await one.turn(thread, runs(command.replace("{folder}", str(folder))), DONE)
    assert (folder / "SKILL.md").read_text().startswith("# mine")
    assert not (folder / "new").exists()


@only_root
@pytest.mark.parametrize("place", ["this user"], indirect=True)
async def test_a_server_of_root_sends_no_skill_that_its_commands_cannot_read(place: Place) -> None:
    path = str(another_users(place, "SKILL.md", STOLEN.encode()))
    async with attack(place) as one:
        for sandbox in CONFINING.values():
            assert SECRET not in await heard(one, sandbox, item("evil", path))
        assert SECRET in await heard(one, OPEN, item("evil", path))
