"""SKILL.md and its companions: their parts, and the reports about invalid ones."""

from pathlib import Path
from typing import Any

import pytest
from session_peer import session
from skill_folders import entry, plain, project, put_skill

from reference_server.skills.companions import CONFIG_LIMIT
from reference_server.skills.document import (
    DESCRIPTION_LIMIT,
    NAME_LIMIT,
    outline_of,
    read_document,
)
from reference_server.skills.front_matter import FRONT_MATTER_LIMIT
from reference_server.skills.scan import FILE_LIMIT
from reference_server.skills.skill import SkillError

TITLES = {
    "a heading": ("# tally\n\nCounts.\n", "tally", "Counts."),
    "an underlined heading": ("tally\n=====\nCounts.\n", "tally", "Counts."),
    "closed by signs": ("# tally ##\n\nCounts.", "tally", "Counts."),
    "with a sign": ("# tally #1\n\nCounts.", "tally #1", "Counts."),
    "more than one line": (
        "# tally\nCounts\nwhat is\n  there.\n\nMore.",
        "tally",
        "Counts what is there.",
    ),
    "the first heading": ("# tally\n\nCounts.\n\n# other\n\nNot this.", "tally", "Counts."),
    "after a paragraph": ("Before.\n\n# tally\n\nCounts.", "tally", "Counts."),
    "after a lower heading": ("## Instructions\n\nDo.\n\n# tally\n\nCounts.", "tally", "Counts."),
    "not in a fence": ("```\n# no\n```\n\n# tally\n\nCounts.", "tally", "Counts."),
    "not in a fence of another kind": ("~~~sh\n# no\n~~~\n# tally\n\nCounts.", "tally", "Counts."),
    "not in a quotation": ("> # no\n\n# tally\n\nCounts.", "tally", "Counts."),
    "not in a comment": ("<!--\n# no\n-->\n\n# tally\n\nCounts.", "tally", "Counts."),
    "not in code": ("    # no\n\n# tally\n\nCounts.", "tally", "Counts."),
    "no list for a description": ("# tally\n\n- one\n\nCounts.", "tally", "Counts."),
    "instructions describe it": ("# tally\n\n## Instructions\n\nCount.", "tally", "Count."),
    "of any case": ("# tally\n\n## INSTRUCTIONS\n\nCount.", "tally", "Count."),
    "examples do not": ("# tally\n\n## Examples\n\nThree.", "tally", ""),
    "no description": ("# tally\n", "tally", ""),
    "CR LF": ("# tally\r\n\r\nCounts.\r\n", "tally", "Counts."),
    "with spaces": ("#   Spell   Check  \n\nSpells.", "Spell Check", "Spells."),
    "markup as it is": ("# `tally` *it*\n\nCounts **all**.", "`tally` *it*", "Counts **all**."),
}


@pytest.mark.parametrize("case", TITLES)
def test_the_title_names_a_skill_and_the_paragraph_below_describes_it(case: str) -> None:
    text, name, description = TITLES[case]
    document = read_document(text)
    assert (document.name, document.description) == (name, description)


FRONT = {
    "both": ("name: a\ndescription: b", "a", "b"),
    "quoted": ("name: \"a: 1\"\ndescription: 'b # c'", "a: 1", "b # c"),
    "folded": ("name: a\ndescription: >\n  b\n  c\n", "a", "b c"),
    "a number": ("name: 12\ndescription: 3.50", "12", "3.50"),
    "name alone": ("name: a", "a", "Counts."),
    "description alone": ("description: b", "tally", "b"),
    "null": ("name: ~\ndescription:", "tally", "Counts."),
    "empty": ("", "tally", "Counts."),
    "a comment alone": ("# nothing", "tally", "Counts."),
    "other keys": ("license: MIT\nmetadata: {a: [1, {name: no}]}\nname: a", "a", "Counts."),
    "flow": ("{name: a, description: b}", "a", "b"),
    "many lines": ("name: a\ndescription: |\n  b\n\n  c", "a", "b c"),
}


@pytest.mark.parametrize("case", FRONT)
def test_the_front_matter_counts_before_the_headings(case: str) -> None:
    matter, name, description = FRONT[case]
    document = read_document(f"---\n{matter}\n---\n\n# tally\n\nCounts.\n")
    assert (document.name, document.description) == (name, description)
    assert document.text == "# tally\n\nCounts.\n"


def laughs() -> str:
    rows = [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 9)]
    return "\n".join(["x0: &x0 [ha]", *rows])


BROKEN = {
    "no name": ("Counts.\n", "has no name; begin it with a heading"),
    "an empty heading": ("#\n\nCounts.\n", "has no name"),
    "empty": ("", "has no name"),
    "a long name": (f"# {'x' * (NAME_LIMIT + 1)}\n", "its name has more than 100 characters"),
    "a bell": ("# ta\x07lly\n", "its name holds a character that cannot be seen"),
    "writing backwards": ("# ta\u202elly\n", "its name holds a character that cannot be seen"),
    "not closed": ("---\nname: a\n# tally\n", "line 1: the front matter is not closed"),
    "no mapping": ("---\n- a\n---\n", "line 2, column 1: the front matter holds no keys"),
    "a word": ("---\nname\n---\n", "line 2, column 1: the front matter holds no keys"),
    "a colon too many": ("---\nname: a\ndescription: b: c\n---\n", "line 3, column 15: mapping"),
    "a tabulator": ("---\nname: a\n\tb: c\n---\n", "line 3, column 1: found a tab"),
    "a list as a name": ("---\nname: [a]\n---\n", "line 2, column 7: `name` must be a text"),
    "a mapping as a name": ("---\nname: {a: b}\n---\n", "line 2, column 7: `name` must be a text"),
    "a key twice": ("---\nname: a\nname: b\n---\n", "line 3, column 1: `name` is there twice"),
    "a list as a key": ("---\n? [a]\n: b\n---\n", "line 2, column 3: a key must be a text"),
    "an alias": ("---\na: &a x\nname: *a\n---\n", "line 3, column 7: aliases"),
    "a billion laughs": (f"---\n{laughs()}\nname: a\n---\n", "line 3, column 10: aliases"),
    "deep": (f"---\na: {'[' * 50}{']' * 50}\n---\n", "is nested more than 16 deep"),
    "a control character": ("---\nname: \x01\n---\n", "the front matter is not YAML: "),
    "two documents": ("---\nname: a\n--- b\n---\n", "line 3"),
    "large": (
        f"---\n#{'x' * FRONT_MATTER_LIMIT}\n---\n# a\n",
        "the front matter has more than 16 KiB",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_mistakes_in_a_document_are_reported_with_their_place(case: str) -> None:
    text, words = BROKEN[case]
    with pytest.raises(SkillError) as caught:
        read_document(text)
    assert words in str(caught.value)


def test_the_sections_are_known_by_their_headings() -> None:
    outline = outline_of(plain("tally"))
    assert outline.sections == {
        "Instructions": "Say vermilion tally.",
        "Examples": "One.",
        "Dependencies": "None.",
    }


def test_a_long_description_is_cut() -> None:
    found = read_document(f"# a\n\n{'x' * 5000}\n").description
    assert len(found) == DESCRIPTION_LIMIT
    assert found.endswith("x…")


async def told(home: Path, cwd: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """List a project; gives its skills, and the errors by the path within it."""
    async with session(home) as peer:
        found = await entry(peer, cwd)
    base = f"{project(cwd)}/"
    return found["skills"], {
        one["path"].removeprefix(base): one["message"] for one in found["errors"]
    }


@pytest.mark.anyio
async def test_companions_say_how_a_skill_is_shown(tmp_path: Path) -> None:
    put_skill(
        project(tmp_path),
        "tally",
        icon_svg="<svg/>",
        icon__large_svg="<svg/>",
        config_toml='display_name = "Tally"\nshort_description = "Counts"\n'
        'brand_color = "#12abEF"\ndefault_prompt = "$tally this"\n',
    )
    skills, errors = await told(tmp_path / "home", tmp_path)
    assert errors == {}
    assert skills[0]["interface"] == {
        "displayName": "Tally",
        "shortDescription": "Counts",
        "iconSmall": "icon.svg",
        "iconLarge": "icon-large.svg",
        "brandColor": "#12abEF",
        "defaultPrompt": "$tally this",
    }


CONFIGS = {
    "no colour": ('brand_color = "red"', "`brand_color` must look like \"#12AB9F\", not 'red'"),
    "a short colour": ('brand_color = "#123"', "`brand_color` must look like"),
    "a long colour": ('brand_color = "#12345678"', "`brand_color` must look like"),
    "a line after it": ('brand_color = "#123456\\n"', "`brand_color` must look like"),
    "a number": ("display_name = 3", "`display_name` must be a text; put it in quotes"),
    "a long text": (f'default_prompt = "{"x" * 5000}"', "`default_prompt` has more than 2048"),
    "no TOML": ('display_name = "a"\nbrand_color = x', "line 2, column 15: Invalid value; mend"),
    "no end": ("display_name =", "is not TOML: Invalid value (at end of document); mend it"),
    "a spelling": (
        'brand_colour = "#123456"',
        "there is no key `brand_colour`; did you mean `brand_c",
    ),
    "as on the wire": (
        'brandColor = "#123456"',
        "there is no key `brandColor`; did you mean `brand_",
    ),
    "large": (f"#{'x' * CONFIG_LIMIT}", "is larger than 16 KiB"),
    "deep": (f"x = {'[' * 10_000}", "is not TOML"),
    "a long number": (f"x = {'9' * 10_000}", "is not TOML"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", CONFIGS)
async def test_a_broken_config_is_told_and_loses_no_skill(case: str, tmp_path: Path) -> None:
    text, words = CONFIGS[case]
    put_skill(project(tmp_path), "tally", config_toml=text, icon_svg="<svg/>")
    skills, errors = await told(tmp_path / "home", tmp_path)
    assert [one["interface"] for one in skills] == [{"iconSmall": "icon.svg"}]
    assert list(errors) == ["tally/config.toml"]
    assert errors["tally/config.toml"].startswith(words)


@pytest.mark.anyio
async def test_of_a_config_the_good_keys_count_beside_the_bad(tmp_path: Path) -> None:
    put_skill(project(tmp_path), "t", config_toml='display_name = "T"\nbrand_color = 1\nother = 2')
    skills, errors = await told(tmp_path / "home", tmp_path)
    assert skills[0]["interface"] == {"displayName": "T"}
    assert errors == {"t/config.toml": "`brand_color` must be a text; put it in quotes"}


@pytest.mark.anyio
async def test_a_skill_without_a_description_is_listed_and_told(tmp_path: Path) -> None:
    put_skill(project(tmp_path), "tally", text="# tally\n")
    skills, errors = await told(tmp_path / "home", tmp_path)
    assert [one["description"] for one in skills] == [""]
    assert errors["tally/SKILL.md"].startswith("has no description, so it is listed without")


@pytest.mark.anyio
async def test_one_broken_skill_is_told_and_the_others_are_listed(tmp_path: Path) -> None:
    put_skill(project(tmp_path), "a", text="")
    put_skill(project(tmp_path), "b")
    put_skill(project(tmp_path), "c").write_bytes(b"# c\n\n\xff\n")
    put_skill(project(tmp_path), "d", text="# d\n\n" + "x" * FILE_LIMIT)
    put_skill(project(tmp_path), "e", text="---\nname: a: b\n---\n")
    skills, errors = await told(tmp_path / "home", tmp_path)
    assert [one["name"] for one in skills] == ["b"]
    assert {path: words.split(";")[0] for path, words in errors.items()} == {
        "a/SKILL.md": "has no name",
        "c/SKILL.md": "line 3: is not UTF-8",
        "d/SKILL.md": "is larger than 128 KiB",
        "e/SKILL.md": "line 2, column 8: mapping values are not allowed in this context",
    }


@pytest.mark.anyio
async def test_a_mark_of_the_encoding_is_no_part_of_the_text(tmp_path: Path) -> None:
    put_skill(project(tmp_path), "tally").write_bytes(
        b"\xef\xbb\xbf---\nname: tally\n---\n# x\n\nCounts."
    )
    skills, errors = await told(tmp_path / "home", tmp_path)
    assert ([one["name"] for one in skills], errors) == (["tally"], {})
