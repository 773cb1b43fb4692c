"""Generator of harness/search/mutation/occasions.yaml: scenarios in which each fault can act.

    python -m tools.occasions .harness/mutation/reference.json

The argument is the output of `harness mutate --json` for a whole run on the reference server. For
each fault it keeps few scenarios, preferring quick ones that serve many faults; a fault that the
run did not kill keeps its previous ones.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.faults.base import all_faults
from harness.search.mutation.campaign import covering_scenarios, known_occasions

PAGE = Path("harness/search/mutation/occasions.yaml")
# Scenarios kept for each fault.
MAX_SCENARIOS = 3
HEAD = """\
# The occasions of each fault: scenarios in which it can act on the reference server, the quickest
# first. A mutation run looks there first. Written by `python -m tools.occasions` from a run of
# `make mutate`.
"""


def occasions(results: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the scenarios to keep for each fault, given the results of a mutation run."""
    places = {result["fault"]: _places(result) for result in results}
    seconds: dict[str, float] = {}
    for result in results:
        for attempt in result["attempts"]:
            slowest = seconds.get(attempt["scenario"], attempt["seconds"])
            seconds[attempt["scenario"]] = max(slowest, attempt["seconds"])
    chosen = covering_scenarios(places, seconds)
    places_kept = {
        fault: [scenario for scenario in ids if scenario in chosen][:MAX_SCENARIOS]
        for fault, ids in places.items()
    }
    earlier = known_occasions()
    return {
        fault: places_kept.get(fault) or list(earlier.get(fault, ()))
        for fault in all_faults()
        if places_kept.get(fault) or earlier.get(fault)
    }


def _places(result: dict[str, Any]) -> list[str]:
    """Return the scenario that killed the fault, then others in which it can act.

    Without those in which it was missed; [] if it was not killed.
    """
    if result["outcome"] != "KILLED":
        return []
    *missed, killed = [one["scenario"] for one in result["attempts"]]
    places = dict.fromkeys([killed, *result["places"]])
    return [one for one in places if one == killed or one not in missed]


def write(table: Mapping[str, Sequence[str]]) -> None:
    """Write the table to occasions.yaml; the current directory must be the project's root."""
    lines = [f"{fault}: [{', '.join(ids)}]\n" for fault, ids in table.items()]
    PAGE.write_text(HEAD + "".join(lines), "utf-8")


if __name__ == "__main__":
    write(occasions(json.loads(Path(sys.argv[1]).read_text("utf-8"))["faults"]))
