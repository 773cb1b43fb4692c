"""The wheel of the SDK alone: in an empty environment it runs, with its types and nothing else."""

import sys
import venv
import zipfile
from pathlib import Path

import pytest
from fake_agents import ECHO

from tests.processes import ROOT, run

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SOURCE = ROOT / "sdk" / "python"
PROGRAM = """
import asyncio, sys
import agent_sdk
from agent_sdk import Agent
thread = Agent(agent_path=sys.argv[1]).start_thread()
print(asyncio.run(thread.run("hello")).final_response, thread.run_sync("there").final_response)
print([event.type for event in thread.run_streamed_sync("x", output_schema={})])
print(agent_sdk.__version__, agent_sdk.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(SOURCE)]
    said = run(command, cwd=folder, together=True)
    assert said.status == 0, said.out
    return next(folder.glob("*.whl"))


def test_it_holds_the_package_its_types_and_its_license(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        facts = archive.read(metadata).decode()
    ours = {f"agent_sdk/{path.name}" for path in (SOURCE / "agent_sdk").glob("*.py")}
    assert {name for name in names if "dist-info" not in name} == {*ours, "agent_sdk/py.typed"}
    assert any(name.endswith("/LICENSE") for name in names)
    required = [line for line in facts.splitlines() if line.startswith("Requires-Dist")]
    assert all("extra ==" in line for line in required)


def test_alone_in_an_empty_environment_it_runs_turns(wheel: Path, fake, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=False, symlinks=True)
    packages = next(place.glob("lib/python*/site-packages"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    said = run([*command, "--target", packages, wheel], cwd=tmp_path, together=True)
    assert said.status == 0, said.out
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    words = [place / "bin" / "python", "-W", "error", script, fake(ECHO).path]
    said = run(words, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
    assert (said.status, said.err) == (0, "")
    first, second, third = said.out.splitlines()
    assert first == "hello there"
    assert second == "['thread.started', 'turn.started', 'item.completed', 'turn.completed']"
    assert third.startswith(f"0.1.0 {packages}")
