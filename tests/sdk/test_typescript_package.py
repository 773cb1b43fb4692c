"""The published package of the TypeScript SDK: its content, types and README."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.processes import run_warm

from .node_programs import ROOT, SDK, compiled, done, needs_node, packed_once

pytestmark = [pytest.mark.socket, pytest.mark.slow, needs_node]

AGENT = Path(sys.executable).parent / "agent"
# What the model says in the examples of the README, in their order.
MODELS = [
    "- reply: [{message: A semicolon is missing.}, {usage: {input: 120, output: 7}}]",
    "- reply: [{message: I look.}]\n  - reply: [{message: A semicolon is missing.}]",
    "- reply: [{message: A semicolon is missing.}, {usage: {input: 120, output: 7}}]",
    """- reply: [{message: '{"risk": "low"}'}]""",
    "- reply: [{message: The button has moved.}]",
    "- fail: {status: 400, code: invalid_request, message: no such thing, times: until-turn-ends}",
]
# The thirty-one names of the specification, from its text.
NAMES = [
    "ThreadEvent",
    "ThreadStartedEvent",
    "TurnStartedEvent",
    "TurnCompletedEvent",
    "TurnFailedEvent",
    "ItemStartedEvent",
    "ItemUpdatedEvent",
    "ItemCompletedEvent",
    "ThreadError",
    "ThreadErrorEvent",
    "Usage",
    "ThreadItem",
    "AgentMessageItem",
    "ReasoningItem",
    "CommandExecutionItem",
    "FileChangeItem",
    "McpToolCallItem",
    "WebSearchItem",
    "TodoListItem",
    "ErrorItem",
    "AgentOptions",
    "ThreadOptions",
    "TurnOptions",
    "ApprovalMode",
    "SandboxMode",
    "ModelReasoningEffort",
    "WebSearchMode",
    "RunResult",
    "RunStreamedResult",
    "Input",
    "UserInput",
]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> tuple[Path, list[str]]:
    """The packed package, installed in a project, and its paths; made once in a test run."""
    base = tmp_path_factory.getbasetemp()
    return packed_once((base if worker_id == "master" else base.parent) / "typescript-package")


@pytest.fixture
def project(archive: tuple[Path, list[str]], tmp_path: Path) -> Path:
    """A project that has the packed package, and nothing else."""
    return shutil.copytree(archive[0], tmp_path / "project", symlinks=True)


def test_the_archive_alone_can_be_installed_and_used(
    archive: tuple[Path, list[str]], project: Path
) -> None:
    modules = {path.stem for path in (SDK / "src").glob("*.ts")}
    built = {f"dist/{name}.{ending}" for name in modules for ending in ("js", "d.ts")}
    assert set(archive[1]) == built | {"package.json", "README.md", "LICENSE"}

    assert [path.name for path in (project / "node_modules").glob("[!.]*")] == ["agent-sdk"]
    program = "console.log(Object.keys({0}).sort().join(' '), new {0}.Agent().startThread().id)"
    values = (
        "AbortError Agent AgentError AgentNotFoundError ConfigError ProcessError ProtocolError "
        "TurnFailedError null\n"
    )
    asked = [
        ["--input-type=module", "-e", f"import * as sdk from 'agent-sdk'; {program.format('sdk')}"],
        ["--no-warnings", "-e", f"const sdk = require('agent-sdk'); {program.format('sdk')}"],
    ]
    if done(["node", "-p", "!process.features.require_module"], project) == "true\n":
        asked.pop()  # This Node is too old to require what is an ES module.
    for words in asked:
        assert done(["node", *words], project).split() == values.split()

    assert len(NAMES) == len(set(NAMES)) == 31
    imported = f'import type {{ {", ".join(NAMES)} }} from "agent-sdk";\n'
    used = f"export type All = [{', '.join(NAMES)}];\n"
    wrong = '// @ts-expect-error\nconst entry: UserInput = { type: "localImage", path: "" };\n'
    for name in ("names.mts", "names.cts"):
        (project / name).write_text(f"{imported}{used}{wrong}export default entry;\n")
    compiled(project, "names.mts", "names.cts")


def test_the_examples_of_the_readme_print_what_they_say(project: Path, tmp_path: Path) -> None:
    (project / "package.json").write_text('{"type": "module"}')
    examples = re.findall(r"^```ts\n(.*?)^```", (SDK / "README.md").read_text(), re.M | re.S)
    assert len(examples) == len(MODELS)
    for number, example in enumerate(examples):
        (project / f"example{number}.ts").write_text(example)
    compiled(project, *(f"example{number}.ts" for number in range(len(examples))))
    for name in ("before.png", "after.png"):
        (project / name).write_bytes((ROOT / "tests" / "sdk" / "pixel.png").read_bytes())
    for number, (example, model) in enumerate(zip(examples, MODELS, strict=True)):
        folder = tmp_path / f"bin{number}"
        folder.mkdir()
        scenario = folder / "model.scenario.yaml"
        scenario.write_text(
            f"title: An example\nmodel:\n  {model}\nclient: [{{start_thread: {{as: t}}}}]\n"
        )
        agent = folder / "agent"
        agent.write_text(f'#!/bin/sh\nexec "{AGENT}" "$@" --scenario "{scenario}"\n')
        agent.chmod(0o755)
        printed = done(
            ["node", f"example{number}.js"],
            project,
            PATH=f"{folder}{os.pathsep}{os.environ['PATH']}",
            AGENT_HOME=str(folder / "home"),
        )
        promised = re.findall(r"// prints: (.*)$", example, re.MULTILINE)
        assert promised, f"example {number} promises nothing"
        assert printed.splitlines() == promised, example


def test_it_drives_agent_exec(project: Path, tmp_path: Path) -> None:
    """It passes the checks that `make real` runs on the public SDKs of the real agent."""
    driver = ROOT / "fixtures" / "clients" / "typescript_sdk.mjs"
    entry = project / "node_modules" / "agent-sdk" / "dist" / "index.js"
    folder = tmp_path / "play"
    folder.mkdir()
    told = done(["node", str(driver), str(entry), str(AGENT), str(folder)], project)
    assert told.count("ok: ") == 11, told


def test_the_suite_finds_no_fault_in_it(project: Path) -> None:
    driver = ROOT / "fixtures" / "sdk_drivers" / "node_driver.mjs"
    entry = project / "node_modules" / "agent-sdk" / "dist" / "index.js"
    plays = str(ROOT / "scenarios" / "sdk-calls")
    said = run_warm("harness", "run", plays, "--sdk-cmd", f"node {driver} {entry}", cwd=project)
    assert said.status == 0, said.out + said.err
    told = said.out
    assert "verdict: GREEN" in told
    # The rule of agreement is for an SDK on a real agent, which needs --agent-cmd.
    assert re.search(r"rules: \d+ \(\d+ PASS, 1 NOT_EXERCISED\)", told), told
    assert "  sdk-run.agrees-with-session\n" in told
