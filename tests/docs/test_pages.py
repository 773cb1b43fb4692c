"""The documents are whole: links lead somewhere, targets exist, examples load, nothing is stale."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
from markdown_pages import PAGES, ROOT, anchors, blocks, links

from harness.client.target.profile import Bounds, Deviation, Profile, builtin_names, parse_profile
from harness.judge.rules.discovery import all_rules
from harness.model.parts import Part
from harness.model.script import ModelStep
from harness.play.lexicon import protocol_lexicon
from harness.protocol.spec.findings import finding_kinds
from harness.protocol.spec.loading import load_book
from harness.scenario.bundled import bundled_folder
from harness.scenario.client_steps import ClientStep, Wait
from harness.scenario.loader import find_scenarios, load, scenario_id
from harness.scenario.model import Scenario, Settings
from harness.search.releases.matrix_file import parse_matrix
from tools.docs import pages as generated
from tools.examples import is_family

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.M))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    dead: list[str] = []
    for link in links(page):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert not dead


def test_pages_that_a_message_names_are_there() -> None:
    """Messages send the user to pages: `harness docs servers#model-api`."""
    named: set[str] = set()
    for module in [*(ROOT / "harness").rglob("*.py"), *(ROOT / "reference_server").rglob("*.py")]:
        named |= set(re.findall(r"harness docs ([a-z-]+(?:#[a-z.-]+[a-z])?)", module.read_text()))
    assert {"agent-server-fixture", "servers"} <= named
    for one in named:
        name, _, anchor = one.partition("#")
        page = ROOT / "docs" / f"{name}.md"
        assert page.exists(), one
        assert not anchor or anchor in anchors(page), one


def test_the_pages_link_to_each_other() -> None:
    assert sum(len(links(page)) for page in PAGES) > 15
    linked = {(page.parent / link).resolve() for page in PAGES for link in links(page)}
    pages = {page for page in PAGES if page.parent == ROOT / "docs"}
    assert pages <= linked, "a page of docs/ that no other page names is not found"


@pytest.mark.parametrize("name", generated())
def test_generated_pages_are_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text("utf-8") == generated()[name](), "`make docs` writes it anew"


def test_a_script_empties_the_file_of_its_background_command_before_it_reads_it() -> None:
    """The shell opens that file in the background, so a second run would read the first one's."""
    names: set[str] = set()
    for block in (block for page in PAGES for block in blocks(page) if block.runnable):
        for line in re.finditer(r"(>+) ?(\S+) &$", block.body, re.M):
            name = line[2]
            assert f"\n: > {name}\n" in block.body[: line.start()], block.place
            assert line[1] == ">>", f"{block.place}: it empties {name} again, perhaps later"
            names.add(name)
    assert "verdict.txt" in names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_make_targets_of_a_page_exist(page: Path) -> None:
    shell = "\n".join(block.body for block in blocks(page) if block.language == "sh")
    named = set(re.findall(r"^make ([a-z]+)", shell, re.M))
    named |= set(re.findall(r"`make ([a-z]+)`", page.read_text("utf-8")))
    assert named <= TARGETS


def test_the_ci_calls_what_the_readme_calls() -> None:
    first = next(block for block in blocks(ROOT / "README.md") if "make demo" in block.body)
    promised = set(re.findall(r"^make ([a-z]+)", first.body, re.M))
    called = set(re.findall(r"^ *make ([a-z]+)", (ROOT / ".ci/run").read_text("utf-8"), re.M))
    assert promised == {"demo", "test", "all", "real", "site"}
    # `make all` has the tests of `make test`.
    assert promised - {"test"} <= called


def test_every_target_of_the_makefile_says_what_it_does() -> None:
    described = set(re.findall(r"^([a-z]+):.*## \S", MAKEFILE, re.M))
    assert described == TARGETS
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.M)
    assert phony is not None
    assert set(phony[1].split()) == TARGETS


_YAML = [block for page in PAGES for block in blocks(page) if block.language == "yaml"]


@pytest.mark.parametrize("block", _YAML, ids=lambda block: block.place)
def test_yaml_examples_load(block, tmp_path: Path) -> None:
    book = load_book()
    kind = "family" if is_family(block.body) else "scenario"
    path = tmp_path / f"example.{kind}.yaml"
    path.write_text(block.body, "utf-8")
    for _, file in find_scenarios([path]):
        loaded = load(
            file,
            rules=all_rules(),
            capabilities=[one.id for one in book.capabilities],
            lexicon=protocol_lexicon(),
            clientless=True,
        )
        scenario = loaded.scenario
        assert scenario.client or scenario.model or scenario.default_script


_TOML = [
    block
    for page in PAGES
    for block in blocks(page)
    # That one is a server's, and compared with what a server finds by test_servers_page.
    if block.language == "toml" and not block.body.startswith("# config.toml\n")
]


@pytest.mark.parametrize("block", _TOML, ids=lambda block: block.place)
def test_toml_examples_load(block) -> None:
    if "[[target]]" in block.body:
        assert parse_matrix(block.body, block.place).target
        return
    text = block.body if "name =" in block.body else f'name = "example"\n{block.body}'
    profile = parse_profile(text, block.place)
    for deviation in profile.deviations:
        assert deviation.rule in all_rules() or deviation.rule.startswith("scenario.")


def _keys(model: type) -> set[str]:
    fields = model.model_fields  # type: ignore[attr-defined]
    return {field.alias or name for name, field in fields.items()}


def _members(union: object) -> set[str]:
    """The key of each step or part of a tagged union."""
    choices = union.__origin__.__args__  # type: ignore[attr-defined]
    return {key for choice in choices for key in _keys(choice.__origin__)}


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("scenarios", _keys(Scenario)),
        ("scenarios", _keys(ModelStep)),
        ("scenarios", _keys(Settings)),
        ("scenarios", _keys(Wait)),
        ("scenarios", _members(ClientStep)),
        ("scenarios", _members(Part)),
        ("profiles", _keys(Profile)),
        ("profiles", _keys(Bounds)),
        ("profiles", _keys(Deviation)),
        ("profiles", set(builtin_names())),
    ],
)
def test_a_format_is_described_whole(page: str, names: set[str]) -> None:
    text = (ROOT / f"docs/{page}.md").read_text("utf-8")
    described = set(re.findall(r"`([A-Za-z_.0-9-]+):?`", text))
    assert names
    assert names - described == set()


# Events of the model's API, which look like rules of the family `response`.
_EVENTS = {"response.created", "response.completed", "response.failed"} | {
    *("thread.started", "turn.started", "turn.completed", "turn.failed"),
    *("item.started", "item.updated", "item.completed"),
}
# Files that look like findings.
_FILES = {"setup.py", "setup.cfg", "turn.py"}


def test_every_rule_and_finding_that_a_document_names_exists() -> None:
    known = {*all_rules(), *finding_kinds()}
    families = {one.split(".")[0] for one in known if "." in one}
    named = {
        f"{family}.{slug}"
        for page in PAGES
        for family, slug in re.findall(r"`([a-z-]+)\.([a-z-]+)`", page.read_text("utf-8"))
        if family in families and (family, slug) != ("harness", "wire")
    }
    assert len(named) > 20
    book = load_book()
    rows = {row.id for row in (*book.requirements, *book.unspecified)}
    assert named <= known | _EVENTS | _FILES | rows
    assert not (_EVENTS | _FILES) & known


def _not_there(changelog: str, ids: set[str]) -> set[str]:
    """The scenarios, or groups of them, that a changelog names and that are not there.

    An entry that says "renamed" or "removed" may name what has left.
    """
    areas = {one.split("/")[0] for one in ids}
    entries = re.split(r"^(?:- |#)", changelog, flags=re.M)
    named = {
        name
        for entry in entries
        if not re.search(r"\b(renamed|removed)\b", entry)
        for name in re.findall(r"`([a-z-]+/[a-z0-9/*-]+)`", entry)
    }
    return {
        name
        for name in named
        if name.split("/")[0] in areas and not any(fnmatch(one, name) for one in ids)
    }


def test_every_scenario_that_the_changelog_names_exists_or_is_said_to_have_left() -> None:
    folder = bundled_folder()
    ids = {scenario_id(path, folder) for _, path in find_scenarios([folder])}
    assert _not_there((ROOT / "CHANGELOG.md").read_text("utf-8"), ids) == set()
    written = "- `turns/plain-turn` and `turns/gone`\n- `approvals/none-*`\n- `thread/read`\n"
    assert _not_there(written, ids) == {"turns/gone", "approvals/none-*"}
    assert _not_there("- `turns/gone` is renamed `turns/plain-turn`\n", ids) == set()


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md", "CHANGELOG.md"])
def test_first_pages_stay_short(page: str) -> None:
    assert len((ROOT / page).read_text("utf-8").splitlines()) <= 150


def test_readme_has_one_picture_with_words_for_it() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    ((words, picture),) = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", text)
    assert len(words) > 40
    assert (ROOT / picture).stat().st_size < 200_000


def test_decisions_are_numbered_without_gaps_and_say_what_would_change_them() -> None:
    decisions = sorted((ROOT / "docs/adr").glob("*.md"))
    numbers = [int(path.name[:4]) for path in decisions]
    assert numbers == list(range(1, len(decisions) + 1))
    for path in decisions:
        text = path.read_text("utf-8")
        assert text.startswith(f"# {path.name[:4]}. ")
        for heading in ("## Context", "## Options", "## Choice", "## What would change our mind"):
            assert heading in text, f"{path.name}: {heading}"
