"""Folders of skills with anything in them: the listing is bounded, and lists what it can."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from growth import Job, exponent
from session_peer import session
from skill_folders import entry, names, plain, project, put_skill

from reference_server.skills import scan as scanning
from reference_server.skills.document import read_document
from reference_server.skills.invoking import names_in, words_after_signs
from reference_server.skills.scan import DEPTH, MAX_ENTRIES, MAX_SKILLS, ScanResult, scan
from tests.sampling import one_in

BOUND = 15.0


def scanned(root: Path) -> tuple[list[str], dict[str, str]]:
    """Look at a folder of skills; gives the names, and what is told of paths below it."""
    found: ScanResult = scan(str(root), "user")
    assert len({one.path for one in found.problems}) == len(found.problems)
    return [one.name for one in found.skills], {
        os.path.relpath(one.path, root): one.message for one in found.problems
    }


def a_pipe(root: Path) -> None:
    (root / "x").mkdir()
    os.mkfifo(root / "x" / "SKILL.md")


def a_folder(root: Path) -> None:
    (root / "x" / "SKILL.md").mkdir(parents=True)


def a_device(root: Path) -> None:
    (root / "x").mkdir()
    (root / "x" / "SKILL.md").symlink_to("/dev/zero")


def the_kernels(root: Path) -> None:
    (root / "x").mkdir()
    (root / "x" / "SKILL.md").symlink_to("/proc/self/environ")


def another_name(root: Path) -> None:
    (root / "key").write_text("# key\n\nSecret.\n")
    (root / "x").mkdir()
    (root / "x" / "SKILL.md").symlink_to(root / "key")


def nothing(root: Path) -> None:
    (root / "x").mkdir()
    (root / "x" / "SKILL.md").symlink_to(root / "nowhere")


def itself(root: Path) -> None:
    (root / "x").mkdir()
    (root / "x" / "SKILL.md").symlink_to("SKILL.md")


def a_gigabyte(root: Path) -> None:
    (root / "x").mkdir()
    with (root / "x" / "SKILL.md").open("wb") as file:
        file.truncate(2**30)


FILES: dict[Callable[[Path], None], str] = {
    a_pipe: "is not a regular file; put one in its place",
    a_folder: "is not a regular file; put one in its place",
    a_device: "is not a regular file; put one in its place",
    the_kernels: "is not a regular file; put one in its place",
    another_name: "is a link to {root}/key, which is not called SKILL.md; copy the file",
    nothing: "cannot be read: No such file or directory; make it a readable file, or remove it",
    itself: "cannot be read: Too many levels of symbolic links; make it a readable file, or remove",
    a_gigabyte: "is larger than 128 KiB; move parts of it to other files",
}


@pytest.mark.parametrize("make", FILES)
def test_a_file_that_is_not_a_skill_is_reported_and_the_others_are_found(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    put_skill(tmp_path, "a")
    put_skill(tmp_path, "z")
    make(tmp_path)
    found, told = scanned(tmp_path)
    assert found == ["a", "z"]
    assert list(told) == ["x/SKILL.md"]
    assert told["x/SKILL.md"].startswith(FILES[make].format(root=tmp_path))


@pytest.mark.parametrize("make", [a_pipe, a_device, a_folder])
def test_a_companion_that_is_no_file_is_told_and_loses_no_skill(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path)
    file = tmp_path / "x" / "SKILL.md"
    for name in ("icon.svg", "config.toml"):
        if make is a_folder:
            (tmp_path / "x" / name).mkdir()
        elif make is a_pipe:
            os.mkfifo(tmp_path / "x" / name)
        else:
            (tmp_path / "x" / name).symlink_to("/dev/zero")
    file.rmdir() if make is a_folder else file.unlink()
    file.write_text(plain("x"))
    found, told = scanned(tmp_path)
    assert found == ["x"]
    assert {path: words.split(";")[0] for path, words in told.items()} == {
        "x/icon.svg": "is not a regular file",
        "x/config.toml": "is not a regular file",
    }


def test_links_that_lead_in_circles_end(tmp_path: Path) -> None:
    put_skill(tmp_path / "group", "a")
    (tmp_path / "group" / "up").symlink_to(tmp_path)
    (tmp_path / "group" / "self").symlink_to(tmp_path / "group")
    (tmp_path / "self").symlink_to("self")
    found, told = scanned(tmp_path)
    assert found == ["a"]
    assert told == {"self": "cannot be followed: Too many levels of symbolic links; remove it"}


def test_a_folder_that_is_a_link_to_a_skill_is_one(tmp_path: Path) -> None:
    put_skill(tmp_path / "kept", "a")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "linked").symlink_to(tmp_path / "kept" / "a")
    assert scanned(tmp_path / "skills") == (["a"], {})


def test_skills_lie_in_groups_and_not_too_deep(tmp_path: Path) -> None:
    at = tmp_path
    for level in range(DEPTH + 2):
        put_skill(at, f"s{level}")
        at = at / "group"
    put_skill(tmp_path / "s0", "within a skill")
    put_skill(tmp_path / ".hidden", "of another program")
    assert sorted(scanned(tmp_path)[0]) == [f"s{level}" for level in range(DEPTH)]


def test_the_root_itself_can_be_a_skill(tmp_path: Path) -> None:
    put_skill(tmp_path, "a")
    assert scanned(tmp_path / "a") == (["a"], {})


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_a_file_of_nearly_that_name_is_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / name).write_text(plain("x"))
    found, told = scanned(tmp_path)
    assert found == []
    assert told == {f"x/{name}": "is not called SKILL.md, so it is no skill; rename it"}


def test_a_name_that_no_message_can_hold_is_told_in_one_that_can(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/\xff\xfe")
    put_skill(tmp_path, "a")
    found, told = scanned(tmp_path)
    assert found == ["a"]
    assert told == {"\\xff\\xfe": "has a name that is not UTF-8; rename it"}


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "skills").write_text("")
    found, told = scanned(tmp_path / "skills")
    assert (found, list(told)) == ([], ["."])
    assert told["."].startswith("is not a folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_skills_are_reported(tmp_path: Path) -> None:
    put_skill(tmp_path, "a").chmod(0)
    (tmp_path / "b").mkdir(0o000)
    _, told = scanned(tmp_path)
    assert {path: words.split(";")[1] for path, words in told.items()} == {
        "a/SKILL.md": " change its permissions",
        "b": " change its permissions",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "count"), one_in(2, [(50, 60), (MAX_ENTRIES, 2 * MAX_ENTRIES)], pytest.mark.attacks)
)
def test_a_folder_with_too_much_in_it_is_looked_at_in_part(
    most: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MAX_ENTRIES", most)
    put_skill(tmp_path, "a")
    (tmp_path / "b").mkdir()
    for number in range(count):
        (tmp_path / "b" / f"f{number}").touch()
    begun = time.monotonic()
    found, told = scanned(tmp_path)
    assert time.monotonic() - begun < scanning.SCAN_TIME + 1
    assert found == ["a"]
    assert list(told) == ["."]
    assert f"more than {most:,} files and folders" in told["."]


@pytest.mark.slow
def test_so_many_skills_are_found_and_no_more(tmp_path: Path) -> None:
    for number in range(MAX_SKILLS + 5):
        put_skill(tmp_path, f"s{number}", text=f"---\nname: s{number}\ndescription: d\n---\n")
    found, told = scanned(tmp_path)
    assert len(found) == MAX_SKILLS
    assert "more than 500 skills" in told["."]


@pytest.mark.slow
def test_so_many_mistakes_are_told_and_no_more(tmp_path: Path) -> None:
    for number in range(scanning.MAX_PROBLEMS + 5):
        put_skill(tmp_path, f"s{number}", text="")
    _, told = scanned(tmp_path)
    assert len(told) == scanning.MAX_PROBLEMS + 1
    assert "more mistakes than are told here" in told["."]


def test_the_time_of_a_folder_is_bounded_and_what_was_found_is_listed(tmp_path: Path) -> None:
    for name in "abcdef":
        put_skill(tmp_path, name)
    ticks = iter([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    found = scan(str(tmp_path), "user", lambda: next(ticks))
    assert [one.name for one in found.skills] == ["a", "b", "c"]
    assert "was not read to its end within 3 s" in found.problems[0].message


HOSTILE = {"lists": "- a\n", "lines": "a\n", "references": "[a]: b\n", "quotations": "> ", "[": "["}


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_of_a_skill_takes_long_to_read(unit: str) -> None:
    text = "# a\n\n" + HOSTILE[unit] * (scanning.FILE_LIMIT // len(HOSTILE[unit]))
    begun = time.process_time()
    assert read_document(text).name == "a"
    assert time.process_time() - begun < scanning.SCAN_TIME


TEXTS = {"signs": "$", "words": "$a ", "long names": "$a-", "beginnings": "$Spell Chec "}


@pytest.mark.slow
@pytest.mark.parametrize("unit", TEXTS)
def test_finding_names_costs_in_proportion_to_the_text(unit: str) -> None:
    known = ["a", "Spell Check", *(f"Spell Check {number}" for number in range(500))]

    def prepared(size: int) -> Callable[[], Job]:
        text = TEXTS[unit] * (size // len(TEXTS[unit]))

        def job() -> None:
            words_after_signs([text])
            names_in([text], known)

        return lambda: job

    assert any(exponent(prepared, 400_000) < 1.5 for _ in range(3))


@pytest.mark.anyio
async def test_a_zoo_in_every_scope_is_listed_within_its_time(tmp_path: Path) -> None:
    for root in (project(tmp_path), tmp_path / "home" / "skills", tmp_path / "more"):
        put_skill(root, f"good of {root.parent.name}")
        for number, make in enumerate(FILES):
            (root / f"{number}").mkdir()
            make(root / f"{number}")
    given = [{"cwd": str(tmp_path), "extraUserRoots": [str(tmp_path / "more")]}]
    async with session(tmp_path / "home") as peer:
        with anyio.fail_after(BOUND):
            found = await entry(peer, tmp_path, perCwdExtraUserRoots=given)
    assert len(names(found)) == 3
    assert sorted(one["path"] for one in found["errors"]) == sorted(
        f"{tmp_path}/{root}/{number}/x/SKILL.md"
        for root in (".agent/skills", "home/skills", "more")
        for number in range(len(FILES))
    )


@pytest.mark.anyio
async def test_more_folders_than_one_request_may_ask_for_are_refused(tmp_path: Path) -> None:
    async with session(tmp_path) as peer:
        many = [str(tmp_path)] * 101
        first = (await peer.request("skills/list", {"cwds": many}))["error"]
        extra = [{"cwd": str(tmp_path), "extraUserRoots": many}]
        second = (await peer.request("skills/list", {"perCwdExtraUserRoots": extra}))["error"]
    assert first["message"] == "cwds: has more than 100 elements; ask for fewer at once"
    assert "perCwdExtraUserRoots[0].extraUserRoots: there are more than 100" in second["message"]
