"""Writes harness/search/mutation/occasions.yaml: which scenarios give each fault a place.

    python -m tools.occasions .harness/mutation/reference.json

The file is what `harness mutate --json` wrote of a whole run on the reference server. Of all places
few scenarios are kept, the quickest that serve most; a fault that the run did not kill keeps those
that it had.
"""

import json
import sys
from pathlib import Path
from typing import Any

from harness.faults.base import all_faults
from harness.search.mutation.occasions import covering, known_occasions

PAGE = Path("harness/search/mutation/occasions.yaml")
# So many scenarios are kept of a fault.
MAX_SCENARIOS = 3
HEAD = """\
# Where each fault has a place on the reference server, the quickest scenario first. A mutation run
# looks there first. Written by `python -m tools.occasions` from a run of `make mutate`.
"""


def occasions(results: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The scenarios of each fault, by what a run found."""
    places = {one["fault"]: _places(one) for one in results}
    seconds: dict[str, float] = {}
    for one in results:
        for made in one["attempts"]:
            taken = seconds.get(made["scenario"], made["seconds"])
            seconds[made["scenario"]] = max(taken, made["seconds"])
    chosen = covering(places, seconds)
    found = {
        fault: [scenario for scenario in ids if scenario in chosen][:MAX_SCENARIOS]
        for fault, ids in places.items()
    }
    known = known_occasions()
    return {
        fault: found.get(fault) or list(known.get(fault, ()))
        for fault in all_faults()
        if found.get(fault) or known.get(fault)
    }


def _places(result: dict[str, Any]) -> list[str]:
    """Return where it was killed, then where it had a place; not where it was missed."""
    if result["outcome"] != "KILLED":
        return []
    *missed, killed = [one["scenario"] for one in result["attempts"]]
    places = dict.fromkeys([killed, *result["places"]])
    return [one for one in places if one == killed or one not in missed]


def main() -> None:
    """Write the table."""
    results = json.loads(Path(sys.argv[1]).read_text("utf-8"))["faults"]
    lines = [f"{fault}: [{', '.join(ids)}]\n" for fault, ids in occasions(results).items()]
    PAGE.write_text(HEAD + "".join(lines), "utf-8")


if __name__ == "__main__":
    main()
