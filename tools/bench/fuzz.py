"""The speed of fuzzing: `python -m tools.bench.fuzz FOLDER` prints it as one JSON object.

Homes and workspaces are created in FOLDER.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.play.config import configure
from harness.play.interruption import Interruption
from harness.search.fuzz.documents import search_documents
from harness.search.fuzz.sessions.search import FoundFailure

CONVERSATIONS = 60
# No time limit: the number of conversations ends the run, and `suite` kills one that hangs.
ENDLESS = 10.0**8


def measure(folder: Path, conversations: int = CONVERSATIONS) -> dict[str, Any]:
    """Play generated conversations, server start included; return rate, count and failures."""
    config = replace(configure(target="reference"), base=folder)
    findings: list[FoundFailure] = []
    campaign = search_documents(
        "inputs", config, 1, ENDLESS, Interruption(folder), findings.append, cases=conversations
    )
    return {
        "requests_per_second": campaign.requests / campaign.seconds,
        "conversations": campaign.cases,
        "broken": len(findings),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(Path(sys.argv[1]))) + "\n")
