"""Costs of the harness: suite, races, mutation, rules, fuzzing; each runs as a process.

After a failure the cells of a measurement hold its reason.
"""

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


def measure_suite(folder: Path) -> Cells:
    """Measure `harness run --target reference` with the bundled session scenarios."""
    run_folder = folder / "suite"
    run_folder.mkdir()
    command = [sys.executable, "-m", "harness.cli.main", "run", "--target", "reference"]
    command += ["-v", "--json", "report.json"]
    try:
        began, before = monotonic(), cpu_of_children()
        run([*command, *map(str, session_areas())], run_folder, SUITE_BOUND)
        took, busy = monotonic() - began, cpu_of_children() - before
        report = json.loads((run_folder / "report.json").read_text("utf-8"))
        starts = starts_of(report, traces_of(report, run_folder))
        return suite_cells(report, took) | {
            "suite-cpu": Figure(busy, note="the harness, its servers and their commands"),
            "suite-starts": Figure(sum(starts.values())),
        }
    except (MeasurementFailed, OSError, ValueError, KeyError) as error:
        return dict.fromkeys(KEYS, Absent(f"failed: {error}"))


def suite_cells(report: Any, took: float) -> Cells:
    """Return the cells of a report: seconds of the run, milliseconds of its plainest scenario."""
    scenarios = report["scenarios"]
    passed = sum(scenario["verdict"] in ("PASS", "KNOWN") for scenario in scenarios)
    note = f"{len(scenarios)} scenarios, lanes by the cores"
    if passed < len(scenarios):
        note += f", only {passed} passed"
    cells: Cells = {"suite": Figure(took, note=note)}
    for scenario in scenarios:
        if scenario["id"] == TRIVIAL:
            cells["scenario"] = Figure(scenario["seconds"] * 1000, note="50 ms of it silence")
    return cells


def measure_races(folder: Path) -> Cells:
    """Measure `harness run --target reference --race all`."""
    run_folder = folder / "races"
    run_folder.mkdir()
    command = [sys.executable, "-m", "harness.cli.main", "run", "--target", "reference"]
    try:
        began = monotonic()
        words = ["--race", "all", "-n", str(WORKERS), "--json", "report.json"]
        run([*command, *words], run_folder, RACES_BOUND)
        took = monotonic() - began
        return races_cells(json.loads((run_folder / "report.json").read_text("utf-8")), took)
    except (MeasurementFailed, OSError, ValueError, KeyError) as error:
        return {"races": Absent(f"failed: {error}")}


def races_cells(report: Any, took: float) -> Cells:
    """Return the cell of a report of races: `took` seconds, with the numbers of placements."""
    placements = [one for race in report["races"] for one in race["placements"]]
    passed = sum(one["verdict"] in ("PASS", "KNOWN") for one in placements)
    plays = sum(one["runs"] for one in placements)
    note = f"{len(placements)} placements, {plays} plays, {WORKERS} workers"
    if passed < len(placements):
        note += f", only {passed} passed"
    return {"races": Figure(took, note=note)}


def measure_mutation(folder: Path) -> Cells:
    """Measure `harness mutate --target reference`, as `make mutate` runs it."""
    programs = Path(sys.executable).parent
    command = [sys.executable, "-m", "harness.cli.main", "mutate", "--target", "reference"]
    command += ["-n", str(WORKERS), "--server-cmd", f"{programs / 'agent'} app-server"]
    command += ["--agent-cmd", str(programs / "agent")]
    command += ["--sdk-cmd", f"{sys.executable} {CHECKOUT / DRIVER}"]
    run_folder = folder / "mutation"
    run_folder.mkdir()
    try:
        began = monotonic()
        run([*command, "--json", "score.json"], run_folder, MUTATION_BOUND)
        took = monotonic() - began
        return mutation_cells(json.loads((run_folder / "score.json").read_text("utf-8")), took)
    except (MeasurementFailed, OSError, ValueError, KeyError) as error:
        return {"live-mutation": Absent(f"failed: {error}")}


def mutation_cells(score: Any, took: float) -> Cells:
    """Return the cell of a mutation score: `took` seconds, with the number of killed faults."""
    note = f"{score['planned']} faults, {score['counts']['KILLED']} killed, {WORKERS} workers"
    return {"live-mutation": Figure(took, note=note)}


def measure_rules() -> Cells:
    """Run `tools.bench.rules` and return its cells."""
    try:
        result = _run_module("tools.bench.rules")
    except (MeasurementFailed, OSError, ValueError) as error:
        return {"rules": Absent(f"failed: {error}")}
    note = f"{result['rules']} rules"
    if result["broken"]:
        note += f", found {', '.join(result['broken'])}"
    return {
        "rules": Figure(result["frames_per_second"], note=note),
        "rules-memory": Figure(result["bytes_per_frame"], note=f"{result['frames']:,} frames"),
    }


def measure_fuzzing(folder: Path) -> Cells:
    """Run `tools.bench.fuzz` and return its cell."""
    try:
        result = _run_module("tools.bench.fuzz", str(folder))
    except (MeasurementFailed, OSError, ValueError) as error:
        return {"fuzzing": Absent(f"failed: {error}")}
    note = f"all methods, {result['conversations']} conversations"
    if result["broken"]:
        note += f", {result['broken']} broke a MUST"
    return {"fuzzing": Figure(result["requests_per_second"], note=note)}


def _run_module(module: str, *arguments: str) -> Any:
    """Run a module of the benchmark and return the JSON that it prints."""
    return json.loads(run([sys.executable, "-m", module, *arguments], CHECKOUT, PART_BOUND))
