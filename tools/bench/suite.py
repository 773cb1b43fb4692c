"""What the project's own work takes: the suite, the rules, fuzzing; each a process of its own.

Here live starting them and the reading of what they wrote.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tools.bench.client import MeasurementFailed, monotonic
from tools.bench.processes import run
from tools.bench.stats import Absent, Cell, Figure

CHECKOUT = Path(__file__).parents[2]
DEMO_WORKERS = 3
"""As `make demo` has it."""
WORKERS = 2
SUITE_BOUND = 90.0
RACES_BOUND = 400.0
PART_BOUND = 40.0
TRIVIAL = "turns/plain-turn"

Cells = dict[str, Cell]


def suite(folder: Path) -> Cells:
    """`harness run --target reference` in an empty folder, with the bundled scenarios."""
    here = folder / "suite"
    here.mkdir()
    command = [sys.executable, "-m", "harness.cli", "run", "--target", "reference"]
    try:
        began = monotonic()
        run([*command, "-v", "-n", str(DEMO_WORKERS), "--json", "report.json"], here, SUITE_BOUND)
        took = monotonic() - began
        report = json.loads((here / "report.json").read_text("utf-8"))
        return suite_cells(report, took)
    except (MeasurementFailed, OSError, ValueError, KeyError) as error:
        return {"suite": Absent(f"failed: {error}")}


def suite_cells(report: Any, took: float) -> Cells:
    """The figures of one report: wall seconds of the run, and of its plainest scenario."""
    scenarios = report["scenarios"]
    passed = sum(one["verdict"] in ("PASS", "KNOWN") for one in scenarios)
    note = f"{len(scenarios)} scenarios, {DEMO_WORKERS} workers"
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
    command = [sys.executable, "-m", "harness.cli", "run", "--target", "reference"]
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
