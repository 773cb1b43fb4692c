"""A family's file: which scenarios its table makes, where their values stand, how they are found.

What is refused, and where, is told by the texts of fixtures/bad_scenarios.txt.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.commands.shipped import bundled_scenario_text
from harness.errors import UsageError
from harness.report.results.users_scenarios import user_scenarios_of
from harness.scenario.bundled import bundled_files, bundled_folder
from harness.scenario.client_steps import StartTurnStep
from harness.scenario.families import load_family
from harness.scenario.identity import file_of, row_of_path, scenario_id
from harness.scenario.loader import (
    Loaded,
    ScenarioError,
    describe_empty_folders,
    find_scenarios,
    load,
    load_all,
)
from harness.scenario.parts import MAX_VALUES
from harness.scenario.scenario_names import named_files, scenarios_by_name
from harness.scenario.scenario_text import scenario_text
from harness.scenario.yaml12 import parse

TABLE = """\
title: Greetings
parts:
  steps: []
  status: completed
columns:
  once: {}
  again:
    steps:
      - start_turn: {thread: t, text: "<word> again", as: more}
      - wait: {turn: more, status: <status>}
rows:
  hello: {word: hello}
  bye:
    word: bye
    status: [completed, interrupted]
cells:
  bye/once: {word: "<<bye>"}
without:
  hello/again: nobody says it twice
scenario:
  title: A <word> is answered
  tags: [<word>]
  client:
    - start_thread: {as: t}
    - start_turn: {thread: t, text: <word>, as: u}
    - wait: {turn: u, status: <status>}
    - <steps>
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "my").mkdir()
    path = tmp_path / "my" / "greetings.family.yaml"
    path.write_text(TABLE.replace("tags: [<word>]", "tags: [greeting]"))
    return path


def scenario(path: Path, name: str) -> Loaded:
    made = {scenario_id(one): one for _, one in find_scenarios([path])}
    return load(made[f"my/greetings/{name}"])


def texts(loaded: Loaded) -> list[str | None]:
    steps = loaded.scenario.steps
    return [step.start_turn.text for step in steps if isinstance(step, StartTurnStep)]


def test_each_row_and_column_is_a_scenario_but_those_that_are_left_out(table: Path) -> None:
    ids = [scenario_id(path) for _, path in find_scenarios([table])]
    assert ids == ["my/greetings/hello/once", "my/greetings/bye/once", "my/greetings/bye/again"]


def test_rows_alone_are_scenarios_where_there_are_no_columns(table: Path) -> None:
    table.write_text(
        "title: Two\nrows: {one: {}, two: {}}\nscenario:\n  title: A thread\n"
        "  client:\n    - start_thread: {as: t}\n"
    )
    ids = [scenario_id(path) for _, path in find_scenarios([table.parent])]
    assert ids == ["my/greetings/one", "my/greetings/two"]


def test_the_nearest_part_counts(table: Path) -> None:
    assert texts(scenario(table, "hello/once")) == ["hello"]
    assert texts(scenario(table, "bye/once")) == ["<bye>"], "a cell counts before its row"
    assert texts(scenario(table, "bye/again")) == ["bye", "bye again"], "a column before the parts"


def test_a_list_takes_the_place_of_its_element_and_any_value_that_of_a_text(table: Path) -> None:
    value = scenario(table, "bye/again").document.value
    assert [next(iter(step)) for step in value["client"]] == [
        *("start_thread", "start_turn", "wait", "start_turn", "wait")
    ]
    assert value["client"][4]["wait"]["status"] == ["completed", "interrupted"]
    assert scenario(table, "hello/once").document.value["client"][2]["wait"]["status"] == (
        "completed"
    )


def test_a_value_stands_where_it_is_written(table: Path) -> None:
    loaded = scenario(table, "bye/again")
    lines = table.read_text().splitlines()
    assert loaded.path == table
    assert lines[loaded.line_of("client", 0) - 1].strip() == "- start_thread: {as: t}"
    assert lines[loaded.line_of("client", 3) - 1].strip().startswith("- start_turn: {thread: t, te")
    assert lines[loaded.line_of("client", 2, "wait", "status") - 1].strip() == (
        "status: [completed, interrupted]"
    )


def test_a_mistake_names_file_place_and_row(table: Path) -> None:
    table.write_text(table.read_text().replace("[completed, interrupted]", "finished"))
    with pytest.raises(ScenarioError) as caught:
        scenario(table, "bye/again")
    line = 1 + table.read_text().splitlines().index("    status: finished")
    assert str(caught.value) == (
        f"{table}:{line}:13: found 'finished'; expected 'completed', 'interrupted' or 'failed'; "
        "a status of one server goes into extensions (row bye, column again)"
    )


def test_a_mistake_of_the_template_is_told_once(table: Path) -> None:
    table.write_text(table.read_text().replace("start_thread", "start_tread"))
    found = list(load_all(path for _, path in find_scenarios([table])))
    assert len(found) == 1
    assert isinstance(found[0], ScenarioError)


def test_a_family_that_cannot_be_used_is_found_as_itself(table: Path) -> None:
    table.write_text(table.read_text().replace("rows:", "row:"))
    assert [path for _, path in find_scenarios([table.parent])] == [table]
    with pytest.raises(ScenarioError, match="did you mean 'rows'"):
        load(table)


def test_a_family_itself_is_no_scenario(table: Path) -> None:
    with pytest.raises(ScenarioError, match=r"name one of them.*hello/once, bye/once"):
        load(table)


def test_a_scenario_that_is_left_out_is_told_with_the_reason(table: Path) -> None:
    with pytest.raises(ScenarioError, match="left out: nobody says it twice"):
        load(table.with_name("greetings") / "hello/again.scenario.yaml")


def test_a_file_in_the_place_of_a_row_is_a_mistake(table: Path) -> None:
    other = table.with_name("greetings") / "bye" / "once.scenario.yaml"
    other.parent.mkdir(parents=True)
    other.write_text("title: Fine\nclient:\n  - start_thread: {as: t}\n")
    with pytest.raises(ScenarioError, match=r"bye/once is the file .* too; rename one"):
        load_family(table)


def test_parts_that_grow_beyond_bounds_are_refused(table: Path) -> None:
    doubled = "".join(f"  p{n}: [<p{n + 1}>, <p{n + 1}>]\n" for n in range(40))
    table.write_text(
        f"title: Many\nparts:\n{doubled}  p40: [1, 1]\nrows: {{one: {{}}}}\nscenario:\n"
        "  title: A thread\n  tags: [<p0>]\n  client:\n    - start_thread: {as: t}\n"
    )
    with pytest.raises(ScenarioError, match=f"more than {MAX_VALUES} values"):
        load(find_scenarios([table])[0][1])


@pytest.mark.parametrize(
    ("word", "ids"),
    [
        ("my/greetings", ["hello/once", "bye/once", "bye/again"]),
        ("my/greetings.family.yaml", ["hello/once", "bye/once", "bye/again"]),
        ("my", ["hello/once", "bye/once", "bye/again"]),
        ("my/greetings/bye/again", ["bye/again"]),
        ("my/greetings/bye/*", ["bye/once", "bye/again"]),
        ("*/once", ["hello/once", "bye/once"]),
    ],
)
def test_own_families_are_named_as_scenarios_are(word: str, ids: list[str], table: Path) -> None:
    assert [scenario_id(path) for path in named_files([word])] == [
        f"my/greetings/{one}" for one in ids
    ]


def test_a_row_that_is_nearly_one_is_meant(table: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'my/greetings/bye/once'"):
        scenarios_by_name("my/greetings/bye/onec")


def test_a_folder_with_a_family_alone_holds_scenarios(table: Path) -> None:
    assert describe_empty_folders([table.parent]) == []
    assert user_scenarios_of([]).ids_in("my/greetings/bye/*") >= {"my/greetings/bye/once"}
    assert user_scenarios_of([table]).all_ids() == {
        "my/greetings/hello/once",
        "my/greetings/bye/once",
        "my/greetings/bye/again",
    }


def test_a_family_reached_through_a_link_has_the_ids_of_its_place(table: Path) -> None:
    link = table.parents[1] / "link.family.yaml"
    link.symlink_to(table)
    assert scenario_id(find_scenarios([link])[0][1]) == "my/greetings/hello/once"


def test_the_file_of_a_row_is_its_family(table: Path) -> None:
    row = find_scenarios([table])[0][1]
    assert row_of_path(row) == (table, "hello/once")
    assert file_of(row) == table
    assert row_of_path(table) is None


def test_a_changed_family_is_read_again(table: Path) -> None:
    assert len(load_family(table).names()) == 3
    table.write_text(table.read_text().replace("bye:", "so-long:").replace("bye/", "so-long/"))
    assert load_family(table).names()[1] == "so-long/once"


def test_a_bundled_row_is_shown_as_a_file_that_makes_the_same_scenario(tmp_path: Path) -> None:
    rows = {name: row_of_path(path) for name, path in bundled_files().items()}
    assert any(rows.values())
    for name, row in rows.items():
        if row is None:
            continue
        folder = tmp_path / name
        # Files that a workspace takes from beside the scenario are beside it wherever it is.
        beside = shutil.ignore_patterns("*.yaml")
        shutil.copytree(row[0].parent, folder, ignore=beside)
        path = folder / "shown.scenario.yaml"
        path.write_text(bundled_scenario_text(name))
        made = load(bundled_files()[name], root=bundled_folder())
        assert load(path).scenario == made.scenario, name


# Longer numbers, and characters that do not show, are refused in any file.
NUMBERS = st.integers(-(10**30), 10**30)
TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]) | st.sampled_from(" \n"), max_size=30)


@given(
    st.recursive(
        st.none() | st.booleans() | NUMBERS | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab:#{[ 1~"), inner),
        max_leaves=20,
    )
)
def test_written_rows_are_read_back(value: object) -> None:
    whole = {"value": value}
    assert parse(scenario_text(whole, "made").encode(), "made").value == whole
