"""The wheel is complete: it has all files of a run, no tests, and works from an empty folder.

`make test` looks into it and plays a few scenarios with it; the rest of what somebody does who has
the wheel alone is `make wheel`.
"""

import os
import re
import sys
import zipfile
from pathlib import Path

import pytest
from fresh import ROOT, Fresh, build, requirements, succeed

from harness.scenario.bundled import bundled_ids_on

pytestmark = [pytest.mark.slow, pytest.mark.socket]


@pytest.fixture
def names(fresh: Fresh) -> set[str]:
    return _names(fresh.wheel)


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _relative(folder: str, pattern: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(pattern)}


def test_every_bundled_scenario_is_in_the_wheel(names: set[str]) -> None:
    scenarios = _relative("scenarios", "*.scenario.yaml") | _relative("scenarios", "*.family.yaml")
    shipped = {name.replace("scenarios/", "harness/bundled_scenarios/", 1) for name in scenarios}
    assert len(shipped) > 5
    assert shipped <= names


@pytest.mark.parametrize("pattern", ["*.py", "*.toml", "*.yaml", "*.json", "*.j2", "*.js", "*.css"])
@pytest.mark.parametrize("package", ["harness", "reference_server"])
def test_every_file_of_the_packages_is_in_the_wheel(
    names: set[str], package: str, pattern: str
) -> None:
    assert _relative(package, pattern) <= names


def test_every_page_and_example_is_in_the_wheel(names: set[str]) -> None:
    pages = _relative("docs", "*.md") | {"README.md", "ARCHITECTURE.md", "CHANGELOG.md"}
    assert {f"harness/bundled_docs/{page}" for page in pages} <= names
    examples = {name for name in names if name.startswith("harness/bundled_examples/")}
    assert len(examples) >= 3
    for name in examples:
        place = name.removeprefix("harness/bundled_examples/")
        tops = (".", "fixtures/servers", "examples")
        assert any((ROOT / top / place).is_file() for top in tops), name


def test_nothing_but_the_two_packages_is_in_the_wheel(names: set[str]) -> None:
    folders = {name.split("/", 1)[0] for name in names}
    info = {folder for folder in folders if folder.endswith(".dist-info")}
    data = {folder for folder in folders if folder.endswith(".data")}
    assert folders - info - data == {"harness", "reference_server"}
    pages = {name.split("/", 1)[1] for name in names if name.split("/", 1)[0] in data}
    assert pages == {f"data/share/man/man1/{name}.1" for name in ("agent", "harness")}
    assert not [name for name in names if "/tests/" in name or "__pycache__" in name]


def test_the_wheel_brings_its_licence_commands_and_plugin(fresh: Fresh, names: set[str]) -> None:
    (entry_points,) = (name for name in names if name.endswith("/entry_points.txt"))
    with zipfile.ZipFile(fresh.wheel) as archive:
        text = archive.read(entry_points).decode()
    assert "agent = reference_server.cli:main" in text
    assert "harness = harness.__main__:main" in text
    assert "[pytest11]\nharness = harness.cli.plugin" in text
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_a_wheel_of_the_source_distribution_is_the_same_to_the_byte(
    fresh: Fresh, tmp_path: Path
) -> None:
    code = "import sys, hatchling.build; hatchling.build.build_sdist(sys.argv[1])"
    succeed([sys.executable, "-c", code, str(tmp_path)], ROOT)
    (archive,) = tmp_path.glob("*.tar.gz")
    succeed(["tar", "-xzf", str(archive)], tmp_path)
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())
    for file in source.rglob("*"):
        os.utime(file, (1, 1))  # Other times, and another folder.
    dist = tmp_path / "dist"
    dist.mkdir()
    again = build(dist, source)
    assert _names(again) == _names(fresh.wheel)
    assert again.read_bytes() == fresh.wheel.read_bytes()


def test_the_environment_has_what_the_wheel_requires_and_no_more(fresh: Fresh) -> None:
    required = {name.lower() for name in requirements(fresh.wheel)}
    assert {"pytest", "pytest-xdist", "pydantic"} <= required
    assert not {"syrupy", "respx", "ruff", "pytest-timeout"} & required
    said = fresh.call("python", "-c", "import syrupy", cwd=fresh.programs)
    assert "No module named 'syrupy'" in said.out


def test_the_installed_package_is_the_one_that_is_imported(fresh: Fresh, empty: Path) -> None:
    code = "import harness, reference_server; print(harness.__file__, reference_server.__file__)"
    said = fresh.call("python", "-c", code, cwd=empty)
    assert all(Path(one).is_relative_to(fresh.programs.parent) for one in said.out.split())


def test_forks_import_the_installed_package_too(fresh: Fresh, empty: Path) -> None:
    (empty / "test_place.py").write_text(
        "import sys\n\nimport harness\n\n\ndef test_place():\n"
        f"    assert harness.__file__.startswith({str(fresh.programs.parent)!r})\n"
        f"    assert {str(ROOT)!r} not in sys.path\n"
    )
    said = fresh.fork("pytest", "-q", cwd=empty)
    assert said.status == 0, said.out


def test_the_python_sdk_is_built_from_what_the_wheel_writes(fresh: Fresh, empty: Path) -> None:
    said = fresh.call("harness", "example", "python-sdk", "-o", "agent-sdk", cwd=empty)
    assert said.status == 0, said.out
    built = build(empty, empty / "agent-sdk")
    with zipfile.ZipFile(built) as archive:
        assert "agent_sdk/__init__.py" in archive.namelist()
    said = fresh.fork("harness", "docs", "sdk/python", cwd=empty)
    assert "harness example python-sdk -o agent-sdk" in said.out


@pytest.mark.wheel
def test_pytest_judges_the_reference_server_from_an_empty_folder(fresh: Fresh, empty: Path) -> None:
    # Enough to see that the package is whole; all of them are played from the checkout.
    chosen = ["-k", "turns", "--harness-html", "page.html"]
    said = fresh.call("pytest", "--server-cmd=agent app-server", *chosen, cwd=empty)
    assert said.status == 0, said.out
    assert "FAIL" not in said.out
    assert "verdict: GREEN" in said.out
    assert "scenario/turns/plain-turn" in (empty / "page.html").read_text("utf-8")
    left = re.search(r"(\d+) deselected", said.out)
    assert left is not None, said.out
    assert _played(said.out) > 20
    assert _played(said.out) + int(left[1]) == len(bundled_ids_on("session"))


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param([], id="alone"),
        pytest.param(["-n", "2"], id="two workers", marks=pytest.mark.wheel),
    ],
)
def test_the_command_judges_the_reference_server_from_an_empty_folder(
    fresh: Fresh, empty: Path, workers: list[str]
) -> None:
    rule = "approval.decline-goes-on"
    words = ["harness", "run", "--target", "reference", "--rule", rule, *workers]
    said = (fresh.fork if workers else fresh.call)(*words, cwd=empty)
    assert said.status == 0, said.out
    assert "verdict: GREEN" in said.out
    files = _relative("scenarios", "*.scenario.yaml")
    assert _played(said.out) == sum(rule in (ROOT / file).read_text("utf-8") for file in files) > 5


def _played(out: str) -> int:
    found = re.search(r"scenarios: (\d+) \(", out)
    assert found is not None, out
    return int(found[1])
