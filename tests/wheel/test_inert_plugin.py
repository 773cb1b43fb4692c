"""Test runs of a user who has installed the harness and does not name a server: unchanged.

Each run is compared with one in which pytest loads no installed plugin.
"""

import re
from pathlib import Path

import pytest
from fresh import Fresh, Said

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.wheel]

CONFTEST = """
import pytest

NAMES = ("target", "baseline", "rule", "require", "race", "server-cmd", "timeout-scale")


def pytest_addoption(parser):
    for name in NAMES:
        parser.addoption(f"--{name}", default="mine")
    parser.addini("target", "an option of the user's own")


@pytest.fixture
def options(request):
    return [request.config.getoption(f"--{name}") for name in NAMES]


@pytest.fixture
def snapshot():
    return "mine"


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".yaml":
        return Sheet.from_parent(parent, path=file_path)


class Sheet(pytest.File):
    def collect(self):
        yield Row.from_parent(self, name="row")


class Row(pytest.Item):
    def runtest(self):
        assert self.path.read_text("utf-8")
"""

TESTS = """
import sys

import pytest


def test_options(options):
    assert options == ["mine"] * len(options)


def test_given(options):
    assert options[0] == "theirs"


def test_snapshot(snapshot):
    assert snapshot == "mine"


@pytest.mark.anyio
async def test_waits(anyio_backend_name):
    assert anyio_backend_name == "asyncio"


@pytest.mark.own
def test_nothing_of_the_harness_is_imported():
    assert [name for name in sys.modules if name.startswith("harness.cli.suite")] == []


def test_fails():
    assert 1 == 2
"""

INI = """
[pytest]
target = something
markers = own: a mark of the user's
minversion = 6.0
console_output_style = classic
"""


@pytest.fixture
def project(empty: Path) -> Path:
    """A project with options, fixtures, collectors and marks of its own, by names like ours."""
    (empty / "conftest.py").write_text(CONFTEST)
    (empty / "pytest.ini").write_text(INI)
    below = empty / "tests" / "deep"
    below.mkdir(parents=True)
    (below / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    (below / "test_mine.py").write_text(TESTS)
    (below / "plain.scenario.yaml").write_text("title: mine, and no scenario\n")
    return empty


ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _both(fresh: Fresh, folder: Path, *words: str) -> tuple[Said, Said]:
    ours = fresh.call("pytest", *words, cwd=folder)
    alone = fresh.call("pytest", "-p", "anyio", *words, cwd=folder, env=ALONE)
    return _steady(ours), _steady(alone)


def _steady(said: Said) -> Said:
    # Where a fixture is missing pytest lists what there is, other plugins' too.
    text = re.sub(r"^> +available fixtures: .*$", "> available fixtures", said.out, flags=re.M)
    return Said(said.status, re.sub(r"\d+\.\d+s", "N s", text))


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        ([], 5),
        (["-W", "error", "--strict-config", "--strict-markers", "-p", "no:cacheprovider"], 5),
        (["--target", "theirs"], 5),
        (["--target=theirs", "--race=all", "tests"], 5),
        (["--collect-only", "tests"], None),
        (["--markers"], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_run_of_the_users_own_tests_is_as_it_was(
    fresh: Fresh, project: Path, words: list[str], passed: int | None
) -> None:
    ours, alone = _both(fresh, project, "-q", *words)
    if "--markers" in words:
        # What other plugins add: only ours is spoken of here.
        assert "race" not in ours.out
        return
    assert ours.out.splitlines() == alone.out.splitlines()
    assert ours.status == alone.status
    if passed is not None:
        assert f"{passed} passed" in ours.out
    assert not (project / ".harness").exists()


def test_a_user_without_options_of_these_names_has_none_of_ours(
    fresh: Fresh, project: Path
) -> None:
    (project / "conftest.py").write_text("")
    (project / "pytest.ini").write_text("[pytest]\nmarkers = own: mine\n")
    chosen = ["-k", "imported or snapshot or fails"]
    ours, alone = _both(fresh, project, "-q", "--strict-config", "-W", "error", *chosen)
    assert ours == alone
    assert "1 passed" in ours.out
    assert "fixture 'snapshot' not found" in ours.out


def test_beside_options_of_the_same_names_the_harness_is_reached_by_its_own(
    fresh: Fresh, project: Path
) -> None:
    words = ["--harness-server-cmd", "agent app-server", "--harness-rule", "turn.started-first"]
    said = fresh.call("pytest", "-q", "--target", "theirs", *words, "bundled", cwd=project)
    assert said.status == 0, said.out
    assert "rules: 1 (1 PASS)" in said.out
    assert "verdict: GREEN" in said.out


def test_help_names_the_options_once(fresh: Fresh, empty: Path) -> None:
    said = fresh.call("pytest", "--help", cwd=empty)
    assert len(re.findall(r"^  --server-cmd=CMD ", said.out, re.M)) == 1
    assert "--harness-server-cmd" not in said.out
    assert "--harness-NAME stands for each --NAME" in said.out
