"""`skills/list`: scopes, working directories, the cache, further roots."""

from pathlib import Path

import pytest
from session_peer import session
from skill_folders import entry, listed, names, plain, project, put_skill, switch

pytestmark = pytest.mark.anyio


async def test_a_skill_of_each_scope_is_listed_the_nearest_first(tmp_path: Path) -> None:
    put_skill(project(tmp_path / "work"), "ours")
    put_skill(tmp_path / "home" / "skills", "mine")
    async with session(tmp_path / "home") as peer:
        [found] = await listed(peer, tmp_path / "work")
    assert [(one["name"], one["scope"]) for one in found["skills"]][:2] == [
        ("ours", "repo"),
        ("mine", "user"),
    ]
    rest = found["skills"][2:]
    assert rest
    assert {one["scope"] for one in rest} == {"system"}
    assert found["errors"] == []


async def test_a_listed_skill_has_its_members(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home") as peer:
        found = await entry(peer, tmp_path)
    assert found["skills"] == [
        {
            "name": "tally",
            "description": "Does what tally does.",
            "enabled": True,
            "path": str(file),
            "scope": "repo",
        }
    ]


@pytest.mark.parametrize("params", [{}, {"cwds": []}, {"cwds": None}])
async def test_without_cwds_the_servers_own_is_listed(
    params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_skill(project(tmp_path), "here")
    monkeypatch.chdir(tmp_path)
    async with session(tmp_path / "home") as peer:
        [found] = (await peer.request("skills/list", params))["result"]["data"]
    assert found["cwd"] == str(tmp_path)
    assert "here" in names(found)


async def test_each_cwd_has_an_entry_in_the_order_asked_as_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_skill(project(tmp_path / "a"), "one")
    monkeypatch.chdir(tmp_path)
    asked = [f"{tmp_path}/b", "a", f"{tmp_path}/a", f"{tmp_path}/a/", f"{tmp_path}/a"]
    async with session(tmp_path / "home") as peer:
        found = await listed(peer, *asked)
    assert [one["cwd"] for one in found] == asked
    assert ["one" in names(one) for one in found] == [False, True, True, True, True]


async def test_a_cwd_that_does_not_exist_has_an_entry_without_errors(tmp_path: Path) -> None:
    async with session(tmp_path / "home") as peer:
        found = await entry(peer, tmp_path / "nowhere")
    assert found == {"cwd": str(tmp_path / "nowhere"), "skills": [], "errors": []}


async def test_a_listing_is_kept_until_a_reload(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home") as peer:
        await entry(peer, tmp_path)
        file.write_text(plain("changed"))
        kept = await entry(peer, tmp_path)
        reloaded = await entry(peer, tmp_path, forceReload=True)
        after = await entry(peer, tmp_path)
    assert [names(one) for one in (kept, reloaded, after)] == [["tally"], ["changed"], ["changed"]]


async def test_a_switch_drops_what_was_kept(tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home") as peer:
        await entry(peer, tmp_path)
        put_skill(project(tmp_path), "another")
        assert (await switch(peer, file, enabled=False))["result"] == {}
        found = await entry(peer, tmp_path)
    assert {one["name"]: one["enabled"] for one in found["skills"]} == {
        "tally": False,
        "another": True,
    }


async def test_further_roots_count_for_their_cwd_as_the_users(tmp_path: Path) -> None:
    put_skill(tmp_path / "more", "extra")
    given = [{"cwd": str(tmp_path / "a"), "extraUserRoots": [str(tmp_path / "more")]}]
    async with session(tmp_path / "home") as peer:
        a, b = await listed(peer, tmp_path / "a", tmp_path / "b", perCwdExtraUserRoots=given)
        without = await entry(peer, tmp_path / "a")
    assert (a["skills"][0]["name"], a["skills"][0]["scope"]) == ("extra", "user")
    assert "extra" not in names(b)
    assert names(without) == []


async def test_a_further_root_that_is_not_absolute_is_refused_and_named(tmp_path: Path) -> None:
    given = [{"cwd": str(tmp_path), "extraUserRoots": ["/ok", "some/where"]}]
    async with session(tmp_path / "home") as peer:
        answer = await peer.request("skills/list", {"perCwdExtraUserRoots": given})
    assert answer["error"]["code"] == -32602
    assert "perCwdExtraUserRoots[0].extraUserRoots" in answer["error"]["message"]
    assert "some/where" in answer["error"]["message"]


async def test_one_folder_that_is_two_scopes_is_listed_once(tmp_path: Path) -> None:
    put_skill(project(tmp_path), "tally")
    async with session(tmp_path / ".agent") as peer:
        found = await entry(peer, tmp_path)
    assert [(one["name"], one["scope"]) for one in found["skills"]] == [("tally", "repo")]


async def test_skills_of_one_name_are_all_listed(tmp_path: Path) -> None:
    put_skill(project(tmp_path), "tally")
    put_skill(tmp_path / "home" / "skills", "tally")
    async with session(tmp_path / "home") as peer:
        found = await entry(peer, tmp_path)
    assert [(one["name"], one["scope"]) for one in found["skills"]] == [
        ("tally", "repo"),
        ("tally", "user"),
    ]


@pytest.mark.parametrize("cwd", ["a\0b", "/" + "x" * 5000])
async def test_an_invalid_path_is_refused(cwd: str, tmp_path: Path) -> None:
    async with session(tmp_path) as peer:
        first = await peer.request("skills/list", {"cwds": [cwd]})
        extra = [{"cwd": str(tmp_path), "extraUserRoots": [f"/{cwd}"]}]
        second = await peer.request("skills/list", {"perCwdExtraUserRoots": extra})
    assert [one["error"]["code"] for one in (first, second)] == [-32602, -32602]


async def test_roots_for_another_folder_change_nothing(tmp_path: Path) -> None:
    put_skill(tmp_path / "more", "extra")
    extra = [{"cwd": str(tmp_path / "b"), "extraUserRoots": [str(tmp_path / "more")]}]
    async with session(tmp_path / "home") as peer:
        found = await entry(peer, tmp_path / "a", perCwdExtraUserRoots=extra)
    assert names(found) == []
