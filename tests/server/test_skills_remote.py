"""Remote skills: off unless switched on, and then from a local catalogue."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from session_peer import Peer, config, session
from skill_folders import entry, names, put_skill

from reference_server.config.load import load_config
from reference_server.config.model import Config
from reference_server.skills import catalogue

pytestmark = pytest.mark.anyio


def switched_on(folder: Path | str | None) -> Config:
    found = None if folder is None else str(folder)
    return replace(config(), remote_skills=True, skill_catalogue=found)


async def export(peer: Peer, skill_id: str) -> dict[str, Any]:
    return await peer.request("skills/remote/export", {"hazelnutId": skill_id})


@pytest.mark.parametrize("method", ["skills/remote/list", "skills/remote/export"])
async def test_both_are_refused_as_under_development_unless_switched_on(
    method, tmp_path: Path
) -> None:
    put_skill(tmp_path / "catalogue", "far")
    settings = replace(switched_on(tmp_path / "catalogue"), remote_skills=False)
    async with session(tmp_path / "home", settings=settings) as peer:
        error = (await peer.request(method, {"hazelnutId": "far"}))["error"]
    assert error["code"] == -32601
    assert "under development" in error["message"]
    assert "remote_skills = true" in error["message"]
    assert not (tmp_path / "home" / "skills").exists()


def test_the_configuration_switches_them_on(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[features]\nremote_skills = true\n[skills]\ncatalogue = "/c"\n')
    warnings: list[str] = []
    found = load_config(file, {}, warnings.append)
    assert (found.remote_skills, found.skill_catalogue, warnings) == (True, "/c", [])


async def test_the_catalogue_is_listed(tmp_path: Path) -> None:
    put_skill(tmp_path / "catalogue", "far")
    put_skill(tmp_path / "catalogue", "broken", text="no heading\n")
    put_skill(tmp_path / "catalogue", "away", text="---\nname: Far Away\n---\n# x\n\nIs far.\n")
    async with session(tmp_path / "home", settings=switched_on(tmp_path / "catalogue")) as peer:
        found = (await peer.request("skills/remote/list"))["result"]
    assert found == {
        "data": [
            {"id": "away", "name": "Far Away", "description": "Is far."},
            {"id": "far", "name": "far", "description": "Does what far does."},
        ]
    }


async def test_an_exported_skill_is_the_users_at_once(tmp_path: Path) -> None:
    file = put_skill(tmp_path / "catalogue", "far", icon_svg="<svg/>")
    script = file.parent / "scripts" / "run.sh"
    script.parent.mkdir()
    script.write_text("true\n")
    script.chmod(0o4755)
    home = tmp_path / "home"
    async with session(home, settings=switched_on(tmp_path / "catalogue")) as peer:
        before = await entry(peer, tmp_path)
        answer = await export(peer, "far")
        after = await entry(peer, tmp_path)
    assert answer["result"] == {"id": "far", "path": str(home / "skills" / "far")}
    assert (names(before), names(after)) == ([], ["far"])
    copied = home / "skills" / "far"
    assert (copied / "SKILL.md").read_text() == file.read_text()
    assert (copied / "scripts" / "run.sh").stat().st_mode & 0o7777 == 0o700
    assert os.listdir(home / "skills") == ["far"]


@pytest.mark.parametrize(
    "skill_id", ["../far", "a/far", "/etc", "", ".", "..", ".git", "a\0b", "n"]
)
async def test_an_invalid_id_is_refused(skill_id: str, tmp_path: Path) -> None:
    put_skill(tmp_path / "catalogue" / "a", "far")
    put_skill(tmp_path, "far")
    home = tmp_path / "home"
    async with session(home, settings=switched_on(tmp_path / "catalogue")) as peer:
        error = (await export(peer, skill_id))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("hazelnutId: ")
    assert not (home / "skills").exists()


@pytest.mark.parametrize("there", ["a skill", "an empty folder", "a file", "a link to nothing"])
async def test_nothing_is_overwritten(there: str, tmp_path: Path) -> None:
    put_skill(tmp_path / "catalogue", "far")
    target = tmp_path / "home" / "skills" / "far"
    target.parent.mkdir(parents=True)
    match there:
        case "a skill":
            put_skill(target.parent, "far", text="# far\n\nMine.\n")
        case "an empty folder":
            target.mkdir()
        case "a file":
            target.write_text("mine")
        case _:
            target.symlink_to(tmp_path / "nowhere")
    before = sorted(target.parent.rglob("*"))
    async with session(tmp_path / "home", settings=switched_on(tmp_path / "catalogue")) as peer:
        error = (await export(peer, "far"))["error"]
    assert "is there already" in error["message"]
    assert sorted(target.parent.rglob("*")) == before
    assert not (tmp_path / "nowhere").exists()


def a_link(folder: Path) -> None:
    (folder / "key").symlink_to("/etc/passwd")


def a_linked_folder(folder: Path) -> None:
    (folder / "more").symlink_to("/etc")


def a_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def too_many(folder: Path) -> None:
    for number in range(catalogue.MAX_FILES + 1):
        (folder / f"{number}").touch()


def too_large(folder: Path) -> None:
    with (folder / "large").open("wb") as file:
        file.truncate(catalogue.SIZE_LIMIT)


def too_deep(folder: Path) -> None:
    folder.joinpath(*["d"] * (catalogue.DEPTH + 1)).mkdir(parents=True)


@pytest.mark.parametrize(
    "with_it", [a_link, a_linked_folder, a_pipe, too_many, too_large, too_deep]
)
async def test_a_skill_that_cannot_be_copied_whole_is_not_copied(with_it, tmp_path: Path) -> None:
    with_it(put_skill(tmp_path / "catalogue", "far").parent)
    home = tmp_path / "home"
    async with session(home, settings=switched_on(tmp_path / "catalogue")) as peer:
        error = (await export(peer, "far"))["error"]
        found = await entry(peer, tmp_path)
    assert error["code"] == -32602
    assert "'far' " in error["message"]
    assert os.listdir(home / "skills") == []
    assert found["errors"] == []


async def test_a_skill_of_the_catalogue_that_is_a_link_is_none(tmp_path: Path) -> None:
    put_skill(tmp_path / "elsewhere", "far")
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue" / "far").symlink_to(tmp_path / "elsewhere" / "far")
    async with session(tmp_path / "home", settings=switched_on(tmp_path / "catalogue")) as peer:
        assert (await peer.request("skills/remote/list"))["result"] == {"data": []}
        assert "error" in await export(peer, "far")


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        (None, "no catalogue: name a folder"),
        ("relative", "relative: must be an absolute path"),
        ("/nowhere/at/all", "/nowhere/at/all: is not a folder"),
    ],
)
async def test_a_catalogue_that_is_not_there_is_named(folder, words: str, tmp_path: Path) -> None:
    async with session(tmp_path / "home", settings=switched_on(folder)) as peer:
        error = (await peer.request("skills/remote/list"))["error"]
    assert words in error["message"]
