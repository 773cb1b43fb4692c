"""Names of scenarios that a user may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.scenario.bundled import bundled_files
from harness.scenario.identity import SUFFIX
from harness.scenario.scenario_names import is_path, named_files, scenarios_by_name

GOOD = "title: Fine\nclient:\n  - start_thread: {as: t}\n"
TURNS = [file for id_, file in bundled_files().items() if id_.startswith("turns/")]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / f"hello{SUFFIX}").write_text(GOOD)
    (tmp_path / "sub").mkdir()
    return tmp_path


@pytest.mark.parametrize("word", ["turns", "turns/", "turns/*", "../turns/", "./turns"])
def test_a_folder_of_ids_names_all_below_it(word: str) -> None:
    assert list(scenarios_by_name(word).files) == TURNS
    assert len(TURNS) > 10


@pytest.mark.parametrize(
    "word", ["turns/plain-turn", "../turns/plain-turn", "turns/plain-turn.scenario.yaml"]
)
def test_an_id_names_its_file(word: str) -> None:
    named = scenarios_by_name(word)
    assert list(named.files) == [bundled_files()["turns/plain-turn"]]
    assert (named.action, named.position) == (None, "")


def test_bundled_names_all() -> None:
    assert list(scenarios_by_name("bundled").files) == list(bundled_files().values())


@pytest.mark.parametrize(
    ("word", "action", "position"),
    [
        ("turns/plain-turn@kill", "kill", ""),
        ("turns/plain-turn@interrupt@item:1:started", "interrupt", "item:1:started"),
    ],
)
def test_a_race_is_named_as_reports_print_it(word: str, action: str, position: str) -> None:
    named = scenarios_by_name(word)
    assert (named.action, named.position) == (action, position)


@pytest.mark.parametrize("here", [".", "sub", "my"])
@pytest.mark.parametrize("word", ["my/hello", "my", "my/*", "my/hello@kill"])
def test_own_ids_are_known_everywhere_in_the_project(
    word: str, here: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place / here)
    (file,) = scenarios_by_name(word).files
    assert file.resolve() == place / "my" / f"hello{SUFFIX}"


def test_a_folder_that_is_there_wins_over_ids(place: Path) -> None:
    (place / "turns").mkdir()
    own = place / "turns" / f"own{SUFFIX}"
    own.write_text(GOOD)
    assert is_path("turns")
    assert [file.resolve() for file in named_files(["turns"])] == [own]


def test_a_file_that_is_there_wins_over_an_id(place: Path) -> None:
    (place / "turns").mkdir()
    own = place / "turns" / f"plain-turn{SUFFIX}"
    own.write_text(GOOD)
    assert [file.resolve() for file in scenarios_by_name("turns/plain-turn").files] == [own]


def test_repetitions_are_left_out(place: Path) -> None:
    (place / "link").symlink_to("my")
    words = ["my", "my/hello", "link", str(place / "my"), f"my/hello{SUFFIX}"]
    assert len(named_files(words)) == 1


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("turns/plain-tur", "no such file or folder, and unknown scenario 'turns/plain-tur'; did"),
        ("plain-turn", "did you mean 'turns/plain-turn' or 'sdk-calls/plain-turn'?"),
        ("turn", "did you mean 'turns'?"),
        ("nothing/*", "no such file or folder, and unknown scenario 'nothing/*'"),
        ("turns/plain-turn@interupt", "unknown action 'interupt'; did you mean 'interrupt'?"),
        ("turns@kill", f"a race is of one scenario, and turns names {len(TURNS)}"),
        ("findings::setup.not-started", "a finding belongs to a whole run; name the scenarios"),
        ("sub", "sub: no file below this folder has a name that ends in .scenario.yaml"),
        ("foo.yaml", "the name of a scenario file ends in .scenario.yaml; rename it to foo.scen"),
        ("/no/such/*", "no such file or folder"),
    ],
)
def test_an_unknown_name_is_reported_with_what_to_do(word: str, answer: str, place: Path) -> None:
    (place / "foo.yaml").write_text(GOOD)
    with pytest.raises(UsageError) as caught:
        named_files([word])
    assert answer in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("here", [".", "sub"])
@pytest.mark.parametrize("word", ["my/helo", "mu/hello", "helo"])
def test_own_ids_are_among_those_that_may_be_meant(
    word: str, here: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place / here)
    with pytest.raises(UsageError, match="did you mean 'my/hello'"):
        scenarios_by_name(word)


@pytest.mark.parametrize(
    ("prefix", "here"),
    [("my/", "."), ("my/", "sub"), ("../my/", "sub"), ("", "my"), ("{place}/my/", "sub")],
)
def test_scenarios_beside_an_unknown_path_are_named(
    prefix: str, here: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place / here)
    prefix = prefix.format(place=place)
    for number in range(6):
        (place / "my" / f"{number}{SUFFIX}").write_text(GOOD)
    (place / "my" / "rows.family.yaml").write_text("")
    with pytest.raises(UsageError) as caught:
        named_files([f"{prefix}zzzzzzzz"])
    names = ", ".join(f"{prefix}{number}" for number in range(5))
    assert str(caught.value).endswith(f"; beside it: {names} and 3 more")


@pytest.mark.parametrize("word", ["{place}/my/helo", "{place}/my/helo.scenario.yaml"])
def test_mistyped_absolute_path_is_corrected(word: str, place: Path) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{place}/my/hello'"):
        named_files([word.format(place=place)])


def test_ids_in_hidden_folders_and_packages_are_not_meant(place: Path) -> None:
    for folder in (".venv", "node_modules"):
        (place / folder).mkdir()
        (place / folder / f"plian{SUFFIX}").write_text(GOOD)
    with pytest.raises(UsageError) as caught:
        scenarios_by_name("zz/plian")
    assert "node_modules" not in str(caught.value)
    assert ".venv" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.scenario.yml", "a.yaml", "a.yml"])
def test_a_file_of_another_suffix_is_told_its_right_name(name: str, place: Path) -> None:
    (place / name).write_text(GOOD)
    with pytest.raises(UsageError, match=r"rename it to a\.scenario\.yaml$"):
        named_files([name])
