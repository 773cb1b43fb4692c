"""Each bad scenario is refused by one line that names its place, what was found, and where.

The texts are in fixtures/bad_scenarios.txt. The first line of each is what is expected,
`# expect: LINE:COLUMN: FRAGMENT`, so that a mistake and its message are read together. Files too
big or too odd to store are made here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from harness.play.lexicon import protocol_lexicon
from harness.scenario.loader import ScenarioError, find_scenarios, load
from harness.scenario.yaml12 import MAX_DEPTH
from tests.bad_scenarios import bad_scenarios, write_bad

CAPABILITIES = (
    Path(__file__).resolve().parents[3] / "harness" / "protocol" / "spec" / "capabilities.yaml"
)
GOOD = "title: A scenario\nclient:\n  - start_thread: {as: t}\n"
EXPECT = re.compile(r"# expect: (\d+):(\d+): (.+)")


def refusal(path: Path) -> ScenarioError:
    capabilities = {entry["id"] for entry in yaml.safe_load(CAPABILITIES.read_text())}
    with pytest.raises(ScenarioError) as caught:
        load(
            find_scenarios([path])[0][1] if path.name.endswith(".family.yaml") else path,
            rules={"turn.completed-once"},
            capabilities=capabilities,
            lexicon=protocol_lexicon(),
        )
    return caught.value


@pytest.mark.parametrize("name", bad_scenarios())
def test_bad_scenario_is_refused_at_its_place(tmp_path: Path, name: str) -> None:
    expected = EXPECT.fullmatch(bad_scenarios()[name].split("\n")[0])
    assert expected
    [path] = write_bad(tmp_path, name)
    error = refusal(path)
    assert error.place == (int(expected[1]), int(expected[2]))
    assert expected[3] in error.message
    assert str(error).startswith(f"{path}:{expected[1]}:{expected[2]}: ")
    assert len(str(error).splitlines()) == 1


def test_the_good_scenario_behind_the_made_ones_loads(tmp_path: Path) -> None:
    path = tmp_path / "good.scenario.yaml"
    path.write_text(GOOD)
    assert load(path).scenario.title == "A scenario"


@pytest.mark.parametrize(
    ("content", "place", "fragment"),
    [
        (GOOD.encode() + b"#" * (1 << 23), (1, 1), "8 MiB"),
        ("title: é\n".encode("latin-1"), (1, 8), "UTF-8"),
        (GOOD.encode() + b"expect: \xff\n", (4, 9), "UTF-8"),
        (GOOD.encode("utf-16"), (1, 1), "UTF-8"),
        # So many levels are taken behind `title: `, which has seven columns.
        (b"title: " + b"[" * 100_000 + b"]" * 100_000, (1, 7 + MAX_DEPTH), "deep"),
        (GOOD.encode() + b"  - wiat: {turn: u}\n" * 1000, (4, 5), "wait"),
        (b'title: "\\ud800"\n', (1, 11), "not YAML"),
    ],
    ids=["too-big", "latin-1", "late-bad-byte", "utf-16", "too-deep", "many", "surrogate"],
)
def test_made_bad_scenario_is_refused_at_its_place(
    tmp_path: Path, content: bytes, place: tuple[int, int], fragment: str
) -> None:
    path = tmp_path / "made.scenario.yaml"
    path.write_bytes(content)
    error = refusal(path)
    assert error.place == place
    assert fragment in error.message


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "none.scenario.yaml").message
    assert "cannot be read" in refusal(tmp_path).message


def test_there_are_many_mistakes() -> None:
    assert len(bad_scenarios()) > 50


def test_a_missing_end_is_reported_behind_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "open.scenario.yaml"
    path.write_text("title: [")  # Without a line's end.
    error = refusal(path)
    assert error.place == (2, 1)
    assert error.message.startswith("not YAML: ")
