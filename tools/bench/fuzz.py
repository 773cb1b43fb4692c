"""Fuzzing as the project does it: `python -m tools.bench.fuzz FOLDER` prints one JSON object.

Here lives the counting of requests while generated parameters go to one shared reference server,
each conversation judged by all rules. Homes and workspaces are made in the folder.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings

from harness.fuzz.live import send_turn
from harness.fuzz.turn_params import turn_params
from harness.suite.bench import open_bench
from harness.suite.session import configure
from harness.trace.frame import Direction, Kind

EXAMPLES = 60
FIRST: dict[str, Any] = {"input": [{"type": "text", "text": "go"}]}
"""Starts the server and warms it; not counted."""


def measure(folder: Path, examples: int = EXAMPLES) -> dict[str, Any]:
    """Run so many examples after a first one: requests/s, conversations, how many broke a MUST."""
    config = configure(target="reference")
    bench_of = open_bench(config.profile, config.book, base=folder, worker="fuzz")
    requests = conversations = broken = 0
    began = 0.0
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(bench_of) as bench,
    ):

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(params=turn_params())
        def converse(params: dict[str, Any]) -> None:
            nonlocal requests, conversations, broken
            fuzzed = portal.call(send_turn, bench, config.book, config.rules, params)
            frames = fuzzed.run.trace.frames
            requests += sum(
                frame.kind is Kind.REQUEST and frame.direction is Direction.TO_TARGET
                for frame in frames
            )
            conversations += 1
            broken += bool(fuzzed.violations)

        portal.call(send_turn, bench, config.book, config.rules, FIRST)
        began = time.perf_counter()
        converse()
        took = time.perf_counter() - began
    return {
        "requests_per_second": requests / took,
        "conversations": conversations,
        "broken": broken,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(Path(sys.argv[1]))) + "\n")
