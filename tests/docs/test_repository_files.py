"""Files that the host of the repository reads: workflows, forms, hooks and the container file."""

import re
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from markdown_pages import ROOT

from harness.cli.main import app
from tests.processes import run

GITHUB = ROOT / ".github"
FILES = {
    "github-workflows": sorted(GITHUB.glob("workflows/*.yml")),
    "github-issue-forms": [
        path for path in sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml")) if path.stem != "config"
    ],
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE/config.yml"],
}
DISTRIBUTION = "agent-session-harness"


@pytest.mark.slow
@pytest.mark.parametrize("schema", FILES)
def test_files_fit_the_schema_of_their_host(schema: str, tmp_path: Path) -> None:
    assert FILES[schema]
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    said = run([*check, *map(str, FILES[schema])], cwd=ROOT)
    assert said.status == 0, said.out
    broken = re.sub("runs-on:|body:|url:", "wrong:", FILES[schema][0].read_text("utf-8"))
    (tmp_path / "broken.yml").write_text(broken, "utf-8")
    assert run([*check, str(tmp_path / "broken.yml")], cwd=ROOT).status == 1


def test_steps_of_workflows_are_there() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    lines = [line for path in FILES["github-workflows"] for line in _run_lines(path)]
    assert len(lines) >= 4
    for line in lines:
        words = line.split()
        if words[0] == "make":
            assert words[1] in targets, line
        for word in words:
            if word.startswith(("tools/", ".ci/")):
                assert (ROOT / word).is_file(), line


def _run_lines(path: Path) -> list[str]:
    jobs: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def test_hooks_call_commands_that_are_there_on_files_that_we_write() -> None:
    hooks: list[dict[str, str]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    page = (ROOT / "docs/installing.md").read_text("utf-8")
    for hook in hooks:
        command: Any = typer.main.get_command(app)
        for word in hook["entry"].removeprefix("harness ").split():
            command = command.commands[word]
        assert f"id: {hook['id']}" in page
    files = [re.compile(hook["files"]) for hook in hooks]
    assert [bool(one.search("a/b.scenario.yaml")) for one in files] == [True, False]
    assert [bool(one.search("a/b.trace.jsonl")) for one in files] == [False, True]


def test_container_file_installs_what_the_sandbox_needs_and_has_a_pinned_base() -> None:
    lines = (ROOT / "Containerfile").read_text("utf-8").splitlines()
    (base,) = (line.removeprefix("ARG BASE=") for line in lines if line.startswith("ARG BASE="))
    assert re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+-[\w-]+", base)
    assert "bubblewrap" in "\n".join(lines)


def test_page_names_every_dependency_with_a_reason() -> None:
    page = (ROOT / "docs/installing.md").read_text("utf-8")
    table = page.split("## Dependencies")[1].split("\n\n")[1].splitlines()[2:]
    listed = {
        name.strip().lower().replace("_", "-")
        for row in table
        for name in row.split("|")[1].split(",")
    }
    required = {
        re.split(r"[<>=; ]", one, maxsplit=1)[0].lower()
        for one in requires(DISTRIBUTION) or ()
        if "extra ==" not in one
    }
    assert listed == required
