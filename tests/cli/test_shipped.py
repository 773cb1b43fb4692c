"""Shipped files to read and try: documents, example servers, bundled scenarios; the version."""

import re
import tomllib
from pathlib import Path

import pytest
from command_line import ROOT, call

import harness
from harness.cli.commands import shipped
from harness.errors import UsageError
from harness.protocol.spec.loading import load_book

SERVERS = ROOT / "fixtures/servers"


@pytest.mark.slow
def test_harness_and_agent_give_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    version = project["project"]["version"]
    assert call("harness", "--version").out == f"harness {version}"
    assert call("agent", "--version").out == f"agent {version}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"), [("harness", "harness"), ("reference_server", "agent")]
)
def test_the_commands_are_modules_too(module: str, name: str) -> None:
    said = call("python", "-m", module, "--version")
    assert said.status == 0
    assert said.out == call(name, "--version").out


@pytest.mark.slow
def test_the_examples_are_listed_with_what_they_are() -> None:
    said = call("harness", "example")
    assert said.status == 0
    *listed, blank, how = said.out.splitlines()
    assert [line.split()[0] for line in listed] == [*shipped.EXAMPLES, *shipped.SDKS]
    assert all(len(line.split()) > 5 for line in listed)
    assert (blank, how) == ("", "harness example minimal -o server.py   writes one")


@pytest.mark.slow
def test_an_example_is_printed_as_it_is() -> None:
    said = call("harness", "example", "minimal")
    assert said.out.split("\n") == (SERVERS / "minimal.py").read_text("utf-8").rstrip().split("\n")


@pytest.mark.slow
def test_an_example_is_written_to_a_file_and_never_over_one(tmp_path: Path) -> None:
    words = ["harness", "example", "minimal", "-o", "server.py"]
    assert call(*words, cwd=tmp_path).out == "server.py written"
    path = tmp_path / "server.py"
    assert path.read_text("utf-8") == (SERVERS / "minimal.py").read_text("utf-8")
    path.write_text("mine")
    said = call(*words, cwd=tmp_path)
    assert said.status == 2
    assert said.err == (
        "harness: server.py: there is such a file; give another name, or --force to write over it"
    )
    assert path.read_text() == "mine"
    assert call(*words, "--force", cwd=tmp_path).status == 0
    assert path.read_text("utf-8") != "mine"


def test_an_example_is_written_into_a_folder_under_its_own_name(tmp_path: Path) -> None:
    assert shipped.write_example("twice", tmp_path) == [tmp_path / "twice.py"]
    assert (tmp_path / "twice.py").is_file()


def test_an_example_of_several_files_is_written_into_a_folder_that_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "node"
    written = shipped.write_example("node-client", folder)
    assert sorted(written) == sorted(folder.iterdir())
    assert {path.name for path in written} >= {"package.json", "client.test.mjs"}
    written[0].write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="there is such a file"):
        shipped.write_example("node-client", folder)
    assert written[0].read_text("utf-8") == "mine"
    shipped.write_example("node-client", folder, force=True)
    assert written[0].read_text("utf-8") != "mine"


@pytest.mark.parametrize("name", shipped.SDKS)
def test_an_sdk_is_written_whole_and_nothing_else(name: str, tmp_path: Path) -> None:
    folder, parts = shipped.SDKS[name]
    written = shipped.write_example(name, tmp_path / "it")
    places = {path.relative_to(tmp_path / "it") for path in written}
    assert {place.parts[0] for place in places} == set(parts)
    assert not [place for place in places if "__pycache__" in place.parts]
    for place in places:
        assert (tmp_path / "it" / place).read_bytes() == (ROOT / folder / place).read_bytes()
    with pytest.raises(UsageError, match="there is such a file"):
        shipped.write_example(name, tmp_path / "it")


@pytest.mark.parametrize("kind", ["python", "typescript"])
def test_the_page_of_an_sdk_is_among_the_documents_with_an_install_line(kind: str) -> None:
    text = (ROOT / "sdk" / kind / "README.md").read_text("utf-8")
    for name in (f"sdk/{kind}", f"sdk/{kind}/README.md", f"../sdk/{kind}/README.md"):
        assert shipped.document_text(name) == text
    assert f"harness example {kind}-sdk -o agent-sdk" in text


def test_no_page_or_message_has_an_install_line_of_a_package_that_is_on_no_index() -> None:
    own = "agent-sdk|agent-session-harness|agent_sdk"
    pattern = (
        rf"(?:pip|pipx|npm|uv)[\w ]* install (?:-\S+ )*[\"']?(?:{own})(?![-\w.]*\.(?:whl|tgz))"
    )
    modules = {str(path): path for path in Path(harness.__file__).parent.rglob("*.py")}
    for name, path in {**shipped.documents(), **modules}.items():
        assert re.findall(pattern, path.read_text("utf-8")) == [], name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (
            ["example", "minimum"],
            "unknown example 'minimum'; did you mean 'minimal'? (harness example)",
        ),
        (["docs", "profile"], "unknown page 'profile'; did you mean 'profiles'? (harness docs)"),
        (
            ["docs", "docs/reports.md#verdict"],
            "docs/reports.md#verdict: unknown anchor 'verdict'; did you mean 'verdicts'?",
        ),
        (
            ["scenario", "show", "turns/plain"],
            "unknown scenario 'turns/plain'; did you mean 'turns/plain-turn'? "
            "(harness scenario list)",
        ),
        (["example", "minimal", "-o", "no/x.py"], "no/x.py: No such file or directory"),
    ],
)
def test_a_name_that_does_not_exist_is_answered_with_the_nearest(
    words: list[str], answer: str, tmp_path: Path
) -> None:
    said = call("harness", *words, cwd=tmp_path)
    assert (said.status, said.out, said.err) == (2, "", f"harness: {answer}")


@pytest.mark.slow
def test_to_without_an_example_is_refused(tmp_path: Path) -> None:
    said = call("harness", "example", "--output", "server.py", cwd=tmp_path)
    assert said.status == 2
    assert "name an example to write" in said.err


@pytest.mark.slow
def test_every_page_of_docs_is_listed_with_its_title() -> None:
    lines = call("harness", "docs").out.splitlines()
    listed = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
    pages = {
        path.relative_to(ROOT / "docs").with_suffix("").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
    }
    assert pages < set(listed)
    assert listed["reports"] == "Reading a report"


@pytest.mark.slow
def test_a_page_is_printed_whole_and_its_place_can_be_asked_for() -> None:
    page = ROOT / "docs/reports.md"
    expected = [line.rstrip() for line in page.read_text("utf-8").splitlines()]
    assert call("harness", "docs", "reports").out.splitlines() == expected
    assert call("harness", "docs", "reports", "--path").out == str(page)
    assert call("harness", "docs", "--path").out == str(ROOT)


@pytest.mark.parametrize("name", ["readme", "README.md", "docs/profiles.md", "./docs/profiles.md"])
def test_a_page_is_found_as_links_and_readers_name_it(name: str) -> None:
    assert shipped.document_text(name).startswith("# ")


def test_a_part_of_a_page_ends_where_the_next_begins() -> None:
    part = shipped.document_text("docs/reports.md#exit-status").splitlines()
    assert part[0] == "## Exit status"
    assert "## Files" not in part
    assert part[-1] == "NOT_EXERCISED, NOT_APPLICABLE and INFO never make a run fail."


def test_a_comment_in_an_example_ends_no_part() -> None:
    """`# my/hello.scenario.yaml` in a block of YAML looks like a heading."""
    part = shipped.document_text("tour#writing-a-scenario")
    assert part.splitlines()[0] == "## Writing a scenario"
    assert "harness scenario validate" in part


def test_each_requirement_that_a_finding_cites_can_be_read_by_its_anchor() -> None:
    for row in load_book().requirements[::40]:
        part = shipped.document_text(f"docs/protocol.md#{row.id}").splitlines()
        assert part[0].startswith("#")
        assert part[2].startswith(f'- <a id="{row.id}"></a>')
        assert sum(line.startswith("- ") for line in part) == 1


def test_pages_and_examples_that_advice_names_exist() -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / "harness").rglob("*.py")]
    pages = {one for text in texts for one in re.findall(r"harness docs ([a-z][\w/#-]+)", text)}
    examples = {one for text in texts for one in re.findall(r"harness example ([a-z]\w+)", text)}
    assert "servers#model-api" in pages
    assert all(shipped.document_text(page) for page in pages)
    assert "minimal" in examples
    assert all(shipped.example_text(name) for name in examples)


@pytest.mark.slow
def test_a_bundled_scenario_is_printed_by_its_id() -> None:
    said = call("harness", "scenario", "show", "turns/plain-turn")
    text = (ROOT / "scenarios/turns/plain-turn.scenario.yaml").read_text("utf-8")
    assert said.out.splitlines() == text.splitlines()
