"""Time and memory of `harness merge` with made shards: `python -m tools.bench.shards 1000 1000`.

The arguments are the number of shards and of rows in each; a row is a subject that failed a SHOULD.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from harness.client.target.profile import Profile
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.json_form import DISTRIBUTION, to_plain
from harness.report.results.merge import merge
from harness.report.results.outcome import ScenarioOutcome
from harness.report.shards.values import IDS, VERSION, Shard, digest

ROWS_OF_A_SCENARIO = 20


def write_shards(folder: Path, shards: int, rows: int) -> list[str]:
    """Write the reports of made shards; return their names."""
    rules, book, scenarios = all_rules(), load_book(), max(1, rows // ROWS_OF_A_SCENARIO)
    ids = [f"made/s{n}-{m}" for n in range(shards) for m in range(scenarios)]
    conditions = {VERSION: version(DISTRIBUTION), IDS: f"{len(ids)} ({digest(sorted(ids))})"}
    profile, names = Profile(name="made", command=["made"], capabilities="probe"), list(rules)
    for number in range(shards):
        items = ids[number * scenarios : (number + 1) * scenarios]
        outcomes = [
            ScenarioOutcome(name, f"/made/{name}", name, Verdict.PASS, played=True, rows=made)
            for name in items
            for made in [
                [
                    Row(names[n % len(names)], f"turn {n}", Verdict.FAIL, Level.SHOULD, (n,))
                    for n in range(min(rows, ROWS_OF_A_SCENARIO))
                ]
            ]
        ]
        shard = Shard(number + 1, shards, conditions, items)
        report = merge(
            outcomes, (), profile=profile, entries=(), rules=rules, book=book, shard=shard
        )
        report.started = "2026-01-01T00:00:00Z"
        (folder / f"{number + 1}.json").write_text(json.dumps(to_plain(report)), "utf-8")
    return [f"{number + 1}.json" for number in range(shards)]


def main(shards: int, rows: int) -> None:
    """Print the seconds of a merge and the most memory that it held."""
    with tempfile.TemporaryDirectory() as name:
        names = write_shards(Path(name), shards, rows)
        size = sum((Path(name) / one).stat().st_size for one in names)
        command = [Path(sys.executable).with_name("harness"), "merge", *names, "--json", "all.json"]
        begun = time.monotonic()
        done = subprocess.run(command, cwd=name, stdout=subprocess.PIPE, check=False)
        took = time.monotonic() - begun
        merged = json.loads((Path(name) / "all.json").read_text("utf-8"))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    counted = sum(rule["subjects"] for rule in merged["rules"])
    cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    sys.stdout.write(
        f"{shards} shards, {size / 1e6:.0f} MB: status {done.returncode}, "
        f"{len(merged['scenarios'])} scenarios, {counted} of {shards * rows} rows\n"
        f"{took:.1f} s, {cpu:.1f} s of CPU, {memory:.0f} MB\n"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
