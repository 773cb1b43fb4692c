"""`skills/config/write`: stored settings, and the user's own config file."""

import os
import tomllib
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from session_peer import session
from skill_folders import entry, project, put_skill, switch

from reference_server.config.text import CONFIG_LIMIT
from reference_server.safe_files import lock, open_regular
from reference_server.skills import switches
from reference_server.skills.switches import Switches, Unwritable

pytestmark = pytest.mark.anyio
USERS = """\
# what I think of it
model = "m"   # the good one

[model_providers.mine]
name = "it's mine"
base_url = 'http://x.invalid'  # not yours
"""


async def enabled(home: Path, cwd: Path) -> dict[str, bool]:
    async with session(home) as peer:
        found = await entry(peer, cwd)
    return {one["name"]: one["enabled"] for one in found["skills"]}


async def test_a_disabled_skill_stays_disabled_over_a_restart_and_stays_listed(
    tmp_path: Path,
) -> None:
    file = put_skill(project(tmp_path), "tally")
    put_skill(project(tmp_path), "knit")
    async with session(tmp_path / "home") as peer:
        assert (await switch(peer, file, enabled=False))["result"] == {}
    assert await enabled(tmp_path / "home", tmp_path) == {"knit": True, "tally": False}
    async with session(tmp_path / "home") as peer:
        assert (await switch(peer, file, enabled=True))["result"] == {}
    assert await enabled(tmp_path / "home", tmp_path) == {"knit": True, "tally": True}


async def test_the_users_file_is_as_before_once_a_skill_is_enabled_again(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    config = tmp_path / "home" / "config.toml"
    config.parent.mkdir()
    config.write_text(USERS)
    config.chmod(0o640)
    async with session(tmp_path / "home") as peer:
        await switch(peer, file, enabled=False)
        between = config.read_text()
        await switch(peer, file, enabled=False)
        twice = config.read_text()
        await switch(peer, file, enabled=True)
    assert between.startswith(USERS)
    assert tomllib.loads(between)["skills"] == {"config": [{"path": str(file), "enabled": False}]}
    assert twice == between
    assert config.read_text() == USERS
    assert config.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(config.parent)) == ["config.lock", "config.toml", *others(config)]


def others(config: Path) -> list[str]:
    """Return the names of the server's own files in its home, besides its settings."""
    return sorted(set(os.listdir(config.parent)) & {"counters", "servers", "threads.lock", "index"})


async def test_enabling_what_is_enabled_writes_nothing(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home") as peer:
        assert (await switch(peer, file, enabled=True))["result"] == {}
    assert not (tmp_path / "home" / "config.toml").exists()


async def test_an_entry_that_the_user_wrote_counts_and_is_taken_away(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    config = tmp_path / "home" / "config.toml"
    config.parent.mkdir()
    entry_of_user = f'[[skills.config]]\npath = "{file.parent}/./SKILL.md"\nenabled = false\n'
    below = "\n# what others are\n[features]\n"
    config.write_text(f'[skills]\ncatalogue = "/c" # far\n\n{entry_of_user}{below}')
    assert await enabled(tmp_path / "home", tmp_path) == {"tally": False}
    async with session(tmp_path / "home") as peer:
        await switch(peer, file, enabled=True)
    assert config.read_text() == f'[skills]\ncatalogue = "/c" # far\n{below}'


async def test_another_server_of_the_home_sees_the_switch(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home") as one, session(tmp_path / "home") as other:
        await entry(other, tmp_path)
        await switch(one, file, enabled=False)
        found = await entry(other, tmp_path)
    assert [one["enabled"] for one in found["skills"]] == [False]


async def test_a_skill_that_is_found_through_a_link_is_the_same_skill(tmp_path: Path) -> None:
    file = put_skill(tmp_path / "kept", "tally")
    project(tmp_path).parent.mkdir()
    project(tmp_path).symlink_to(tmp_path / "kept")
    async with session(tmp_path / "home") as peer:
        await switch(peer, file, enabled=False)
        found = await entry(peer, tmp_path)
        await switch(peer, found["skills"][0]["path"], enabled=True)
        again = await entry(peer, tmp_path)
    assert [found["skills"][0]["enabled"], again["skills"][0]["enabled"]] == [False, True]


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("tally/SKILL.md", "path: must be an absolute path"),
        ("{base}/none/SKILL.md", "cannot be read: No such file or directory"),
        ("{base}/tally", "is not the path of a SKILL.md"),
        ("{base}/tally/config.toml", "is not the path of a SKILL.md"),
        ("{base}/broken/SKILL.md", "has no name"),
        ("{base}/\0/SKILL.md", "path: holds a NUL character"),
        ("/" + "x" * 5000, "path: a path has at most 4096 bytes"),
    ],
)
async def test_a_path_without_a_skill_is_refused(
    path: str, words: str, value: bool, tmp_path: Path
) -> None:
    put_skill(project(tmp_path), "tally", config_toml="")
    put_skill(project(tmp_path), "broken", text="")
    async with session(tmp_path / "home") as peer:
        found = path.replace("{base}", str(project(tmp_path)))
        error = (await switch(peer, found, enabled=value))["error"]
    assert error["code"] == -32602
    assert words in error["message"]
    assert not (tmp_path / "home" / "config.toml").exists()


async def test_a_skill_that_is_gone_can_be_enabled_again(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home") as peer:
        await switch(peer, file, enabled=False)
        file.unlink()
        assert (await switch(peer, file, enabled=True))["result"] == {}
    assert (tmp_path / "home" / "config.toml").read_text() == ""


def no_toml(config: Path) -> str:
    config.write_text('model = "m"\n[skills\n')
    return f"{config}: line 2, column 8: Expected ']'"


def inline(config: Path) -> str:
    config.write_text('skills = {catalogue = "/c"}\n')
    return f"{config}: `skills.config` is not written as `[[skills.config]]`"


def no_array(config: Path) -> str:
    config.write_text("[skills]\nconfig = []\n")
    return f"{config}: `skills.config` is not written as `[[skills.config]]`"


def no_table(config: Path) -> str:
    config.write_text("skills = 3\n")
    return f"{config}: `skills.config` is not written as `[[skills.config]]`"


def large(config: Path) -> str:
    config.write_text("#" * (CONFIG_LIMIT + 1))
    return f"{config}: is larger than 1024 KiB"


def no_text(config: Path) -> str:
    config.write_bytes(b"# \xff\n")
    return f"{config}: is not UTF-8"


def a_folder(config: Path) -> str:
    config.mkdir()
    return f"{config}: is not a file"


def a_pipe(config: Path) -> str:
    os.mkfifo(config)
    return f"{config}: is not a file"


@pytest.mark.parametrize(
    "made", [no_toml, inline, no_array, no_table, large, no_text, a_folder, a_pipe]
)
async def test_a_file_that_cannot_be_changed_is_left_as_it_is_and_named(
    made, tmp_path: Path
) -> None:
    file = put_skill(project(tmp_path), "tally")
    config = tmp_path / "home" / "config.toml"
    config.parent.mkdir()
    words = made(config)
    before = config.read_bytes() if config.is_file() else None
    async with session(tmp_path / "home") as peer:
        error = (await switch(peer, file, enabled=False))["error"]
        found = await entry(peer, tmp_path)
    assert error["message"].startswith(words)
    assert (config.read_bytes() if config.is_file() else None) == before
    # Reading is not kept up by it: where nothing can be read, that is told.
    assert [one["enabled"] for one in found["skills"]] == [True]
    readable = made in (inline, no_array, no_table)
    assert [one["path"] for one in found["errors"]] == ([] if readable else [str(config)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "a = 1",
        "a = 1\r\n\r\n[b]\r\nc = 2\r\n",
        "[skills]\n# here\n",
        "[a.b.c]\nd = 1\n",
    ],
)
def test_whatever_the_file_says_is_said_beside_the_entry(text: str, tmp_path: Path) -> None:
    file = put_skill(tmp_path, "tally")
    config = tmp_path / "config.toml"
    config.write_bytes(text.encode())
    Switches(config).set(str(file), enabled=False)
    found = tomllib.loads(config.read_bytes().decode())
    assert found.pop("skills")["config"] == [{"path": str(file), "enabled": False}]
    assert found == {key: value for key, value in tomllib.loads(text).items() if key != "skills"}
    assert [line for line in text.split() if line not in config.read_text().split()] == []
    assert ("\r\n" in text) is (b"\r\n" in config.read_bytes())


def test_a_link_to_the_users_own_file_stays_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles" / "agent.toml"
    kept.parent.mkdir()
    kept.write_text(USERS)
    (tmp_path / "config.toml").symlink_to(kept)
    Switches(tmp_path / "config.toml").set(str(put_skill(tmp_path, "tally")), enabled=False)
    assert (tmp_path / "config.toml").is_symlink()
    assert "[[skills.config]]" in kept.read_text()


def test_a_file_saved_by_others_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("a = 1\n")
    real, saves = switches._edit_text, iter(["a = 2\n", "a = 3\n"])

    def edited(*given, **named):
        if (save := next(saves, None)) is not None:
            config.write_text(save)
        return real(*given, **named)

    monkeypatch.setattr(switches, "_edit_text", edited)
    Switches(config).set(str(put_skill(tmp_path, "tally")), enabled=False)
    assert tomllib.loads(config.read_text())["a"] == 3
    assert len(tomllib.loads(config.read_text())["skills"]["config"]) == 1


def test_a_file_that_is_saved_all_the_time_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("a = 1\n")
    real = switches._edit_text
    count = 0

    def edited(*given, **named):
        nonlocal count
        count += 1
        config.write_text(f"a = {10**count}\n")
        return real(*given, **named)

    monkeypatch.setattr(switches, "_edit_text", edited)
    with pytest.raises(Unwritable, match="is being saved by another program; try again"):
        Switches(config).set(str(put_skill(tmp_path, "tally")), enabled=False)
    assert config.read_text() == f"a = {10**count}\n"
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []


async def test_servers_that_switch_at_once_lose_nothing(tmp_path: Path) -> None:
    files = [put_skill(tmp_path, f"s{number}") for number in range(12)]

    async def disable(file: Path) -> None:
        # An object of its own, as another server has.
        change = Switches(tmp_path / "config.toml")
        await to_thread.run_sync(lambda: change.set(str(file), enabled=False))

    async with anyio.create_task_group() as tasks:
        for file in files:
            tasks.start_soon(disable, file)
    entries = tomllib.loads((tmp_path / "config.toml").read_text())["skills"]["config"]
    assert sorted(one["path"] for one in entries) == sorted(map(str, files))


def test_a_server_that_keeps_the_lock_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reference_server.safe_files.LOCK_TIME", 0.05)
    path = tmp_path / "config.lock"
    holder = open_regular(path, os.O_RDWR | os.O_CREAT)
    lock(holder, path)
    try:
        with pytest.raises(OSError, match="another process has had it locked"):
            Switches(tmp_path / "config.toml").set(str(put_skill(tmp_path, "t")), enabled=False)
    finally:
        os.close(holder)
