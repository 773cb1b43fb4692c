"""action.yml does what its page says: its steps are run as the runner of GitHub Actions runs them.

Its file, and the recipes of docs/ci.md, fit the schemas that are published for them.
"""

import fcntl
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked_programs import forked_programs
from fresh import Fresh
from markdown_pages import blocks

from tests.actions_runner import commands
from tests.processes import ROOT, run

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.wheel]

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
PAGE = ROOT / "docs" / "ci.md"
RECIPES = {
    block.body.splitlines()[0].removeprefix("# "): block.body
    for block in blocks(PAGE)
    if block.language == "yml"
}


BADGES = ("badges/spec.json", "badges/spec.svg")
INSTALLED = "agent-session-harness"
"""The environment that the first step makes, in the runner's temporary folder."""


@dataclass
class Job:
    """A job that has one step, which uses the action; `folder` is its checkout."""

    folder: Path
    temporary: Path
    package: Path
    uploaded: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def install(self) -> tuple[int, str]:
        """Run the first step, which installs the harness; return its status and output."""
        step = ACTION["runs"]["steps"][0]
        status, printed = self._run(step, self._inputs({}))
        if status == 0:
            self._link_requirements()
        return status, printed

    def use(self, **given: str) -> tuple[int, str, dict[str, str]]:
        """Run the other steps; return the status, what they print, and the outputs."""
        judge, upload, summarize = ACTION["runs"]["steps"][1:]
        inputs = self._inputs(given)
        self.uploaded = {}
        (self.temporary / "output").unlink(missing_ok=True)
        status, printed = self._run(judge, inputs)
        # These two run after a failure too.
        assert upload["uses"].startswith("actions/upload-artifact@")
        always, *conditions = upload["if"].removeprefix("${{ ").removesuffix(" }}").split(" && ")
        assert (always, summarize["if"]) == ("always()", "${{ always() }}")
        given_values = {"inputs.artifact": inputs["artifact"]}
        given_values["steps.judge.outputs.verdict"] = self._outputs()["verdict"]
        if all(given_values[one.removesuffix(" != ''")] for one in conditions):
            self.uploaded = {
                path.relative_to(self.folder).as_posix(): path.read_bytes()
                for name in upload["with"]["path"].split("\n")
                for path in (self.folder / _evaluated(name, inputs)).rglob("*")
                if name and path.is_file()
            }
            self._write_output("artifact-url", "https://github.com/x/actions/runs/1/artifacts/2")
        assert self._run(summarize, inputs) == (0, "")
        return status, printed, self._outputs()

    def _write_output(self, name: str, value: str) -> None:
        with (self.temporary / "output").open("a", encoding="utf-8") as file:
            file.write(f"{name}={value}\n")

    def _inputs(self, given: dict[str, str]) -> dict[str, str]:
        inputs = {name: one.get("default", "") for name, one in ACTION["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        return inputs | {"package": str(self.package), "python": sys.executable}

    def _run(self, step: dict[str, Any], inputs: dict[str, str]) -> tuple[int, str]:
        assert step["shell"] == "bash"
        script = self.temporary / "step.sh"
        script.write_text(step["run"], "utf-8")
        said = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.folder,
            env=self._environment()
            | {
                name: self._outputs()["page"]
                if "artifact-url" in text
                else _evaluated(text, inputs)
                for name, text in step["env"].items()
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return said.returncode, said.stdout

    def _environment(self) -> dict[str, str]:
        job = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.folder),
            "GITHUB_OUTPUT": str(self.temporary / "output"),
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary.md"),
            "RUNNER_TEMP": str(self.temporary),
            "TMPDIR": str(self.temporary),
        }
        # What the wheel requires is there already: no network is needed.
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
        path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
        return {"PATH": path, "HOME": str(self.temporary), "COLUMNS": "100", **job, **offline}

    def summary(self) -> str:
        """The summary of the job so far."""
        return (self.temporary / "summary.md").read_text("utf-8")

    def _link_requirements(self) -> None:
        (packages,) = self.temporary.glob(f"{INSTALLED}/lib/python*/site-packages")
        (packages / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def _outputs(self) -> dict[str, str]:
        path = self.temporary / "output"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        told = {name: value for name, _, value in (line.partition("=") for line in lines)}
        named = {
            name: re.fullmatch(r"\$\{\{ steps\.\w+\.outputs\.([\w-]+) \}\}", one["value"])
            for name, one in ACTION["outputs"].items()
        }
        return {name: told.get(found[1], "") for name, found in named.items() if found}


def _evaluated(expression: str, inputs: dict[str, str]) -> str:
    """The value of `${{ inputs.NAME || github.action_path }}`, or a text without an expression."""
    if "${{" not in expression:
        return expression
    found = re.fullmatch(r"\$\{\{ inputs\.([\w-]+)( \|\| github\.action_path)? \}\}", expression)
    assert found, expression
    return inputs[found[1]] or (str(ROOT) if found[2] else "")


@pytest.fixture(scope="module")
def installed(fresh: Fresh) -> Path:
    """Run the first step of the action once, as all jobs begin with it; return what it makes."""
    base = fresh.wheel.parents[1] / "runner"
    base.mkdir(exist_ok=True)
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / "done").exists():
            status, printed = Job(base, base, fresh.wheel).install()
            assert status == 0, printed
            (base / "done").touch()
    return base / INSTALLED


@pytest.fixture
def empty_job(fresh: Fresh, tmp_path: Path) -> Job:
    """A job with an empty temporary folder."""
    folder, temporary = tmp_path / "checkout", tmp_path / "runner"
    folder.mkdir()
    temporary.mkdir()
    for name in ("minimal", "twice"):
        text = (ROOT / "fixtures" / "servers" / f"{name}.py").read_text("utf-8")
        (folder / f"{name}.py").write_text(text, "utf-8")
    return Job(folder, temporary, fresh.wheel)


@pytest.fixture
def installed_job(empty_job: Job, installed: Path) -> Job:
    """A job that has what the first step makes."""
    (empty_job.temporary / INSTALLED).symlink_to(installed)
    return empty_job


@pytest.fixture
def job(empty_job: Job, installed: Path) -> Generator[Job]:
    """A job as the installed one, whose `harness` runs in forks; importing takes longer."""
    programs = installed / "bin"
    with forked_programs(Fresh(programs, empty_job.package)) as forked:
        (forked / "python").symlink_to(programs / "python")
        (empty_job.temporary / INSTALLED).mkdir()
        (empty_job.temporary / INSTALLED / "bin").symlink_to(forked)
        yield empty_job


def test_a_good_server_is_green_and_its_reports_are_there(installed_job: Job) -> None:
    job = installed_job
    given = {"scenarios": "turns/plain-turn\nturns/two-turns\n", "arguments": "--strict\n"}
    status, printed, outputs = job.use(server_cmd=f"{sys.executable} minimal.py", **given)
    assert status == 0, printed
    page = outputs.pop("page")
    assert outputs == {"verdict": "GREEN", "status": "0", "reports": "conformance"}
    assert {name for name in job.uploaded if not name.startswith(".harness/")} == {
        f"conformance/{name}"
        for name in (*(f"report.{end}" for end in ("html", "json", "xml", "md")), *BADGES)
    }
    assert ".harness/traces/spec/turns/plain-turn.jsonl" in job.uploaded
    assert b"2 scenarios" in job.uploaded["conformance/report.html"]
    assert "requirements" in json.loads(job.uploaded["conformance/badges/spec.json"])["message"]
    assert f"]({page})" in job.summary().split("\n## Conformance of `spec`: GREEN")[0]
    assert commands(printed.splitlines()) == []
    report = json.loads((job.folder / "conformance/report.json").read_text("utf-8"))
    assert report["strict"]
    assert [one["id"] for one in report["scenarios"]] == ["turns/plain-turn", "turns/two-turns"]
    assert (job.folder / "conformance/report.md").read_text("utf-8") in job.summary()


def test_a_bad_server_fails_the_step_and_its_baseline_passes_it(job: Job) -> None:
    server = f"{sys.executable} twice.py {sys.executable} minimal.py"
    given = {"server_cmd": server, "scenarios": "turns/plain-turn", "reports": "out/here"}
    status, printed, outputs = job.use(**given)
    assert (status, outputs["verdict"], outputs["status"]) == (1, "RED", "1"), printed
    titles = [one.properties["title"] for one in commands(printed.splitlines())]
    assert titles == ["turn.completed-once (MUST)"]
    assert b"turn.completed-once" in job.uploaded["out/here/report.html"]
    worst = "1. `turn.completed-once`: expected `one turn/completed for turn turn_"
    assert f"`spec`: RED\n\n{worst}" in job.summary()
    (job.temporary / "summary.md").unlink()
    known = '[[deviations]]\nrule = "turn.completed-once"\nreason = "told"\n'
    (job.folder / "known.toml").write_text(known, "utf-8")
    status, printed, outputs = job.use(**given, baseline="known.toml", max_time="500", artifact="")
    assert (job.uploaded, outputs["page"]) == ({}, "")
    assert job.summary().startswith("\n## Conformance of `spec`: GREEN")
    assert (status, outputs["verdict"], outputs["reports"]) == (0, "GREEN", "out/here"), printed


def test_a_transcript_that_is_not_reviewed_fails_the_step_and_is_told_in_the_summary(
    job: Job,
) -> None:
    server = f"{sys.executable} minimal.py"
    given = {"server_cmd": server, "scenarios": "turns/plain-turn", "snapshots": "my kept"}
    status, printed, outputs = job.use(**given)
    assert (status, outputs["verdict"]) == (1, "RED"), printed
    assert "snapshots.pending" in printed
    assert "`spec/turns/plain-turn`" in job.summary()
    harness = job.temporary / "agent-session-harness/bin/harness"
    said = run([harness, "snapshots", "review", "my kept", "--accept-all"], cwd=job.folder)
    assert said.out == "accepted spec/turns/plain-turn\nnothing waits for review\n"
    status, printed, outputs = job.use(**given)
    assert (status, outputs["verdict"]) == (0, "GREEN"), printed
    minimal = job.folder / "minimal.py"
    tells = '        self.notify(thread, "turn/started", turn=turn)\n'
    more = '        self.notify(thread, "turn/plan/updated", turnId=turn["id"], plan=[])\n'
    minimal.write_text(minimal.read_text("utf-8").replace(tells, tells + more), "utf-8")
    status, printed, outputs = job.use(**given)
    assert (status, outputs["verdict"]) == (1, "RED"), printed
    assert "one message more: turn/plan/updated after turn/started" in job.summary()


def test_an_input_is_one_word_and_never_a_command(job: Job) -> None:
    hostile = "$(touch pwned); touch pwned #"
    status, printed, outputs = job.use(server_cmd="x", scenarios=hostile, baseline=hostile)
    assert (status, outputs["status"], outputs["verdict"]) == (2, "2", ""), printed
    assert not job.uploaded
    assert not (job.folder / "pwned").exists()


def test_the_scripts_hold_no_expression() -> None:
    assert not [step for step in ACTION["runs"]["steps"] if "${{" in step.get("run", "")]


def test_the_page_names_each_input_and_its_default() -> None:
    text = PAGE.read_text("utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \| .* \| (.*?) ?\|$", text, re.M))
    assert {name for name in rows if name in ACTION["inputs"]} == set(ACTION["inputs"])
    for name, one in ACTION["inputs"].items():
        if one["default"]:
            assert rows[name] == f"`{one['default']}`"
    used = yaml.safe_load(RECIPES[".github/workflows/conformance.yml"])
    (given,) = (
        step["with"]
        for step in used["jobs"]["conformance"]["steps"]
        if "agent-session-harness" in step["uses"]
    )
    assert set(given) <= set(ACTION["inputs"])


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ("github-actions", "action.yml"),
        ("github-workflows", ".github/workflows/conformance.yml"),
        ("github-workflows", ".github/workflows/shards.yml"),
        ("gitlab-ci", ".gitlab-ci.yml"),
    ],
)
def test_the_file_fits_its_schema(schema: str, name: str, tmp_path: Path) -> None:
    text = RECIPES[name] if name in RECIPES else (ROOT / name).read_text("utf-8")
    broken = text.replace("runs:", "run:").replace("  script:", "  scripts:")
    broken = broken.replace("runs-on:", "runs-onn:")
    for content, status in ((text, 0), (broken, 1)):
        path = tmp_path / Path(name).name
        path.write_text(content, "utf-8")
        check = [sys.executable, "-m", "check_jsonschema"]
        said = run([*check, "--builtin-schema", f"vendor.{schema}", str(path)], cwd=tmp_path)
        assert said.status == status, said.out
