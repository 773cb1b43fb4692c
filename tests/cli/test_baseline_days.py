"""`expires` in a baseline file: the entry counts up to that day; an invalid date is an error."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command_line import ROOT, Said, call

pytestmark = [pytest.mark.slow, pytest.mark.socket]

TWICE = f"python {ROOT}/fixtures/servers/twice.py python {ROOT}/fixtures/servers/minimal.py"
RULE = "turn.completed-once"
DAY = datetime.now(UTC).date()


def run(folder: Path, expires: str, *words: str) -> Said:
    known = f'[[deviations]]\nrule = "{RULE}"\nreason = "told to them"\nexpires = {expires}\n'
    (folder / "known.toml").write_text(known, "utf-8")
    options = ["--server-cmd", TWICE, "--baseline", "known.toml", "turns/plain-turn", *words]
    return call("harness", "run", *options, cwd=folder)


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(
    ("days", "status", "finding", "verdict"),
    [
        (100, 0, "", "KNOWN"),
        (7, 0, "baseline.expires-soon", "KNOWN"),
        (-2, 1, "baseline.expired", "FAIL"),
    ],
)
def test_an_entry_counts_until_its_day(
    tmp_path: Path, days: int, status: int, finding: str, verdict: str, workers: str
) -> None:
    said = run(tmp_path, str(DAY + timedelta(days=days)), "-n", workers)
    assert said.status == status, said.out
    told = [line for line in said.out.splitlines() if line.startswith("INFO baseline.")]
    assert [line.split(":")[0].split()[1] for line in told] == ([finding] if finding else [])
    assert any(line.startswith(f"{verdict} {RULE}") for line in said.out.splitlines())


@pytest.mark.parametrize("value", ['"2027-01-31"', "20270131", "true"])
def test_an_invalid_day_is_refused_at_its_place(tmp_path: Path, value: str) -> None:
    said = run(tmp_path, value)
    assert said.status == 2
    assert said.err.strip().splitlines()[-1] == (
        "ERROR: known.toml:4:11: deviations.expires: "
        "it should be a day such as 2027-01-31, without quotes"
    )
