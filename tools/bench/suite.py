"""Costs of the project's own work: the suite, the rules, fuzzing; each a process of its own."""

import json
import sys
from pathlib import Path
from typing import Any

from tools.bench.client import MeasurementFailed, monotonic
from tools.bench.processes import cpu_of_children, run
from tools.bench.stats import Absent, Cell, Figure
from tools.bench.where import session_areas, starts_of, traces_of

CHECKOUT = Path(__file__).parents[2]
WORKERS = 2
KEYS = ("suite", "suite-cpu", "suite-starts", "scenario")
SUITE_BOUND = 400.0
RACES_BOUND = 400.0
MUTATION_BOUND = 900.0
PART_BOUND = 40.0
TRIVIAL = "turns/plain-turn"
DRIVER = "fixtures/sdk_drivers/python_driver.py"

Cells = dict[str, Cell]


def suite(folder: Path) -> Cells:
    """`harness run --target reference` in an empty folder, with the bundled sessions."""
    here = folder / "suite"
    here.mkdir()
    command = [sys.executable, "-m", "harness.cli.main", "run", "--target", "reference"]
    command += ["-v", "--json", "report.json"]
    try:
        began, before = monotonic(), cpu_of_children()
        run([*command, *map(str, session_areas())], here, SUITE_BOUND)
        took, busy = monotonic() - began, cpu_of_children() - before
        report = json.loads((here / "report.json").read_text("utf-8"))
        starts = starts_of(report, traces_of(report, here))
        return suite_cells(report, took) | {
            "suite-cpu": Figure(busy, note="the harness, its servers and their commands"),
            "suite-starts": Figure(sum(starts.values())),
        }
    except (MeasurementFailed, OSError, ValueError, KeyError) as error:
        return dict.fromkeys(KEYS, Absent(f"failed: {error}"))


def suite_cells(report: Any, took: float) -> Cells:
    """The figures of one report: wall seconds of the run, and of its plainest scenario."""
    scenarios = report["scenarios"]
    passed = sum(one["verdict"] in ("PASS", "KNOWN") for one in scenarios)
    note = f"{len(scenarios)} scenarios, lanes by the cores"
    if passed < len(scenarios):
        note += f", only {passed} passed"
    cells: Cells = {"suite": Figure(took, note=note)}
    for one in scenarios:
        if one["id"] == TRIVIAL:
            cells["scenario"] = Figure(one["seconds"] * 1000, note="50 ms of it silence")
    return cells


def races(folder: Path) -> Cells:
    """`harness run --target reference --race all` in an empty folder."""
    here = folder / "races"
    here.mkdir()
    command = [sys.executable, "-m", "harness.cli.main", "run", "--target", "reference"]
    try:
        began = monotonic()
        words = ["--race", "all", "-n", str(WORKERS), "--json", "report.json"]
        run([*command, *words], here, RACES_BOUND)
        took = monotonic() - began
        return races_cells(json.loads((here / "report.json").read_text("utf-8")), took)
    except (MeasurementFailed, OSError, ValueError, KeyError) as error:
        return {"races": Absent(f"failed: {error}")}


def races_cells(report: Any, took: float) -> Cells:
    """The figure of one report: wall seconds of all placements."""
    placements = [one for race in report["races"] for one in race["placements"]]
    passed = sum(one["verdict"] in ("PASS", "KNOWN") for one in placements)
    plays = sum(one["runs"] for one in placements)
    note = f"{len(placements)} placements, {plays} plays, {WORKERS} workers"
    if passed < len(placements):
        note += f", only {passed} passed"
    return {"races": Figure(took, note=note)}


def mutation(folder: Path) -> Cells:
    """`harness mutate --target reference`, as `make mutate` has it."""
    beside = Path(sys.executable).parent
    command = [sys.executable, "-m", "harness.cli.main", "mutate", "--target", "reference"]
    command += ["-n", str(WORKERS), "--server-cmd", f"{beside / 'agent'} app-server"]
    command += ["--agent-cmd", str(beside / "agent")]
    command += ["--sdk-cmd", f"{sys.executable} {CHECKOUT / DRIVER}"]
    here = folder / "mutation"
    here.mkdir()
    try:
        began = monotonic()
        run([*command, "--json", "score.json"], here, MUTATION_BOUND)
        took = monotonic() - began
        return mutation_cells(json.loads((here / "score.json").read_text("utf-8")), took)
    except (MeasurementFailed, OSError, ValueError, KeyError) as error:
        return {"live-mutation": Absent(f"failed: {error}")}


def mutation_cells(score: Any, took: float) -> Cells:
    """The figure of one score: wall seconds of the run."""
    note = f"{score['planned']} faults, {score['counts']['KILLED']} killed, {WORKERS} workers"
    return {"live-mutation": Figure(took, note=note)}


def rules() -> Cells:
    """All rules together, fed by `tools.bench.rules`."""
    try:
        found = _printed("tools.bench.rules")
    except (MeasurementFailed, OSError, ValueError) as error:
        return {"rules": Absent(f"failed: {error}")}
    note = f"{found['rules']} rules"
    if found["broken"]:
        note += f", found {', '.join(found['broken'])}"
    return {
        "rules": Figure(found["frames_per_second"], note=note),
        "rules-memory": Figure(found["bytes_per_frame"], note=f"{found['frames']:,} frames"),
    }


def fuzzing(folder: Path) -> Cells:
    """Generated requests to a shared reference server, by `tools.bench.fuzz`."""
    try:
        found = _printed("tools.bench.fuzz", str(folder))
    except (MeasurementFailed, OSError, ValueError) as error:
        return {"fuzzing": Absent(f"failed: {error}")}
    note = f"all methods, {found['conversations']} conversations"
    if found["broken"]:
        note += f", {found['broken']} broke a MUST"
    return {"fuzzing": Figure(found["requests_per_second"], note=note)}


def _printed(module: str, *arguments: str) -> Any:
    """Run a module of the benchmark and read the JSON it prints."""
    return json.loads(run([sys.executable, "-m", module, *arguments], CHECKOUT, PART_BOUND))
