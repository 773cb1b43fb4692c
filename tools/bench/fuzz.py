"""Fuzzing as the project does it: `python -m tools.bench.fuzz FOLDER` prints one JSON object.

Here lives the counting of requests while generated ones go to one shared reference server, each
conversation judged by all rules. Homes and workspaces are made in the folder.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.fuzz.campaign import open_fuzzer
from harness.runner.config import configure

CONVERSATIONS = 60


def measure(folder: Path, conversations: int = CONVERSATIONS) -> dict[str, Any]:
    """Run so many after one that warms the server: requests/s, conversations, how many broke."""
    config = replace(configure(target="reference"), base=folder)
    with open_fuzzer(config) as fuzzer:
        fuzzer.hold(())
        began = time.perf_counter()
        campaign = fuzzer.search(1, conversations)
        took = time.perf_counter() - began
    return {
        "requests_per_second": campaign.requests / took,
        "conversations": campaign.conversations,
        "broken": int(campaign.worst is not None),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(Path(sys.argv[1]))) + "\n")
