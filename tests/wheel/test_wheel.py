"""The wheel is whole: it holds what a run needs, no tests, and works from an empty folder.

Built and installed without any network: the build backend is a development dependency, and the new
environment sees the installed dependencies of this one.
"""

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.socket]


def _run(command: list[str], cwd: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    _run(command, folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _relative(folder: str, pattern: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(pattern)}


def test_every_bundled_scenario_is_in_the_wheel(names: set[str]) -> None:
    scenarios = _relative("scenarios", "*.scenario.yaml")
    shipped = {name.replace("scenarios/", "harness/bundled_scenarios/", 1) for name in scenarios}
    assert len(shipped) > 5
    assert shipped <= names


@pytest.mark.parametrize("pattern", ["*.py", "*.toml", "*.yaml", "*.json"])
@pytest.mark.parametrize("package", ["harness", "reference_server"])
def test_every_file_of_the_packages_is_in_the_wheel(
    names: set[str], package: str, pattern: str
) -> None:
    assert _relative(package, pattern) <= names


def test_nothing_but_the_two_packages_is_in_the_wheel(names: set[str]) -> None:
    folders = {name.split("/", 1)[0] for name in names}
    info = {folder for folder in folders if folder.endswith(".dist-info")}
    assert folders - info == {"harness", "reference_server"}
    assert not [name for name in names if "/tests/" in name or "__pycache__" in name]


def test_the_wheel_brings_its_licence_commands_and_plugin(wheel: Path, names: set[str]) -> None:
    (entry_points,) = (name for name in names if name.endswith("/entry_points.txt"))
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(entry_points).decode()
    assert "agent = reference_server.cli:main" in text
    assert "harness = harness.cli:main" in text
    assert "[pytest11]\nharness = harness.plugin" in text
    assert [name for name in names if name.endswith("licenses/LICENSE")]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel, and with the dependencies of this one."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False, symlinks=True)
    packages = Path(_run([str(place / "bin/python"), "-c", _PURELIB], place).strip())
    target = ["--target", str(packages), "--no-deps", "--no-index", "--quiet"]
    _run([sys.executable, "-m", "pip", "install", *target, str(wheel)], place)
    # Only the folder: its own .pth files, such as that of an editable checkout, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for name, module in (("agent", "reference_server.cli"), ("harness", "harness.cli")):
        script = place / "bin" / name
        script.write_text(
            f"#!{place / 'bin/python'}\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
        )
        script.chmod(0o755)
    return place / "bin"


_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def _environment(installed: Path, home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    path = os.pathsep.join([str(installed), "/usr/bin", "/bin"])
    return {**kept, "PATH": path, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}


def test_the_installed_package_is_the_one_that_is_imported(installed: Path, empty: Path) -> None:
    code = "import harness, reference_server; print(harness.__file__, reference_server.__file__)"
    environment = _environment(installed, empty)
    out = _run([str(installed / "python"), "-c", code], empty, environment)
    assert all(Path(one).is_relative_to(installed.parent) for one in out.split())


def test_pytest_judges_the_reference_server_from_an_empty_folder(
    installed: Path, empty: Path, tmp_path: Path
) -> None:
    command = [str(installed / "python"), "-m", "pytest", "--server-cmd=agent app-server"]
    # Enough to see that the package is whole; all of them are played from the checkout.
    out = _run([*command, "-k", "turns or language"], empty, _environment(installed, tmp_path))
    assert "FAIL" not in out
    assert "verdict: GREEN" in out
    left = re.search(r"(\d+) deselected", out)
    assert left is not None, out
    assert _played(out) > 20
    assert _played(out) + int(left[1]) == len(_relative("scenarios", "*.scenario.yaml"))


def test_the_command_judges_the_reference_server_from_an_empty_folder(
    installed: Path, empty: Path, tmp_path: Path
) -> None:
    rule = "interrupt.reply-empty"
    command = [str(installed / "harness"), "run", "--target", "reference", "--rule", rule]
    out = _run(command, empty, _environment(installed, tmp_path))
    assert "verdict: GREEN" in out
    files = _relative("scenarios", "*.scenario.yaml")
    assert _played(out) == sum(rule in (ROOT / file).read_text("utf-8") for file in files) > 5


def _played(out: str) -> int:
    found = re.search(r"scenarios: (\d+) \(", out)
    assert found is not None, out
    return int(found[1])
