"""The example for clients in Node runs with the wheel alone, and fails for one that is wrong."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest
from fresh import Fresh

from tests.processes import ROOT, Said, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.socket,
    pytest.mark.wheel,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]


@pytest.fixture(scope="session")
def modules(fresh: Fresh) -> Path:
    """Install the modules of the example's package.json once in a run, and return their folder."""
    folder = fresh.wheel.parents[1] / "node-example"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.copy(ROOT / "examples" / "node-client" / "package.json", folder)
            options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
            said = run(["npm", "install", *options], cwd=folder, together=True)
            assert said.status == 0, said.out
            (folder / "done").touch()
    return folder / "node_modules"


@pytest.fixture
def client(fresh: Fresh, empty: Path, modules: Path) -> Path:
    """The example, as `harness example` writes it, with its modules."""
    said = fresh.fork("harness", "example", "node-client", "--output", "client", cwd=empty)
    assert said.status == 0, said.out
    (empty / "client" / "node_modules").symlink_to(modules)
    return empty / "client"


def npm_test(fresh: Fresh, client: Path) -> Said:
    env = fresh.environment(client.parent.parent)
    node = str(Path(str(shutil.which("npm"))).parent)
    env["PATH"] = os.pathsep.join([str(fresh.programs), node, env["PATH"]])
    return run(["npm", "test"], cwd=client, env=env, together=True)


def test_a_good_client_passes(fresh: Fresh, client: Path) -> None:
    said = npm_test(fresh, client)
    assert said.status == 0, said.out
    assert "2 passed" in said.out


def test_a_client_that_breaks_a_duty_fails_with_its_clause(fresh: Fresh, client: Path) -> None:
    test = client / "client.test.mjs"
    text = test.read_text("utf-8")
    # It answers what nobody asked.
    greeting = 'this.#send({ method: "initialized" });'
    broken = text.replace(greeting, f"{greeting}\nthis.#send({{ id: 77, result: {{}} }});")
    assert broken != text
    test.write_text(broken, "utf-8")
    said = npm_test(fresh, client)
    assert said.status == 1, said.out
    assert "2 failed" in said.out
    assert "the client is wrong" in said.out
    assert "duty.answer-known" in said.out


def test_the_versions_that_it_requires_are_exact() -> None:
    text = (ROOT / "examples" / "node-client" / "package.json").read_text("utf-8")
    assert not any(mark in text for mark in ("^", "~", "*", "latest"))
    assert not list((ROOT / "examples").rglob("package-lock.json"))
