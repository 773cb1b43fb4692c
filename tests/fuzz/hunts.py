"""Runs of `harness fuzz` on the first ten broken servers: `make hunts`.

With each of five seeds it must find each bug within a minute, as a case of at most ten steps that
fails on the broken server and passes on correct ones. That takes an hour, so it is not part of
other targets; `make hunts SEEDS=1` takes a fifth of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.broken_servers.registry import FURTHER, HUNTED, every

SERVER = Path(__file__).with_name("broken_servers")
SOUND = f"'{sys.executable}' -m reference_server app-server"
SEEDS = [int(seed) for seed in (os.environ.get("SEEDS") or "1 2 3 4 5").split()]
SECONDS = os.environ.get("SECONDS_EACH", "60")
MAX_STEPS = 10
NAMES = every(FURTHER if os.environ.get("OTHERS") else HUNTED)

pytestmark = [pytest.mark.fuzz, pytest.mark.slow, pytest.mark.socket, pytest.mark.timeout(900)]


def harness(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *words, "--target", "reference"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_found_and_shrunk(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broken = f"'{sys.executable}' '{SERVER}' {name} app-server"
    bounds = ("--what", "sessions", "--max-time", SECONDS, "--seed", str(seed))
    ran = harness("fuzz", "--server-cmd", broken, *bounds, "--json", "-")
    assert ran.stdout, (ran.returncode, ran.stderr)
    told: dict[str, Any] = json.loads(ran.stdout)
    assert (ran.returncode, told["verdict"]) == (1, "RED"), (told["searches"], ran.stderr)
    sound = [harness("replay", one["id"], "--server-cmd", SOUND) for one in told["failures"]]
    assert [one.stdout for one in sound if one.returncode] == [], "the sound server is told so too"
    small = [one for one in told["failures"] if len(one["document"]["client"]) <= MAX_STEPS]
    assert small, {one["cause"]: len(one["document"]["client"]) for one in told["failures"]}
    again = [harness("replay", one["id"], "--server-cmd", broken) for one in small]
    assert any("fails" in one.stdout for one in again), [one.stdout for one in again]
