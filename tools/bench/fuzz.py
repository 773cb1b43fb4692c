"""Fuzzing as the project does it: `python -m tools.bench.fuzz FOLDER` prints one JSON object.

Homes and workspaces are made in the folder.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.play.config import configure
from harness.play.interruption import Interruption
from harness.search.fuzz.documents import search_documents
from harness.search.fuzz.sessions.search import Found

CONVERSATIONS = 60
# The number of conversations is the bound; the benchmark ends one that takes longer.
ENDLESS = 10.0**8


def measure(folder: Path, conversations: int = CONVERSATIONS) -> dict[str, Any]:
    """Play so many, the server's start among them: requests/s, conversations, how much broke."""
    config = replace(configure(target="reference"), base=folder)
    found: list[Found] = []
    campaign = search_documents(
        "inputs", config, 1, ENDLESS, Interruption(folder), found.append, cases=conversations
    )
    return {
        "requests_per_second": campaign.requests / campaign.seconds,
        "conversations": campaign.cases,
        "broken": len(found),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(Path(sys.argv[1]))) + "\n")
